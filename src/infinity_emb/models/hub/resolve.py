"""From what a person wrote after `--model-id` to a folder on this machine."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from infinity_emb.errors import CheckpointError
from infinity_emb.models.hub.embedded import EMBEDDED_NAMES, resolve_embedded
from infinity_emb.models.hub.local import local_checkpoint
from infinity_emb.models.hub.names import check_repository_id, check_revision
from infinity_emb.models.hub.selection import SAFE_FILES, Wanted
from infinity_emb.models.hub.snapshot import offline_checkpoint

if TYPE_CHECKING:
    from pathlib import Path

    from infinity_emb.models.hub.checkpoint import Checkpoint
    from infinity_emb.models.hub.settings import HubSettings


def resolve(
    model_id: str,
    *,
    settings: HubSettings,
    revision: str | None = None,
    cache_folder: Path | None = None,
    progress: bool = True,
    wanted: Wanted = SAFE_FILES,
) -> Checkpoint:
    """Find a model's files, fetching them if need be.

    A folder is used as it is. The default model comes from its cache, from its package or from the hub,
    whichever is there first. Everything else is a repository on the hub; one request finds out whether the
    cached copy is still current, and a hub that does not answer does not keep a cached copy from starting.

    Args:
        model_id: A folder, or the id of a repository (`owner/name`).
        settings: Caches, token, address and whether requests are allowed.
        revision: Branch, tag or commit; None is the default branch. Ignored for a folder.
        cache_folder: Keeps everything in this folder instead of the caches of `settings`.
        progress: Show progress bars of downloads on standard error.
        wanted: Which files beyond configuration, tokenizer and safetensors are wanted.

    Raises:
        CheckpointError: Not a model: wrong name, no folder, or a file is missing or of an unsafe kind.
        RepositoryNotFoundError: The hub knows no such repository or revision.
        AccessDeniedError: The hub wants a token, or the licence to be accepted.
        HubOfflineError: Requests are forbidden and the files are not here.
        HubNetworkError: The hub cannot be reached, or the download broke off.
        IntegrityError: The default model's package is damaged or not the expected one.
        StorageError: The disk is full or not writable.
    """
    if cache_folder is not None:
        settings = replace(settings, cache_folder=cache_folder, hub_cache=cache_folder)
    if not model_id.strip():
        raise CheckpointError("The model id is empty. Give owner/name or a folder.", param="model_id")
    local = local_checkpoint(model_id, revision)
    if local is not None:
        return local
    check_repository_id(model_id)
    if revision is not None:
        check_revision(revision)
    onnx_wanted = wanted.onnx or wanted.onnx_file is not None  # the package has none
    if model_id in EMBEDDED_NAMES and revision in {None, "main"} and not onnx_wanted:
        return resolve_embedded(settings, model_id=model_id, progress=progress)
    if settings.offline:
        return offline_checkpoint(settings, model_id, revision, wanted=wanted)
    from infinity_emb.models.hub.download import fetch  # noqa: PLC0415 - loads the web client; offline never needs it

    return fetch(model_id, revision, settings, progress=progress, wanted=wanted)
