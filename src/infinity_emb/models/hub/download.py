"""Fetching a repository from the hub: the only module that loads `huggingface_hub`."""

from __future__ import annotations

import glob
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from huggingface_hub import HfApi, constants, hf_hub_download, snapshot_download
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.utils import tqdm as hub_tqdm  # type: ignore[attr-defined] # a class there, not the module

from infinity_emb.errors import AccessDeniedError, CheckpointError, HubNetworkError, LoadError, RepositoryNotFoundError
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.hub.modules import MODULES_FILE, is_weightless, module_folders
from infinity_emb.models.hub.names import is_commit
from infinity_emb.models.hub.selection import SAFE_FILES, Wanted, check_file_names, select
from infinity_emb.models.hub.snapshot import DEFAULT_REVISION, cached_checkpoint, repository_folder
from infinity_emb.models.hub.storage import storage_errors, write_whole
from infinity_emb.models.hub.translate import FOREIGN_ERRORS, WebError, not_a_hub, translate
from infinity_emb.progress import PROGRESS

if TYPE_CHECKING:
    from infinity_emb.models.hub.settings import HubSettings

logger = logging.getLogger(__name__)

# With telemetry on, the client names installed libraries in every request and may fetch a registry of agents.
constants.HF_HUB_DISABLE_TELEMETRY = True


class _Bar(hub_tqdm):
    """The client's progress bar, which also tells the server how many bytes are there, shown or not."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._counts_bytes = options.get("unit") == "B"
        self._done_bytes = int(options.get("initial") or 0)
        super().__init__(*args, **options)  # type: ignore[no-untyped-call]

    def update(self, n: float | None = 1) -> Any:
        """A bar that is not shown counts nothing by itself."""
        if self._counts_bytes:
            self._done_bytes += int(n or 0)
            PROGRESS.fetched(self._done_bytes, int(self.total or 0))
        return super().update(n)


class _SilentBar(_Bar):
    """The same, shown nowhere; the client asks for a class of its own."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "disable": True})


def fetch(
    repository_id: str,
    revision: str | None,
    settings: HubSettings,
    *,
    progress: bool = True,
    wanted: Wanted = SAFE_FILES,
) -> Checkpoint:
    """Bring a repository into the hub's cache, or use the copy there if the hub does not give it out now.

    Raises:
        LoadError: See `infinity_emb.models.hub.resolve`.
    """
    try:
        return _fetch(repository_id, revision, settings, progress=progress, wanted=wanted)
    except LoadError as error:
        refusal = error
    except FOREIGN_ERRORS as error:
        refusal = translate(error, repository_id, revision, settings)
        refusal.__cause__ = error
    cached = _cached_instead(refusal, repository_id, revision, settings, wanted=wanted)
    if cached is None:
        raise refusal
    return cached


def _cached_instead(
    refusal: LoadError, repository_id: str, revision: str | None, settings: HubSettings, *, wanted: Wanted
) -> Checkpoint | None:
    """A complete earlier copy keeps a server starting while the hub is away or a token has run out."""
    if not isinstance(refusal, (HubNetworkError, AccessDeniedError, RepositoryNotFoundError)):
        return None
    if refusal.param == "revision":  # the hub did answer: what was asked for does not exist
        return None
    note = "hub not reachable" if isinstance(refusal, HubNetworkError) else "hub refused access"
    cached = cached_checkpoint(settings, repository_id, revision, wanted=wanted, note=note)
    if cached is not None:
        logger.warning("Starting from the cached copy of %s. %s", repository_id, refusal)
    return cached


