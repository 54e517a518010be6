"""Adapters for tasks equal transformers' own body of the model with the products added to its weights, task by task."""

from __future__ import annotations

import json

import numpy as np
import pytest

import measured
import texts
import tiny_adapters
from forward import compute, compute_alone, opened, spec_of
from infinity_emb.errors import ConfigurationError
from infinity_emb.models.preprocess.choice import make_preprocessor
from infinity_emb.types import TextOptions

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:::transformers")]
TOLERANCE = 1e-5
KIND = "adapters for tasks"  # of rows in the table of docs/models.md
ROWS = ("no task", *tiny_adapters.TASKS)
NAMES = {row: f"jina-embeddings-v3, {row}" for row in ROWS}
BACKENDS = ("openvino", "onnxruntime")
TEXTS = [text for text in texts.sample(60) if text.strip()][::4]
RENAMED = {
    "roberta.emb_ln": "embeddings.LayerNorm",
    "roberta.encoder.layers": "layers",
    "roberta.embeddings": "embeddings",
    "mixer.out_proj": "self_attn.o_proj",
    "norm1": "post_attention_layernorm",
    "norm2": "post_mlp_layernorm",
}


def merged(stored, task):
    """The weights of one task under transformers' names; None is no task."""
    import torch

    scale, found = tiny_adapters.ALPHA / tiny_adapters.RANK, {}
    for name, tensor in stored.items():
        if ".0.lora_" in name:
            continue
        value, short = tensor, name.replace(f".{tiny_adapters.STORED}.original", ".weight")
        if short != name and task is not None:
            first, second = (stored[name.replace("original", f"0.lora_{part}")][task] for part in "BA")
            product = second @ first if "_embeddings" in name else first @ second
            value = tensor + scale * product
        for old, new in RENAMED.items():
            short = short.replace(old, new)
        if "mixer.Wqkv" in short:
            for part, rows in zip("qkv", torch.chunk(value, 3), strict=True):
                found[short.replace("mixer.Wqkv", f"self_attn.{part}_proj")] = rows
        else:
            found[short] = value
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The checkpoint, its inputs for every task, and the right vectors of those."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from safetensors.torch import load_file

    folder = tiny_adapters.jina_v3(tmp_path_factory.mktemp("adapters"))
    config = json.loads((folder / "config.json").read_text())
    rope = {"rope_type": "default", "rope_theta": config["rotary_emb_base"]}
    names = ("hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers", "vocab_size")
    own = transformers.JinaEmbeddingsV3Config(
        **{name: config[name] for name in names}, layer_norm_eps=config["layer_norm_eps"], rope_parameters=rope
    )
    model = transformers.JinaEmbeddingsV3Model(own, add_pooling_layer=False).eval()
    stored = load_file(folder / "model.safetensors")
    reader = make_preprocessor(spec_of(folder))
    items, wanted = [], []
    for number, task in enumerate(ROWS):
        model.load_state_dict(merged(stored, number - 1 if number else None))
        read = reader.texts(TEXTS, TextOptions(prompt_name=task if number else None))
        assert {item.adapter for item in read} == {number}
        items.append(read)
        for item in read:
            ids = torch.tensor(item.token_ids)[None]
            with torch.no_grad():
                states = model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[0]
            wanted.append(torch.nn.functional.normalize(states.mean(0), dim=-1).numpy())
    return folder, items, np.stack(wanted)


@pytest.mark.parametrize("engine", BACKENDS)
def test_texts_of_all_tasks_in_the_same_rows_equal_each_task_alone(engine, made):
    pytest.importorskip(engine)
    folder, by_task, wanted = made
    same = wanted.reshape(len(ROWS), len(TEXTS), -1)
    assert all(abs(same[0] - same[number]).max() > 0.05 for number in range(1, len(ROWS)))
    mixed = [item for group in zip(*by_task, strict=True) for item in group]  # neighbours of other tasks
    order = np.arange(len(wanted)).reshape(len(ROWS), len(TEXTS)).T.ravel()
    with opened(engine, spec_of(folder)) as backend:
        assert backend.layout.segments_per_row is None
        worst = np.zeros(len(ROWS))
        for found in (compute(backend, mixed), compute_alone(backend, mixed)):
            errors = abs(found["embedding"] - wanted[order]).max(axis=1)
            worst = np.maximum(worst, errors.reshape(len(TEXTS), len(ROWS)).max(axis=0))
    for row, error in zip(ROWS, worst, strict=True):
        measured.note(KIND, NAMES[row], engine, error)
    assert (worst <= TOLERANCE).all(), worst


def test_torch_refuses_adapters_by_name(made):
    with pytest.raises(ConfigurationError, match="lora_adaptations"), opened("torch", spec_of(made[0])):
        pass
