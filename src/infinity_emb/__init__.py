"""Serve embedding, reranking and classification models; also in process.

Names are loaded when they are first used, so `import infinity_emb` loads no web, model or numeric library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from infinity_emb.config.engine_args import EngineArgs
    from infinity_emb.config.environment_values import MANAGER
    from infinity_emb.config.log import logger
    from infinity_emb.engine.array import AsyncEngineArray
    from infinity_emb.engine.async_engine import AsyncEmbeddingEngine
    from infinity_emb.engine.pipeline import InfinityPipeline
    from infinity_emb.engine.sync_array import SyncEngineArray
    from infinity_emb.server import create_server

    __version__: str

__all__ = [
    "MANAGER",
    "AsyncEmbeddingEngine",
    "AsyncEngineArray",
    "EngineArgs",
    "InfinityPipeline",
    "SyncEngineArray",
    "__version__",
    "create_server",
    "logger",
]

_HOMES = {
    "MANAGER": "infinity_emb.config.environment_values",
    "AsyncEmbeddingEngine": "infinity_emb.engine.async_engine",
    "AsyncEngineArray": "infinity_emb.engine.array",
    "EngineArgs": "infinity_emb.config.engine_args",
    "InfinityPipeline": "infinity_emb.engine.pipeline",
    "SyncEngineArray": "infinity_emb.engine.sync_array",
    "create_server": "infinity_emb.server",
    "logger": "infinity_emb.config.log",
}


def __getattr__(name: str) -> Any:
    """Load a public name (PEP 562)."""
    if name == "__version__":
        value: Any = importlib.import_module("importlib.metadata").version("infinity_emb")
    elif name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'infinity_emb' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
