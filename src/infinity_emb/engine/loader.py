"""The only place that wires the layers: engine arguments → checkpoint, specification, preprocessor, backends."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from infinity_emb.backends.base import BackendOptions
from infinity_emb.backends.cores import available_cores
from infinity_emb.backends.registry import backend_class
from infinity_emb.config.environment import environ
from infinity_emb.engine.choice import choose_engine
from infinity_emb.engine.deterministic import DeterministicBackend
from infinity_emb.engine.fidelity.check import SelfCheck
from infinity_emb.engine.fidelity.choice import attempts_of, choose
from infinity_emb.engine.fidelity.record import Records
from infinity_emb.engine.fit import fitting
from infinity_emb.engine.tower import LoadedTower
from infinity_emb.errors import LoadError, NotComputedError
from infinity_emb.models.dummy import DummyPreprocessor, dummy_spec
from infinity_emb.models.fingerprint import Fingerprints
from infinity_emb.models.hub import HubSettings, Wanted, resolve
from infinity_emb.models.hub.local import local_checkpoint
from infinity_emb.models.preprocess.choice import make_preprocessor
from infinity_emb.models.preprocess.media import MediaLimits, make_media_preprocessor
from infinity_emb.models.spec import read_spec
from infinity_emb.models.spec.joint import media_view
from infinity_emb.progress import PROGRESS
from infinity_emb.types import Dtype, InferenceEngine, Modality, ModelCard, Task

if TYPE_CHECKING:
    from collections.abc import Callable

    from infinity_emb.backends.base import Backend
    from infinity_emb.config.engine_args import EngineArgs
    from infinity_emb.engine.fidelity.check import Attempt
    from infinity_emb.engine.fidelity.choice import Chosen
    from infinity_emb.models.preprocess.media import MediaPreprocessor
    from infinity_emb.models.preprocess.text import TextPreprocessor
    from infinity_emb.models.spec.model import ModelSpec

_log = logging.getLogger("infinity_emb")


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """Everything that is needed to serve one model.

    Attributes:
        spec: What the checkpoint is.
        preprocessor: Reads its inputs.
        backends: One a replica.
        card: What it says about itself.
        towers: What it reads beside text.
        renew: Loads the backend of one replica (by number) again, or of another view of the checkpoint.
    """

    spec: ModelSpec
    preprocessor: TextPreprocessor | DummyPreprocessor
    backends: tuple[Backend, ...]
    card: ModelCard
    renew: Callable[..., Backend]
    towers: dict[Modality, LoadedTower] = field(default_factory=dict)

    def close(self) -> None:
        """Give memory and devices back."""
        _close(self.backends)
        for tower in self.towers.values():
            _close(tower.backends)


def load(args: EngineArgs) -> LoadedModel:
    """Fetch, read, check and load a model.

    Safetensors are enough where a graph is built from them. Where it is not, the repository's own ONNX file is fetched.

    Raises:
        LoadError: The files cannot be had, are broken or ask for something not supported.
        ConfigurationError: Options contradict each other or the machine.
        MissingExtraError: The chosen engine's library is not installed.
    """
    wanted = Wanted(onnx_file=args.onnx_file, pickle=args.allow_pickle)
    if args.onnx_file is not None or local_checkpoint(args.model_name_or_path, args.revision) is not None:
        return _load(args, wanted, export=True)
    try:
        return _load(args, wanted, export=False)
    except NotComputedError as refusal:
        _log.warning(
            "No graph is built for %s (%s); looking for one in the repository.", args.model_name_or_path, refusal
        )
        return _load(args, replace(wanted, onnx=True), export=True)


def _load(args: EngineArgs, wanted: Wanted, *, export: bool) -> LoadedModel:
    """Load with what was fetched; `export` allows a graph to be made through torch."""
    started_s = time.perf_counter()
    engine = choose_engine(args.engine, args.device)
    preprocessor: TextPreprocessor | DummyPreprocessor
    if engine is InferenceEngine.DUMMY:
        spec = dummy_spec(args.model_name_or_path, args.task)
        preprocessor = DummyPreprocessor(spec)
    else:
        spec = _read(args, wanted)
        preprocessor = make_preprocessor(spec)
        engine = _suited(engine, args, spec)
    limits = MediaLimits(pixels=args.max_image_pixels)
    readers = {media.modality: make_media_preprocessor(media, limits) for media in spec.media}
    backend_type = backend_class(engine)
    options = _replica_options(args, engine, export=export)
    folder = options[0].cache_folder or HubSettings.from_environment(environ()).cache_folder
    fingerprints = Fingerprints(spec, folder / "hashes", args.onnx_file)

    def renewed(attempt: Attempt, number: int, other: ModelSpec | None = None) -> Backend:
        view = other or spec
        chosen = replace(
            options[number],
            dtype=_dtype_of(view, attempt, args),
            extra={**options[number].extra, "onnx_file": attempt.onnx_file},
        )
        with fitting(view, engine, chosen):
            backend = backend_type(view, chosen)
        return DeterministicBackend(backend) if args.deterministic else backend

    def all_renewed(attempt: Attempt) -> tuple[Backend, ...]:
        return tuple(renewed(attempt, number) for number in range(len(options)))

    check = None
    if args.fidelity > 0 and not isinstance(preprocessor, DummyPreprocessor):
        context = (str(engine), "alone" if args.deterministic else "packed")
        check = SelfCheck(spec, preprocessor, options[0], context, fingerprints, Records(folder / "fidelity"))
    try:
        attempts = attempts_of(options[0], backend_type, checked=check is not None)
        chosen = choose(attempts, all_renewed, check, args.fidelity)
        fingerprint = fingerprints.of(_formats(spec, chosen, args), chosen.attempt.onnx_file)
    finally:
        fingerprints.close()
    if args.expect_fingerprint not in {None, fingerprint}:
        _close(chosen.backends)
        raise _other_fingerprint(args, fingerprint)
    card = _card(args, spec, chosen, fingerprint, time.perf_counter() - started_s)
    renew = partial(renewed, chosen.attempt)
    return LoadedModel(spec, preprocessor, chosen.backends, card, renew, _load_towers(readers, spec, chosen, renew))


def _dtype_of(view: ModelSpec, attempt: Attempt, args: EngineArgs) -> Dtype:
    """The number format of a view. Only texts are compared with a reference: media get a faster one if it is named."""
    return attempt.dtype if view.reads is Modality.TEXT or args.dtype is not Dtype.AUTO else Dtype.FLOAT32


def _formats(spec: ModelSpec, chosen: Chosen, args: EngineArgs) -> str:
    """What the vectors of a model are computed in; images and sounds may have a format of their own."""
    text = chosen.backends[0].report.dtype
    mixed = bool(spec.media) and args.dtype is Dtype.AUTO and text is not Dtype.FLOAT32
    return f"{text}+{Dtype.FLOAT32}" if mixed else str(text)


def _load_towers(
    readers: dict[Modality, MediaPreprocessor], spec: ModelSpec, chosen: Chosen, renew: Callable[..., Backend]
) -> dict[Modality, LoadedTower]:
    """The backends of what is read beside text."""
    towers: dict[Modality, LoadedTower] = {}
    try:
        for modality, reader in readers.items():
            view = media_view(spec, modality)
            load_view = partial(renew, other=view)
            backends = tuple(load_view(number) for number in range(len(chosen.backends)))
            towers[modality] = LoadedTower(view, reader, backends, load_view)
    except BaseException:
        _close(chosen.backends)
        for tower in towers.values():
            _close(tower.backends)
        raise
    return towers


def _read(args: EngineArgs, wanted: Wanted) -> ModelSpec:
    """Fetch the files and read what they say."""
    checkpoint = resolve(
        args.model_name_or_path,
        settings=HubSettings.from_environment(environ()),
        revision=args.revision,
        cache_folder=Path(args.cache_folder).expanduser() if args.cache_folder else None,
        wanted=wanted,
    )
    PROGRESS.load()
    return read_spec(checkpoint, task=args.task, pooling=args.pooling_method, allow_pickle=args.allow_pickle)


def _suited(engine: InferenceEngine, args: EngineArgs, spec: ModelSpec) -> InferenceEngine:
    """The engine, or one that computes what torch has no module for, tables and adapters, if nobody chose."""
    left_open = args.engine is InferenceEngine.AUTO
    return InferenceEngine.OPENVINO if left_open and (spec.static is not None or spec.adapters) else engine


def _close(backends: tuple[Backend, ...]) -> None:
    for backend in backends:
        backend.close()


def _other_fingerprint(args: EngineArgs, fingerprint: str) -> LoadError:
    return LoadError(
        f"{args.model_name_or_path} has the fingerprint {fingerprint}, but --expect-fingerprint asks for "
        f"{args.expect_fingerprint}. Its vectors would not fit those made before. Serve the model, revision and "
        "--dtype that the index was made with, or make the index again and expect the new fingerprint.",
        param="expect_fingerprint",
    )


def _replica_options(args: EngineArgs, engine: InferenceEngine, *, export: bool) -> list[BackendOptions]:
    """One set of options a replica: one a device id, the cores of a CPU divided among them."""
    ids: list[int | None] = list(args.device_id) or [None]
    threads = args.threads
    if threads is None and len(ids) > 1 and engine is not InferenceEngine.TORCH:
        threads = max(1, available_cores() // len(ids))
    return [
        BackendOptions(
            device=args.device,
            dtype=args.dtype,
            device_id=number,
            threads=threads,
            compile=args.compile,
            cache_folder=Path(args.cache_folder).expanduser() if args.cache_folder else None,
            extra={
                "batch_tokens": args.max_batch_tokens,
                "onnx_file": args.onnx_file,
                "export": export,
                "optimize": not args.onnx_disable_optimize,
                "compile_cache": args.compile_cache,
                "trust_remote_code": args.trust_remote_code,
            },
        )
        for number in ids
    ]


def _card(args: EngineArgs, spec: ModelSpec, chosen: Chosen, fingerprint: str, load_s: float) -> ModelCard:
    backends, figures = chosen.backends, chosen.figures
    report = backends[0].report
    pooling = spec.pooling
    return ModelCard(
        served_name=args.served_model_name,
        model_id=args.model_name_or_path,
        source=spec.checkpoint.source,
        revision=spec.checkpoint.revision,
        tasks=frozenset({spec.task, *([Task.RERANK] if spec.late else []), *(spec.heads.tasks if spec.heads else ())}),
        modalities=spec.modalities,
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
            "fingerprint": fingerprint,
            **({} if figures is None else figures.facts()),
            "load_s": round(load_s, 2),
            "notes": "; ".join(spec.notes),
            **({"adapters": ", ".join(spec.adapters)} if spec.adapters else {}),
            **({"withheld": spec.withheld} if spec.withheld else {}),
        },
    )
