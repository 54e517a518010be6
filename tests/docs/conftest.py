"""The documentation's code runs against a real server."""

from __future__ import annotations

import pytest

from serving import serve


@pytest.fixture(scope="session")
def documented_server(minilm_folder):
    name = "sentence-transformers/all-MiniLM-L6-v2"
    with serve("--model-id", str(minilm_folder), "--served-model-name", name) as server:
        server.wait_until_ready()
        yield server
