from __future__ import annotations

import errno
import importlib
import json
import logging
import os
import random
from dataclasses import replace

import pytest

from hub_server import HubServer, Repository
from infinity_emb.errors import (
    AccessDeniedError,
    CheckpointError,
    HubNetworkError,
    HubOfflineError,
    RepositoryNotFoundError,
    StorageError,
)
from infinity_emb.models.hub import Wanted, resolve
from infinity_emb.progress import PROGRESS

pytestmark = pytest.mark.usefixtures("_hub_client")

MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
]
WEIGHTS = random.Random(7).randbytes(400_000)
FILES = {
    "config.json": b'{"model_type": "bert"}',
    "modules.json": json.dumps(MODULES).encode(),
    "1_Pooling/config.json": b"{}",
    "tokenizer.json": b"{}",
    "model.safetensors": WEIGHTS,
    "pytorch_model.bin": b"never",
    "modeling.py": b"never",
    "onnx/model.onnx": b"graph",
}
NEEDED = {"config.json", "modules.json", "1_Pooling/config.json", "tokenizer.json", "model.safetensors"}


@pytest.fixture
def hub():
    with HubServer({"owner/name": Repository(dict(FILES))}) as server:
        yield server


@pytest.fixture
def online(hub, settings):
    return replace(settings, endpoint=hub.url)


