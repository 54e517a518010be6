"""Name of a backend → where its class lives, loaded when chosen."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from infinity_emb.errors import ConfigurationError
from infinity_emb.types import InferenceEngine

if TYPE_CHECKING:
    from infinity_emb.backends.base import Backend

_BACKENDS: dict[InferenceEngine, str] = {
    InferenceEngine.OPENVINO: "infinity_emb.backends.openvino:OpenVinoBackend",
    InferenceEngine.ONNXRUNTIME: "infinity_emb.backends.onnxruntime:OnnxRuntimeBackend",
    InferenceEngine.TORCH: "infinity_emb.backends.torch:TorchBackend",
    InferenceEngine.DUMMY: "infinity_emb.backends.dummy:DummyBackend",
}
_SYNONYMS = {InferenceEngine.OPTIMUM: InferenceEngine.ONNXRUNTIME, InferenceEngine.DEBUGENGINE: InferenceEngine.DUMMY}


def backend_class(engine: InferenceEngine) -> type[Backend]:
    """Import a backend.

    Raises:
        ConfigurationError: There is no backend of that name (yet).
        MissingExtraError: Its library is not installed.
    """
    engine = _SYNONYMS.get(engine, engine)
    if engine not in _BACKENDS:
        raise ConfigurationError(
            f"--engine {engine} is not available in this version; choose one of "
            f"{', '.join(name.value for name in _BACKENDS)}.",
            param="engine",
        )
    module, _, name = _BACKENDS[engine].partition(":")
    found: type[Backend] = getattr(importlib.import_module(module), name)
    return found


def available_backends() -> tuple[InferenceEngine, ...]:
    """Every backend this version knows, whether or not its library is installed."""
    return tuple(_BACKENDS)
