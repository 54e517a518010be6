"""The only reader of the process environment."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from infinity_emb.config.convert import TRUE_WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping


def environ() -> Mapping[str, str]:
    """The variables as they are now."""
    return os.environ


@dataclass(frozen=True, kw_only=True)
class HubEnvironment:
    """What the environment says about where model files come from and are kept.

    Attributes:
        hf_home: `HF_HOME`, or `huggingface` in the user's cache folder.
        hub_cache: `HF_HUB_CACHE`, or `hub` in `hf_home`.
        token: `HF_TOKEN` (or the older `HUGGING_FACE_HUB_TOKEN`), or what a login left in a file, or None.
        endpoint: `HF_ENDPOINT` without its last slash, or the public hub.
        offline: `HF_HUB_OFFLINE` or `TRANSFORMERS_OFFLINE` is on.
        infinity_cache: Folder for what this package downloads and compiles:
            `.infinity_cache` in `INFINITY_HOME` or in a set `HF_HOME`, else `infinity_emb` in the user's cache folder.
        package_index: Address of a Python package index that the user's tools are set to, or None.
    """

    hf_home: Path
    hub_cache: Path
    token: str | None = field(repr=False)
    endpoint: str
    offline: bool
    infinity_cache: Path
    package_index: str | None = field(repr=False)


def hub_environment(variables: Mapping[str, str] | None = None) -> HubEnvironment:
    """Read what concerns model files; `variables` defaults to the process environment."""
    said = os.environ if variables is None else variables
    user_cache = Path(said.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    hf_home = Path(said.get("HF_HOME") or user_cache / "huggingface").expanduser()
    base = said.get("INFINITY_HOME") or said.get("HF_HOME")
    return HubEnvironment(
        hf_home=hf_home,
        hub_cache=Path(said.get("HF_HUB_CACHE") or hf_home / "hub").expanduser(),
        token=_token(said, hf_home),
        endpoint=(said.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/"),
        offline=any(said.get(name, "").lower() in TRUE_WORDS for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")),
        infinity_cache=Path(base).expanduser() / ".infinity_cache" if base else user_cache / "infinity_emb",
        package_index=said.get("PIP_INDEX_URL") or said.get("UV_INDEX_URL") or said.get("UV_DEFAULT_INDEX") or None,
    )


def _token(said: Mapping[str, str], hf_home: Path) -> str | None:
    token = said.get("HF_TOKEN") or said.get("HUGGING_FACE_HUB_TOKEN")
    if not token:
        path = Path(said.get("HF_TOKEN_PATH") or hf_home / "token").expanduser()
        try:
            token = path.read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return None  # nobody logged in, or not as this user: the public files still work
    return token.strip() or None
