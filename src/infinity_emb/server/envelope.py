"""OpenAI's answer around vectors: values for the JSON writer, or the bytes themselves for base64 (hot path)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import orjson

from infinity_emb.server.embedding import usage_of
from infinity_emb.server.identity import new_id
from infinity_emb.server.vectors import base64_rows, rows

if TYPE_CHECKING:
    from infinity_emb.server.embedding import Embedded

_HEAD = b'{"object":"list","data":['
_BEFORE = b'{"object":"embedding","embedding":"'
_BETWEEN = b'","index":%d},' + _BEFORE
_BEHIND = b'","index":%d}],'
_COUNTED = 256
# between an entry and the next, by the number of the first
_BETWEENS = [_BETWEEN % index for index in range(_COUNTED)]


def envelope(embedded: Embedded) -> dict[str, Any]:
    """The answer as values."""
    data = [
        {"object": "embedding", "embedding": vector, "index": index}
        for index, vector in enumerate(rows(embedded.vectors, base64=embedded.form.base64))
    ]
    return {"object": "list", "data": data, **_rest(embedded)}


def packed_envelope(embedded: Embedded) -> bytes:
    """The answer as JSON, its vectors as base64: no letter of them needs to be looked at again."""
    written = base64_rows(embedded.vectors)
    count = len(written)
    pieces = [b""] * (2 * count)
    pieces[0::2] = written
    pieces[1::2] = _BETWEENS[:count] if count <= _COUNTED else [_BETWEEN % index for index in range(count)]
    pieces[-1] = _BEHIND % (count - 1)
    return b"".join((_HEAD, _BEFORE, *pieces, orjson.dumps(_rest(embedded))[1:]))


def _rest(embedded: Embedded) -> dict[str, Any]:
    return {
        "model": embedded.model,
        "usage": usage_of(embedded.usage),
        "id": f"infinity-{new_id()}",
        "created": int(time.time()),
    }
