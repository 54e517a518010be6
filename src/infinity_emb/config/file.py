"""The settings file: TOML or JSON with the names of the options, one `[[models]]` table for each model.

::

    port = 7997
    dtype = "float32"            # for all models

    [[models]]
    model-id = "sentence-transformers/all-MiniLM-L6-v2"

    [[models]]
    model-id = "cross-encoder/ms-marco-MiniLM-L6-v2"
    batch-size = 8
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infinity_emb.config.option import Arity
from infinity_emb.config.options import SETTING_BY_FLAG
from infinity_emb.config.sources import Given, convert_at
from infinity_emb.errors import ConfigurationError

if TYPE_CHECKING:
    from infinity_emb.config.option import Option

_MODELS = "models"


def read_settings_file(path: str) -> dict[str, Given]:
    """What the file says, by flag.

    Raises:
        ConfigurationError: It cannot be read, names an unknown option or holds a wrong value.
    """
    table = _parse(Path(path))
    models = table.pop(_MODELS, [])
    if not isinstance(models, list) or not all(isinstance(model, dict) for model in models):
        raise ConfigurationError(f"{path}: {_MODELS!r} must be a list of tables, one for each model", param="config")
    given = {option.flag: _read(option, value, path) for option, value in _named(table, path)}
    return given | _columns([_named(model, path) for model in models], given, path)


def _parse(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        table = json.loads(text) if path.suffix == ".json" else _toml().loads(text)
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}", param="config") from error
    except ValueError as error:  # of either format, and of text that is not UTF-8
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise ConfigurationError(f"{path}: is not valid {kind}: {error}", param="config") from error
    if not isinstance(table, dict):
        raise ConfigurationError(f"{path}: must hold one JSON object with option names as keys", param="config")
    return table


def _toml() -> Any:
    for module in ("tomllib", "tomli"):  # the first is part of Python from 3.11 on
        if importlib.util.find_spec(module) is not None:
            return importlib.import_module(module)
    raise ConfigurationError(
        "Python 3.10 reads TOML only with the package tomli: pip install tomli, or write the settings as .json",
        param="config",
    )


def _named(table: dict[str, Any], path: str) -> list[tuple[Option, Any]]:
    return [(_option(key, path), value) for key, value in table.items()]


def _option(key: str, path: str) -> Option:
    flag = key.replace("_", "-")
    if flag in SETTING_BY_FLAG:
        return SETTING_BY_FLAG[flag]
    near = difflib.get_close_matches(flag, [*SETTING_BY_FLAG, _MODELS], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ConfigurationError(f"{path}: there is no option {key!r}{hint}", param="config")


def _read(option: Option, value: Any, path: str) -> Given:
    origin = f"{option.flag} in {path}"
    several = isinstance(value, list) and option.arity is not Arity.ONE and not (option.comma and _is_flat(value))
    values = value if several else [value]
    if not values:
        raise ConfigurationError(f"{origin}: an empty list says nothing; leave the option out", param=option.flag)
    return Given(tuple(convert_at(option, piece, origin) for piece in values), origin)


def _is_flat(value: list[Any]) -> bool:
    """A list of numbers is one value of an option that is itself a list, such as `device-id = [0, 1]`."""
    return not any(isinstance(piece, (list, str)) for piece in value)


def _columns(models: list[list[tuple[Option, Any]]], given: dict[str, Given], path: str) -> dict[str, Given]:
    """Turn one table a model into one list an option; a model that is silent gets the file's value for all."""
    rows = [{option.flag: _read(option, value, path) for option, value in model} for model in models]
    columns: dict[str, Given] = {}
    for flag in dict.fromkeys(flag for row in rows for flag in row):
        option = SETTING_BY_FLAG[flag]
        if option.arity is not Arity.PER_MODEL:
            raise ConfigurationError(f"{path}: {flag!r} is for the whole server; move it out of [[models]]", param=flag)
        silent = given.get(flag, Given((option.default,)))
        cells = [row.get(flag, silent) for row in rows]
        if any(len(cell.values) != 1 for cell in cells):
            raise ConfigurationError(f"{path}: {flag!r} must be one value, not a list, beside [[models]]", param=flag)
        columns[flag] = Given(tuple(cell.values[0] for cell in cells), f"{flag} in {path}")
    if rows and any("model-id" not in row for row in rows):
        raise ConfigurationError(f"{path}: every [[models]] table needs a model-id", param="model-id")
    return columns
