"""What can be seen of a running server from outside."""

from __future__ import annotations

import httpx


def test_stages_and_batches_of_a_request_are_in_the_metrics(minilm_server) -> None:
    assert (
        httpx.post(f"{minilm_server.url}/v1/embeddings", json={"input": ["good morning", "a day"]}).status_code == 200
    )
    text = httpx.get(f"{minilm_server.url}/metrics").text
    rows = dict(line.rpartition(" ")[::2] for line in text.splitlines() if line.startswith("infinity_"))
    name = next(key for key in rows if key.startswith("infinity_model_up")).partition("model=")[2].rstrip("}")
    for stage in ("tokenize", "queue", "forward", "respond"):
        assert float(rows[f'infinity_stage_seconds_count{{model={name},stage="{stage}"}}']) >= 1
        assert float(rows[f'infinity_stage_seconds_sum{{model={name},stage="{stage}"}}']) > 0
    assert float(rows[f"infinity_batch_tokens_sum{{model={name}}}"]) > 0
    assert float(rows[f"infinity_batch_fill_ratio_count{{model={name}}}"]) >= 1
