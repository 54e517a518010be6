"""One running server for all tests that do not harm it."""

from __future__ import annotations

import pytest

from serving import serve


@pytest.fixture(scope="session")
def minilm_server(minilm_folder):
    with serve("--model-id", str(minilm_folder), "--dtype", "float32", "--served-model-name", "minilm") as server:
        server.wait_until_ready()
        yield server