def _names(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_repository_is_fetched_with_the_needed_files_only(hub, online):
    found = resolve("owner/name", settings=online, progress=False)
    assert _names(found.path) == NEEDED
    assert (found.path / "model.safetensors").read_bytes() == WEIGHTS
    assert found.revision == hub.repositories["owner/name"].commit
    assert (found.model_id, found.source) == ("owner/name", hub.url)


def test_the_server_can_tell_how_many_bytes_are_there(online):
    needed_bytes = sum(len(FILES[name]) for name in NEEDED)
    PROGRESS.begin("served")
    try:
        resolve("owner/name", settings=online, progress=False)
        step = PROGRESS.step
    finally:
        PROGRESS.end()
    assert (step.model, step.name) == ("served", "fetching")
    assert len(WEIGHTS) <= step.fetched_bytes <= needed_bytes
    assert step.fetched_bytes <= step.total_bytes <= needed_bytes


def test_no_request_carries_telemetry(hub, online):
    resolve("owner/name", settings=online, progress=False)
    agents = {seen.headers["user-agent"] for seen in hub.requests}
    assert all(agent.startswith("infinity_emb/") for agent in agents)
    assert not any("torch/" in agent or "agent/" in agent for agent in agents)
    assert not any("telemetry" in seen.path or "agent" in seen.path for seen in hub.requests)


def test_telemetry_of_the_client_is_off(monkeypatch):
    from huggingface_hub import constants

    from infinity_emb.models.hub import download

    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", False)
    importlib.reload(download)
    assert constants.HF_HUB_DISABLE_TELEMETRY is True


def test_a_current_copy_costs_one_request(hub, online):
    first = resolve("owner/name", settings=online, progress=False)
    hub.requests.clear()
    again = resolve("owner/name", settings=online, progress=False)
    assert again.path == first.path
    assert again.source == "hub cache (current)"
    assert len(hub.requests) == 1


def test_a_newer_commit_is_fetched(hub, online):
    first = resolve("owner/name", settings=online, progress=False)
    hub.repositories["owner/name"].files["config.json"] = b'{"model_type": "roberta"}'
    second = resolve("owner/name", settings=online, progress=False)
    assert first.path != second.path
    assert b"roberta" in (second.path / "config.json").read_bytes()
    assert len(hub.downloads("model.safetensors")) <= 2  # unchanged content is known by its digest


@pytest.mark.parametrize("revision", [None, "main", "commit"])
def test_offline_makes_no_request(hub, online, revision):
    commit = hub.repositories["owner/name"].commit
    resolve("owner/name", settings=online, progress=False)
    hub.requests.clear()
    revision = commit if revision == "commit" else revision
    found = resolve("owner/name", settings=replace(online, offline=True), revision=revision)
    assert found.revision == commit
    assert found.source == "hub cache (offline)"
    assert hub.requests == []


def test_offline_without_a_copy_says_how_to_get_one(hub, online):
    with pytest.raises(HubOfflineError, match="--preload-only"):
        resolve("owner/name", settings=replace(online, offline=True))
    assert hub.requests == []


def test_offline_with_half_a_copy_names_the_missing_file(online):
    found = resolve("owner/name", settings=online, progress=False)
    (found.path / "1_Pooling" / "config.json").unlink()
    with pytest.raises(HubOfflineError, match=r"1_Pooling/config\.json is missing"):
        resolve("owner/name", settings=replace(online, offline=True))


def test_a_branch_is_followed_and_remembered(hub, online):
    hub.repositories["owner/name"].branches = ("refs/pr/1",)
    resolve("owner/name", settings=online, revision="refs/pr/1", progress=False)
    found = resolve("owner/name", settings=replace(online, offline=True), revision="refs/pr/1")
    assert found.revision == hub.repositories["owner/name"].commit


@pytest.mark.parametrize("how", ["closed", 500, 503, "not a hub"])
def test_a_cached_copy_starts_when_the_hub_is_away(hub, online, caplog, how):
    first = resolve("owner/name", settings=online, progress=False)
    settings = online
    if how == "closed":
        settings = replace(online, endpoint="http://127.0.0.1:9")
    elif how == "not a hub":
        hub.answer_everything_with = b"<html>please log in</html>"
    else:
        hub.status = how
    with caplog.at_level(logging.WARNING):
        found = resolve("owner/name", settings=settings, progress=False)
    assert found.path == first.path
    assert found.source == "hub cache (hub not reachable)"
    assert "Starting from the cached copy" in caplog.text


def test_a_cached_copy_starts_when_the_token_has_run_out(hub, online):
    resolve("owner/name", settings=online, progress=False)
    hub.status = 401
    assert resolve("owner/name", settings=online, progress=False).source == "hub cache (hub refused access)"


def test_an_unknown_revision_is_an_error_even_with_a_cached_copy(online):
    resolve("owner/name", settings=online, progress=False)
    with pytest.raises(RepositoryNotFoundError, match="not the revision") as caught:
        resolve("owner/name", settings=online, revision="nope", progress=False)
    assert caught.value.param == "revision"


@pytest.mark.parametrize("token", [None, "hf_other"])
def test_an_unknown_repository_hints_at_typo_and_token(online, token):
    with pytest.raises(RepositoryNotFoundError, match=r"Check the spelling.*HF_TOKEN"):
        resolve("owner/nmae", settings=replace(online, token=token), progress=False)


def test_a_name_without_owner_gets_a_proposal(online):
    with pytest.raises(RepositoryNotFoundError, match="sentence-transformers/paraphrase-x"):
        resolve("paraphrase-x", settings=online, progress=False)


@pytest.mark.parametrize("token", [None, "hf_wrong"])
def test_a_gated_repository_asks_for_licence_and_token(hub, online, token):
    hub.repositories["owner/name"].token = "hf_right"
    with pytest.raises(AccessDeniedError, match=r"licence.*HF_TOKEN"):
        resolve("owner/name", settings=replace(online, token=token), progress=False)


def test_the_token_opens_a_private_repository_and_stays_on_the_hub(hub, online):
    hub.repositories["owner/name"].token = "hf_right"
    hub.repositories["owner/name"].private = True
    resolve("owner/name", settings=replace(online, token="hf_right"), progress=False)
    stored = [seen for seen in hub.requests if seen.path.startswith("/storage/")]
    assert stored
    assert not any("authorization" in seen.headers for seen in stored)


def test_a_download_that_breaks_off_goes_on_where_it_stopped(hub, online, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 50_000)  # what the client writes, and can go on from
    repository = hub.repositories["owner/name"]
    repository.cut_after["model.safetensors"] = 150_000
    repository.cuts["model.safetensors"] = 1
    found = resolve("owner/name", settings=online, progress=False)
    assert (found.path / "model.safetensors").read_bytes() == WEIGHTS
    first, second = hub.downloads("model.safetensors")
    assert "range" not in first.headers
    start = int(second.headers["range"].removeprefix("bytes=").rstrip("-"))
    assert start == 150_000


def test_a_download_that_never_gets_through_leaves_no_model_and_a_later_start_repairs_it(hub, online):
    repository = hub.repositories["owner/name"]
    repository.cut_after["model.safetensors"] = 0
    repository.cuts["model.safetensors"] = 100
    with pytest.raises(HubNetworkError, match="starting again goes on"):
        resolve("owner/name", settings=online, progress=False)
    with pytest.raises(HubOfflineError):
        resolve("owner/name", settings=replace(online, offline=True))
    repository.cuts.clear()
    hub.requests.clear()
    found = resolve("owner/name", settings=online, progress=False)
    assert _names(found.path) == NEEDED
    assert hub.downloads("tokenizer.json") == []  # was complete and is kept


def test_an_update_that_breaks_off_leaves_the_old_copy_in_place(hub, online):
    repository = hub.repositories["owner/name"]
    first = resolve("owner/name", settings=online, progress=False)
    repository.files["model.safetensors"] = b"new" * 1000
    repository.cut_after["model.safetensors"] = 0
    repository.cuts["model.safetensors"] = 100
    assert resolve("owner/name", settings=online, progress=False).path == first.path
    assert resolve("owner/name", settings=replace(online, offline=True)).path == first.path


def test_no_network_is_named_with_the_next_step(settings):
    away = replace(settings, endpoint="http://127.0.0.1:9")
    with pytest.raises(HubNetworkError, match=r"Check the network.*HF_ENDPOINT"):
        resolve("owner/name", settings=away, progress=False)


@pytest.mark.parametrize(
    "page", [b"<html>please log in</html>", b"{}", b"[]", b"3", b'{"id": "x", "sha": "../../x"}', b'{"id": "x"}']
)
def test_something_that_is_no_hub_is_not_believed(hub, online, page):
    hub.answer_everything_with = page
    with pytest.raises(HubNetworkError, match="HF_ENDPOINT"):
        resolve("owner/name", settings=online, progress=False)


def test_access_refused_without_a_reason_asks_for_licence_and_token(hub, online):
    hub.status = 403
    with pytest.raises(AccessDeniedError, match=r"licence.*HF_TOKEN"):
        resolve("owner/name", settings=online, progress=False)


def test_too_many_requests_advise_a_token(hub, online):
    hub.status = 429
    with pytest.raises(HubNetworkError, match=r"429.*HF_TOKEN"):
        resolve("owner/name", settings=online, progress=False)


def test_a_listed_file_that_does_not_exist_is_named(hub, online):
    hub.repositories["owner/name"].listed = ("special_tokens_map.json",)
    with pytest.raises(CheckpointError, match=r"special_tokens_map\.json"):
        resolve("owner/name", settings=online, progress=False)


def test_a_hostile_file_name_writes_nothing(hub, online, tmp_path):
    hub.repositories["owner/name"].listed = ("../../../evil.json",)
    with pytest.raises(CheckpointError, match="outside its folder"):
        resolve("owner/name", settings=online, progress=False)
    assert not any("evil" in name for name in _names(tmp_path))
    assert len(hub.requests) == 1


def test_pickled_weights_are_not_fetched(hub, online):
    del hub.repositories["owner/name"].files["model.safetensors"]
    del hub.repositories["owner/name"].files["onnx/model.onnx"]
    with pytest.raises(CheckpointError, match="pickle"):
        resolve("owner/name", settings=online, progress=False)
    assert hub.downloads("pytorch_model.bin") == []
    found = resolve("owner/name", settings=online, progress=False, wanted=Wanted(pickle=True))
    assert (found.path / "pytorch_model.bin").is_file()


def test_the_onnx_graph_is_fetched_when_asked_for(online):
    found = resolve("owner/name", settings=online, progress=False, wanted=Wanted(onnx=True))
    assert _names(found.path) == {*NEEDED, "onnx/model.onnx"}


def test_a_full_disk_is_named(online, monkeypatch):
    from huggingface_hub import file_download

    def full(*_arguments, **_options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(file_download, "http_get", full)
    with pytest.raises(StorageError, match=r"full.*Free some space"):
        resolve("owner/name", settings=online, progress=False)


def test_a_cache_that_cannot_be_written_is_named(online, monkeypatch):
    from huggingface_hub import file_download

    def refuse(*_arguments, **_options):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(file_download, "http_get", refuse)
    with pytest.raises(StorageError, match="cannot be written"):
        resolve("owner/name", settings=online, progress=False)


def test_a_read_only_cache_with_the_files_is_enough(online, monkeypatch):
    resolve("owner/name", settings=online, progress=False)

    def read_only(*_arguments, **_options):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    for change in ("os.mkdir", "os.makedirs", "os.replace", "os.rename", "os.symlink", "os.unlink"):
        monkeypatch.setattr(change, read_only)
    assert resolve("owner/name", settings=online, progress=False).source == "hub cache (current)"
    assert resolve("owner/name", settings=replace(online, offline=True)).source == "hub cache (offline)"


def test_a_read_only_cache_that_does_not_know_the_branch_is_enough(hub, online, monkeypatch):
    resolve("owner/name", settings=online, progress=False)
    hub.repositories["owner/name"].branches = ("main", "other")

    def read_only(*_arguments, **_options):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("infinity_emb.models.hub.download.write_whole", read_only)
    assert resolve("owner/name", settings=online, revision="other", progress=False).source == "hub cache (current)"


def test_one_folder_for_everything_can_be_given(online, tmp_path):
    found = resolve("owner/name", settings=online, cache_folder=tmp_path / "mine", progress=False)
    assert found.path.is_relative_to(tmp_path / "mine")
