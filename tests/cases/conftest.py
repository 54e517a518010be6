"""Tiny checkpoints, engines that serve them, and applications around these, made once for all cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cases.served import Served
from infinity_emb import AsyncEmbeddingEngine, EngineArgs
from tiny import tiny_bert

if TYPE_CHECKING:
    from pathlib import Path

EMOTIONS = ("joy", "anger", "fear")


@pytest.fixture(scope="session")
def folders(tmp_path_factory) -> dict[str, Path]:
    """Checkpoints by what they are for: vectors of 32 numbers, texts of up to 64 tokens."""
    root = tmp_path_factory.mktemp("checkpoints")
    return {
        "embed": tiny_bert(root / "embed"),
        "rerank": tiny_bert(root / "rerank", labels=("relevant",), seed=1),
        "classify": tiny_bert(root / "classify", labels=EMOTIONS, seed=2),
        "multi": tiny_bert(root / "multi", labels=EMOTIONS, multi_label=True, seed=3),
    }


@pytest.fixture(scope="session")
def start():
    """Starts engines and stops them at the end: `start(folder, **options)`."""
    running: list[AsyncEmbeddingEngine] = []

    def begin(folder: Path | str, **options) -> AsyncEmbeddingEngine:
        # what is given to it is broken on purpose in some cases, so nothing is checked at the start
        options = {"engine": "openvino", "dtype": "float32", "model_warmup": False, "fidelity": 0.0, **options}
        engine = AsyncEmbeddingEngine.from_args(EngineArgs(model_name_or_path=str(folder), **options))
        engine.start()
        running.append(engine)
        return engine

    yield begin
    for engine in running:
        engine.stop(grace_s=0.0)


@pytest.fixture(scope="session")
def engines(folders, start) -> dict[str, AsyncEmbeddingEngine]:
    """One started engine a checkpoint."""
    return {name: start(folder, served_model_name=f"acme/{name}") for name, folder in folders.items()}


@pytest.fixture(scope="session")
def embedder(engines) -> Served:
    return Served(engines["embed"])


@pytest.fixture(scope="session")
def reranker(engines) -> Served:
    return Served(engines["rerank"])


@pytest.fixture(scope="session")
def classifier(engines) -> Served:
    return Served(engines["classify"])


@pytest.fixture(scope="session")
def everything(engines) -> Served:
    """All four models in one server."""
    return Served(*engines.values())
