"""EuroBERT: Llama that looks both ways, with a head of its own (Boizard et al. 2025)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.models.graph.architecture import Architecture, Config, check_config, require_config
from infinity_emb.models.graph.decoder import LLAMA_BOTH_WAYS
from infinity_emb.models.graph.heads import mean_of_tokens

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder


def score(builder: GraphBuilder, config: Config, hidden: str, labels: int) -> str:
    """Dense, GELU and one linear layer: on the first token, on the mean, or on all tokens before the mean (late)."""
    check_config(config, "classifier_pooling", "late", "mean", "bos")
    width, pooling = int(require_config(config, "hidden_size")), config.get("classifier_pooling", "late")
    if pooling == "bos":
        hidden = builder.gather(hidden, builder.input("first_index"))
    elif pooling == "mean":
        hidden = mean_of_tokens(builder, hidden)
    inner = builder.activation(builder.linear(hidden, "dense", (width, width)), "gelu")
    logits = builder.linear(inner, "classifier", (labels, width))
    return mean_of_tokens(builder, logits) if pooling == "late" else logits


EUROBERT = Architecture(LLAMA_BOTH_WAYS.encode, score, LLAMA_BOTH_WAYS.prefixes)
