"""Inputs as clients write them, turned into a list of texts, token ids or media sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from infinity_emb.config.choices import TokenIds
from infinity_emb.errors import InvalidInputError
from infinity_emb.server.errors import SchemaError
from infinity_emb.server.token_ids import decode_cl100k
from infinity_emb.types import Modality

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infinity_emb.server.fields import TextOrTokens
    from infinity_emb.server.settings import HttpSettings
    from infinity_emb.types import TextInput

_MEDIA_KEYS = {
    "image": Modality.IMAGE,
    "image_url": Modality.IMAGE,
    "image_base64": Modality.IMAGE,
    "url": Modality.IMAGE,
    "bytes": Modality.IMAGE,
    "audio": Modality.AUDIO,
    "audio_url": Modality.AUDIO,
    "input_audio": Modality.AUDIO,
}


class Inputs(NamedTuple):
    """Inputs of one request.

    Attributes:
        modality: Of all of them, or of the first that is no text.
        items: Texts or token ids; for image and audio URLs, data URIs or bare base64.
        mixed: The modality of each, where they differ.
    """

    modality: Modality
    items: Sequence[TextInput]
    mixed: tuple[Modality, ...] = ()


def read_inputs(value: TextOrTokens | None, settings: HttpSettings, field: str = "input") -> Inputs:
    """Understand `input` in all its forms.

    A string, a list of strings, one list of token ids, a list of such lists, or a list of objects that hold a `text`,
    an `image` or an `audio`.

    Raises:
        SchemaError: Missing, empty, or kinds mixed in a way that has no meaning.
    """
    if value is None:
        raise SchemaError(f"{field}: this field is required.", loc=(field,), kind="missing")
    if isinstance(value, str):
        return Inputs(Modality.TEXT, [value])
    if not value:
        raise SchemaError(f"{field}: must hold at least one item.", loc=(field,), kind="too_short")
    kinds = set(map(type, value))
    if kinds == {str}:
        return Inputs(Modality.TEXT, value)  # type: ignore[arg-type]  # narrowed by the line above
    if kinds == {int}:
        return Inputs(Modality.TEXT, _from_ids([value], settings, field))  # type: ignore[list-item]  # as above
    if kinds == {list}:
        return Inputs(Modality.TEXT, _from_ids(value, settings, field))  # type: ignore[arg-type]  # as above
    if kinds <= {dict, str}:
        return _from_objects(value, field)
    raise SchemaError(
        f"{field}: the items must all be strings, all token ids, all lists of token ids, or objects.", loc=(field,)
    )


def content_text(content: Any, field: str, index: int) -> str:
    """The text of a message or document content: a string, or a list of parts of which all are text.

    Raises:
        InvalidInputError: A part is not a text.
    """
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for part in content if isinstance(content, list) else [content]:
        text = part if isinstance(part, str) else part.get("text") if isinstance(part, dict) else None
        if not isinstance(text, str):
            raise InvalidInputError(
                f"{field}.{index}: only text parts can be read here; text and image in one item are not supported.",
                param=field,
            )
        texts.append(text)
    return "\n".join(texts)


def _from_ids(lists: list[list[int]], settings: HttpSettings, field: str) -> Sequence[TextInput]:
    for index, ids in enumerate(lists):
        if not ids:
            raise SchemaError(f"{field}.{index}: a list of token ids must not be empty.", loc=(field, index))
    return lists if settings.token_ids is TokenIds.MODEL else decode_cl100k(lists)


def _from_objects(values: Sequence[Any], field: str) -> Inputs:
    return gathered([read_object(value, field, index) for index, value in enumerate(values)])


def gathered(read: list[tuple[Modality, str]]) -> Inputs:
    """Inputs of one modality each."""
    modalities = tuple(modality for modality, _ in read)
    media = next((modality for modality in modalities if modality is not Modality.TEXT), Modality.TEXT)
    mixed = modalities if len(set(modalities)) > 1 else ()
    return Inputs(media, [source for _, source in read], mixed)


def read_object(value: Any, field: str, index: int) -> tuple[Modality, str]:
    """One input: a string, or an object with one text, image or sound in it.

    Raises:
        SchemaError: Nothing of that kind.
        InvalidInputError: Several of them, of different kinds.
    """
    if isinstance(value, str):
        return Modality.TEXT, value
    if isinstance(value.get("text"), str):
        return Modality.TEXT, value["text"]
    for key, modality in _MEDIA_KEYS.items():
        source = value.get(key)
        if isinstance(source, dict):
            source = source.get("url") or source.get("data")
        if isinstance(source, str):
            return modality, source
    content = value.get("content")
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        return read_object(content[0], field, index)
    if content is not None:
        return Modality.TEXT, content_text(content, field, index)
    raise SchemaError(f"{field}.{index}: an object needs a 'text', an 'image' or an 'audio'.", loc=(field, index))
