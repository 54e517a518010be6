"""Builds tiny real checkpoints that read texts and media, with random weights, without torch and without network.

tiny_clip(folder)                       as the first published ones are: preprocessor_config.json, a plain repository
tiny_clip(folder, layout="legacy")      sentence-transformers' `0_CLIPModel`
tiny_clip(folder, layout="modules")     sentence-transformers' Transformer with two modalities
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from tiny import save_tensors, write_json, write_modules
from tiny_tokenizers import CORPUS

if TYPE_CHECKING:
    from pathlib import Path

DIM, SIZE, PATCH, POSITIONS = 24, 32, 8, 77
TEXT_WIDTH, VISION_WIDTH = 32, 48
START, END = "<|startoftext|>", "<|endoftext|>"
_SPLIT = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def tiny_clip(
    folder: Path,
    *,
    layout: str = "plain",
    old_end: bool = False,
    activation: str = "quick_gelu",
    dtype: str = "float32",
    seed: int = 0,
    **preprocessor: object,
) -> Path:
    """A CLIP of two small towers; `preprocessor` changes fields of preprocessor_config.json."""
    inside = folder / "0_CLIPModel" if layout == "legacy" else folder
    inside.mkdir(parents=True, exist_ok=True)
    ids = write_clip_tokenizer(inside)
    sizes = {"num_attention_heads": 4, "num_hidden_layers": 2, "hidden_act": activation, "layer_norm_eps": 1e-5}
    text = sizes | {
        "hidden_size": TEXT_WIDTH,
        "intermediate_size": 2 * TEXT_WIDTH,
        "max_position_embeddings": POSITIONS,
        "projection_dim": DIM,
        "model_type": "clip_text_model",
        **ids,
    }
    vision = sizes | {
        "hidden_size": VISION_WIDTH,
        "intermediate_size": 2 * VISION_WIDTH,
        "image_size": SIZE,
        "patch_size": PATCH,
        "projection_dim": DIM,
        "model_type": "clip_vision_model",
    }
    if old_end:
        text["eos_token_id"] = 2
    write_json(
        inside / "config.json",
        {
            "architectures": ["CLIPModel"],
            "model_type": "clip",
            "projection_dim": DIM,
            "logit_scale_init_value": 2.6592,
            "text_config": text,
            "vision_config": vision,
            "torch_dtype": dtype,
        },
    )
    write_json(inside / "preprocessor_config.json", _PREPROCESSOR | preprocessor)
    random = np.random.default_rng(seed)
    tensors = {name: _random(name, shape, random) for name, shape in _shapes(ids["vocab_size"]).items()}
    save_tensors(inside, tensors, dtype)
    if layout == "legacy":
        write_modules(folder, [("0_CLIPModel", "CLIPModel")])
    if layout == "modules":
        write_modules(folder, [("", "sentence_transformers.base.modules.transformer.Transformer")])
        methods = {
            kind: {"method": f"get_{kind}_features", "method_output_name": "pooler_output"}
            for kind in ("text", "image")
        }
        options = {"transformer_task": "feature-extraction", "modality_config": methods}
        write_json(folder / "sentence_bert_config.json", options | {"module_output_name": "sentence_embedding"})
    return folder


_PREPROCESSOR = {
    "image_processor_type": "CLIPImageProcessor",
    "do_resize": True,
    "size": {"shortest_edge": SIZE},
    "resample": 3,
    "do_center_crop": True,
    "crop_size": {"height": SIZE, "width": SIZE},
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "do_convert_rgb": True,
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}


def write_clip_tokenizer(folder: Path, max_length: int = POSITIONS) -> dict:
    """CLIP's byte-level BPE with ends of words; returns the ids that config.json names."""
    tokenizer = Tokenizer(_learned())
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_SPLIT), behavior="removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in (START, END)])
    start, end = tokenizer.token_to_id(START), tokenizer.token_to_id(END)
    tokenizer.post_processor = processors.RobertaProcessing((END, end), (START, start), trim_offsets=False)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "CLIPTokenizer",
        "model_max_length": max_length,
        "bos_token": START,
        "eos_token": END,
        "pad_token": END,
        "unk_token": END,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return {"bos_token_id": start, "eos_token_id": end, "pad_token_id": end, "vocab_size": tokenizer.get_vocab_size()}


