"""Gives graphs the safetensors they are built from where a repository has only pickles, and somebody allowed those."""

from __future__ import annotations

import hashlib
import logging
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from infinity_emb.config.environment import environ
from infinity_emb.models.hub import HubSettings
from infinity_emb.models.hub.storage import storage_errors
from infinity_emb.models.pickled import convert
from infinity_emb.models.spec.convolution import ConvolutionSpec
from infinity_emb.models.spec.layer_mean import LayerMeanSpec
from infinity_emb.models.spec.model import DenseSpec, LayerNormSpec
from infinity_emb.models.spec.recurrent import RecurrentSpec
from infinity_emb.models.spec.weights import is_pickle

if TYPE_CHECKING:
    from pathlib import Path

    from infinity_emb.models.spec.model import ModelSpec

_WEIGHED = (DenseSpec, LayerNormSpec, LayerMeanSpec, ConvolutionSpec, RecurrentSpec)
_log = logging.getLogger("infinity_emb")


def with_safetensors(spec: ModelSpec, cache_folder: Path | None) -> ModelSpec:
    """The same checkpoint, its pickled weights read as numbers once and kept as safetensors in the cache folder.

    Raises:
        CheckpointError: A pickle holds something else than tensors; nothing of it was run.
        StorageError: The disk is full or not writable.
    """
    spec = with_safe_parts(spec, cache_folder)
    if not any(map(is_pickle, spec.weights)):
        return spec
    parent = _parent(cache_folder)
    return replace(spec, weights=tuple(_converted(file, parent) for file in spec.weights))


def with_safe_parts(spec: ModelSpec, cache_folder: Path | None) -> ModelSpec:
    """As `with_safetensors`, for the modules and heads alone, which also stand behind graphs that are not ours."""
    modules = [one for one in spec.modules if isinstance(one, _WEIGHED)]
    heads, sparse = spec.heads, spec.sparse
    codes = sparse.codes if sparse else None
    files = [one.weights for one in (*modules, *(heads.all if heads else ()), *([codes] if codes else []))]
    if not any(map(is_pickle, files)):
        return spec
    parent = _parent(cache_folder)
    if sparse and codes:
        sparse = replace(sparse, codes=replace(codes, weights=_converted(codes.weights, parent)))
    return replace(
        spec,
        sparse=sparse,
        modules=tuple(
            replace(one, weights=_converted(one.weights, parent)) if isinstance(one, _WEIGHED) else one
            for one in spec.modules
        ),
        heads=heads and heads.moved(lambda file: _converted(file, parent)),
    )


def _parent(cache_folder: Path | None) -> Path:
    return (cache_folder or HubSettings.from_environment(environ()).cache_folder) / "unpickled"


def _converted(file: Path, parent: Path) -> Path:
    if not is_pickle(file):
        return file
    status = file.stat()
    name = hashlib.sha256(f"{file.resolve()} {status.st_size} {status.st_mtime_ns}".encode()).hexdigest()[:32]
    # a folder of its own: graphs tell files of the same name apart by their folders
    target = parent / name / "model.safetensors"
    if not target.is_file():
        with storage_errors(parent):
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = target.with_name(f"{os.getpid()}.draft")
            try:
                convert(file, draft)
                draft.replace(target)
            finally:
                draft.unlink(missing_ok=True)
        _log.info("the pickle %s was read as numbers, without running it, and is kept as %s", file, target)
    return target
