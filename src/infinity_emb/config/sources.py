"""What was said about each option, by whom, and how values reach the models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infinity_emb.config.convert import FALSE_WORDS, TRUE_WORDS, convert
from infinity_emb.config.option import UNSET, Arity, Option, options_of
from infinity_emb.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

LIST_SEPARATOR = ";"

# As in the original: two words are true in a list, five where there is one value. Others are reported.
_TRUE_IN_LIST = frozenset({"true", "1"})
_TRUE_ALONE = frozenset({"true", "t", "1", "yes", "y"})


@dataclass(frozen=True)
class Given:
    """The values of one option and where they stood.

    Attributes:
        values: Checked values; one, unless the option takes several or one for each model.
        origin: The flag, the variable, the file's entry, or "default".
    """

    values: tuple[Any, ...]
    origin: str = "default"


def said_or_default(option: Option) -> Given:
    """What holds when nobody says anything."""
    if option.arity is Arity.SEVERAL:
        return Given(option.default)
    return Given((option.default,))


def convert_at(option: Option, value: object, origin: str) -> Any:
    """`convert`, with the place of the value in the message."""
    try:
        return convert(option, value)
    except ConfigurationError as error:
        raise ConfigurationError(f"{origin}: {error.message}", param=option.flag) from None


def read_variable(option: Option, variables: Mapping[str, str]) -> tuple[Given | None, tuple[str, ...]]:
    """The values that the environment holds for an option, and warnings about them.

    An empty variable counts as not set, unless the option takes one text or one list, for which empty is a value.

    Raises:
        ConfigurationError: A value is wrong.
    """
    text = variables.get(option.variable)
    empty_is_value = option.arity is Arity.ONE and (option.comma or (option.kind is str and not option.optional))
    if text is None or not (text or empty_is_value):
        return None, ()
    pieces = [text]
    if option.arity is not Arity.ONE:
        pieces = [piece.strip() for piece in text.strip().removesuffix(LIST_SEPARATOR).split(LIST_SEPARATOR)]
    warnings: list[str] = []
    values = []
    for piece in pieces:
        if option.kind is bool:
            values.append(_lenient_truth(option, piece, warnings))
        else:
            values.append(convert_at(option, piece, option.variable))
    return Given(tuple(values), option.variable), tuple(warnings)


def _lenient_truth(option: Option, piece: str, warnings: list[str]) -> bool:
    word = piece.strip().lower()
    if word in (_TRUE_ALONE if option.arity is Arity.ONE else _TRUE_IN_LIST):
        return True
    if word not in FALSE_WORDS:
        meant = " (only true and 1 are read as true here)" if word in TRUE_WORDS else ""
        warnings.append(f"{option.variable}: {piece!r} is read as false{meant}; write true or false")
    return False


def read_variables(options: Iterable[Option], variables: Mapping[str, str]) -> tuple[dict[str, Given], tuple[str, ...]]:
    """What the environment says, by flag, and warnings about it."""
    found: dict[str, Given] = {}
    warnings: tuple[str, ...] = ()
    for option in options:
        given, complaints = read_variable(option, variables)
        warnings += complaints
        if given is not None:
            found[option.flag] = given
    return found, warnings


def per_model(option: Option, given: Given, count: int) -> tuple[Any, ...]:
    """One value for each model: one value is for all, as many as there are models go by position.

    Raises:
        ConfigurationError: Any other number of values.
    """
    if len(given.values) == count:
        return given.values
    if len(given.values) == 1:
        return given.values * count
    raise ConfigurationError(
        f"{given.origin} has {len(given.values)} values for {count} model{'s' if count > 1 else ''}. "
        f"Give one value for all models or exactly one for each --model-id.",
        param=option.flag,
    )


def rows_of(options: Sequence[Option], given: Mapping[str, Given], count: int) -> list[dict[str, Any]]:
    """Values by field name, one dictionary for each model."""
    columns = {option.field: per_model(option, given[option.flag], count) for option in options}
    return [{field: column[index] for field, column in columns.items()} for index in range(count)]


def settle(holder: Any, variables: Mapping[str, str]) -> None:
    """Convert and check the fields of a frozen dataclass of settings; unset ones come from the environment.

    Raises:
        ConfigurationError: A value is wrong; the message names the field or the variable.
    """
    kind: type = type(holder)
    for option in options_of(kind):
        value = getattr(holder, option.field)
        if value is UNSET:
            given = read_variable(option, variables)[0] or said_or_default(option)
            value = given.values if option.arity is Arity.SEVERAL else given.values[0]
        elif option.arity is Arity.SEVERAL:
            pieces = value if isinstance(value, (list, tuple)) else (value,)
            value = tuple(convert_at(option, piece, option.field) for piece in pieces)
        else:
            value = convert_at(option, value, option.field)
        object.__setattr__(holder, option.field, value)
