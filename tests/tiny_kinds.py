"""Tiny random checkpoints of the kinds beyond embedders and cross-encoders; written by transformers, tokenizer included.

language_model(folder, "qwen3")            a causal language model with the words that judges answer
masked_model(folder, "bert")               a masked language model, the body of a sparse encoder
late_model(folder, "bert", width=16)       a late interaction model as sentence-transformers saves it
"""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING

import tiny
import tiny_more
import tiny_tokenizers

if TYPE_CHECKING:
    from pathlib import Path

LONGEST = 400
ANSWERS = ("yes", "no", "Yes", "No")
CHAT = ("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<bos>", "<think>", "</think>")
# how Qwen's tokenizers find words
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TOKENIZERS = {"bert": "bert", "distilbert": "distilbert", "roberta": "roberta", "mpnet": "mpnet"}
TOKENIZERS |= {"xlm-roberta": "xlm_roberta", "modernbert": "modernbert", "camembert": "xlm_roberta"}


def language_model(folder: Path, model_type: str, **changes) -> Path:
    """A causal language model; digits are tokens of their own."""
    import transformers

    folder.mkdir(parents=True, exist_ok=True)
    tokens = _chat_tokenizer(folder)
    base = tiny_more.DECODER | {"max_position_embeddings": LONGEST, "sliding_window": None}
    base |= {"vocab_size": tokens.get_vocab_size(), "pad_token_id": tokens.token_to_id("<|endoftext|>")}
    config = transformers.AutoConfig.for_model(model_type, **(base | {"bos_token_id": 0, "eos_token_id": 0} | changes))
    _save(transformers.AutoModelForCausalLM, config, folder)
    return folder


def masked_model(folder: Path, model_type: str, **changes) -> Path:
    """A masked language model."""
    import transformers

    folder.mkdir(parents=True, exist_ok=True)
    config = _encoder_config(folder, model_type, changes)
    _save(transformers.AutoModelForMaskedLM, config, folder)
    return folder


def plain_model(folder: Path, model_type: str, **changes) -> Path:
    """A model that gives token states, with its tokenizer; no modules."""
    import transformers

    folder.mkdir(parents=True, exist_ok=True)
    _save(transformers.AutoModel, _encoder_config(folder, model_type, changes), folder)
    return folder


def splade(folder: Path, model_type: str, *, old: bool = True, most: int | None = None, **pooling) -> Path:
    """A sparse encoder of sentence-transformers, in the old or the new spelling; `most` is its `max_active_dims`."""
    masked_model(folder, model_type)
    root = "sentence_transformers.sparse_encoder.modules"
    old_root = "sentence_transformers.sparse_encoder.models"
    first = f"{old_root}.MLMTransformer" if old else "sentence_transformers.base.modules.transformer.Transformer"
    second = f"{old_root}.SpladePooling" if old else f"{root}.splade_pooling.SpladePooling"
    tiny.write_modules(folder, [("", first), ("1_SpladePooling", second)])
    tiny.write_json(folder / "1_SpladePooling/config.json", pooling)
    options = {"max_seq_length": 40} if old else {"transformer_task": "fill-mask"}
    tiny.write_json(folder / "sentence_bert_config.json", options)
    saved = {"model_type": "SparseEncoder", "prompts": {}, "similarity_fn_name": "dot"}
    saved |= {} if most is None else {"max_active_dims": most}
    tiny.write_json(folder / "config_sentence_transformers.json", saved)
    return folder


