"""Exports a checkpoint through torch to an ONNX file, once: the result is kept under the hash of what went in."""

from __future__ import annotations

import hashlib
import inspect
import logging
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infinity_emb import extras
from infinity_emb.config.environment import environ
from infinity_emb.errors import CheckpointError, StorageError
from infinity_emb.models.hub.settings import HubSettings
from infinity_emb.models.torch_module import load_module

if TYPE_CHECKING:
    from infinity_emb.models.spec.model import ModelSpec

_log = logging.getLogger("infinity_emb")
_PURPOSE = "the export of this architecture to ONNX"
_RECIPE = "1"  # part of the hash: to be raised when the export below gives another file
_OPSET = 18
_READ_BYTES = 1 << 24


def export_file(spec: ModelSpec, cache_folder: Path | None) -> Path:
    """Path of the exported file, made now or at an earlier start.

    Args:
        spec: The checkpoint, with weights.
        cache_folder: Where it is kept; None is the cache folder of the package.

    Raises:
        MissingExtraError: torch, transformers or onnxscript is not installed.
        CheckpointError: torch cannot export the architecture.
        StorageError: The cache cannot be written.
    """
    torch = extras.require("torch", "torch", _PURPOSE)
    transformers = extras.require("transformers", "torch", _PURPOSE)
    extras.require("onnxscript", "torch", _PURPOSE)
    parent = (cache_folder or HubSettings.from_environment(environ()).cache_folder) / "exported"
    folder = parent / _content_hash(spec, f"{_RECIPE} {torch.__version__} {transformers.__version__}")
    if not (folder / "model.onnx").is_file():
        _log.info("exporting %s to ONNX through torch; this is done once", spec.checkpoint.model_id)
        _export_into(torch, spec, parent, folder)
    return folder / "model.onnx"


def _export_into(torch: Any, spec: ModelSpec, parent: Path, folder: Path) -> None:
    """The folder appears whole or not at all; of two processes at it the first one wins."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=parent) as half_done:
            made = Path(half_done) / "made"
            made.mkdir()
            _export(torch, spec, made / "model.onnx")
            try:
                made.rename(folder)
            except OSError:
                if not (folder / "model.onnx").is_file():
                    raise
    except OSError as error:
        free = shutil.disk_usage(parent).free if parent.is_dir() else 0
        raise StorageError(
            f"The exported graph cannot be kept in {parent} ({error}; {free:,} bytes free). "
            "Free some space or name another folder with --cache-folder.",
            param=str(parent),
        ) from error


def _export(torch: Any, spec: ModelSpec, path: Path) -> None:
    module = load_module(spec, _PURPOSE)
    result = "logits" if spec.classifies else "last_hidden_state"

    class Plain(torch.nn.Module):  # type: ignore[misc]  # torch is untyped here
        """The module with plain tensors in and out."""

        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any = None) -> Any:
            types = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
            return getattr(self.module(input_ids=input_ids, attention_mask=attention_mask, **types), result)

    ids = torch.ones((2, 16), dtype=torch.int64)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    inputs["attention_mask"][1, 8:] = 0  # a mask without padding may be optimised away
    if "token_type_ids" in inspect.signature(module.forward).parameters:
        inputs["token_type_ids"] = torch.zeros_like(ids)
    axes = {0: torch.export.Dim("rows"), 1: torch.export.Dim("width")}
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # torch's own, on its own code
            torch.onnx.export(
                Plain().eval(),
                tuple(inputs.values()),
                str(path),
                input_names=list(inputs),
                output_names=[result],
                opset_version=_OPSET,
                dynamic_shapes=dict.fromkeys(inputs, axes),
                dynamo=True,
                verbose=False,
            )
    except (RuntimeError, ValueError, TypeError, NotImplementedError) as error:
        raise CheckpointError(
            f"torch cannot export the architecture {spec.model_type!r} to ONNX ({type(error).__name__}). "
            "Use --engine torch, which needs no export.",
            param="config.json: model_type",
        ) from error


def _content_hash(spec: ModelSpec, recipe: str) -> str:
    digest = hashlib.sha256(f"{recipe} {spec.task}".encode())
    for file in (spec.folder / "config.json", *spec.weights):
        digest.update(f"\0{file.name}\0".encode())
        with file.open("rb") as opened:
            while block := opened.read(_READ_BYTES):
                digest.update(block)
    return digest.hexdigest()[:32]
