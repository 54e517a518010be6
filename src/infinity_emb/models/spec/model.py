"""What a checkpoint says of itself, as plain frozen values."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from infinity_emb.types import Modality, Task

if TYPE_CHECKING:
    from pathlib import Path

    from infinity_emb.models.hub.checkpoint import Checkpoint
    from infinity_emb.models.spec.bag import BagSpec
    from infinity_emb.models.spec.convolution import ConvolutionSpec
    from infinity_emb.models.spec.judge import JudgeSpec
    from infinity_emb.models.spec.late import LateSpec
    from infinity_emb.models.spec.layer_mean import LayerMeanSpec
    from infinity_emb.models.spec.media import MediaSpec
    from infinity_emb.models.spec.recurrent import RecurrentSpec
    from infinity_emb.models.spec.routed import RoutesSpec
    from infinity_emb.models.spec.sparse import SparseSpec
    from infinity_emb.models.spec.static import StaticSpec
    from infinity_emb.models.spec.token_heads import HeadsSpec
    from infinity_emb.models.spec.token_weights import TokenWeightsSpec
    from infinity_emb.models.spec.words import WordSplit


class PoolingMode(str, enum.Enum):
    """How token states become one vector; the old flags of several modes concatenate in this order."""

    CLS = "cls"
    MAX = "max"
    MEAN = "mean"
    MEAN_SQRT_LEN = "mean_sqrt_len_tokens"
    WEIGHTED_MEAN = "weightedmean"
    LAST_TOKEN = "lasttoken"  # noqa: S105 - a pooling mode, not a secret


class Activation(str, enum.Enum):
    """Element-wise function of a Dense module or of a scorer's logits."""

    IDENTITY = "identity"
    TANH = "tanh"
    SIGMOID = "sigmoid"
    SOFTMAX = "softmax"
    RELU = "relu"
    GELU = "gelu"
    SILU = "silu"


@dataclass(frozen=True, slots=True)
class PoolingSpec:
    """Pooling module.

    Attributes:
        modes: In the order of concatenation.
        include_prompt: False leaves the prompt's tokens out of the mean.
    """

    modes: tuple[PoolingMode, ...]
    include_prompt: bool = True


@dataclass(frozen=True, slots=True)
class DenseSpec:
    """Linear layer after pooling: `activation(x @ W.T + b)`.

    Attributes:
        in_features: Length of its input.
        out_features: Length of its output.
        bias: Whether `linear.bias` exists.
        activation: Applied to the result.
        weights: Safetensors file with `linear.weight` `[out, in]` and `linear.bias` `[out]`.
        residual: The input is added to the result; `residual.weight` `[out, in]` projects it where the widths differ.
        on_tokens: True if it acts on token states (before pooling) instead of the pooled vector.
    """

    in_features: int
    out_features: int
    bias: bool
    activation: Activation
    weights: Path
    on_tokens: bool = False
    residual: bool = False


@dataclass(frozen=True, slots=True)
class LayerNormSpec:
    """Layer normalisation of the pooled vector.

    Attributes:
        size: Length of the vector.
        weights: Safetensors file with `norm.weight` and `norm.bias`.
    """

    size: int
    weights: Path


@dataclass(frozen=True, slots=True)
class NormalizeSpec:
    """Division by the L2 norm."""


@dataclass(frozen=True, slots=True)
class Filling:
    """What every text is filled up with, as the model was trained; the model sees it.

    Attributes:
        length: Up to so many tokens.
        token_id: The padding token.
    """

    length: int
    token_id: int


