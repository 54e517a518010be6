"""The real command with a backend that does what certain words ask for; everything else is as always."""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

import faults
import numpy as np
from tokenizers import Tokenizer

from infinity_emb.backends import openvino
from infinity_emb.cli import main

_FOLDER = Path(sys.argv[sys.argv.index("--model-id") + 1])
_VOCABULARY = Tokenizer.from_file(str(_FOLDER / "tokenizer.json"))
_IDS = {word: _VOCABULARY.token_to_id(word) for word in faults.WORDS}
_OUT_OF_MEMORY = itertools.cycle([MemoryError(), RuntimeError("CPU out of memory. Tried to allocate 9.31 GiB")])


class _Spoiled:
    """A result with the rows of some texts turned into NaN."""

    def __init__(self, pending, rows) -> None:
        self._pending = pending
        self._rows = rows

    def result(self):
        outputs = {name: array.copy() for name, array in self._pending.result().items()}
        outputs["embedding"][self._rows] = np.nan
        return outputs


class FaultyBackend(openvino.OpenVinoBackend):
    def start(self, arrays):
        ids = arrays["input_ids"]
        present = {word for word, number in _IDS.items() if (ids == number).any()}
        if faults.DIE in present:
            raise SystemExit("the worker was told to die")
        if faults.HANG in present:
            time.sleep(faults.HANG_S)
        if faults.SLEEP in present:
            time.sleep(faults.SLEEP_S)
        if faults.RAISE in present:
            raise RuntimeError("the model cannot do that")
        if faults.MEMORY in present and arrays["segment_ids"].max() > faults.MEMORY_ITEMS:
            raise next(_OUT_OF_MEMORY)
        if faults.BALLOON in present:
            np.ones(faults.BALLOON_BYTES, np.uint8).sum()
        pending = super().start(arrays)
        if faults.NAN not in present:
            return pending
        return _Spoiled(pending, np.unique(arrays["segment_ids"][ids == _IDS[faults.NAN]]) - 1)


openvino.OpenVinoBackend = FaultyBackend  # type: ignore[misc]
sys.exit(main())
