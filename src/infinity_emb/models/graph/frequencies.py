"""Rotary frequencies by what config.json says: base, scaling and the share of a head that turns.

Every step is float32 like in transformers: a rounding of the frequency is multiplied by the position.
Sources: Su et al. 2021 (rotary), Peng et al. 2023 (YaRN), Ding et al. 2024 (LongRoPE), `modeling_rope_utils` of
transformers 5 for the fields. Two scalings turn a long text otherwise than a short one; what counts here is the length
of the text alone, never that of its neighbours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from infinity_emb.errors import CheckpointError, NotComputedError
from infinity_emb.models.graph.architecture import Config, check_config, require_config

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Longer:
    """How texts of more tokens than `limit` turn.

    Attributes:
        limit: Tokens of the longest text that turns as usual.
        radians: Tokens of a text → per position, float32 `[pairs]`.
        steady: They are the same for all longer texts.
    """

    limit: int
    radians: Callable[[int], NDArray[np.float32]]
    steady: bool


@dataclass(frozen=True, slots=True)
class Frequencies:
    """How fast each pair of numbers of a head turns.

    Attributes:
        radians: Per position, float32 `[pairs]`; numbers beyond `2·pairs` do not turn.
        scale: Factor of cosine and sine.
        longer: Of long texts, where those differ.
    """

    radians: NDArray[np.float32]
    scale: float = 1.0
    longer: Longer | None = None


def read_frequencies(config: Config, head_size: int, base: float, layer_type: str | None = None) -> Frequencies:
    """Frequencies of a checkpoint.

    Args:
        config: config.json, with `rope_parameters` (transformers 5) or `rope_theta` and `rope_scaling`.
        head_size: Numbers a head.
        base: Where config.json names none.
        layer_type: `full_attention` or `sliding_attention` if the architecture has a base for each.

    Raises:
        CheckpointError: A scaling that is not computed.
    """
    settings = _settings(config, base, layer_type)
    check_config(settings, "partial_rotary_factor", 1.0)
    check_config(config, "partial_rotary_factor", 1.0)
    kind = str(settings.get("rope_type") or settings.get("type") or "default")
    if kind not in _SCALINGS:
        raise NotComputedError(
            f"config.json: the rotary scaling {kind!r} is not computed by the graph builder; known are "
            f"{', '.join(_SCALINGS)}. Use --engine torch for this model.",
            param="config.json: rope_parameters",
        )
    return _SCALINGS[kind](plain(float(settings["rope_theta"]), head_size), settings, config)


def plain(base: float, size: int) -> NDArray[np.float32]:
    """`base^(-2i/size)`, Su et al. 2021, section 3.2.2."""
    exponents = np.arange(0, size, 2, dtype=np.float32) / np.float32(size)
    return np.asarray(np.float32(1.0) / np.power(base, exponents.astype(np.float64)).astype(np.float32), np.float32)


def _settings(config: Config, base: float, layer_type: str | None) -> dict[str, Any]:
    """The fields of one kind of layer, `rope_theta` always among them."""
    scaling, named = config.get("rope_scaling") or {}, config.get("rope_parameters") or {}
    if layer_type is not None:
        return {"rope_theta": base} | (named.get(layer_type) or {}) | scaling
    return {"rope_theta": config.get("rope_theta") or base} | (scaling or named)


def _default(radians: NDArray[np.float32], settings: dict[str, Any], config: Config) -> Frequencies:
    del settings, config
    return Frequencies(radians)


def _linear(radians: NDArray[np.float32], settings: dict[str, Any], config: Config) -> Frequencies:
    del config
    return Frequencies(radians / np.float32(_number(settings, "factor")))


def _llama3(radians: NDArray[np.float32], settings: dict[str, Any], config: Config) -> Frequencies:
    """Llama 3.1: slow pairs are stretched, fast ones kept, those between blended."""
    factor = np.float32(_number(settings, "factor"))
    low, high = _number(settings, "low_freq_factor"), _number(settings, "high_freq_factor")
    trained = _trained_length(settings, config)
    waves = np.float32(2 * math.pi) / radians
    stretched = np.where(waves > np.float32(trained / low), radians / factor, radians)
    blend = (np.float32(trained) / waves - np.float32(low)) / np.float32(high - low)
    blended = (np.float32(1.0) - blend) * stretched / factor + blend * stretched
    between = (waves >= np.float32(trained / high)) & (waves <= np.float32(trained / low))
    return Frequencies(np.where(between, blended, stretched).astype(np.float32))


def _yarn(radians: NDArray[np.float32], settings: dict[str, Any], config: Config) -> Frequencies:
    """YaRN: interpolated where a pair turns seldom within the trained length, with a ramp between."""
    trained = _trained_length(settings, config)
    factor = float(settings.get("factor") or require_config(config, "max_position_embeddings") / trained)
    size, base = 2 * len(radians), float(settings["rope_theta"])

    def pair_that_turns(times: float) -> float:
        return size * math.log(trained / (times * 2 * math.pi)) / (2 * math.log(base))

    low = pair_that_turns(float(settings.get("beta_fast") or 32))
    high = pair_that_turns(float(settings.get("beta_slow") or 1))
    if settings.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, size - 1)
    high += 0.001 if low == high else 0.0
    ramp = np.clip((np.arange(len(radians), dtype=np.float32) - np.float32(low)) / np.float32(high - low), 0, 1)
    kept = np.float32(1.0) - ramp.astype(np.float32)
    stretched = np.float32(1.0) / (np.float32(factor) * (np.float32(1.0) / radians))
    return Frequencies(stretched * (np.float32(1.0) - kept) + radians * kept, _yarn_scale(settings, factor))


def _yarn_scale(settings: dict[str, Any], factor: float) -> float:
    def growth(weight: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0

    if settings.get("attention_factor") is not None:
        return float(settings["attention_factor"])
    above, below = settings.get("mscale"), settings.get("mscale_all_dim")
    return growth(above) / growth(below) if above and below else growth(1.0)


def _dynamic(radians: NDArray[np.float32], settings: dict[str, Any], config: Config) -> Frequencies:
    """Dynamic NTK: beyond the trained length the base grows with the text."""
    size, factor = 2 * len(radians), np.float32(_number(settings, "factor"))
    trained = np.float32(require_config(config, "max_position_embeddings"))
    base, power = np.float32(settings["rope_theta"]), np.float32(size / max(size - 2, 1))

    def of_length(tokens: int) -> NDArray[np.float32]:
        growth = factor * np.float32(tokens) / trained - (factor - np.float32(1.0))
        return plain(float(base * growth**power), size)

    return Frequencies(radians, longer=Longer(int(trained), of_length, steady=False))


def _longrope(radians: NDArray[np.float32], settings: dict[str, Any], config: Config) -> Frequencies:
    """LongRoPE: a divisor for each pair, one set for texts of the trained length and one for longer ones."""
    trained = _trained_length(settings, config)
    factor = float(settings.get("factor") or require_config(config, "max_position_embeddings") / trained)
    scale = settings.get("attention_factor")
    if scale is None:
        scale = 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(trained))
    powers = np.float32(1.0) / radians
    short, long = (
        np.asarray(np.float32(1.0) / (_numbers(settings, name, len(radians)) * powers), np.float32)
        for name in ("short_factor", "long_factor")
    )
    return Frequencies(short, float(scale), Longer(int(trained), lambda _: long, steady=True))


def _numbers(settings: dict[str, Any], name: str, count: int) -> NDArray[np.float32]:
    values = settings.get(name)
    if not isinstance(values, list) or len(values) != count or not all(isinstance(one, (int, float)) for one in values):
        raise CheckpointError(
            f"config.json: the rotary scaling 'longrope' needs {name!r}, a list of {count} numbers, one for each pair "
            "of a head. Correct it, or download the repository again.",
            param=f"config.json: rope_parameters.{name}",
        )
    return np.asarray(values, np.float32)


def _trained_length(settings: dict[str, Any], config: Config) -> float:
    """The field beside the others wins, as in transformers."""
    named = config.get("original_max_position_embeddings") or settings.get("original_max_position_embeddings")
    return float(named or require_config(config, "max_position_embeddings"))


def _number(settings: dict[str, Any], name: str) -> float:
    if settings.get(name) is None:
        raise CheckpointError(
            f"config.json: the rotary scaling {settings.get('rope_type') or settings.get('type')!r} needs {name!r}. "
            "Add it, or download the repository again.",
            param=f"config.json: rope_parameters.{name}",
        )
    return float(settings[name])


_SCALINGS: dict[str, Callable[[NDArray[np.float32], dict[str, Any], Config], Frequencies]] = {
    "default": _default,
    "dynamic": _dynamic,
    "linear": _linear,
    "llama3": _llama3,
    "longrope": _longrope,
    "yarn": _yarn,
}
