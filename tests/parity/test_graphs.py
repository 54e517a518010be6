"""Every graph equals transformers in float32, text by text, alone and packed, through every backend on this machine."""

from __future__ import annotations

import dataclasses
import functools
import json
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest

import measured
import tiny_more
from infinity_emb.backends.base import BackendOptions
from infinity_emb.backends.onnxruntime import OnnxRuntimeBackend
from infinity_emb.backends.openvino import OpenVinoBackend
from infinity_emb.models.features import Features
from infinity_emb.scheduler.collate import Collator
from infinity_emb.scheduler.packing import Packer
from infinity_emb.types import Device, Dtype

MISSING = [name for name in ("torch", "transformers", "sentence_transformers") if find_spec(name) is None]
pytestmark = [
    pytest.mark.parity,
    pytest.mark.skipif(bool(MISSING), reason=f"the reference is not installed: {', '.join(MISSING)}"),
]
TOLERANCE = 1e-5
BACKENDS = {"openvino": OpenVinoBackend, "onnxruntime": OnnxRuntimeBackend}
LENGTHS = (*range(1, 36), 40, 47, 48, 49, 55, 63, 64, 65, 80, 100, 128, 129, 180, 257, tiny_more.LONGEST)
# kinds of rows in the table of docs/models.md
STATES, LOGITS, FORMULAS, STATIC = "token states", "classification head", "token states (formulas)", "static graph"
# what is spelled out by `plain_models`, or is a checkpoint of transformers under other names → model_type
REMOTE = {
    "jina english": "bert",
    "jina post norm": "bert",
    "nomic experts": "nomic_bert",
    "gte own code": "new",
    "xlm-roberta in jina's layout": "xlm-roberta",
    "xlm-roberta in jina's layout, scored": "xlm-roberta",
}
STATIC_CASES = ("sentence-transformers", "model2vec", "model2vec shared and weighed")
ENDING = 7  # a padding id that texts may end in, as where it is the end-of-text id as well
PLAIN = {"rope_type": "default", "rope_theta": 30000.0}
LINEAR = {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "rope_theta": 10000.0}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
    "rope_theta": 500000.0,
}
# These two turn texts of more than 64 tokens otherwise. The reference reads one text after the other, each longer than
# the one before: what it remembers of the earlier ones changes nothing.
DYNAMIC = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0}
LONGROPE = {
    "rope_type": "longrope",
    "short_factor": [1.0, 1.25, 1.5, 2.0],
    "long_factor": [1.0, 2.0, 5.0, 20.0],
    "factor": 4.0,
    "original_max_position_embeddings": 64,
    "rope_theta": 10000.0,
}
LONGROPE_WIDE = LONGROPE | {name: [*LONGROPE[name], *LONGROPE[name]] for name in ("short_factor", "long_factor")}
# name → (model_type, changes to the tiny config)
CASES: dict[str, tuple[str, dict]] = {
    "bert": ("bert", {}),
    "distilbert": ("distilbert", {}),
    "distilbert sinusoidal": ("distilbert", {"sinusoidal_pos_embds": True, "activation": "relu"}),
    "mpnet": ("mpnet", {}),
    "modernbert": ("modernbert", {}),
    "deberta-v2": ("deberta-v2", {}),
    "deberta-v2 own projections": ("deberta-v2", {"share_att_key": False, "max_relative_positions": 64}),
    "deberta-v2 no buckets": ("deberta-v2", {"position_buckets": -1, "pos_att_type": "c2p|p2c"}),
    "deberta-v2 one term": (
        "deberta-v2",
        {"pos_att_type": ["p2c"], "norm_rel_ebd": "none", "position_biased_input": True},
    ),
    "deberta-v2 convolution": ("deberta-v2", {"conv_kernel_size": 3, "conv_act": "gelu"}),
    "deberta-v2 absolute": ("deberta-v2", {"relative_attention": False, "type_vocab_size": 2, "embedding_size": 16}),
    "modernbert biases": ("modernbert", {"norm_bias": True, "attention_bias": True, "mlp_bias": True}),
    "modernbert longrope": (
        "modernbert",
        {"rope_parameters": {"full_attention": LONGROPE, "sliding_attention": PLAIN}},
    ),
    "xlm-roberta": ("xlm-roberta", {}),
    "qwen2": ("qwen2", {}),
    "qwen2 windows": ("qwen2", {"use_sliding_window": True, "sliding_window": 6, "max_window_layers": 1}),
    "qwen2 windows both ways": (
        "qwen2",
        {"use_sliding_window": True, "sliding_window": 6, "max_window_layers": 1, "is_causal": False},
    ),
    "qwen3": ("qwen3", {}),
    "qwen3 yarn": ("qwen3", {"rope_parameters": YARN, "attention_bias": True}),
    "qwen3 longrope": ("qwen3", {"rope_parameters": LONGROPE_WIDE}),
    "llama": ("llama", {}),
    "llama 3": ("llama", {"rope_parameters": LLAMA3, "attention_bias": True, "mlp_bias": True}),
    "llama dynamic": ("llama", {"rope_parameters": DYNAMIC, "max_position_embeddings": 64}),
    "llama both ways": ("llama", {"is_causal": False}),
    "llama one key head": ("llama", {"num_key_value_heads": 1, "rope_parameters": LINEAR}),
    "mistral": ("mistral", {}),
    "mistral window": ("mistral", {"sliding_window": 5, "num_key_value_heads": 4}),
    "eurobert": ("eurobert", {}),
    "gemma": ("gemma", {}),
    "gemma legacy gelu": ("gemma", {"hidden_act": "gelu", "num_key_value_heads": 1}),
    "gemma3": ("gemma3_text", {}),
    "gemma3 both ways": ("gemma3_text", {"use_bidirectional_attention": True, "sliding_window": 6}),
    "gemma3 scaled": ("gemma3_text", {"rope_parameters": {"full_attention": LINEAR, "sliding_attention": PLAIN}}),
    "albert": ("albert", {}),
    "albert groups": ("albert", {"num_hidden_layers": 5, "num_hidden_groups": 2, "inner_group_num": 2}),
    "t5": ("t5", {}),
    "t5 gated": ("t5", {"feed_forward_proj": "gated-gelu", "relative_attention_num_buckets": 16}),
    "t5 near": ("t5", {"feed_forward_proj": "gated-silu", "relative_attention_max_distance": 20}),
    "mt5": ("mt5", {}),
    "umt5": ("umt5", {}),
    "nomic_bert": ("nomic_bert", {}),
    "nomic_bert scaled": ("nomic_bert", {"rope_parameters": LINEAR, "hidden_act": "gelu"}),
    "gte": ("gte", {}),
    "gte dynamic": ("gte", {"rope_parameters": DYNAMIC, "max_position_embeddings": 64}),
    "gte no types": ("gte", {"type_vocab_size": 0, "rope_parameters": PLAIN}),
}
SCORED: dict[str, tuple[str, dict, int]] = {
    "bert": ("bert", {}, 1),
    "distilbert": ("distilbert", {}, 3),
    "mpnet": ("mpnet", {}, 1),
    "deberta-v2": ("deberta-v2", {}, 1),
    "llama": ("llama", {}, 1),
    "qwen3": ("qwen3", {"pad_token_id": ENDING}, 3),
    "eurobert late": ("eurobert", {}, 3),
    "eurobert mean": ("eurobert", {"classifier_pooling": "mean"}, 1),
    "eurobert bos": ("eurobert", {"classifier_pooling": "bos"}, 1),
    "gemma3": ("gemma3_text", {}, 3),
    "albert": ("albert", {}, 3),
    "nomic_bert": ("nomic_bert", {}, 2),
    "gte": ("gte", {"type_vocab_size": 2}, 1),
    "modernbert cls": ("modernbert", {"classifier_pooling": "cls"}, 3),
    "modernbert mean": ("modernbert", {"classifier_pooling": "mean", "classifier_bias": True}, 1),
}


