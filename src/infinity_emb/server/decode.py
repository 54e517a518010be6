"""Bytes to a typed value, once, with errors that say where (hot path)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

import msgspec

from infinity_emb.server.errors import SchemaError

if TYPE_CHECKING:
    from infinity_emb.server.request import Request

BodyT = TypeVar("BodyT")

# A backslash pair and a complete surrogate pair are matched first, so that only half pairs are left over.
_ESCAPES = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
_HALF_PAIR_BYTES = 6
_PLACE = re.compile(r" - at `\$(.*)`$")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")


def decode_body(request: Request, decoder: msgspec.json.Decoder[BodyT]) -> BodyT:
    r"""Decode the body of a request.

    Half a surrogate pair (`\ud83d` alone) becomes U+FFFD, as text that holds one cannot be encoded again.

    Raises:
        SchemaError: Not JSON, or not of the expected form.
    """
    body = request.body
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _schema_error(error) from error
    except msgspec.DecodeError as error:
        repaired = _ESCAPES.sub(_repair, body)
        if repaired == body:
            raise SchemaError(_not_json(error, body), kind="json_invalid") from error
        return _decode_repaired(repaired, decoder)
    except RecursionError as error:
        raise SchemaError("The JSON body is nested too deeply.", kind="json_invalid") from error


def decoder_for(kind: type[BodyT]) -> msgspec.json.Decoder[BodyT]:
    """A decoder that takes numbers and booleans written as strings too, as some clients send them."""
    return msgspec.json.Decoder(kind, strict=False)


def _decode_repaired(body: bytes, decoder: msgspec.json.Decoder[BodyT]) -> BodyT:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _schema_error(error) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise SchemaError(_not_json(error, body), kind="json_invalid") from error


def _repair(match: re.Match[bytes]) -> bytes:
    escape = match.group()
    return rb"\ufffd" if len(escape) == _HALF_PAIR_BYTES else escape


def _not_json(error: Exception, body: bytes) -> str:
    if not body.strip():
        return "The request body is empty; send a JSON object."
    return f"The request body is not valid JSON: {error}."


def _schema_error(error: msgspec.ValidationError) -> SchemaError:
    """Split the decoder's one line into text and place."""
    text = str(error)
    loc: list[str | int] = []
    place = _PLACE.search(text)
    if place is not None:
        loc = [name or int(index) for name, index in _STEP.findall(place.group(1))]
        text = text[: place.start()]
    missing = re.search(r"missing required field `(\w+)`", text)
    kind = "value_error"
    if missing is not None:
        loc.append(missing.group(1))
        kind = "missing"
    where = ".".join(str(part) for part in loc)
    return SchemaError(f"{where}: {text}" if where else text, loc=loc, kind=kind)
