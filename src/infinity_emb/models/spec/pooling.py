"""Reads a Pooling module's configuration, in the old and the new spelling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.models.spec.model import PoolingMode, PoolingSpec

if TYPE_CHECKING:
    from infinity_emb.models.spec.files import ConfigFile

LEGACY_FLAGS = {
    "pooling_mode_cls_token": PoolingMode.CLS,
    "pooling_mode_max_tokens": PoolingMode.MAX,
    "pooling_mode_mean_tokens": PoolingMode.MEAN,
    "pooling_mode_mean_sqrt_len_tokens": PoolingMode.MEAN_SQRT_LEN,
    "pooling_mode_weightedmean_tokens": PoolingMode.WEIGHTED_MEAN,
    "pooling_mode_lasttoken": PoolingMode.LAST_TOKEN,
}
_MODES = {mode.value: mode for mode in PoolingMode}


def read_pooling(config: ConfigFile, token_width: int) -> PoolingSpec:
    """Read the modes; the old flags concatenate in a fixed order, the new list in its own.

    Raises:
        CheckpointError: An unknown mode, or a width other than that of the token states.
    """
    for field in ("embedding_dimension", "word_embedding_dimension"):
        width = config.whole(field)
        if width is not None and width != token_width:
            raise config.error(field, f"{width} does not fit token states of width {token_width} (config.json).")
    return PoolingSpec(_modes(config), include_prompt=config.flag("include_prompt", default=True))


def _modes(config: ConfigFile) -> tuple[PoolingMode, ...]:
    named = config.data.get("pooling_mode")
    if named is None:
        unknown = [key for key in config.data if key.startswith("pooling_mode_") and key not in LEGACY_FLAGS]
        if unknown:
            raise config.error(unknown[0], f"unknown pooling mode. Supported: {', '.join(LEGACY_FLAGS)}.")
        active = tuple(mode for flag, mode in LEGACY_FLAGS.items() if config.flag(flag, default=False))
        return active or (PoolingMode.MEAN,)
    names = [named] if isinstance(named, str) else named
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise config.error("pooling_mode", f"{named!r} is neither a mode nor a list of modes.")
    for name in names:
        if name not in _MODES:
            raise config.error("pooling_mode", f"{name!r} is not supported. Supported: {', '.join(_MODES)}.")
    return tuple(_MODES[name] for name in names)
