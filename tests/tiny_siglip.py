"""Builds tiny real SigLIP checkpoints with random weights, without torch and without network.

tiny_siglip(folder)                      as the first published ones: Unigram pieces, lower case, no punctuation
tiny_siglip(folder, tokenizer="gemma")   as SigLIP 2 of fixed resolution: Gemma's BPE, no special tokens
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from tiny import save_tensors, write_json
from tiny_joint import _layer, _random
from tiny_tokenizers import CORPUS

if TYPE_CHECKING:
    from pathlib import Path

DIM, SIZE, PATCH, POSITIONS = 32, 32, 8, 24
_PUNCTUATION = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]"""


def tiny_siglip(
    folder: Path, *, tokenizer: str = "sentencepiece", dtype: str = "float32", seed: int = 0, **settings: object
) -> Path:
    """A SigLIP of two small towers; `settings` changes fields of tokenizer_config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    made, padding = {"sentencepiece": _sentencepiece, "gemma": _gemma}[tokenizer]()
    made.save(str(folder / "tokenizer.json"))
    stated = {"model_max_length": POSITIONS, "model_input_names": ["input_ids"], "pad_token": padding}
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", **stated, **settings})
    vocabulary = made.get_vocab_size()
    sizes = {"num_attention_heads": 4, "num_hidden_layers": 2, "hidden_size": DIM, "intermediate_size": 2 * DIM}
    text = sizes | {"vocab_size": vocabulary, "max_position_embeddings": POSITIONS, "model_type": "siglip_text_model"}
    vision = sizes | {"image_size": SIZE, "patch_size": PATCH, "model_type": "siglip_vision_model"}
    config = {"architectures": ["SiglipModel"], "model_type": "siglip", "torch_dtype": dtype}
    write_json(folder / "config.json", config | {"text_config": text, "vision_config": vision})
    size = {"height": SIZE, "width": SIZE}
    write_json(
        folder / "preprocessor_config.json",
        {"image_processor_type": "SiglipImageProcessor", "do_resize": True, "size": size, "resample": 3},
    )
    random = np.random.default_rng(seed)
    tensors = {name: _random(name, shape, random) for name, shape in _shapes(vocabulary).items()}
    save_tensors(folder, tensors, dtype)
    return folder


def _sentencepiece() -> tuple[Tokenizer, str]:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Lowercase(),
            normalizers.Replace(Regex(_PUNCTUATION), ""),
            normalizers.Replace(Regex(r"\s+"), " "),
            normalizers.Strip(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<unk>", "</s>"]
    trainer = trainers.UnigramTrainer(vocab_size=300, special_tokens=special, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    end = ("</s>", tokenizer.token_to_id("</s>"))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[end]
    )
    return tokenizer, "</s>"


def _gemma() -> tuple[Tokenizer, str]:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<pad>", "<eos>", "<bos>", "<unk>"], show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return Tokenizer.from_str(json.dumps(json.loads(tokenizer.to_str()))), "<pad>"


def _shapes(vocabulary: int) -> dict[str, tuple[int, ...]]:
    head = "vision_model.head"
    shapes: dict[str, tuple[int, ...]] = {
        "logit_scale": (1,),
        "logit_bias": (1,),
        "text_model.embeddings.token_embedding.weight": (vocabulary, DIM),
        "text_model.embeddings.position_embedding.weight": (POSITIONS, DIM),
        "text_model.head.weight": (DIM, DIM),
        "text_model.head.bias": (DIM,),
        "vision_model.embeddings.patch_embedding.weight": (DIM, 3, PATCH, PATCH),
        "vision_model.embeddings.patch_embedding.bias": (DIM,),
        "vision_model.embeddings.position_embedding.weight": ((SIZE // PATCH) ** 2, DIM),
        f"{head}.probe": (1, 1, DIM),
        f"{head}.attention.in_proj_weight": (3 * DIM, DIM),
        f"{head}.attention.in_proj_bias": (3 * DIM,),
        f"{head}.attention.out_proj.weight": (DIM, DIM),
        f"{head}.attention.out_proj.bias": (DIM,),
    }
    for name in ("text_model.final_layer_norm", "vision_model.post_layernorm", f"{head}.layernorm"):
        shapes |= {f"{name}.weight": (DIM,), f"{name}.bias": (DIM,)}
    for tower in ("text_model", "vision_model"):
        for layer in range(2):
            shapes |= _layer(f"{tower}.encoder.layers.{layer}", DIM)
    shapes |= {
        name.replace(f"{head}.x", head): shape for name, shape in _layer(f"{head}.x", DIM).items() if "mlp" in name
    }
    return shapes