def split_tokenizer(folder: Path) -> None:
    """Replace tokenizer.json by the two files that the first repositories have."""
    path = folder / "tokenizer.json"
    learned = json.loads(path.read_text("utf-8"))["model"]
    merges = "\n".join(["#version: 0.2", *(" ".join(pair) for pair in learned["merges"])])
    (folder / "merges.txt").write_text(merges + "\n", encoding="utf-8")
    (folder / "vocab.json").write_text(json.dumps(learned["vocab"]), encoding="utf-8")
    path.unlink()


def _learned() -> models.BPE:
    """As published: bytes, bytes that end a word, pieces, and the two ends of a text last."""
    tokenizer = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=600, end_of_word_suffix="</w>", show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    learned = json.loads(tokenizer.to_str())["model"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [tuple(pair) for pair in learned["merges"]]
    made = ["".join(pair) for pair in merges]
    pieces = [*alphabet, *(f"{letter}</w>" for letter in alphabet), *made, START, END]
    vocabulary = {piece: index for index, piece in enumerate(dict.fromkeys(pieces))}
    return models.BPE(
        vocabulary, merges, unk_token=END, end_of_word_suffix="</w>", continuing_subword_prefix="", fuse_unk=False
    )


def _shapes(vocabulary: int) -> dict[str, tuple[int, ...]]:
    patches = (SIZE // PATCH) ** 2
    shapes: dict[str, tuple[int, ...]] = {
        "logit_scale": (),
        "text_projection.weight": (DIM, TEXT_WIDTH),
        "visual_projection.weight": (DIM, VISION_WIDTH),
        "text_model.embeddings.token_embedding.weight": (vocabulary, TEXT_WIDTH),
        "text_model.embeddings.position_embedding.weight": (POSITIONS, TEXT_WIDTH),
        "vision_model.embeddings.class_embedding": (VISION_WIDTH,),
        "vision_model.embeddings.patch_embedding.weight": (VISION_WIDTH, 3, PATCH, PATCH),
        "vision_model.embeddings.position_embedding.weight": (patches + 1, VISION_WIDTH),
    }
    for name, width in (
        ("text_model.final_layer_norm", TEXT_WIDTH),
        ("vision_model.pre_layrnorm", VISION_WIDTH),
        ("vision_model.post_layernorm", VISION_WIDTH),
    ):
        shapes |= {f"{name}.weight": (width,), f"{name}.bias": (width,)}
    for tower, width in (("text_model", TEXT_WIDTH), ("vision_model", VISION_WIDTH)):
        for layer in range(2):
            shapes |= _layer(f"{tower}.encoder.layers.{layer}", width)
    return shapes


def _layer(name: str, width: int) -> dict[str, tuple[int, ...]]:
    rows = {f"self_attn.{part}_proj": (width, width) for part in ("q", "k", "v", "out")}
    rows |= {"mlp.fc1": (2 * width, width), "mlp.fc2": (width, 2 * width)}
    shapes: dict[str, tuple[int, ...]] = {f"{name}.{part}.weight": shape for part, shape in rows.items()}
    shapes |= {f"{name}.{part}.bias": shape[:1] for part, shape in rows.items()}
    for part in ("layer_norm1", "layer_norm2"):
        shapes |= {f"{name}.{part}.weight": (width,), f"{name}.{part}.bias": (width,)}
    return shapes


def _random(name: str, shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    if not shape:
        return np.full((), 2.6592, np.float32)
    if len(shape) >= 2:
        scale = 0.3 if "embedding" in name else int(np.prod(shape[1:])) ** -0.5 * 1.5
        return random.normal(0, scale, shape).astype(np.float32)
    centre = 1.0 if "norm" in name and name.endswith("weight") else 0.0
    return (centre + random.normal(0, 0.1, shape)).astype(np.float32)
