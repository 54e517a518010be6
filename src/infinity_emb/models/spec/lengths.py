"""Works out the longest input, in tokens, that a checkpoint can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from infinity_emb.models.spec.files import ConfigFile

# Learned positions that start after the padding id: two of the table's rows are never used for text.
OFFSET_POSITIONS = frozenset(
    {
        "camembert",
        "clap",
        "data2vec-text",
        "ibert",
        "longformer",
        "mpnet",
        "roberta",
        "roberta-prelayernorm",
        "xlm-roberta",
        "xlm-roberta-xl",
        "xmod",
    }
)
# Learned positions from 0: a longer input would read past the table.
PLAIN_POSITIONS = frozenset(
    {
        "albert",
        "bert",
        "clip",
        "convbert",
        "distilbert",
        "electra",
        "ernie",
        "gpt2",
        "mobilebert",
        "nystromformer",
        "siglip",
    }
)
FALLBACK_TOKENS = 512
_NO_LIMIT = 10**9  # tokenizers write 1e30 for "none"


class Length(NamedTuple):
    """Longest input.

    Attributes:
        tokens: Special tokens included.
        notes: For the start-up block.
    """

    tokens: int
    notes: tuple[str, ...] = ()


def read_max_length(config: ConfigFile, tokenizer: ConfigFile, stated: int | None) -> Length:
    """What sentence-transformers allows, but never more than the position table holds.

    `stated` (max_seq_length of the repository) wins; else the tokenizer's limit, capped by the model's positions.

    Args:
        config: The transformer's config.json.
        tokenizer: tokenizer_config.json.
        stated: `max_seq_length`, if the repository gives one.
    """
    model_type = config.text("model_type") or ""
    positions = _positions(config, model_type)
    if stated is not None and stated < _NO_LIMIT:
        learned = not _turns(config)
        has_table = learned and (model_type in OFFSET_POSITIONS or model_type in PLAIN_POSITIONS)
        if has_table and positions is not None and stated > positions:
            return Length(positions, (f"max_seq_length {stated} was cut to the model's {positions} positions",))
        return Length(stated)
    declared = tokenizer.whole("model_max_length") or _NO_LIMIT
    limit = min(declared, positions or _NO_LIMIT)
    if limit >= _NO_LIMIT:
        limit = config.whole("n_positions") or FALLBACK_TOKENS
        return Length(limit, (f"the repository states no longest input; {limit} tokens are assumed",))
    return Length(limit)


def _positions(config: ConfigFile, model_type: str) -> int | None:
    """Positions that text can use, None if the model names no limit (-1 is how XLNet says so)."""
    if config.data.get("max_position_embeddings") == -1:
        return None
    positions = config.whole("max_position_embeddings")
    if positions is None or model_type not in OFFSET_POSITIONS or _turns(config):
        return positions
    padding = config.whole("pad_token_id", least=0)
    return positions - (1 if padding is None else padding) - 1


def _turns(config: ConfigFile) -> bool:
    """Whether positions are rotary in a family that usually learns a table of them (jina-embeddings-v3)."""
    return config.data.get("position_embedding_type") == "rotary"