def test_fifty_texts_of_all_lengths():
    assert len(set(LENGTHS)) == 50


def sequences(spec):
    """Token ids (never a special one) of all lengths, with token types where the family has them."""
    random = np.random.default_rng(3)
    types = int(spec.config.get("type_vocab_size") or 0) > 1
    ids = [random.integers(5, tiny_more.VOCABULARY, length) for length in LENGTHS]
    if spec.config.get("pad_token_id") == ENDING:
        for each in ids[::3]:
            each[-2:] = ENDING
    return [Features(each, np.sort(random.integers(0, 2, len(each))) if types else None) for each in ids]


def compute(backend, features):
    """Outputs of one batch, packed as the scheduler packs it."""
    costs = [item.cost for item in features]
    packer = Packer(backend.layout, max(costs), sum(costs), len(costs))
    packer._max_rows = len(costs)  # one batch, whatever it takes
    assert all(packer.place(cost) for cost in costs)
    request = SimpleNamespace(items=features)
    batch = SimpleNamespace(
        entries=[(request, index) for index in range(len(features))],
        starts=packer.starts,
        rows=packer.rows,
        width=packer.width,
    )
    outputs = backend.start(Collator(backend.inputs, backend.layout)(batch)).result()
    (values,) = outputs.values()
    return np.array(values[: len(features)])


