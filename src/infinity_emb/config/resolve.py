"""From flags, variables, file and defaults to the settings of every engine and of the server."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infinity_emb.config.engine_args import ENGINE_OPTIONS, EngineArgs
from infinity_emb.config.file import read_settings_file
from infinity_emb.config.option import Arity
from infinity_emb.config.options import CONFIG_FILE, RETIRED_VARIABLES, SETTINGS
from infinity_emb.config.server_args import SERVER_OPTIONS, ServerArgs
from infinity_emb.config.sources import Given, read_variable, read_variables, rows_of, said_or_default
from infinity_emb.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Resolved:
    """What holds.

    Attributes:
        engine_args: Settings of each model, in the order given.
        server_args: Settings of the server.
        warnings: Lines to log: values without effect, doubtful variables.
        report: One line an option, with its value and where it stood; secrets masked.
    """

    engine_args: tuple[EngineArgs, ...]
    server_args: ServerArgs
    warnings: tuple[str, ...]
    report: tuple[str, ...]


def resolve(flags: Mapping[str, Given], variables: Mapping[str, str]) -> Resolved:
    """Decide every option: flag before variable before settings file before default.

    Args:
        flags: What the command line says, by flag.
        variables: The environment.

    Raises:
        ConfigurationError: A value is wrong, or lists do not fit the number of models.
    """
    from_variables, warnings = read_variables(SETTINGS, variables)
    file = flags.get(CONFIG_FILE.flag) or read_variable(CONFIG_FILE, variables)[0]
    from_file = read_settings_file(file.values[0]) if file is not None and file.values[0] else {}
    said = from_file | from_variables | dict(flags)
    given = {option.flag: said.get(option.flag) or said_or_default(option) for option in SETTINGS}

    rows = rows_of(ENGINE_OPTIONS, given, len(given["model-id"].values))
    engine_args = tuple(EngineArgs(**row) for row in rows)
    _check_names(engine_args)
    server_args = ServerArgs(
        **{option.field: _server_value(given[option.flag], option.arity) for option in SERVER_OPTIONS}
    )
    server_args.listeners(len(engine_args))  # raises where the ports do not fit the models
    return Resolved(
        engine_args,
        server_args,
        (*warnings, *_without_effect(said, variables)),
        tuple(_line(option.flag, given[option.flag], secret=option.secret) for option in SETTINGS),
    )


def _server_value(given: Given, arity: Arity) -> Any:
    return given.values if arity is Arity.SEVERAL else given.values[0]


def _check_names(engine_args: tuple[EngineArgs, ...]) -> None:
    counts = Counter(args.served_model_name for args in engine_args)
    doubled = [name for name, count in counts.items() if count > 1]
    if doubled:
        raise ConfigurationError(
            f"{len(engine_args)} models are to be served, but {counts[doubled[0]]} of them as {doubled[0]!r}. "
            "Names must differ: give one --served-model-name for each --model-id.",
            param="served-model-name",
        )


def _without_effect(said: Mapping[str, Given], variables: Mapping[str, str]) -> tuple[str, ...]:
    options = [
        f"{said[option.flag].origin} has no effect: {option.retired}"
        for option in SETTINGS
        if option.retired and option.flag in said
    ]
    names = [f"{name} has no effect: {reason}" for name, reason in RETIRED_VARIABLES.items() if name in variables]
    return (*options, *names)


def _line(flag: str, given: Given, *, secret: bool) -> str:
    values = ["***" for value in given.values if value] if secret else [_shown(value) for value in given.values]
    return f"{flag} = {'; '.join(values)} ({given.origin})"


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return "" if value is None else str(value)
