"""How each family spells its config and names its tensors: the table behind `tiny`."""

from __future__ import annotations

from dataclasses import dataclass, field

HIDDEN, INNER, LAYERS, HEADS, POSITIONS = 32, 64, 2, 4, 64
EMBEDDING = 16  # width of the factorised embeddings of ELECTRA and ALBERT


@dataclass(frozen=True)
class Architecture:
    """One family: how its config is spelt and how its tensors are called (`{n}` is the layer)."""

    name: str
    config: dict
    tokenizer: str
    prefix: str
    stem: dict
    layer: dict
    tail: dict = field(default_factory=dict)
    head: dict = field(default_factory=dict)


def _linear(name: str, rows: int, columns: int) -> dict:
    return {f"{name}.weight": (rows, columns), f"{name}.bias": (rows,)}


def _norm(name: str, size: int = HIDDEN) -> dict:
    return {f"{name}.weight": (size,), f"{name}.bias": (size,)}


def _square(*names: str) -> dict:
    return {key: shape for name in names for key, shape in _linear(name, HIDDEN, HIDDEN).items()}


_SIZES = {
    "hidden_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": INNER,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
}
_SLOT = "encoder.layer.{n}."
_BERT_LAYER = (
    _square(_SLOT + "attention.self.query", _SLOT + "attention.self.key", _SLOT + "attention.self.value")
    | _square(_SLOT + "attention.output.dense")
    | _norm(_SLOT + "attention.output.LayerNorm")
    | _linear(_SLOT + "intermediate.dense", INNER, HIDDEN)
    | _linear(_SLOT + "output.dense", HIDDEN, INNER)
    | _norm(_SLOT + "output.LayerNorm")
)
_CLASSIFIER = {"classifier.weight": ("labels", HIDDEN), "classifier.bias": ("labels",)}
_DEEP_CLASSIFIER = _square("classifier.dense") | {
    "classifier.out_proj.weight": ("labels", HIDDEN),
    "classifier.out_proj.bias": ("labels",),
}


def _embeddings(positions: int | None, types: int, width: int = HIDDEN) -> dict:
    tensors = {"embeddings.word_embeddings.weight": ("vocabulary", width)} | _norm("embeddings.LayerNorm", width)
    if positions:
        tensors["embeddings.position_embeddings.weight"] = (positions, width)
    if types:
        tensors["embeddings.token_type_embeddings.weight"] = (types, width)
    return tensors


def _roberta(name: str, model_type: str, tokenizer: str) -> Architecture:
    offset = POSITIONS + 2
    return Architecture(
        name,
        {
            "model_type": model_type,
            "max_position_embeddings": offset,
            "type_vocab_size": 1,
            **_SIZES,
            "layer_norm_eps": 1e-5,
        },
        tokenizer,
        "roberta.",
        _embeddings(offset, 1),
        _BERT_LAYER,
        _square("pooler.dense"),
        _DEEP_CLASSIFIER,
    )


_DISTIL = "transformer.layer.{n}."
_MPNET = "encoder.layer.{n}."
_ALBERT = "encoder.albert_layer_groups.0.albert_layers.0."
_MODERN = "layers.{n}."
_DEBERTA = "encoder.layer.{n}."

