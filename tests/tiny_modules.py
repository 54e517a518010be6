"""Writes the smaller modules of sentence-transformers behind a tiny checkpoint, in its own files, without torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import tiny
import tiny_embedders

if TYPE_CHECKING:
    from pathlib import Path

WIDTH = 32  # of a token state of the tiny checkpoints
OWN = "sentence_transformers.sentence_transformer.modules"
SPARSE = "sentence_transformers.sparse_encoder.modules"
TYPES = {
    "BoW": f"{OWN}.bow.BoW",
    "CNN": f"{OWN}.cnn.CNN",
    "Dense": "sentence_transformers.base.modules.dense.Dense",
    "LSTM": f"{OWN}.lstm.LSTM",
    "LayerNorm": f"{OWN}.layer_norm.LayerNorm",
    "Normalize": "sentence_transformers.base.modules.normalize.Normalize",
    "Pooling": f"{OWN}.pooling.Pooling",
    "SparseAutoEncoder": f"{SPARSE}.sparse_auto_encoder.SparseAutoEncoder",
    "WeightedLayerPooling": f"{OWN}.weighted_layer_pooling.WeightedLayerPooling",
    "WordEmbeddings": f"{OWN}.word_embeddings.WordEmbeddings",
    "WordWeights": f"{OWN}.word_weights.WordWeights",
}
# as GloVe lists them: the padding token first; forms that only differ in case; a word that ends in punctuation
WORDS = [
    *("PADDING_TOKEN", "the", "quick", "brown", "fox", "capital", "of", "Peru", "lima", "tea", "coffee", "potatoes"),
    *("population", "search", "embeddings", "rank", "documents", "café", "straße", "привет", "世界", "한국어", "2019"),
    *("e-mail", "don't", "a-b_c", "Hello", "hello", "World!", "world", "word", "line", "UPPER", "rank"),
]
IDF = {"fox": 2.5, "the": 0.0, "peru": 3.25, "CAFÉ": 9.0, "hello": 1.5, "world": 0.75, "nowhere": 4.0, "of": -0.25}


def layer_mean(folder: Path, model_type: str, *, start: int = 1, switched: bool = True, old: bool = False) -> Path:
    """An embedder whose token states are the weighted mean of several layers; `old` in the first generation's words."""
    tiny_embedders.embedder(model_type, folder, pooling="mean", normalize=False)
    tiny.edit_json(folder / "config.json", **({"output_hidden_states": True} if switched else {}))
    config = read(folder / "config.json")
    layers = config.get("num_hidden_layers") or config["n_layers"]
    width = "word_embedding_dimension" if old else "embedding_dimension"
    stated = {width: WIDTH, "layer_start": start, "num_hidden_layers": layers}
    module(folder, "WeightedLayerPooling", stated, {"layer_weights": (layers + 1 - start,)}, place="1_Layers")
    chain = [("", "Transformer"), ("1_Layers", "WeightedLayerPooling"), ("1_Pooling", "Pooling")]
    write_chain(folder, chain, old=old)
    return folder


def coded(folder: Path, model_type: str, *, codes: int = 48, kept: int = 6, old: bool = False, **stated) -> Path:
    """A sparse encoder that codes the vector of an embedder; `stated` goes into the auto-encoder's config.json."""
    most = stated.pop("max_active_dims", None)
    tiny_embedders.embedder(model_type, folder, pooling="mean", normalize=False)
    sizes = {"input_dim": WIDTH, "hidden_dim": codes, "k": kept, "k_aux": 16, "normalize": False, "dead_threshold": 30}
    shapes = {"encoder.weight": (codes, WIDTH), "pre_bias": (WIDTH,), "latent_bias": (codes,)}
    module(folder, "SparseAutoEncoder", sizes | stated, shapes, place="2_SparseAutoEncoder", stats_last_nonzero=codes)
    chain = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_SparseAutoEncoder", "SparseAutoEncoder")]
    write_chain(folder, chain, old=old)
    saved = {"model_type": "SparseEncoder", "prompts": {}, "similarity_fn_name": "dot"}
    saved |= {} if most is None else {"max_active_dims": most}
    tiny.write_json(folder / "config_sentence_transformers.json", saved)
    return folder


def convolved(folder: Path, model_type: str, *, kernels: tuple[int, ...] = (1, 3, 5), old: bool = False) -> Path:
    """An embedder with convolutions before its pooling."""
    tiny_embedders.embedder(model_type, folder, pooling="mean", normalize=False)
    width = _convolution(folder, "1_CNN", WIDTH, kernels, old=old)
    tiny.edit_json(folder / "1_Pooling/config.json", word_embedding_dimension=width)
    write_chain(folder, [("", "Transformer"), ("1_CNN", "CNN"), ("1_Pooling", "Pooling")], old=old)
    return folder


def weighed(folder: Path, model_type: str) -> Path:
    """An embedder whose token states are weighed before its pooling."""
    import tokenizers

    tiny_embedders.embedder(model_type, folder, pooling=("mean", "max"), normalize=False)
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    rows = range(read(folder / "config.json")["vocab_size"])
    word_weights(folder / "1_WordWeights", [tokenizer.id_to_token(row) or f"unused{row}" for row in rows])
    chain = [("", "Transformer"), ("1_WordWeights", "WordWeights"), ("1_Pooling", "Pooling")]
    write_chain(folder, chain)
    return folder


