"""Tiny random checkpoints written by transformers itself, for every family that has a graph builder; no tokenizer.

spec = save(folder, "modernbert", {"local_attention": 8})            an embedder: cls, max, mean, last token together
spec = save(folder, "modernbert", {"local_attention": 8}, labels=3)  a classifier
model = load(folder, spec)                                           the reference, float32
"""

from __future__ import annotations

import functools
import json
import warnings
from typing import TYPE_CHECKING

from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.spec.model import ModelSpec, PoolingMode, PoolingSpec
from infinity_emb.types import Task

if TYPE_CHECKING:
    from pathlib import Path

VOCABULARY, LONGEST = 99, 300
ENCODER = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": LONGEST + 10,
}
DECODER = ENCODER | {"num_key_value_heads": 2, "head_dim": 16}
BASES: dict[str, dict] = {
    "bert": ENCODER,
    "xlm-roberta": ENCODER | {"pad_token_id": 1, "type_vocab_size": 1},
    "distilbert": {"dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 48, "max_position_embeddings": LONGEST},
    "mpnet": ENCODER | {"pad_token_id": 1},
    "modernbert": ENCODER | {"num_hidden_layers": 4, "local_attention": 8},
    "albert": ENCODER | {"embedding_size": 16},
    "deberta-v2": ENCODER
    | {
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "position_biased_input": False,
        "position_buckets": 16,
        "max_relative_positions": -1,
    },
    "qwen2": DECODER,
    "qwen3": DECODER,
    "llama": DECODER,
    "mistral": DECODER | {"sliding_window": None},
    "gemma3_text": DECODER | {"query_pre_attn_scalar": 24, "sliding_window": 7, "num_hidden_layers": 7},
    "eurobert": DECODER,
    "gemma": DECODER,
    "t5": {"d_model": 32, "d_kv": 12, "d_ff": 48, "num_layers": 3, "num_heads": 4},
    "mt5": {"d_model": 32, "d_kv": 12, "d_ff": 48, "num_layers": 3, "num_heads": 4},
    "umt5": {"d_model": 32, "d_kv": 12, "d_ff": 48, "num_layers": 3, "num_heads": 4},
    "nomic_bert": ENCODER,
    "gte": ENCODER,
}
XLM_ROBERTA_NAMES = (
    ("embeddings.LayerNorm", "emb_ln"),
    ("encoder.layer.", "encoder.layers."),
    ("attention.output.dense", "mixer.out_proj"),
    ("attention.output.LayerNorm", "norm1"),
    ("intermediate.dense", "mlp.fc1"),
    ("output.dense", "mlp.fc2"),
    ("output.LayerNorm", "norm2"),
)
ENCODER_ONLY = {"t5": "T5EncoderModel", "mt5": "MT5EncoderModel", "umt5": "UMT5EncoderModel"}


def save(folder: Path, model_type: str, changes: dict, *, labels: int = 0, dtype: str = "float32") -> ModelSpec:
    """Write config.json and model.safetensors of a random model."""
    import torch
    import transformers

    base = BASES[model_type] | {"vocab_size": VOCABULARY, "pad_token_id": 0} | BASES[model_type] | changes
    base |= {"num_labels": labels} if labels else {}
    config = transformers.AutoConfig.for_model(model_type, **base)
    torch.manual_seed(7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = _class(model_type, labels).from_config(config)
        randomise(model)
        model.to(getattr(torch, dtype)).save_pretrained(folder)
    return read(folder, labels)


def save_plain(folder: Path, config: dict, shapes: dict) -> tuple[ModelSpec, dict]:
    """Write a checkpoint that transformers does not know, of random tensors in these shapes; returns them too."""
    import torch
    from safetensors.torch import save_file

    class Model(torch.nn.Module):
        def named_parameters(self):
            return tensors.items()

    tensors = {name: torch.ones(shape) for name, shape in shapes.items()}
    torch.manual_seed(7)
    randomise(Model())
    folder.mkdir()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return read(folder), tensors


def rename_xlm_roberta(spec: ModelSpec) -> None:
    """Write a checkpoint again in the layout of `jinaai/xlm-roberta-flash-implementation`."""
    import torch
    from safetensors.torch import load_file, save_file

    (file,) = spec.weights
    tensors = load_file(file)
    for name in [name for name in tensors if ".self.query." in name]:
        parts = [tensors.pop(name.replace("query", part)) for part in ("query", "key", "value")]
        tensors[name.replace("attention.self.query", "mixer.Wqkv")] = torch.cat(parts)
    renamed = {
        functools.reduce(lambda name, pair: name.replace(*pair), XLM_ROBERTA_NAMES, name): tensor
        for name, tensor in tensors.items()
    }
    save_file(renamed, file)


def write_static(folder: Path, tensors: dict) -> ModelSpec:
    """Write a checkpoint of static embeddings."""
    from safetensors.torch import save_file

    save_file(tensors, folder / "model.safetensors")
    width = next(iter(tensors.values())).shape[1]
    (folder / "config.json").write_text(json.dumps({"model_type": "static", "hidden_size": width}), encoding="utf-8")
    return read(folder)


def read(folder: Path, labels: int = 0) -> ModelSpec:
    """The spec of a folder, without a tokenizer."""
    config = json.loads((folder / "config.json").read_text("utf-8"))
    width = config.get("hidden_size") or config.get("dim") or config.get("d_model") or config["n_embd"]
    modes = (PoolingMode.CLS, PoolingMode.MAX, PoolingMode.MEAN, PoolingMode.LAST_TOKEN)
    return ModelSpec(
        checkpoint=Checkpoint(folder, str(folder), "local folder"),
        folder=folder,
        config=config,
        model_type=config["model_type"],
        architecture=(config.get("architectures") or [""])[0],
        weights=tuple(sorted(folder.glob("*.safetensors"))),
        task=Task.CLASSIFY if labels else Task.EMBED,
        modules=() if labels else (PoolingSpec(modes),),
        hidden_size=width,
        dim=0 if labels else width * len(modes),
        max_length=LONGEST,
        labels=tuple(map(str, range(labels))),
    )


def load(folder: Path, spec: ModelSpec):
    """The reference model, in float32 and on one thread: more only wait for each other on inputs this small."""
    import torch

    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kind = _class(spec.model_type, len(spec.labels))
        return kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


def randomise(model) -> None:
    """Weights large enough that inputs give visibly different outputs, small enough that nothing saturates."""
    import torch

    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() >= 2 and ("embed" in name or "shared" in name or "relative_attention_bias" in name):
                weight.normal_(0, 1.0)
            elif weight.dim() >= 2:
                # T5 does not scale its scores; its queries are small instead
                weight.normal_(0, (0.3 if "SelfAttention.q" in name else 1.2) * weight.shape[-1] ** -0.5)
            else:
                centre = float(weight.mean()) if "norm" in name.lower() and name.endswith("weight") else 0.0
                weight.normal_(centre, 0.1)


class _Encoder:
    """`from_config` and `from_pretrained` of a class that is no Auto class."""

    def __init__(self, kind) -> None:
        self.from_pretrained = kind.from_pretrained
        self.from_config = kind


def _class(model_type: str, labels: int):
    import transformers

    if model_type in ENCODER_ONLY:
        return _Encoder(getattr(transformers, ENCODER_ONLY[model_type]))
    return transformers.AutoModelForSequenceClassification if labels else transformers.AutoModel