BERT = Architecture(
    "Bert",
    {"model_type": "bert", "max_position_embeddings": POSITIONS, "type_vocab_size": 2, **_SIZES},
    "bert",
    "bert.",
    _embeddings(POSITIONS, 2),
    _BERT_LAYER,
    _square("pooler.dense"),
    _CLASSIFIER,
)
ROBERTA = _roberta("Roberta", "roberta", "roberta")
XLM_ROBERTA = _roberta("XLMRoberta", "xlm-roberta", "xlm_roberta")
DISTILBERT = Architecture(
    "DistilBert",
    {
        "model_type": "distilbert",
        "dim": HIDDEN,
        "n_layers": LAYERS,
        "n_heads": HEADS,
        "hidden_dim": INNER,
        "activation": "gelu",
        "max_position_embeddings": POSITIONS,
    },
    "distilbert",
    "distilbert.",
    _embeddings(POSITIONS, 0),
    _square(*(f"{_DISTIL}attention.{part}_lin" for part in ("q", "k", "v", "out")))
    | _norm(_DISTIL + "sa_layer_norm")
    | _linear(_DISTIL + "ffn.lin1", INNER, HIDDEN)
    | _linear(_DISTIL + "ffn.lin2", HIDDEN, INNER)
    | _norm(_DISTIL + "output_layer_norm"),
    head=_square("pre_classifier") | _CLASSIFIER,
)
MPNET = Architecture(
    "MPNet",
    {"model_type": "mpnet", "max_position_embeddings": POSITIONS + 2, "relative_attention_num_buckets": 32, **_SIZES},
    "mpnet",
    "mpnet.",
    _embeddings(POSITIONS + 2, 0),
    _square(*(f"{_MPNET}attention.attn.{part}" for part in ("q", "k", "v", "o")))
    | _norm(_MPNET + "attention.LayerNorm")
    | _linear(_MPNET + "intermediate.dense", INNER, HIDDEN)
    | _linear(_MPNET + "output.dense", HIDDEN, INNER)
    | _norm(_MPNET + "output.LayerNorm"),
    {"encoder.relative_attention_bias.weight": (32, HEADS)} | _square("pooler.dense"),
    _DEEP_CLASSIFIER,
)
ELECTRA = Architecture(
    "Electra",
    {
        "model_type": "electra",
        "embedding_size": EMBEDDING,
        "max_position_embeddings": POSITIONS,
        "type_vocab_size": 2,
        **_SIZES,
    },
    "electra",
    "electra.",
    _embeddings(POSITIONS, 2, EMBEDDING) | _linear("embeddings_project", HIDDEN, EMBEDDING),
    _BERT_LAYER,
    head=_DEEP_CLASSIFIER,
)
ALBERT = Architecture(
    "Albert",
    {
        "model_type": "albert",
        "embedding_size": EMBEDDING,
        "max_position_embeddings": POSITIONS,
        "type_vocab_size": 2,
        **_SIZES,
        "hidden_act": "gelu_new",
        "num_hidden_groups": 1,
        "inner_group_num": 1,
    },
    "albert",
    "albert.",
    _embeddings(POSITIONS, 2, EMBEDDING) | _linear("encoder.embedding_hidden_mapping_in", HIDDEN, EMBEDDING),
    {},
    _norm(_ALBERT + "full_layer_layer_norm")
    | _square(*(f"{_ALBERT}attention.{part}" for part in ("query", "key", "value", "dense")))
    | _norm(_ALBERT + "attention.LayerNorm")
    | _linear(_ALBERT + "ffn", INNER, HIDDEN)
    | _linear(_ALBERT + "ffn_output", HIDDEN, INNER)
    | _square("pooler"),
    _CLASSIFIER,
)
MODERNBERT = Architecture(
    "ModernBert",
    {
        "model_type": "modernbert",
        "hidden_size": HIDDEN,
        "num_hidden_layers": 4,
        "num_attention_heads": HEADS,
        "intermediate_size": INNER,
        "hidden_activation": "gelu",
        "max_position_embeddings": 4 * POSITIONS,
        "norm_eps": 1e-5,
        "global_attn_every_n_layers": 3,
        "local_attention": 8,
        "global_rope_theta": 160000.0,
        "local_rope_theta": 10000.0,
        "classifier_pooling": "mean",
    },
    "modernbert",
    "model.",
    {"embeddings.tok_embeddings.weight": ("vocabulary", HIDDEN), "embeddings.norm.weight": (HIDDEN,)},
    {
        _MODERN + "attn_norm.weight": (HIDDEN,),  # the first layer has none
        _MODERN + "attn.Wqkv.weight": (3 * HIDDEN, HIDDEN),
        _MODERN + "attn.Wo.weight": (HIDDEN, HIDDEN),
        _MODERN + "mlp_norm.weight": (HIDDEN,),
        _MODERN + "mlp.Wi.weight": (2 * INNER, HIDDEN),
        _MODERN + "mlp.Wo.weight": (HIDDEN, INNER),
    },
    {"final_norm.weight": (HIDDEN,)},
    {"head.dense.weight": (HIDDEN, HIDDEN), "head.norm.weight": (HIDDEN,)} | _CLASSIFIER,
)
DEBERTA_V2 = Architecture(
    "DebertaV2",
    {
        "model_type": "deberta-v2",
        **_SIZES,
        "layer_norm_eps": 1e-7,
        "max_position_embeddings": POSITIONS,
        "type_vocab_size": 0,
        "relative_attention": True,
        "position_buckets": 16,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
        "pooler_hidden_size": HIDDEN,
        "pooler_hidden_act": "gelu",
    },
    "deberta_v2",
    "deberta.",
    _embeddings(None, 0),
    {
        name.replace("self.query", "self.query_proj")
        .replace("self.key", "self.key_proj")
        .replace("self.value", "self.value_proj"): shape
        for name, shape in _BERT_LAYER.items()
    },
    {"encoder.rel_embeddings.weight": (32, HIDDEN)} | _norm("encoder.LayerNorm"),
    _square("pooler.dense") | _CLASSIFIER,
)
ARCHITECTURES = {
    "bert": BERT,
    "roberta": ROBERTA,
    "xlm_roberta": XLM_ROBERTA,
    "distilbert": DISTILBERT,
    "mpnet": MPNET,
    "electra": ELECTRA,
    "albert": ALBERT,
    "modernbert": MODERNBERT,
    "deberta_v2": DEBERTA_V2,
}
