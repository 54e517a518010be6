"""An option: declared once beside the field it fills, from which flag, variable, check, help and docs follow."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

if typing.TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

VARIABLE_PREFIX = "INFINITY_"
_METADATA_KEY = "option"


class _Unset:
    """Stands for "not said": the environment decides, then the declared default."""

    def __repr__(self) -> str:
        return "<INFINITY_* variable or default>"


UNSET = _Unset()


class Arity(enum.Enum):
    """How many values an option takes."""

    ONE = "one"
    SEVERAL = "several"
    PER_MODEL = "per model"


@dataclass(frozen=True, kw_only=True)
class Option:
    """One option. `options_of` fills in what follows from the field it is declared beside.

    Attributes:
        help: One or two sentences for `--help` and the reference page.
        section: Heading under which help and reference list it.
        flag: Name on the command line without the dashes, such as `batch-size`.
        field: Name of the dataclass field it fills.
        kind: Type of one value: bool, int, float, str or an enumeration.
        default: Value when nobody says anything.
        arity: One value, several, or one for each model.
        comma: One value is itself a list, written with commas.
        optional: None is allowed; written as an empty text or, where that is no text option, `auto`.
        check: Says what is wrong with a value of the right type, or returns None.
        synonyms: Further flags without dashes, not listed.
        hidden_choices: Members of an enumeration that are read but not offered.
        retired: Why the option has no effect any more; said when somebody gives it.
        secret: Its value is never shown.
    """

    help: str
    section: str = ""
    flag: str = ""
    field: str = ""
    kind: type = str
    default: Any = None
    arity: Arity = Arity.ONE
    comma: bool = False
    optional: bool = False
    check: Callable[[Any], str | None] | None = None
    synonyms: tuple[str, ...] = ()
    hidden_choices: tuple[str, ...] = ()
    retired: str | None = None
    secret: bool = False

    @property
    def variable(self) -> str:
        """Name of the environment variable."""
        return VARIABLE_PREFIX + self.flag.upper().replace("-", "_")

    @property
    def choices(self) -> tuple[str, ...]:
        """Words that are offered; empty where any value of the kind is."""
        if not issubclass(self.kind, enum.Enum):
            return ()
        return tuple(str(member.value) for member in self.kind if member.value not in self.hidden_choices)


def setting(default: T, option: Option) -> T:
    """Declare a dataclass field together with its option; returns what `dataclasses.field` needs."""
    metadata = {_METADATA_KEY: dataclasses.replace(option, default=default)}
    return typing.cast("T", dataclasses.field(default=UNSET, metadata=metadata, repr=not option.secret))


@cache
def options_of(holder: type) -> tuple[Option, ...]:
    """The options declared in a dataclass, complete, in the order of its fields.

    Its class variable `per_model` says whether they are given once for each model.
    """
    hints = typing.get_type_hints(holder)
    fields = [field for field in dataclasses.fields(holder) if _METADATA_KEY in field.metadata]
    options = [_complete(field.metadata[_METADATA_KEY], field.name, hints[field.name]) for field in fields]
    if holder.per_model:  # type: ignore[attr-defined]
        options = [dataclasses.replace(option, arity=Arity.PER_MODEL) for option in options]
    return tuple(options)


def _complete(option: Option, field: str, hint: Any) -> Option:
    members = typing.get_args(hint) if typing.get_origin(hint) in {types.UnionType, typing.Union} else (hint,)
    optional = type(None) in members
    kind = next(member for member in members if member is not type(None))
    is_tuple = typing.get_origin(kind) is tuple
    if is_tuple:
        kind = typing.get_args(kind)[0]
    if option.kind is not str:
        kind = option.kind
    return dataclasses.replace(
        option,
        field=field,
        flag=option.flag or field.replace("_", "-"),
        kind=kind,
        default=bool(option.default) if kind is bool else option.default,
        arity=Arity.SEVERAL if is_tuple and not option.comma else Arity.ONE,
        optional=optional,
    )
