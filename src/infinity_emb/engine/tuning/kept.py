"""The choice of `infinity_emb tune` on disk: one small file a model, beside the cached models."""

from __future__ import annotations

import hashlib
import json
import logging
import platform
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infinity_emb.backends.cores import available_cores
from infinity_emb.config.environment import environ
from infinity_emb.errors import StorageError
from infinity_emb.models.hub import HubSettings
from infinity_emb.models.versions import library_version
from infinity_emb.types import Dtype, InferenceEngine

if TYPE_CHECKING:
    from infinity_emb.config.engine_args import EngineArgs
    from infinity_emb.engine.tuning.candidate import Candidate
    from infinity_emb.engine.tuning.measure import Measured

_log = logging.getLogger("infinity_emb")
_LIBRARIES = ("infinity_emb", "openvino", "onnxruntime", "torch")


def path_of(args: EngineArgs) -> Path:
    """Where the choice for a model is kept: `tuned` in the cache folder."""
    folder = HubSettings.from_environment(environ()).cache_folder
    if args.cache_folder:
        folder = Path(args.cache_folder).expanduser()
    asked = [args.model_name_or_path, args.revision, str(args.device), list(args.device_id), args.threads]
    digest = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]
    name = "".join(letter if letter.isalnum() or letter in "-." else "_" for letter in args.model_name_or_path[-60:])
    return folder / "tuned" / f"{name}-{digest}.json"


def keep(args: EngineArgs, best: Candidate, measured: Measured) -> Path:
    """Write the choice down; returns the file.

    Raises:
        StorageError: The file cannot be written.
    """
    path = path_of(args)
    choice = {
        "model": args.model_name_or_path,
        "engine": str(best.engine),
        "dtype": str(best.dtype),
        "max_batch_tokens": best.max_batch_tokens,
        "measured": asdict(measured),
        "machine": _machine(),
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(choice, indent=2) + "\n", encoding="utf-8")
        unfinished.replace(path)
    except OSError as error:
        raise StorageError(
            f"The choice cannot be written to {path}: {error.strerror}. Choose another folder with --cache-folder."
        ) from error
    return path


def with_choice(args: EngineArgs) -> tuple[EngineArgs, Path | None]:
    """The arguments with what was chosen for this model, and the file it came from; what `args` names stays.

    None where nothing was measured, or on another machine, or with other versions (which is logged).
    """
    if not args.tuned or args.engine is not InferenceEngine.AUTO or args.dtype is not Dtype.AUTO:
        return args, None
    path = path_of(args)
    choice = _read(path)
    if choice is None:
        return args, None
    if choice["machine"] != _machine():
        _log.warning("%s was measured on another machine or with other versions; run `infinity_emb tune` again.", path)
        return args, None
    tokens = args.max_batch_tokens or choice["max_batch_tokens"]
    engine, dtype = InferenceEngine(choice["engine"]), Dtype(choice["dtype"])
    return replace(args, engine=engine, dtype=dtype, max_batch_tokens=tokens), path


def _read(path: Path) -> dict[str, Any] | None:
    try:
        choice: Any = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        _log.warning("%s cannot be read (%s) and is not used; run `infinity_emb tune` again.", path, error)
        return None
    if isinstance(choice, dict) and "machine" in choice:
        tokens = choice.get("max_batch_tokens", "")
        named = choice.get("engine") in list(InferenceEngine) and choice.get("dtype") in list(Dtype)
        if named and (tokens is None or type(tokens) is int):
            return choice
    _log.warning("%s is no choice of this version and is not used; run `infinity_emb tune` again.", path)
    return None


def _machine() -> list[str]:
    return [platform.machine(), f"{available_cores()} cores", *map(library_version, _LIBRARIES)]