def expected(model, features, spec):
    """What transformers gives for each text alone; vectors are cls, max, mean and last token side by side."""
    import torch

    rows = []
    for item in features:
        inputs = {"input_ids": torch.tensor(item.token_ids)[None]}
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
        if item.type_ids is not None:
            inputs["token_type_ids"] = torch.tensor(item.type_ids)[None]
        with torch.no_grad():
            outputs = model(**inputs)
        if spec.labels:
            rows.append(outputs.logits[0])
        else:
            rows.append(pooled(outputs.last_hidden_state[0]))
    return torch.stack(rows).numpy()


def pooled(states):
    """Cls, max, mean and last token, in the order of `tiny_more.read`."""
    import torch

    return torch.cat([states[0], states.max(0).values, states.mean(0), states[-1]])


@functools.cache
def checkpoint(base, model_type, changes, labels):
    """A tiny checkpoint and what transformers makes of the texts; one for all backends."""
    folder = base / f"checkpoint{len(list(base.iterdir()))}"
    spec = tiny_more.save(folder, model_type, json.loads(changes), labels=labels)
    features = sequences(spec)
    return spec, features, expected(tiny_more.load(folder, spec), features, spec)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    yield tmp_path_factory.mktemp("graphs")
    checkpoint.cache_clear()


def check(row, base, backend_name, model_type, changes, labels=0):
    compare(row, backend_name, *checkpoint(base, model_type, json.dumps(changes), labels))


def compare(row, backend_name, spec, features, wanted):
    """`row` is the kind and the name of a row in the table, or None."""
    assert wanted.std(axis=0).mean() > 0.05, "the reference must tell texts apart"
    backend = BACKENDS[backend_name](spec, BackendOptions(Device.CPU, Dtype.FLOAT32, threads=1))
    try:
        packed = compute(backend, features)
        alone = np.concatenate([compute(backend, [item]) for item in features])
    finally:
        backend.close()
    if row is not None:
        measured.note(*row, backend_name, max(np.abs(packed - wanted).max(), np.abs(alone - wanted).max()))
    for name, vectors in (("packed", packed), ("alone", alone)):
        errors = np.abs(vectors - wanted).max(axis=1)
        worst = int(errors.argmax())
        assert errors[worst] <= TOLERANCE, f"{name}: {errors[worst]:.2e} at {LENGTHS[worst]} tokens"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", CASES)
def test_vectors_equal_transformers(case, backend, base):
    check((STATES, case), base, backend, *CASES[case])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", SCORED)
def test_logits_equal_transformers(case, backend, base):
    check((LOGITS, case), base, backend, *SCORED[case])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("model_type", ["bert", "deberta-v2", "qwen3"])
