"""Static embeddings (StaticEmbedding of sentence-transformers, model2vec): a table of token vectors and nothing else.

The vector of a text is the mean of its tokens' rows, without special tokens. No config.json names this architecture:
a spec that does has `model_type` "static".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.models.graph.architecture import Architecture, Config

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder

TABLE = "embedding.weight"


def encode(builder: GraphBuilder, config: Config) -> str:
    """Rows of the table; model2vec may share rows among tokens (`mapping`) and weigh tokens (`weights`)."""
    del config
    tokens = builder.flatten(builder.input("input_ids"))
    if builder.tensors.has(TABLE):
        return builder.lookup(TABLE, tokens)
    shared = builder.gather(builder.stored("mapping"), tokens) if builder.tensors.has("mapping") else tokens
    rows = builder.lookup("embeddings", shared)
    if not builder.tensors.has("weights"):
        return rows
    return builder.node("Mul", [rows, builder.node("Unsqueeze", [builder.lookup("weights", tokens), builder.ints(1)])])


def encode_words(builder: GraphBuilder, config: Config) -> str:
    """Rows of a table of whole words (WordEmbeddings)."""
    del config
    return builder.lookup("emb_layer.weight", builder.flatten(builder.input("input_ids")))


def encode_bag(builder: GraphBuilder, config: Config) -> str:
    """Nothing but the ids: the module that follows needs no states (BoW)."""
    del config
    return builder.flatten(builder.input("input_ids"))


BAG = Architecture(encode_bag, None, ())
WORDS = Architecture(encode_words, None, ())
STATIC = Architecture(encode, None, ())
