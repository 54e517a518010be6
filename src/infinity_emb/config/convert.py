"""From what somebody wrote (text, or a value of Python or a file) to a checked value of an option."""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING, Any

from infinity_emb.errors import ConfigurationError

if TYPE_CHECKING:
    from infinity_emb.config.option import Option

TRUE_WORDS = frozenset({"true", "1", "t", "yes", "y", "on"})
FALSE_WORDS = frozenset({"false", "0", "f", "no", "n", "off", ""})

_WHOLE_NUMBER = re.compile(r"[+-]?\d+")


def convert(option: Option, value: object) -> Any:
    """One checked value of an option.

    Args:
        option: What it is for.
        value: Text, or a value that has the right type already.

    Raises:
        ConfigurationError: What is wrong and what is allowed; the caller says where it stood.
    """
    if option.optional and (value is None or value == "" or (value == "auto" and option.kind is not str)):
        return None
    if option.comma:
        return tuple(_checked(option, _single(option.kind, piece)) for piece in _pieces(value))
    if value is None and option.default is not None:
        return option.default
    return _checked(option, _single(option.kind, value, option.choices))


def _pieces(value: object) -> list[object]:
    if isinstance(value, str):
        return [piece.strip() for piece in value.split(",") if piece.strip()]
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    return [value]


def _checked(option: Option, value: Any) -> Any:
    complaint = option.check(value) if option.check is not None else None
    if complaint is not None:
        raise ConfigurationError(complaint)
    return value


def _single(kind: type, value: object, choices: tuple[str, ...] = ()) -> Any:
    if issubclass(kind, enum.Enum):
        return _member(kind, value, choices or tuple(str(member.value) for member in kind))
    if kind is bool:
        return _truth(value)
    if kind is int:
        return _whole_number(value)
    if kind is float:
        return _number(value)
    if isinstance(value, str):
        return value
    raise ConfigurationError(f"{value!r} is no text")


def _member(kind: type[enum.Enum], value: object, choices: tuple[str, ...]) -> enum.Enum:
    word = value.value if isinstance(value, enum.Enum) else value
    if isinstance(word, str):
        for member in kind:
            if member.value == word.strip().lower():
                return member
    raise ConfigurationError(f"{word!r} is not one of {', '.join(choices)}")


def _truth(value: object) -> bool:
    word = value.strip().lower() if isinstance(value, str) else value
    if isinstance(word, bool):
        return word
    if word in TRUE_WORDS:
        return True
    if word in FALSE_WORDS:
        return False
    raise ConfigurationError(f"{value!r} is neither true nor false")


def _whole_number(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value.strip()):
        return int(value)
    raise ConfigurationError(f"{value!r} is not a whole number")


def _number(value: object) -> float:
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if number - number == 0:
            return number
    raise ConfigurationError(f"{value!r} is not a number")
