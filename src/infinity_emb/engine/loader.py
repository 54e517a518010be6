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
from infinity_emb.engine.fidelity.media_probes import media_features
from infinity_emb.engine.fidelity.probes import probe_features
from infinity_emb.engine.fidelity.record import Records
from infinity_emb.engine.fit import fitting
from infinity_emb.engine.routes import load_routes
from infinity_emb.engine.tower import LoadedTower
from infinity_emb.errors import ConfigurationError, LoadError, NotComputedError
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
    from infinity_emb.models.features import Features
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
        routes: The other routes that texts may take, by name; this is the default one.
    """

    spec: ModelSpec
    preprocessor: TextPreprocessor | DummyPreprocessor
    backends: tuple[Backend, ...]
    card: ModelCard
    renew: Callable[..., Backend]
    towers: dict[Modality, LoadedTower] = field(default_factory=dict)
    routes: dict[str, LoadedModel] = field(default_factory=dict)

    def close(self) -> None:
        """Give memory and devices back."""
        _close(self.backends)
        for tower in self.towers.values():
            _close(tower.backends)
        for model in self.routes.values():
            model.close()


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
    dummy = choose_engine(args.engine, args.device) is InferenceEngine.DUMMY
    spec = dummy_spec(args.model_name_or_path, args.task) if dummy else _read(args, wanted)
    if spec.routes is None:
        model = _load_spec(spec, args, export=export)
    elif args.onnx_file is not None:
        raise ConfigurationError(
            "--onnx-file does not apply to a model of several routes, each of which has a graph of its own. Leave it "
            "out.",
            param="onnx_file",
        )
    else:
        model = load_routes(spec.routes, partial(_load_spec, args=args, export=export))
    try:
        _check_fingerprint(args, str(model.card.extra["fingerprint"]))
    except BaseException:
        model.close()
        raise
    return model


def _load_spec(spec: ModelSpec, args: EngineArgs, *, export: bool) -> LoadedModel:
    """Load what has one way for texts."""
    started_s = time.perf_counter()
    engine = choose_engine(args.engine, args.device)
    preprocessor: TextPreprocessor | DummyPreprocessor
    if engine is InferenceEngine.DUMMY:
        preprocessor = DummyPreprocessor(spec)
    else:
        preprocessor = make_preprocessor(spec)
        engine = _suited(engine, args, spec)
    limits = MediaLimits(pixels=args.max_image_pixels)
    readers = {media.modality: make_media_preprocessor(media, limits) for media in spec.media}
    options = _replica_options(args, engine, export=export)
    folder = options[0].cache_folder or HubSettings.from_environment(environ()).cache_folder
    records: Records | None = None
    probes: Callable[[], list[Features]] = list
    if args.fidelity > 0 and not isinstance(preprocessor, DummyPreprocessor):
        records, probes = Records(folder / "fidelity"), partial(probe_features, preprocessor, spec)
    fingerprints = Fingerprints(spec, folder / "hashes", args.onnx_file)
    views = _Views(args, engine, options, fingerprints, records)
    towers: dict[Modality, LoadedTower] = {}
    try:
        chosen = views.choose(spec, probes)
        try:
            for modality, reader in readers.items():
                towers[modality] = views.load_tower(media_view(spec, modality), reader)
            fingerprint = fingerprints.of(_formats(chosen, towers), chosen.attempt.onnx_file)
        except BaseException:
            for backends in (chosen.backends, *(tower.backends for tower in towers.values())):
                _close(backends)
            raise
    finally:
        fingerprints.close()
    card = _card(args, spec, (chosen, towers), fingerprint, time.perf_counter() - started_s)
    renew = partial(views.load, spec, chosen.attempt)
    return LoadedModel(spec, preprocessor, chosen.backends, card, renew, towers)


@dataclass(frozen=True, slots=True)
class _Views:
    """Loads the backends of a checkpoint: of what reads text, and of what reads something else.

    Attributes:
        args: Of the engine.
        engine: That computes.
        options: Of each replica.
        fingerprints: Of the checkpoint.
        records: Earlier results of the self-check; None if there is to be none.
    """

    args: EngineArgs
    engine: InferenceEngine
    options: list[BackendOptions]
    fingerprints: Fingerprints
    records: Records | None

    def load(self, spec: ModelSpec, attempt: Attempt, number: int, other: ModelSpec | None = None) -> Backend:
        """The backend of one replica, of a view or of another one."""
        view, options = other or spec, self.options[number]
        chosen = replace(options, dtype=attempt.dtype, extra={**options.extra, "onnx_file": attempt.onnx_file})
        with fitting(view, self.engine, chosen):
            backend = backend_class(self.engine)(view, chosen)
        return DeterministicBackend(backend) if self.args.deterministic else backend

    def choose(self, view: ModelSpec, probes: Callable[[], list[Features]]) -> Chosen:
        """The first way to compute a view whose results for the probes are right.

        What reads images or sounds is computed in float32 where nothing is checked and no format is named.
        """
        options, check = self.options[0], None
        if self.records is not None:
            context = (str(self.engine), "alone" if self.args.deterministic else "packed", str(view.reads))
            check = SelfCheck(view, probes, options, context, self.fingerprints, self.records)
        attempts = attempts_of(options, backend_class(self.engine), checked=check is not None)
        if check is None and view.reads is not Modality.TEXT and options.dtype is Dtype.AUTO:
            attempts = attempts[-1:]

        def load(attempt: Attempt) -> tuple[Backend, ...]:
            return tuple(self.load(view, attempt, number) for number in range(len(self.options)))

        return choose(attempts, load, check, self.args.fidelity)

    def load_tower(self, view: ModelSpec, reader: MediaPreprocessor) -> LoadedTower:
        """What reads images or sounds."""
        chosen = self.choose(view, partial(media_features, view.reads, reader))
        return LoadedTower(view, reader, chosen.backends, partial(self.load, view, chosen.attempt), chosen.figures)


def _formats(chosen: Chosen, towers: dict[Modality, LoadedTower]) -> str:
    """What the vectors of a model are computed in; images and sounds may have a format of their own."""
    formats = [
        str(backends[0].report.dtype) for backends in (chosen.backends, *(one.backends for one in towers.values()))
    ]
    return "+".join(formats) if len(set(formats)) > 1 else formats[0]


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


def _check_fingerprint(args: EngineArgs, fingerprint: str) -> None:
    if args.expect_fingerprint in {None, fingerprint}:
        return
    raise LoadError(
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


def _card(
    args: EngineArgs,
    spec: ModelSpec,
    loaded: tuple[Chosen, dict[Modality, LoadedTower]],
    fingerprint: str,
    load_s: float,
) -> ModelCard:
    chosen, towers = loaded
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
            **{name: fact for tower in towers.values() for name, fact in tower.facts.items()},
            "load_s": round(load_s, 2),
            "notes": "; ".join(spec.notes),
            **({"adapters": ", ".join(spec.adapters)} if spec.adapters else {}),
            **({"withheld": spec.withheld} if spec.withheld else {}),
        },
    )