def test_weights_stored_in_16_bits_are_computed_in_float32(model_type, dtype, backend, tmp_path):
    """The reference reads the same rounded weights, as float32."""
    spec = tiny_more.save(tmp_path, model_type, {}, dtype=dtype)
    features = sequences(spec)
    compare(None, backend, spec, features, expected(tiny_more.load(tmp_path, spec), features, spec))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", ["jina english", "jina post norm", "nomic experts"])
def test_vectors_equal_the_formulas_where_the_reference_code_is_remote(kind, backend, tmp_path):
    """Those families are not in transformers; `plain_models` spells them out."""
    import torch

    import plain_models

    if kind == "nomic experts":
        config, states = plain_models.NOMIC_MOE, plain_models.nomic_moe_states
        shapes = plain_models.nomic_moe_shapes(config)
    else:
        config, states = plain_models.JINA, plain_models.jina_states
        shapes = plain_models.jina_shapes(config, post_norm=kind == "jina post norm")
    spec, weights = tiny_more.save_plain(tmp_path / "checkpoint", config, shapes)
    features = sequences(spec)
    rows = []
    for item in features:
        types = (
            torch.zeros(len(item.token_ids), dtype=torch.long) if item.type_ids is None else torch.tensor(item.type_ids)
        )
        rows.append(pooled(states(weights, config, torch.tensor(item.token_ids), types)))
    compare((FORMULAS, kind), backend, spec, features, torch.stack(rows).numpy())


@pytest.mark.parametrize("backend", BACKENDS)
def test_gte_with_its_own_code_scales_rotary_frequencies_by_ntk(backend, tmp_path):
    """The same tensors under `model_type` "new": NTK scaling is a larger base and an even stretch."""
    factor, size = 8.0, 8
    scaled = {"rope_type": "linear", "rope_theta": 20000.0 * factor, "factor": factor ** (2 / size)}
    spec = tiny_more.save(tmp_path, "gte", {"rope_parameters": scaled})
    features = sequences(spec)
    wanted = expected(tiny_more.load(tmp_path, spec), features, spec)
    own = {"model_type": "new", "rope_theta": 20000, "rope_scaling": {"type": "ntk", "factor": factor}}
    config = spec.config | own | {"rope_parameters": None, "position_embedding_type": "rope", "pack_qkv": True}
    spec = dataclasses.replace(spec, config=config, model_type="new")
    compare((FORMULAS, "gte own code"), backend, spec, features, wanted)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("labels", [0, 1])
def test_xlm_roberta_in_the_layout_of_jina_computes_the_same(labels, backend, tmp_path):
    """The tensors of transformers' own checkpoint under the other names."""
    spec = tiny_more.save(tmp_path, "xlm-roberta", {}, labels=labels)
    features = sequences(spec)
    wanted = expected(tiny_more.load(tmp_path, spec), features, spec)
    tiny_more.rename_xlm_roberta(spec)
    row = f"xlm-roberta in jina's layout{', scored' if labels else ''}"
    compare((FORMULAS, row), backend, spec, features, wanted)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", STATIC_CASES)
def test_static_embeddings_are_the_mean_of_rows(kind, backend, tmp_path):
    import torch
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    table = torch.randn(
        40 if "shared" in kind else tiny_more.VOCABULARY, 24, generator=torch.Generator().manual_seed(1)
    )
    tensors = {"embedding.weight" if kind == "sentence-transformers" else "embeddings": table}
    if "shared" in kind:
        tensors["mapping"] = torch.arange(tiny_more.VOCABULARY) % 40
        tensors["weights"] = torch.linspace(0.1, 2.0, tiny_more.VOCABULARY, dtype=torch.float64)
    rows = StaticEmbedding._fold_model2vec_weights(table, tensors.get("mapping"), tensors.get("weights")).float()
    spec = tiny_more.write_static(tmp_path, tensors)
    features = sequences(spec)
    wanted = torch.stack([pooled(rows[torch.tensor(item.token_ids)]) for item in features]).numpy()
    compare((STATIC, kind), backend, spec, features, wanted)
