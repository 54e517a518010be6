"""Token ids of OpenAI's `cl100k_base` back to text, as clients that count tokens themselves send them.

Only decoding is needed, so the table of byte sequences is enough and no tokenizer library is.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.util
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from infinity_emb.config.environment import environ
from infinity_emb.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_CACHE_NAME = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
_PACKAGE_FOLDERS = (
    ("litellm", "litellm_core_utils/tokenizers"),
    ("llama_index.core", "_static/tiktoken_cache"),
)
_SPECIAL = {
    100257: b"<|endoftext|>",
    100258: b"<|fim_prefix|>",
    100259: b"<|fim_middle|>",
    100260: b"<|fim_suffix|>",
    100276: b"<|endofprompt|>",
}
_HOW_TO = (
    "Send strings instead (in LangChain: check_embedding_ctx_length=False), or start the server with "
    "--token-ids model if the ids are of the served model's own vocabulary, or give the server the table: "
    "set TIKTOKEN_CACHE_DIR to a folder that holds it, or install a package that brings it (pip install litellm)."
)


def decode_cl100k(lists: Iterable[list[int]]) -> list[str]:
    """Texts of lists of ids.

    Raises:
        InvalidInputError: An id is outside the vocabulary, or the table is not on this machine.
    """
    table = load_table()
    return [_decode(table, ids) for ids in lists]


def _decode(table: dict[int, bytes], ids: list[int]) -> str:
    try:
        raw = b"".join([table[number] for number in ids])
    except KeyError as error:
        raise InvalidInputError(
            f"Token id {str(error.args[0])[:30]} is not in the vocabulary cl100k_base ({len(table):,} ids, up to "
            f"{max(table):,}). If the ids are of the served model's own vocabulary, start the server with "
            "--token-ids model.",
            param="input",
        ) from error
    return raw.decode("utf-8", errors="replace")


@functools.cache
def load_table() -> dict[int, bytes]:
    """Byte sequence of each id, read once; a miss is not remembered.

    Raises:
        InvalidInputError: The table is not on this machine, or altered.
    """
    for path in _places():
        if not path.is_file():
            continue
        raw = path.read_bytes()
        if hashlib.sha256(raw).hexdigest() == _SHA256:
            return dict(_parse(raw)) | _SPECIAL
    raise InvalidInputError(
        "Token ids are taken as OpenAI's cl100k_base, and its table is not on this machine. " + _HOW_TO, param="input"
    )


def _parse(raw: bytes) -> Iterator[tuple[int, bytes]]:
    for line in raw.splitlines():
        token, _, rank = line.partition(b" ")
        yield int(rank), base64.b64decode(token)


def _places() -> Iterator[Path]:
    """Where other tools leave the table; nothing of them is run."""
    folder = environ().get("TIKTOKEN_CACHE_DIR") or environ().get("DATA_GYM_CACHE_DIR")
    if folder:
        yield Path(folder) / _CACHE_NAME
        yield Path(folder) / "cl100k_base.tiktoken"
    yield Path(tempfile.gettempdir()) / "data-gym-cache" / _CACHE_NAME
    for package, inside in _PACKAGE_FOLDERS:
        for root in _package_roots(package):
            yield Path(root) / inside / _CACHE_NAME


def _package_roots(package: str) -> list[str]:
    top, _, rest = package.partition(".")
    spec = importlib.util.find_spec(top)  # finds, does not import
    locations = list(spec.submodule_search_locations or ()) if spec is not None else []
    return [str(Path(location, *rest.split("."))) if rest else location for location in locations]