def late_model(folder: Path, model_type: str, *, width: int = 16, layout: str = "own", **saved) -> Path:
    """A late interaction model in the layout of sentence-transformers, PyLate ("pylate") or ColBERT ("stanford")."""
    import numpy as np
    import transformers

    folder.mkdir(parents=True, exist_ok=True)
    config = _encoder_config(folder, model_type, {})
    random = np.random.default_rng(5)
    if layout == "stanford":
        _save(_Projected(transformers.AutoModel, model_type), config, folder)
        tiny.edit_json(folder / "config.json", architectures=["HF_ColBERT"])
        tiny.write_json(folder / "artifact.metadata", saved)
        return folder
    _save(transformers.AutoModel, config, folder)
    dense = {"in_features": 32, "out_features": width, "bias": False}
    tiny.write_json(folder / "1_Dense/config.json", dense | {"activation_function": "torch.nn.modules.linear.Identity"})
    weight = random.normal(0, 0.3, (width, 32)).astype(np.float32)
    tiny.save_tensors(folder / "1_Dense", {"linear.weight": weight}, "float32")
    chain = [("", "Transformer"), ("1_Dense", "pylate.models.Dense.Dense")]
    modules, options = saved.pop("modules", {}), saved.pop("options", {})
    if layout == "own":
        tiny.edit_json(folder / "1_Dense/config.json", module_input_name="token_embeddings")
        chain[1] = ("1_Dense", "sentence_transformers.base.modules.dense.Dense")
        chain.append(("2_Normalize", "sentence_transformers.base.modules.normalize.Normalize"))
        tiny.write_json(folder / "2_Normalize/config.json", {"module_input_name": "token_embeddings"})
        root = "sentence_transformers.multi_vector_encoder.modules"
        for number, (name, content) in enumerate(modules.items(), 3):
            file = {"MultiVectorMask": "multi_vector_mask", "HierarchicalTokenPooling": "token_pooling"}[name]
            chain.append((f"{number}_{name}", f"{root}.{file}.{name}"))
            tiny.write_json(folder / f"{number}_{name}/config.json", content)
    tiny.write_modules(folder, chain)
    tiny.write_json(folder / "sentence_bert_config.json", {"max_seq_length": 40, "do_lower_case": False} | options)
    family = "ColBERT" if layout == "pylate" else "MultiVectorEncoder"
    tiny.write_json(folder / "config_sentence_transformers.json", {"model_type": family} | saved)
    return folder


class _Projected:
    """An encoder with ColBERT's projection beside it."""

    def __init__(self, kind, model_type: str) -> None:
        self._kind, self._prefix = kind, {"xlm-roberta": "roberta"}.get(model_type, model_type)

    def from_config(self, config):
        import torch

        model = torch.nn.Module()
        model.add_module(self._prefix, self._kind.from_config(config))
        model.linear = torch.nn.Linear(config.hidden_size, 16, bias=False)
        model.save_pretrained = lambda folder: _save_plain(model, config, folder)
        return model


def _save_plain(model, config, folder) -> None:
    from safetensors.torch import save_file

    save_file(model.state_dict(), folder / "model.safetensors", metadata={"format": "pt"})
    config.save_pretrained(folder)


def _encoder_config(folder: Path, model_type: str, changes: dict):
    import transformers

    tokens = tiny_tokenizers.write(folder, TOKENIZERS[model_type], 64)
    extra = 2 if model_type in {"roberta", "xlm-roberta", "camembert", "mpnet"} else 0
    base = tiny_more.BASES.get(model_type, tiny_more.ENCODER) | {"max_position_embeddings": 64 + extra}
    return transformers.AutoConfig.for_model(model_type, **(base | tokens | changes))


def _save(kind, config, folder: Path) -> None:
    import torch

    torch.manual_seed(11)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind.from_config(config)
        tiny_more.randomise(model)
        model.save_pretrained(folder)


def _chat_tokenizer(folder: Path):
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=list(CHAT[:4]),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([" ".join(tiny_tokenizers.CORPUS)], trainer)
    tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in CHAT])
    tokenizer.add_tokens([AddedToken(text, single_word=True, normalized=False) for text in ANSWERS])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": LONGEST, "padding_side": "left"}
    settings |= {"pad_token": "<|endoftext|>", "eos_token": "<|im_end|>", "bos_token": "<bos>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return tokenizer
