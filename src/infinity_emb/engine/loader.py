"""The only place that wires the layers: engine arguments → checkpoint, specification, preprocessor, backends."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from infinity_emb.backends.base import BackendOptions
from infinity_emb.backends.registry import backend_class
from infinity_emb.config.environment import environ
from infinity_emb.engine.choice import choose_engine
from infinity_emb.models.dummy import DummyPreprocessor, dummy_spec
from infinity_emb.models.hub import HubSettings, Wanted, resolve
from infinity_emb.models.preprocess.text import TextPreprocessor
from infinity_emb.models.spec import read_spec
from infinity_emb.types import InferenceEngine, Modality, ModelCard

if TYPE_CHECKING:
    from collections.abc import Callable

    from infinity_emb.backends.base import Backend
    from infinity_emb.config.engine_args import EngineArgs
    from infinity_emb.models.spec.model import ModelSpec


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """Everything that is needed to serve one model.

    Attributes:
        spec: What the checkpoint is.
        preprocessor: Reads its inputs.
        backends: One a replica.
        card: What it says about itself.
        renew: Loads the backend of one replica (by number) again.
    """

    spec: ModelSpec
    preprocessor: TextPreprocessor | DummyPreprocessor
    backends: tuple[Backend, ...]
    card: ModelCard
    renew: Callable[[int], Backend]

    def close(self) -> None:
        """Give memory and devices back."""
        for backend in self.backends:
            backend.close()


def load(args: EngineArgs) -> LoadedModel:
    """Fetch, read, check and load a model.

    Raises:
        LoadError: The files cannot be had, are broken or ask for something not supported.
        ConfigurationError: Options contradict each other or the machine.
        MissingExtraError: The chosen engine's library is not installed.
    """
    started_s = time.perf_counter()
    engine = choose_engine(args.engine, args.device)
    backend_type = backend_class(engine)
    preprocessor: TextPreprocessor | DummyPreprocessor
    if engine is InferenceEngine.DUMMY:
        spec = dummy_spec(args.model_name_or_path, args.task)
        preprocessor = DummyPreprocessor(spec)
    else:
        checkpoint = resolve(
            args.model_name_or_path,
            settings=HubSettings.from_environment(environ()),
            revision=args.revision,
            cache_folder=Path(args.cache_folder).expanduser() if args.cache_folder else None,
            wanted=Wanted(onnx_file=args.onnx_file, pickle=args.allow_pickle),
        )
        spec = read_spec(checkpoint, task=args.task, pooling=args.pooling_method, allow_pickle=args.allow_pickle)
        preprocessor = TextPreprocessor(spec)
    options = _replica_options(args, engine)

    def renew(number: int) -> Backend:
        return backend_type(spec, options[number])

    backends = tuple(renew(number) for number in range(len(options)))
    card = _card(args, spec, backends, time.perf_counter() - started_s)
    return LoadedModel(spec, preprocessor, backends, card, renew)


def _replica_options(args: EngineArgs, engine: InferenceEngine) -> list[BackendOptions]:
    """One set of options a replica: one a device id, the cores of a CPU divided among them."""
    ids: list[int | None] = list(args.device_id) or [None]
    threads = args.threads
    if threads is None and len(ids) > 1 and engine is not InferenceEngine.TORCH:
        threads = max(1, (os.cpu_count() or 1) // len(ids))
    return [
        BackendOptions(
            device=args.device,
            dtype=args.dtype,
            device_id=number,
            threads=threads,
            compile=args.compile,
            cache_folder=Path(args.cache_folder).expanduser() if args.cache_folder else None,
            extra={"batch_tokens": args.max_batch_tokens, "onnx_file": args.onnx_file},
        )
        for number in ids
    ]


def _card(args: EngineArgs, spec: ModelSpec, backends: tuple[Backend, ...], load_s: float) -> ModelCard:
    report = backends[0].report
    pooling = spec.pooling
    return ModelCard(
        served_name=args.served_model_name,
        model_id=args.model_name_or_path,
        source=spec.checkpoint.source,
        revision=spec.checkpoint.revision,
        tasks=frozenset({spec.task}),
        modalities=frozenset({Modality.TEXT}),
        backend=backends[0].name,
        device=report.device,
        dtype=str(report.dtype),
        dim=spec.dim,
        max_length=spec.max_length,
        pooling="" if pooling is None else "+".join(mode.value for mode in pooling.modes),
        normalized=spec.normalized,
        labels=spec.labels,
        prompts=dict(spec.prompts),
        default_prompt_name=spec.default_prompt_name,
        batch_size=args.batch_size,
        extra={
            "threads": report.threads,
            "replicas": len(backends),
            "library": report.version,
            "graph": report.graph,
            "architecture": spec.model_type,
            "load_s": round(load_s, 2),
            "notes": "; ".join(spec.notes),
        },
    )
