"""The registry, and what config.json may not say."""

from __future__ import annotations

import pytest

from infinity_emb.errors import CheckpointError
from infinity_emb.models.graph.architecture import check_config
from infinity_emb.models.graph.build import _EVERYWHERE
from infinity_emb.models.graph.registry import architecture, joint_architecture, supported_model_types
from infinity_emb.models.spec.towers import JOINT_TYPES

ENCODER = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 512,
}
OTHERS = {
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    "t5": {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4},
}
OTHERS["mt5"] = OTHERS["umt5"] = OTHERS["t5"]
JINA = {"position_embedding_type": "alibi", "feed_forward_type": "geglu"}
REFUSED = [
    ("albert", "position_embedding_type", "relative_key"),
    ("bert", "position_embedding_type", "relative_key"),
    ("deberta-v2", "conv_kernel_size", 4),
    ("deberta-v2", "conv_groups", 2),
    ("deberta-v2", "attention_head_size", 16),
    ("gemma3_text", "attn_logit_softcapping", 50.0),
    ("gemma3_text", "layer_types", ["chunked_attention", "full_attention"]),
    ("llama", "use_bidirectional_attention", True),
    ("llama", "partial_rotary_factor", 0.5),
    ("llama", "hidden_act", "xielu"),
    ("mistral", "layer_types", ["full_attention", "sliding_attention"]),
    ("modernbert", "layer_types", ["chunked_attention", "full_attention"]),
    ("mpnet", "relative_attention_num_buckets", 64),
    ("new", "position_embedding_type", "absolute"),
    ("new", "layer_norm_type", "rms_norm"),
    ("new", "logn_attention_scale", True),
    ("new", "rope_scaling", {"type": "dynamic", "factor": 2.0}),
    ("nomic_bert", "prenorm", True),
    ("nomic_bert", "rotary_emb_fraction", 0.5),
    ("nomic_bert", "rotary_emb_interleaved", True),
    ("nomic_bert", "rotary_scaling_factor", 2),
    ("nomic_bert", "moe_normalize_expert_weights", True),
    ("xlm-roberta", "position_embedding_type", "alibi"),
    ("qwen2", "layer_types", ["linear_attention", "full_attention"]),
    ("qwen3", "rope_parameters", {"rope_type": "dynamic", "factor": 2.0}),
    ("qwen3", "rope_scaling", {"type": "proportional", "factor": 2.0}),
]


OTHERS["xlm-roberta"] = ENCODER | {"pad_token_id": 1}


def config(model_type, **changes):
    return {"model_type": model_type, **OTHERS.get(model_type, ENCODER), **changes}


@pytest.mark.parametrize("model_type", supported_model_types())
def test_every_registered_architecture_builds(model_type, builder):
    settings = config(model_type)
    if model_type in JOINT_TYPES:
        for tower in joint_architecture(model_type).towers.values():
            hidden = tower(builder, settings)
    else:
        family = architecture(model_type, settings)
        hidden = family.encode(builder, settings)
        if family.score is not None:
            hidden = family.score(builder, settings, hidden, 3)
    graph = builder._nodes
    assert hidden == graph[-1].output[0]
    made = set(builder._inputs) | set(builder._weights) | {each.name for each in builder._constants.values()}
    for node in graph:
        assert set(node.input) <= made, node
        made |= set(node.output)


@pytest.mark.parametrize(("model_type", "field", "value"), REFUSED)
def test_a_field_that_changes_the_result_and_is_not_computed_is_refused_by_name(model_type, field, value, builder):
    settings = config(model_type, **{field: value})
    with pytest.raises(CheckpointError, match="--engine torch") as caught:
        architecture(model_type, settings).encode(builder, settings)
    if field != "rope_scaling":  # the same thing under its older name
        assert field in f"{caught.value.param} {caught.value}"


@pytest.mark.parametrize(("field", "value"), [("feed_forward_type", "original"), ("feed_forward_type", None)])
def test_an_alibi_bert_without_a_known_feed_forward_is_refused(field, value, builder):
    settings = config("bert", **JINA | {field: value})
    with pytest.raises(CheckpointError, match=field):
        architecture("bert", settings).encode(builder, settings)


@pytest.mark.parametrize(
    ("field", "value"), [("is_decoder", True), ("add_cross_attention", True), ("quantization_config", {"bits": 4})]
)
def test_what_no_architecture_computes_is_refused_everywhere(field, value):
    with pytest.raises(CheckpointError, match=field):
        check_config({"model_type": "bert", field: value}, field, *_EVERYWHERE[field])


def test_bert_with_alibi_is_another_architecture():
    assert architecture("bert", config("bert", **JINA)) is not architecture("bert", config("bert"))


def test_an_unknown_architecture_is_refused_with_the_list_of_known_ones():
    with pytest.raises(CheckpointError, match=r"'mamba'.*bert.*--engine torch"):
        architecture("mamba", {})


@pytest.mark.parametrize("model_type", ["distilbert", "gemma3_text", "qwen3", "t5"])
def test_a_missing_size_is_named(model_type, builder):
    settings = config(model_type)
    for missing in ("num_hidden_layers", "n_layers", "num_layers"):
        settings.pop(missing, None)
    with pytest.raises(CheckpointError, match="layers"):
        architecture(model_type, settings).encode(builder, settings)
