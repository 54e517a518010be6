"""Heads that speak in words of the vocabulary: the answer of a language model, and the weights of a sparse encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from infinity_emb.errors import CheckpointError
from infinity_emb.models.graph.architecture import Config, check_config
from infinity_emb.models.graph.codes import keep_largest

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder
    from infinity_emb.models.spec.judge import JudgeSpec
    from infinity_emb.models.spec.model import ModelSpec
    from infinity_emb.models.spec.sparse import SparseSpec


@dataclass(frozen=True, slots=True)
class _MaskedHead:
    """How a family spells its masked language model: dense, activation, norm, words.

    Attributes:
        dense: Name of the linear layer.
        norm: Name of the layer norm behind it.
        bias: Of the words.
        output: Table of the words where it is not that of the input.
        words: Table of the input's words.
        activation: Field of config.json, "" for GELU.
        epsilon: Field of config.json; "" for 1e-12.
        switches: Fields of config.json that say whether dense, norm and words have a bias; empty: they have.
    """

    dense: str
    norm: str
    bias: str
    output: str
    words: str = "embeddings.word_embeddings.weight"
    activation: str = ""
    epsilon: str = "layer_norm_eps"
    switches: tuple[str, ...] = ()


_BERT = _MaskedHead(
    "cls.predictions.transform.dense",
    "cls.predictions.transform.LayerNorm",
    "cls.predictions.bias",
    "cls.predictions.decoder.weight",
    activation="hidden_act",
)
_ROBERTA = _MaskedHead("lm_head.dense", "lm_head.layer_norm", "lm_head.bias", "lm_head.decoder.weight")
_MASKED_HEADS = {
    "bert": _BERT,
    "camembert": _ROBERTA,
    "distilbert": _MaskedHead(
        "vocab_transform",
        "vocab_layer_norm",
        "vocab_projector.bias",
        "vocab_projector.weight",
        activation="activation",
        epsilon="",
    ),
    "modernbert": _MaskedHead(
        "head.dense",
        "head.norm",
        "decoder.bias",
        "decoder.weight",
        words="embeddings.tok_embeddings.weight",
        activation="classifier_activation",
        epsilon="norm_eps",
        switches=("classifier_bias", "norm_bias", "decoder_bias"),
    ),
    "mpnet": _ROBERTA,
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
}
_SWITCHED = {"classifier_bias": False, "norm_bias": False, "decoder_bias": True}  # where config.json is silent
_EPSILONS = {"layer_norm_eps": 1e-12, "norm_eps": 1e-5}


def answer_logit(builder: GraphBuilder, config: Config, judge: JudgeSpec, hidden: str) -> str:
    """The logit of yes behind each text's last token, less that of no: `[segments, 1]`.

    Only these rows of the table of words are ever computed with.
    """
    for field in ("final_logit_softcapping", "logit_scale", "logits_scaling"):
        check_config(config, field)
    tied = config.get("tie_word_embeddings")
    if tied is None:
        tied = not builder.tensors.has("lm_head.weight")
    table = "embed_tokens.weight" if tied else "lm_head.weight"
    ids = (judge.true_id,) if judge.false_id is None else (judge.true_id, judge.false_id)
    last = builder.gather(hidden, builder.input("last_index"))
    logits = builder.node("Gemm", [last, builder.lookup(table, builder.ints(*ids))], transB=1)
    if judge.false_id is None:
        return logits
    return builder.node("Sub", list(builder.split(logits, 1, 1)))


def sparse_weights(
    builder: GraphBuilder, spec: ModelSpec, sparse: SparseSpec, hidden: str
) -> dict[str, tuple[str, int]]:
    """Turn token states into the output `sparse`: `[rows, vocabulary]`, one text a row."""
    logits = builder.activation(_masked_logits(builder, spec, sparse.vocabulary, hidden), "relu")
    real = builder.node("Greater", [builder.input("segment_ids"), builder.ints(0)])
    seen = builder.node("Cast", [builder.node("Unsqueeze", [real, builder.ints(2)])], to=1)
    shape = builder.node("Concat", [builder.node("Shape", ["segment_ids"]), builder.ints(sparse.vocabulary)], axis=0)
    positive = builder.node("Mul", [builder.node("Reshape", [logits, shape]), seen])
    if sparse.total:
        pooled = builder.node("ReduceSum", [_damped(builder, sparse, positive), builder.ints(1)], keepdims=0)
    else:  # the logarithm grows with its argument, so it is enough to take it of the largest
        pooled = _damped(builder, sparse, builder.node("ReduceMax", [positive, builder.ints(1)], keepdims=0))
    if sparse.most is not None and sparse.most < sparse.vocabulary:
        pooled = keep_largest(builder, pooled, sparse.most)
    return {"sparse": (pooled, sparse.vocabulary)}


def _damped(builder: GraphBuilder, sparse: SparseSpec, value: str) -> str:
    for _ in range(2 if sparse.log_twice else 1):
        value = builder.node("Log", [builder.node("Add", [value, builder.number(1.0)])])
    return value


def _masked_logits(builder: GraphBuilder, spec: ModelSpec, vocabulary: int, hidden: str) -> str:
    """`[slots, vocabulary]`."""
    head, config = _MASKED_HEADS.get(spec.model_type), spec.config
    if head is None:
        raise CheckpointError(
            f"The graph builder for {spec.model_type!r} knows no head of a masked language model (it knows those of "
            f"{', '.join(_MASKED_HEADS)}), which sparse vectors need.",
            param="config.json: architectures",
        )
    dense_bias, norm_bias, words_bias = (
        [bool(config.get(name, _SWITCHED[name])) for name in head.switches] if head.switches else [True] * 3
    )
    epsilon = float(config.get(head.epsilon) or _EPSILONS[head.epsilon]) if head.epsilon else 1e-12
    activation = str(config.get(head.activation) or "gelu") if head.activation else "gelu"
    inner = builder.linear(hidden, head.dense, bias=dense_bias)
    inner = builder.layer_norm(builder.activation(inner, activation), head.norm, epsilon, bias=norm_bias)
    tied = config.get("tie_word_embeddings", True)
    width = spec.hidden_size
    inputs = [inner, builder.weight(head.words if tied else head.output, (vocabulary, width))]
    if words_bias:
        inputs.append(builder.weight(head.bias, (vocabulary,)))
    return builder.node("Gemm", inputs, transB=1)
