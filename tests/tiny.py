"""Builds tiny real checkpoints with random weights into a folder, tokenizer included, without torch and without network.

    tiny_bert(folder)                                   an embedder: mean pooling, unit vectors
    tiny_roberta(folder, pooling="cls", normalize=False, dense=16)
    tiny_bert(folder, labels=("yes",))                  a cross-encoder (one label)
    tiny_bert(folder, labels=("a", "b", "c"), multi_label=True)
    tiny_bert(folder, modules=False)                    a plain repository without modules.json

They load in transformers and sentence-transformers as they are.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

import tiny_tokenizers
from tiny_architectures import ARCHITECTURES, HIDDEN, LAYERS, POSITIONS, Architecture

if TYPE_CHECKING:
    from pathlib import Path


def tiny(
    kind: str,
    folder: Path,
    *,
    pooling: str | tuple[str, ...] = "mean",
    normalize: bool = True,
    dense: int | None = None,
    residual: bool = False,
    prompts: dict | None = None,
    default_prompt_name: str | None = None,
    include_prompt: bool = True,
    labels: tuple[str, ...] = (),
    multi_label: bool = False,
    modules: bool = True,
    max_seq_length: int | None = None,
    dtype: str = "float32",
    sharded: bool = False,
    seed: int = 0,
) -> Path:
    """Build a checkpoint of the family `kind`; with `labels` it is a sequence classifier, else an embedder."""
    architecture = ARCHITECTURES[kind]
    folder.mkdir(parents=True, exist_ok=True)
    tokens = tiny_tokenizers.write(folder, architecture.tokenizer, POSITIONS if kind != "modernbert" else 4 * POSITIONS)
    config = {**architecture.config, **tokens, "architectures": [architecture.name + "Model"], "torch_dtype": dtype}
    if labels:
        config["architectures"] = [architecture.name + "ForSequenceClassification"]
        config["id2label"] = {str(index): label for index, label in enumerate(labels)}
        config["label2id"] = {label: index for index, label in enumerate(labels)}
        if multi_label:
            config["problem_type"] = "multi_label_classification"
    write_json(folder / "config.json", config)
    random = np.random.default_rng(seed)
    tensors = _tensors(architecture, tokens["vocab_size"], len(labels), random)
    save_tensors(folder, tensors, dtype, sharded=sharded)
    if modules and not labels:
        chain = [("", "Transformer"), ("1_Pooling", "Pooling")]
        flags = {"mean": "mean_tokens", "cls": "cls_token", "max": "max_tokens"}
        modes = (pooling,) if isinstance(pooling, str) else pooling
        old = {f"pooling_mode_{name}": mode in modes for mode, name in flags.items()} | {
            "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens" in modes,
            "pooling_mode_weightedmean_tokens": "weightedmean" in modes,
            "pooling_mode_lasttoken": "lasttoken" in modes,
        }
        write_json(
            folder / "1_Pooling/config.json",
            {"word_embedding_dimension": HIDDEN, **old, "include_prompt": include_prompt},
        )
        if dense is not None:
            chain.append(("2_Dense", "Dense"))
            more = {"use_residual": True} if residual else {}
            write_dense(folder / "2_Dense", HIDDEN * len(modes), dense, random, **more)
        if normalize:
            chain.append((f"{len(chain)}_Normalize", "Normalize"))
        write_modules(folder, chain)
        write_json(folder / "sentence_bert_config.json", {"max_seq_length": max_seq_length, "do_lower_case": False})
    if prompts is not None or default_prompt_name is not None:
        saved = {"prompts": prompts or {}, "default_prompt_name": default_prompt_name, "similarity_fn_name": "cosine"}
        write_json(folder / "config_sentence_transformers.json", saved)
    return folder


def _maker(kind: str):
    def make(folder: Path, **options) -> Path:
        return tiny(kind, folder, **options)

    make.__name__ = f"tiny_{kind}"
    make.__doc__ = f"`tiny({kind!r}, folder, …)`."
    return make


tiny_bert, tiny_roberta, tiny_xlm_roberta = _maker("bert"), _maker("roberta"), _maker("xlm_roberta")
tiny_distilbert, tiny_mpnet, tiny_electra = _maker("distilbert"), _maker("mpnet"), _maker("electra")
tiny_albert, tiny_modernbert, tiny_deberta_v2 = _maker("albert"), _maker("modernbert"), _maker("deberta_v2")


def write_json(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")


def edit_json(path: Path, **changes: object) -> None:
    """Change fields of a JSON object; `None` stays as null, `...` deletes the field."""
    content = json.loads(path.read_text("utf-8")) | changes
    write_json(path, {key: value for key, value in content.items() if value is not ...})


def write_modules(folder: Path, chain: list[tuple[str, str]], root: str = "sentence_transformers.models") -> None:
    """modules.json of (path, class name) pairs."""
    write_json(
        folder / "modules.json",
        [
            {"idx": index, "name": str(index), "path": path, "type": f"{root}.{name}" if "." not in name else name}
            for index, (path, name) in enumerate(chain)
        ],
    )


def write_dense(folder: Path, inputs: int, outputs: int, random: np.random.Generator, **config: object) -> None:
    """A Dense module; without `activation_function` in `config` the key is missing, which means Tanh."""
    write_json(folder / "config.json", {"in_features": inputs, "out_features": outputs, "bias": True, **config})
    shapes = {"linear.weight": (outputs, inputs), "linear.bias": (outputs,)}
    if config.get("use_residual") and inputs != outputs:
        shapes["residual.weight"] = (outputs, inputs)
    save_tensors(folder, {name: _random(name, shape, random) for name, shape in shapes.items()}, "float32")


def save_tensors(folder: Path, tensors: dict, dtype: str, *, sharded: bool = False) -> None:
    """Write model.safetensors, or two shards and their index."""
    from safetensors.numpy import save_file

    if dtype == "bfloat16":
        import ml_dtypes

        tensors = {name: tensor.astype(ml_dtypes.bfloat16) for name, tensor in tensors.items()}
    else:
        tensors = {name: tensor.astype(dtype) for name, tensor in tensors.items()}
    if not sharded:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        return
    names = sorted(tensors)
    shards = [names[: len(names) // 2], names[len(names) // 2 :]]
    places = {}
    for index, shard in enumerate(shards):
        file = f"model-{index + 1:05d}-of-{len(shards):05d}.safetensors"
        save_file({name: tensors[name] for name in shard}, folder / file, metadata={"format": "pt"})
        places |= dict.fromkeys(shard, file)
    size = sum(tensor.nbytes for tensor in tensors.values())
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": size}, "weight_map": places})


def _tensors(architecture: Architecture, vocabulary: int, labels: int, random: np.random.Generator) -> dict:
    layers = architecture.config.get("num_hidden_layers", LAYERS)
    shapes = dict(architecture.stem)
    for layer in range(layers):
        shapes |= {name.format(n=layer): shape for name, shape in architecture.layer.items()}
    shapes.pop("layers.0.attn_norm.weight", None)
    shapes |= architecture.tail
    if labels:
        without = {name for name in shapes if "pooler" in name and "classifier.out_proj.weight" in architecture.head}
        shapes = {architecture.prefix + name: shape for name, shape in shapes.items() if name not in without}
        shapes |= architecture.head
    sizes = {"vocabulary": vocabulary, "labels": labels}
    return {
        name: _random(name, tuple(sizes.get(axis, axis) for axis in shape), random) for name, shape in shapes.items()
    }


def _random(name: str, shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """Large enough that inputs give visibly different outputs, small enough that nothing saturates."""
    if len(shape) == 2:
        scale = 1.0 if "embedding" in name else shape[1] ** -0.5 * 1.5
        return random.normal(0, scale, shape).astype(np.float32)
    centre = 1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0
    return (centre + random.normal(0, 0.1, shape)).astype(np.float32)
