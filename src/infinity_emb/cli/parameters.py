"""Click parameters made from the option declarations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from infinity_emb.config.convert import convert
from infinity_emb.config.option import Arity, Option
from infinity_emb.config.options import OPTIONS
from infinity_emb.config.sources import Given
from infinity_emb.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLACEHOLDERS = {int: "INTEGER", float: "NUMBER", str: "TEXT"}


class OptionType(click.ParamType):  # type: ignore[type-arg]  # click < 8.3 has no argument
    """Reads one value as the option's declaration says."""

    name = "value"

    def __init__(self, option: Option, flag: str) -> None:
        self.option = option
        self.origin = f"--{flag}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Given:
        """Text to a checked value; wrapped so that None, which may be meant, differs from "not given"."""
        if isinstance(value, Given):
            return value
        try:
            return Given((convert(self.option, value),), self.origin)
        except ConfigurationError as error:
            self.fail(error.message, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Offer the words that the option takes."""
        del ctx, param
        return [CompletionItem(word) for word in self.option.choices if word.startswith(incomplete)]


def placeholder(option: Option) -> str:
    """What stands for the value in help."""
    if option.choices and not option.comma:
        return "[" + "|".join((*(["auto"] if option.optional else []), *option.choices)) + "]"
    if option.choices:
        return ",".join(option.choices[:2]) + ",…"
    return _PLACEHOLDERS[option.kind] + (",…" if option.comma else "")


def default_text(option: Option) -> str:
    """The default as one would write it; empty where it is nothing."""
    if option.kind is bool:
        return "on" if option.default else "off"
    if option.default is None:
        return "" if option.kind is str else "auto"
    values = option.default if isinstance(option.default, tuple) else (option.default,)
    return ",".join(map(str, values))


def click_options() -> list[click.Parameter]:
    """Click parameters of all options; none has a default, so that only what was typed comes back."""
    return [_click_option(option, flag) for option in OPTIONS for flag in (option.flag, *option.synonyms)]


def _destination(flag: str) -> str:
    return flag.replace("-", "_")


def _click_option(option: Option, flag: str) -> click.Option:
    notes = [f"default: {default_text(option)}"] if default_text(option) else []
    notes += [option.variable] + (["one per model"] if option.arity is Arity.PER_MODEL else [])
    is_switch = option.kind is bool
    return click.Option(
        [f"--{flag}/--no-{flag}" if is_switch else f"--{flag}", _destination(flag)],
        type=None if is_switch else OptionType(option, flag),
        default=None,
        multiple=option.arity is not Arity.ONE,
        metavar=None if is_switch else placeholder(option),
        help=f"{option.help} [{'; '.join(notes)}]",
        hidden=option.retired is not None or flag != option.flag,
    )


def given_flags(parsed: Mapping[str, Any]) -> dict[str, Given]:
    """What was typed, by flag; `parsed` is what click hands over."""
    found: dict[str, Given] = {}
    for option in OPTIONS:
        values: tuple[Any, ...] = ()
        for flag in (option.flag, *option.synonyms):
            typed = parsed[_destination(flag)]
            pieces = typed if isinstance(typed, tuple) else (typed,)
            values += tuple(value for piece in pieces if piece is not None for value in _unwrap(piece))
        if values:
            found[option.flag] = Given(values, f"--{option.flag}")
    return found


def _unwrap(piece: Any) -> tuple[Any, ...]:
    return piece.values if isinstance(piece, Given) else (piece,)
