"""`MANAGER`: the values of the `INFINITY_*` variables as attributes, as users of the original read them."""

from __future__ import annotations

from typing import Any

from infinity_emb.config.environment import environ, own_cache
from infinity_emb.config.option import Arity
from infinity_emb.config.options import SETTINGS
from infinity_emb.config.sources import read_variable, said_or_default

_BY_ATTRIBUTE = {option.flag.replace("-", "_"): option for option in SETTINGS}


class EnvironmentValues:
    """One attribute for each option, named as its flag with `_`: `MANAGER.batch_size` is `[32]`.

    Options that are given once for each model are lists, the others single values. The environment is read when an
    attribute is, so importing this package reads nothing. Reading raises `ConfigurationError` if the value is wrong.
    """

    cache_dir = property(lambda _: own_cache(environ()), doc="Folder for downloads and compiled graphs.")

    def __getattr__(self, name: str) -> Any:
        """Read an option's variable; `AttributeError` if there is no such option."""
        option = _BY_ATTRIBUTE.get(name)
        if option is None:
            raise AttributeError(f"there is no option {name!r}; there are {', '.join(_BY_ATTRIBUTE)}")
        values = (read_variable(option, environ())[0] or said_or_default(option)).values
        if option.arity is Arity.PER_MODEL:
            return [_plain(value) for value in values]
        return _plain(values[0]) if values else ""

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_BY_ATTRIBUTE})


def _plain(value: Any) -> Any:
    """The original gives an empty text where nothing is said, and device ids as they were written."""
    if value is None:
        return ""
    return ",".join(map(str, value)) if isinstance(value, tuple) else value


MANAGER = EnvironmentValues()
