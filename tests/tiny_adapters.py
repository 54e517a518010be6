"""A tiny random checkpoint with adapters for tasks, as jina-embeddings-v3 is stored; made without torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from safetensors.numpy import save_file

import tiny
import tiny_tokenizers

if TYPE_CHECKING:
    from pathlib import Path

TASKS = ("retrieval.query", "retrieval.passage", "separation", "classification", "text-matching")
INSTRUCTIONS = dict.fromkeys(TASKS, "") | {"retrieval.query": "ask: ", "retrieval.passage": "tell: "}
WIDTH, INNER, HEADS, LAYERS, POSITIONS = 32, 48, 4, 2, 66
RANK, ALPHA = 4, 3.0
STORED = "parametrizations.weight"


def jina_v3(folder: Path, *, saved: dict | None = None, **changes) -> Path:
    """Pools by the mean, unit vectors; `changes` are those of config.json, `saved` is sentence-transformers' file."""
    folder.mkdir(parents=True, exist_ok=True)
    tokens = tiny_tokenizers.write(folder, "xlm_roberta", POSITIONS)
    config = {
        "model_type": "xlm-roberta",
        "architectures": ["XLMRobertaModel"],
        "hidden_size": WIDTH,
        "intermediate_size": INNER,
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "max_position_embeddings": POSITIONS,
        "type_vocab_size": 1,
        "layer_norm_eps": 1e-5,
        "position_embedding_type": "rotary",
        "rotary_emb_base": 20000.0,
        "lora_adaptations": list(TASKS),
        "lora_rank": RANK,
        "lora_alpha": ALPHA,
        "task_instructions": INSTRUCTIONS,
    }
    tiny.write_json(folder / "config.json", config | tokens | changes)
    tiny.write_modules(folder, [("", "custom_st.Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")])
    tiny.write_json(
        folder / "1_Pooling/config.json", {"word_embedding_dimension": WIDTH, "pooling_mode_mean_tokens": True}
    )
    if saved is not None:
        tiny.write_json(folder / "config_sentence_transformers.json", saved)
    save_file(_tensors(tokens["vocab_size"]), folder / "model.safetensors")
    return folder


def _tensors(vocabulary: int) -> dict[str, np.ndarray]:
    chance = np.random.default_rng(6)
    found: dict[str, np.ndarray] = {}

    def normal(*shape: int) -> np.ndarray:
        return (chance.standard_normal(shape) / shape[-1] ** 0.5).astype(np.float32)

    def norm(name: str) -> None:
        found[f"{name}.weight"] = 1 + normal(WIDTH)
        found[f"{name}.bias"] = normal(WIDTH)

    def linear(name: str, outputs: int, inputs: int) -> None:
        found[f"{name}.{STORED}.original"] = normal(outputs, inputs)
        found[f"{name}.{STORED}.0.lora_A"] = normal(len(TASKS), RANK, inputs)
        found[f"{name}.{STORED}.0.lora_B"] = normal(len(TASKS), outputs, RANK)
        found[f"{name}.bias"] = normal(outputs)

    for name, rows in (("word", vocabulary), ("token_type", 1)):
        name = f"roberta.embeddings.{name}_embeddings.{STORED}"  # noqa: PLW2901 - the same, in full
        found[f"{name}.original"] = chance.standard_normal((rows, WIDTH)).astype(np.float32)
        found[f"{name}.0.lora_A"] = normal(len(TASKS), rows, RANK)
        found[f"{name}.0.lora_B"] = normal(len(TASKS), RANK, WIDTH)
    norm("roberta.emb_ln")
    for number in range(LAYERS):
        name = f"roberta.encoder.layers.{number}"
        for part, outputs, inputs in (
            ("mixer.Wqkv", 3 * WIDTH, WIDTH),
            ("mixer.out_proj", WIDTH, WIDTH),
            ("mlp.fc1", INNER, WIDTH),
            ("mlp.fc2", WIDTH, INNER),
        ):
            linear(f"{name}.{part}", outputs, inputs)
        norm(f"{name}.norm1")
        norm(f"{name}.norm2")
    return found