def _fetch(
    repository_id: str, revision: str | None, settings: HubSettings, *, progress: bool, wanted: Wanted
) -> Checkpoint:
    """Ask for the commit and the file list, fetch what is needed, then let the revision point to the commit."""
    commit, names = _newest(repository_id, revision, settings)
    folder = repository_folder(settings.hub_cache, repository_id) / "snapshots" / commit
    folders: tuple[str, ...] = ()
    weightless = False
    if MODULES_FILE in names:
        modules_json = _modules_json(repository_id, commit, settings)
        folders, weightless = module_folders(modules_json, names), is_weightless(modules_json)
    needed = select(names, folders, wanted, weightless=weightless)
    source = "hub cache (current)"
    if not _all_there(folder, needed):
        source = settings.endpoint or "Hugging Face hub"
        _download(repository_id, commit, needed, settings, progress=progress)
    if not _all_there(folder, needed):
        lacking = next(name for name in needed if not (folder / name).is_file())
        raise CheckpointError(
            f"{repository_id} was fetched, but {lacking} is not there. Start again; if it stays so, remove {folder}.",
            param=lacking,
        )
    _remember(settings.hub_cache, repository_id, revision or DEFAULT_REVISION, commit)
    return Checkpoint(path=folder, model_id=repository_id, source=source, revision=commit)


def _download(
    repository_id: str, commit: str, names: tuple[str, ...], settings: HubSettings, *, progress: bool
) -> None:
    """Fetch files of a commit; a connection that breaks off gets one more try, which goes on where it stopped.

    Newer clients go on by themselves several times; older ones leave that to the next call.
    """
    options = {
        "revision": commit,
        "cache_dir": settings.hub_cache,
        "allow_patterns": [glob.escape(name) for name in names],
        "tqdm_class": _Bar if progress else _SilentBar,
        **_client_options(settings),
    }
    try:
        snapshot_download(repository_id, **options)
    except WebError as error:
        if isinstance(error, HfHubHTTPError):  # the hub answered; asking again gives the same answer
            raise
        snapshot_download(repository_id, **options)


def _newest(repository_id: str, revision: str | None, settings: HubSettings) -> tuple[str, list[str]]:
    """Commit and file names that the hub has for a revision; checked, because paths are made of both."""
    api = HfApi(endpoint=settings.endpoint, token=settings.token, library_name="infinity_emb")
    try:
        info = api.model_info(repository_id, revision=revision, timeout=settings.timeout_s)
    except (KeyError, TypeError, AttributeError) as error:  # valid JSON, but not the description of a repository
        raise not_a_hub(repository_id, settings) from error
    commit = info.sha or ""
    if not is_commit(commit):
        raise not_a_hub(repository_id, settings)
    names = [sibling.rfilename for sibling in info.siblings or ()]
    check_file_names(names)
    return commit, names


def _client_options(settings: HubSettings) -> dict[str, Any]:
    return {
        "endpoint": settings.endpoint,
        "token": settings.token,
        "etag_timeout": settings.timeout_s,
        "library_name": "infinity_emb",
    }


def _modules_json(repository_id: str, commit: str, settings: HubSettings) -> bytes:
    """Content of `modules.json`; no request if it is cached."""
    path = hf_hub_download(
        repository_id,
        MODULES_FILE,
        revision=commit,
        cache_dir=settings.hub_cache,
        **_client_options(settings),
    )
    return Path(path).read_bytes()


def _all_there(folder: Path, names: tuple[str, ...]) -> bool:
    return all((folder / name).is_file() for name in names)


def _remember(hub_cache: Path, repository_id: str, revision: str, commit: str) -> None:
    """Let the revision point to the commit, for later starts without the hub.

    Only written once every file is there: an update that breaks off leaves the last complete copy in place.
    """
    reference = repository_folder(hub_cache, repository_id) / "refs" / revision
    if is_commit(revision) or (reference.is_file() and reference.read_text("utf-8") == commit):
        return
    try:
        with storage_errors(hub_cache):
            reference.parent.mkdir(parents=True, exist_ok=True)
            write_whole(reference, commit.encode())
    except LoadError as error:  # the model itself is complete; a read-only cache must not keep it from starting
        logger.debug("The cache does not remember %s of %s: %s", revision, repository_id, error)
