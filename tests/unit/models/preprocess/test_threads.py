"""Many threads may use one preprocessor with different options; everybody gets what a single thread gets."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import texts
import tiny
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.preprocess.text import TextPreprocessor
from infinity_emb.models.spec import read_spec
from infinity_emb.types import TextOptions


def test_mixed_calls_from_eight_threads_equal_the_sequential_run(tmp_path):
    folder = tiny.tiny_bert(tmp_path)
    made = TextPreprocessor(read_spec(Checkpoint(folder, str(folder), "local folder")))
    sample = texts.sample(120)
    options = [
        TextOptions(max_length=limit, truncation_side=side) for limit in (None, 7, 20) for side in ("left", "right")
    ]

    def call(number):
        chosen = options[number % len(options)]
        mine = sample[number % 100 :][:9]
        if number % 3 == 0:
            return [one.token_ids.tolist() for one in made.pairs(mine[0], mine, chosen)]
        if number % 3 == 1:
            return made.tokenize(mine)
        return [one.token_ids.tolist() for one in made.texts(mine, chosen)]

    expected = [call(number) for number in range(200)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(call, range(200))) == expected
