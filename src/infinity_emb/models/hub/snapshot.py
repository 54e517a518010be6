"""Repositories that an earlier run, or any other program, left in the hub's cache; read without any request.

Layout: `models--owner--name/refs/<revision>` holds a commit, `models--owner--name/snapshots/<commit>/` the files.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from infinity_emb.errors import CheckpointError, HubOfflineError
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.hub.local import ENTRY_FILES
from infinity_emb.models.hub.modules import MODULES_FILE, is_weightless, module_folders, required_files
from infinity_emb.models.hub.names import is_commit
from infinity_emb.models.hub.selection import SAFE_FILES, Wanted, select

if TYPE_CHECKING:
    from pathlib import Path

    from infinity_emb.models.hub.settings import HubSettings

DEFAULT_REVISION = "main"
_INDEX_FILE = "model.safetensors.index.json"


def repository_folder(hub_cache: Path, repository_id: str) -> Path:
    """Folder of one repository in the cache."""
    return hub_cache / "--".join(("models", *repository_id.split("/")))


def cached_commit(hub_cache: Path, repository_id: str, revision: str | None) -> str | None:
    """Commit that the cache knows for a revision, or None."""
    revision = revision or DEFAULT_REVISION
    if is_commit(revision):
        return revision
    reference = repository_folder(hub_cache, repository_id) / "refs" / revision
    try:
        commit = reference.read_text("utf-8").strip()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, UnicodeDecodeError):
        return None
    return commit if is_commit(commit) else None


def cached_snapshot(hub_cache: Path, repository_id: str, revision: str | None) -> Path | None:
    """Folder of the cached commit, complete or not; None if there is none."""
    commit = cached_commit(hub_cache, repository_id, revision)
    if commit is None:
        return None
    folder = repository_folder(hub_cache, repository_id) / "snapshots" / commit
    return folder if folder.is_dir() else None


def missing_file(folder: Path, *, wanted: Wanted = SAFE_FILES) -> str | None:
    """Name of a file that a snapshot lacks, or None if a model can start from it.

    Raises:
        CheckpointError: All files are there, but one of them is broken or of an unsafe kind.
    """
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    if not names.intersection(ENTRY_FILES):
        return ENTRY_FILES[-1]
    folders: tuple[str, ...] = ()
    needed: list[str] = []
    weightless = False
    if MODULES_FILE in names:
        modules_json = (folder / MODULES_FILE).read_bytes()
        folders = module_folders(modules_json, names)
        needed.extend(required_files(modules_json))
        weightless = is_weightless(modules_json)
    try:
        select(names, folders, wanted, weightless=weightless)
    except CheckpointError as error:
        if error.param in names:
            raise
        return error.param
    if _INDEX_FILE in names and "model.safetensors" not in names:
        needed.extend(_listed_shards(folder / _INDEX_FILE))
    return next((name for name in needed if name not in names), None)


def cached_checkpoint(
    settings: HubSettings,
    repository_id: str,
    revision: str | None,
    *,
    wanted: Wanted = SAFE_FILES,
    note: str = "offline",
) -> Checkpoint | None:
    """The cached copy of a repository if a model can start from it; makes no request.

    Args:
        settings: Where the cache is.
        repository_id: `owner/name`.
        revision: Branch, tag or commit; None is the default branch.
        wanted: Which files beyond the usual are wanted.
        note: Why the hub was not asked; shown with the source.
    """
    folder = cached_snapshot(settings.hub_cache, repository_id, revision)
    if folder is None or missing_file(folder, wanted=wanted) is not None:
        return None
    return Checkpoint(path=folder, model_id=repository_id, source=f"hub cache ({note})", revision=folder.name)


def offline_checkpoint(
    settings: HubSettings, repository_id: str, revision: str | None, *, wanted: Wanted = SAFE_FILES
) -> Checkpoint:
    """The cached copy of a repository when requests are forbidden.

    Raises:
        HubOfflineError: There is no copy that a model can start from.
        CheckpointError: The copy is there, but broken or of an unsafe kind.
    """
    found = cached_checkpoint(settings, repository_id, revision, wanted=wanted)
    if found is not None:
        return found
    folder = cached_snapshot(settings.hub_cache, repository_id, revision)
    state = f"is not in the cache {settings.hub_cache}"
    if folder is not None:
        lacking = missing_file(folder, wanted=wanted)
        state = f"is only half downloaded in the cache {settings.hub_cache} ({lacking} is missing)"
    named = f"{repository_id} at revision {revision}" if revision else repository_id
    raise HubOfflineError(
        f"{named} {state}, and offline mode is on (HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE). "
        f"Fetch it once with a network (infinity_emb v2 --model-id {repository_id} --preload-only), "
        "switch offline mode off, or give a local folder.",
        param="model_id",
    )


def _listed_shards(index: Path) -> list[str]:
    """Weights files that an index promises."""
    try:
        return sorted(set(json.loads(index.read_bytes())["weight_map"].values()))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CheckpointError(
            f"{index} is not an index of weights ({error!r}). Remove the file and start again with a network.",
            param=index.name,
        ) from error
