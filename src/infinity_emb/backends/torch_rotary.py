"""Hot path. Keeps transformers' rotary scalings by length exact: every text counts alone, whatever came before.

They look at the longest row of a batch, padding included, and `dynamic` remembers the longest text so far.
"""

from __future__ import annotations

from typing import Any

from infinity_emb.errors import CheckpointError

_REMEMBERED = ("max_seq_len_cached", "original_max_seq_len", "original_inv_freq")


class RotaryMemory:
    """What the modules of a model remember of earlier texts.

    Args:
        module: Of transformers.

    Raises:
        CheckpointError: One remembers it in a way that is not known here.
    """

    def __init__(self, module: Any) -> None:
        dynamic = [part for part in module.modules() if _is_dynamic(getattr(part, "rope_type", None))]
        self._parts = [part for part in dynamic if all(hasattr(part, name) for name in _REMEMBERED)]
        if len(self._parts) < len(dynamic) or any(isinstance(part.rope_type, dict) for part in dynamic):
            raise CheckpointError(
                "config.json: the rotary scaling 'dynamic' of single kinds of layers depends on earlier texts in "
                "transformers, so --engine torch does not compute it. Use another engine, or a max_seq_length in "
                "sentence_bert_config.json of at most max_position_embeddings.",
                param="config.json: rope_parameters",
            )

    def forget(self) -> None:
        """As if no text had been read."""
        for part in self._parts:
            part.max_seq_len_cached = part.original_max_seq_len
            part.inv_freq = part.original_inv_freq


def _is_dynamic(kind: Any) -> bool:
    kinds = kind.values() if isinstance(kind, dict) else [kind]
    return any("dynamic" in str(one) for one in kinds)