ModuleSpec: TypeAlias = (
    "PoolingSpec | DenseSpec | LayerNormSpec | NormalizeSpec | LayerMeanSpec | TokenWeightsSpec | ConvolutionSpec "
    "| RecurrentSpec | BagSpec"
)


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A checkpoint, read and checked.

    Attributes:
        checkpoint: Where the files are.
        folder: Folder of the transformer itself (config.json, weights, tokenizer).
        config: Parsed `config.json`.
        model_type: Its `model_type`.
        architecture: First entry of its `architectures`, or "".
        weights: Safetensors files of the transformer (several if sharded).
        task: What the checkpoint is for.
        modules: What follows the transformer, in order; empty for scorers.
        hidden_size: Width of a token state.
        dim: Length of the returned vector; 0 for scorers.
        max_length: Longest input in tokens, special tokens included.
        do_lower_case: Lower-case the text before the tokenizer sees it.
        padding_side: The tokenizer's own.
        truncation_side: The tokenizer's own.
        prompts: Prompt name → text.
        default_prompt_name: Prompt used when none is asked for.
        similarity_fn: cosine, dot, euclidean or manhattan.
        truncate_dim: Dimensions kept by default, or None.
        labels: Label names in logit order (scorers).
        activation: What turns logits into scores by default (scorers).
        judge: How a language model that reranks is asked, else None.
        sparse: How the weights of a vocabulary come about, else None.
        late: How a late interaction model reads queries and documents, else None.
        media: What it reads beside text, into the same space.
        reads: What this view of the checkpoint reads.
        filling: What every text is filled up with, else None.
        static: How texts become rows of a table of token vectors, else None.
        adapters: Tasks that it has an adapter for, in the order of its weights; each is also the name of a prompt.
        heads: What it gives beside the dense vector from the same token states, else None.
        words: How texts become whole words, else None.
        routes: The routes that a text may take, this being the default or the first; None if there is but one.
        route: Name of the route that this is, else "".
        notes: Facts worth showing at start-up, such as a guessed pooling.
        withheld: What the repository holds but may not be read, and how to allow it; empty if there is nothing.
    """

    checkpoint: Checkpoint
    folder: Path
    config: dict[str, Any]
    model_type: str
    architecture: str
    weights: tuple[Path, ...]
    task: Task
    modules: tuple[ModuleSpec, ...]
    hidden_size: int
    dim: int
    max_length: int
    do_lower_case: bool = False
    padding_side: str = "right"
    truncation_side: str = "right"
    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt_name: str | None = None
    similarity_fn: str = "cosine"
    truncate_dim: int | None = None
    labels: tuple[str, ...] = ()
    activation: Activation = Activation.IDENTITY
    judge: JudgeSpec | None = None
    sparse: SparseSpec | None = None
    late: LateSpec | None = None
    media: tuple[MediaSpec, ...] = ()
    reads: Modality = Modality.TEXT
    static: StaticSpec | None = None
    adapters: tuple[str, ...] = ()
    heads: HeadsSpec | None = None
    filling: Filling | None = None
    words: WordSplit | None = None
    routes: RoutesSpec | None = None
    route: str = ""
    notes: tuple[str, ...] = ()
    withheld: str = ""

    @property
    def modalities(self) -> frozenset[Modality]:
        """Everything the checkpoint reads."""
        return frozenset({Modality.TEXT, *(media.modality for media in self.media)})

    def media_spec(self, modality: Modality) -> MediaSpec:
        """How one of `media` is read."""
        return next(media for media in self.media if media.modality is modality)

    @property
    def pooling(self) -> PoolingSpec | None:
        """The pooling module, None for scorers."""
        return next((module for module in self.modules if isinstance(module, PoolingSpec)), None)

    @property
    def classifies(self) -> bool:
        """True if a head for sequence classification makes the logits."""
        return self.task in {Task.RERANK, Task.CLASSIFY} and self.judge is None

    @property
    def gives_tokens(self) -> bool:
        """True if the result is a vector a token."""
        return self.task is Task.MULTI_VECTOR

    @property
    def recurs(self) -> bool:
        """True if a module reads a text token by token, so that no other may stand in its row."""
        return any(hasattr(module, "both_ways") for module in self.modules)

    @property
    def weighs_words(self) -> bool:
        """True if the logits of a masked language model make the result."""
        return self.sparse is not None and self.sparse.codes is None

    @property
    def normalized(self) -> bool:
        """True if the last module makes unit vectors."""
        return bool(self.modules) and isinstance(self.modules[-1], NormalizeSpec)
