"""Options of one model: the public `EngineArgs`."""

# ruff: noqa: RUF009 - `setting` returns a dataclass field

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from infinity_emb.config.checks import at_least, not_blank, positive, share
from infinity_emb.config.environment import environ
from infinity_emb.config.option import Option, options_of, setting
from infinity_emb.config.sources import read_variables, rows_of, said_or_default, settle
from infinity_emb.types import Device, Dtype, EmbeddingDtype, InferenceEngine, MediaUrls, PoolingMethod, Task

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_MODEL_ID: Final = "sentence-transformers/all-MiniLM-L6-v2"

_ENGINE_SYNONYMS = {
    InferenceEngine.OPTIMUM: InferenceEngine.ONNXRUNTIME,
    InferenceEngine.DEBUGENGINE: InferenceEngine.DUMMY,
}

_MODEL, _COMPUTE, _LINE, _MEDIA = "Model", "Computation", "Batches and waiting line", "Images and sounds"


@dataclass(frozen=True, kw_only=True)
class EngineArgs:
    """What one engine serves and how. Fields are the options of `infinity_emb v2` that are given once for each model.

    A field that is not given takes the first value of its `INFINITY_*` variable, else its default. Enumerations may
    be given by name ("torch"), `device_id` as a list or as "0,1", `vector_disk_cache_path` as True for a name made
    from engine and model.

    Raises:
        ConfigurationError: A value is wrong; it is a ValueError.
    """

    per_model: ClassVar[bool] = True

    model_name_or_path: str = setting(
        DEFAULT_MODEL_ID,
        Option(
            flag="model-id",
            help="Repository id or local folder. Repeat it to serve several models.",
            section=_MODEL,
            check=not_blank,
            synonyms=("model-name-or-path",),
        ),
    )
    batch_size: int = setting(32, Option(help="Most items in one forward pass.", section=_LINE, check=at_least(1)))
    revision: str | None = setting(
        None, Option(help="Commit, branch or tag of the repository; the newest of main when empty.", section=_MODEL)
    )
    trust_remote_code: bool = setting(
        False, Option(help="Allow Python code that comes with the repository to run.", section=_MODEL)
    )
    engine: InferenceEngine = setting(
        InferenceEngine.AUTO,
        Option(
            help="Library that computes; auto is openvino on a CPU and torch on a GPU. "
            "optimum is read as onnxruntime, debugengine as dummy.",
            section=_COMPUTE,
            hidden_choices=("optimum", "debugengine"),
        ),
    )
    model_warmup: bool = setting(
        True, Option(help="Run some batches of different sizes before the first request.", section=_COMPUTE)
    )
    vector_disk_cache_path: str = setting(
        "",
        Option(
            flag="vector-disk-cache",
            kind=bool,
            help="Keep finished vectors on disk, shared by processes, and reuse them for equal inputs.",
            section=_LINE,
        ),
    )
    device: Device = setting(Device.AUTO, Option(help="Where to compute.", section=_COMPUTE))
    device_id: tuple[int, ...] = setting(
        (),
        Option(
            help="Ordinals of the devices to use, such as 0,1: one replica each. "
            "On a CPU their number is the number of replicas.",
            section=_COMPUTE,
            comma=True,
            check=at_least(0),
        ),
    )
    compile: bool = setting(
        False, Option(help="Use the library's slower, deeper compilation where it has one.", section=_COMPUTE)
    )
    bettertransformer: bool = setting(
        True,
        Option(
            help="No effect: every engine uses fused attention.",
            section=_COMPUTE,
            retired="BetterTransformer is gone from its library; every engine here uses fused attention anyway",
        ),
    )
    dtype: Dtype = setting(Dtype.AUTO, Option(help="Number format of weights and computation.", section=_COMPUTE))
    pooling_method: PoolingMethod = setting(
        PoolingMethod.AUTO,
        Option(help="How token states become one vector; auto is what the repository says.", section=_MODEL),
    )
    lengths_via_tokenize: bool = setting(
        False,
        Option(
            help="No effect: lengths and usage are always counted in tokens.",
            section=_LINE,
            retired="lengths and usage are always counted in tokens",
        ),
    )
    embedding_dtype: EmbeddingDtype = setting(
        EmbeddingDtype.FLOAT32,
        Option(help="Number format of returned vectors when a request does not ask for one.", section=_MODEL),
    )
    served_model_name: str = setting(
        "", Option(help="Name that requests use; the last two parts of the model id when empty.", section=_MODEL)
    )
    onnx_disable_optimize: bool = setting(
        False, Option(help="Skip the graph optimisation of ONNX Runtime.", section=_COMPUTE)
    )
    onnx_do_not_prefer_quantized: bool = setting(
        False,
        Option(
            help="No effect: a quantised ONNX file is used only when --onnx-file names it.",
            section=_COMPUTE,
            retired="a quantised ONNX file is used only when --onnx-file names it",
        ),
    )
    task: Task | None = setting(
        None, Option(help="What the model is for; auto reads it from the repository.", section=_MODEL)
    )
    threads: int | None = setting(
        None,
        Option(help="CPU threads of one replica; auto is one a physical core.", section=_COMPUTE, check=at_least(1)),
    )
    onnx_file: str | None = setting(
        None,
        Option(
            help="ONNX file of the repository to use, such as onnx/model_quantized.onnx; a quantised one usually needs "
            "a lower --fidelity too.",
            section=_COMPUTE,
        ),
    )
    max_batch_tokens: int | None = setting(
        None,
        Option(
            help="Most token slots in one forward pass; auto is what the engine is fastest with.",
            section=_LINE,
            check=at_least(1),
        ),
    )
    max_waiting_tokens: int | None = setting(
        None,
        Option(
            help="Tokens that may wait before new requests are refused with 429; auto follows the measured speed.",
            section=_LINE,
            check=at_least(1),
        ),
    )
    queue_size: int = setting(
        32_000,
        Option(help="Items that may wait before new requests are refused with 429.", section=_LINE, check=at_least(1)),
    )
    max_client_batch_size: int = setting(
        2048, Option(help="Most inputs in one request.", section=_LINE, check=at_least(1))
    )
    hang_limit_s: float = setting(
        120.0,
        Option(
            help="Seconds one forward pass may take before the model counts as hung, its requests are answered and it "
            "is loaded again.",
            section=_LINE,
            check=positive,
        ),
    )
    media_urls: MediaUrls = setting(
        MediaUrls.PUBLIC,
        Option(
            help="Where images and sounds may be fetched from: public addresses, any (also those only this machine "
            "can reach), or none; data: URIs are always read.",
            section=_MEDIA,
        ),
    )
    media_hosts: tuple[str, ...] = setting(
        (),
        Option(
            help="Fetch only from these hosts, with commas; .example.org is every host below it. Empty: from all.",
            section=_MEDIA,
            comma=True,
        ),
    )
    max_media_bytes: int = setting(
        33_554_432, Option(help="Largest image or sound.", section=_MEDIA, check=at_least(1))
    )
    max_image_pixels: int = setting(
        67_108_864,
        Option(
            help="Largest image, in pixels once it is decoded; a small file can hold very many.",
            section=_MEDIA,
            check=at_least(1),
        ),
    )
    media_timeout_s: float = setting(
        10.0, Option(help="Seconds for one image or sound to arrive.", section=_MEDIA, check=positive)
    )
    cache_folder: str | None = setting(
        None,
        Option(
            help="Folder for downloads, compiled graphs and cached vectors, instead of the usual cache folders.",
            section=_MODEL,
        ),
    )
    vector_cache_mb: int = setting(
        0,
        Option(
            help="Memory for vectors that are reused for equal inputs, in MB; 0 keeps none. With it, or with "
            "--vector-disk-cache, equal inputs that are in flight at once are computed once.",
            section=_LINE,
            check=at_least(0),
        ),
    )
    allow_pickle: bool = setting(
        False,
        Option(
            help="Allow weights in pickle files (pytorch_model.bin). Such a file can run any code: only for "
            "repositories you trust.",
            section=_MODEL,
        ),
    )

    fidelity: float = setting(
        0.9999,
        Option(
            help="Smallest cosine that vectors of the self-check must have with the float32 reference. Below it the "
            "next exact number format is taken; if float32 fails, the model is not served. 0 switches the check off.",
            section=_COMPUTE,
            check=share,
        ),
    )
    compile_cache: bool = setting(
        True,
        Option(
            help="Keep compiled models in the cache folder, each as large as its weights and 16 at most, so "
            "that later starts are faster; for --engine openvino.",
            section=_COMPUTE,
        ),
    )
    expect_fingerprint: str | None = setting(
        None,
        Option(
            help="Refuse to serve a model with another fingerprint, so that an index is never mixed; /models shows it.",
            section=_MODEL,
        ),
    )
    deterministic: bool = setting(
        False,
        Option(
            help="Results equal to the last bit whatever else is asked: every text is computed alone, which costs "
            "throughput.",
            section=_COMPUTE,
        ),
    )
    tuned: bool = setting(
        True,
        Option(
            help="Use what `infinity_emb tune` chose for this model on this machine, unless --engine or --dtype is "
            "given.",
            section=_COMPUTE,
        ),
    )

    def __post_init__(self) -> None:
        """Fill in, convert and check every field."""
        path: object = self.vector_disk_cache_path
        if isinstance(path, str):
            self._set("vector_disk_cache_path", bool(path))  # the option itself is a yes or no
        settle(self, environ())
        self._set("engine", _ENGINE_SYNONYMS.get(self.engine, self.engine))
        if not self.served_model_name:
            self._set("served_model_name", "/".join(self.model_name_or_path.rstrip("/").split("/")[-2:]))
        if not isinstance(path, str):
            path = f"{self.engine}_{self.model_name_or_path.replace('/', '_')}" if self.vector_disk_cache_path else ""
        self._set("vector_disk_cache_path", path)

    def _set(self, field: str, value: object) -> None:
        object.__setattr__(self, field, value)

    def to_dict(self) -> dict[str, Any]:
        """Fields and values; `EngineArgs(**it)` gives an equal object."""
        return dataclasses.asdict(self)

    def copy(self) -> EngineArgs:
        """An equal object."""
        return dataclasses.replace(self)

    @classmethod
    def from_env(cls, variables: Mapping[str, str] | None = None) -> list[EngineArgs]:
        """One object for each model of `INFINITY_MODEL_ID`; the other variables hold one value for all or one each.

        Raises:
            ConfigurationError: A value is wrong, or a list has another length.
        """
        found, _ = read_variables(ENGINE_OPTIONS, environ() if variables is None else variables)
        given = {option.flag: found.get(option.flag) or said_or_default(option) for option in ENGINE_OPTIONS}
        return [cls(**row) for row in rows_of(ENGINE_OPTIONS, given, len(given["model-id"].values))]


ENGINE_OPTIONS = options_of(EngineArgs)
