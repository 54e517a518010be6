"""Settings that point every cache into the test's own folder, and a hub client without outside influence."""

from __future__ import annotations

import pytest

from infinity_emb.models.hub import HubSettings


@pytest.fixture
def settings(tmp_path):
    return HubSettings(cache_folder=tmp_path / "own", hub_cache=tmp_path / "hub", timeout_s=5.0)


@pytest.fixture
def _hub_client(monkeypatch):
    """`huggingface_hub` read the environment when it was imported; tests must not depend on that."""
    import huggingface_hub
    from huggingface_hub import constants, file_download

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_IMPLICIT_TOKEN", True)
    monkeypatch.setattr(file_download.time, "sleep", lambda _seconds: None)  # its pause before a resume
    yield
    huggingface_hub.close_session()