def of_words(
    folder: Path,
    *,
    inside: tuple[str, ...] = (),
    pooling: str | list[str] = "mean",
    place: str = "0_WordEmbeddings",
    old: bool = False,
    lower: bool = False,
    limit: int = 1_000_000,
    layers: int = 1,
    both_ways: bool = True,
    kernels: tuple[int, ...] = (1, 3, 5),
) -> Path:
    """A table of word vectors, the modules `inside`, pooling and unit vectors."""
    root = "sentence_transformers.models.tokenizer" if old else f"{OWN}.tokenizer"
    name = f"{root}.{'WhitespaceTokenizer' if old else 'whitespace'}.WhitespaceTokenizer"
    stated = {"tokenizer_class": name, "update_embeddings": False, "max_seq_length": limit}
    width = 24
    rows = len(WORDS) + 2
    module(
        folder,
        "WordEmbeddings",
        stated,
        {"emb_layer.weight": (rows, width)},
        place=place,
        config_name="wordembedding_config.json",
    )
    split = {"vocab": WORDS, "stop_words": ["of", "rank"], "do_lower_case": lower}
    tiny.write_json(folder / place / "whitespacetokenizer_config.json", split)
    chain = [(place, "WordEmbeddings")]
    for number, kind in enumerate(inside, 1):
        here = f"{number}_{kind}"
        chain.append((here, kind))
        if kind == "WordWeights":
            word_weights(folder / here)
        elif kind == "CNN":
            width = _convolution(folder, here, width, kernels, old=old)
        else:
            width = _recurrent(folder, here, width, layers, both_ways=both_ways, old=old)
    last = len(chain)
    named = "word_embedding_dimension" if old else "embedding_dimension"
    tiny.write_json(folder / f"{last}_Pooling/config.json", {named: width, "pooling_mode": pooling})
    write_chain(folder, [*chain, (f"{last}_Pooling", "Pooling"), (f"{last + 1}_Normalize", "Normalize")], old=old)
    return folder


def word_weights(folder: Path, words: list[str] | None = None) -> None:
    """A WordWeights module for a vocabulary."""
    vocabulary = words or [*WORDS, "spare", "rows"]
    stated = {"vocab": vocabulary, "word_weights": IDF, "unknown_word_weight": 0.5}
    tiny.write_json(folder / "config.json", stated)


def bag(folder: Path, *, counted: bool = True, old: bool = False, inside: tuple[str, ...] = ("Normalize",)) -> Path:
    """A bag of words, and what follows it."""
    stated = {"vocab": WORDS, "word_weights": IDF, "unknown_word_weight": 1, "cumulative_term_frequency": counted}
    tiny.write_json(folder / "0_BoW/config.json", stated)
    chain = [("0_BoW", "BoW"), *((f"{number}_{kind}", kind) for number, kind in enumerate(inside, 1))]
    for place, kind in chain:
        if kind == "Dense":
            tiny.write_dense(folder / place, len(set(WORDS)), 12, np.random.default_rng(2))
    write_chain(folder, chain, old=old)
    return folder


def _convolution(folder: Path, place: str, width: int, kernels: tuple[int, ...], *, old: bool) -> int:
    name = "in_word_embedding_dimension" if old else "in_embedding_dimension"
    stated = {name: width, "out_channels": 7, "kernel_sizes": kernels, "stride_sizes": [1] * len(kernels)}
    shapes: dict = {}
    for number, kernel in enumerate(kernels):
        shapes |= {f"convs.{number}.weight": (7, width, kernel), f"convs.{number}.bias": (7,)}
    module(folder, "CNN", stated, shapes, place=place, config_name="cnn_config.json")
    return 7 * len(kernels)


def _recurrent(folder: Path, place: str, width: int, layers: int, *, both_ways: bool, old: bool) -> int:
    name = "word_embedding_dimension" if old else "embedding_dimension"
    stated = {name: width, "hidden_dim": 5, "num_layers": layers, "dropout": 0, "bidirectional": both_ways}
    endings = ("", "_reverse") if both_ways else ("",)
    shapes = {}
    for layer in range(layers):
        for ending in endings:
            inputs = 5 * len(endings) if layer else width
            parts = {"weight_ih": (20, inputs), "weight_hh": (20, 5), "bias_ih": (20,), "bias_hh": (20,)}
            shapes |= {f"encoder.{part}_l{layer}{ending}": shape for part, shape in parts.items()}
    module(folder, "LSTM", stated, shapes, place=place, config_name="lstm_config.json")
    return 5 * len(endings)


def module(
    folder: Path,
    kind: str,
    config: dict,
    shapes: dict,
    *,
    place: str,
    config_name: str = "config.json",
    **counters: int,
) -> None:
    """One module with random weights; `counters` are tensors of whole zeros, by their length."""
    from safetensors.numpy import save_file

    chance = np.random.default_rng([len(kind), *map(ord, kind[:3])])
    tensors = {name: chance.normal(0.3, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}
    tensors |= {name: np.zeros(length, np.int64) for name, length in counters.items()}
    tiny.write_json(folder / place / config_name, config)
    if tensors:
        save_file(tensors, folder / place / "model.safetensors", metadata={"format": "pt"})


def write_chain(folder: Path, chain: list[tuple[str, str]], *, old: bool = False) -> None:
    """modules.json in the words of the current generation, or of the first one."""
    named = [(place, kind if old else TYPES.get(kind, kind)) for place, kind in chain]
    if old:
        root = "sentence_transformers.sparse_encoder.models"
        named = [(place, f"{root}.{kind}" if kind.startswith("Sparse") else kind) for place, kind in named]
    tiny.write_modules(folder, named)


def read(path: Path) -> dict:
    """A JSON object."""
    import json

    return json.loads(path.read_text("utf-8"))
