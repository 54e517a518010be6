"""OpenAI's `/v1/embeddings`, also under Azure's path, with every dialect's options as extra fields (hot path).

One body serves OpenAI, Infinity, Jina, Voyage and vLLM clients, because they all post to the same path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from infinity_emb.server import kinds
from infinity_emb.server.decode import decode_body, decoder_for
from infinity_emb.server.embedding import embed
from infinity_emb.server.envelope import envelope, packed_envelope
from infinity_emb.server.errors import SchemaError
from infinity_emb.server.fields import EmbedFields, TextOrTokens
from infinity_emb.server.inputs import Inputs, content_text, gathered, read_inputs, read_object
from infinity_emb.server.response import Response, json_response
from infinity_emb.server.vectors import binary_response, rows
from infinity_emb.types import Modality

if TYPE_CHECKING:
    from infinity_emb.server.request import Request
    from infinity_emb.server.serving import Serving
    from infinity_emb.server.settings import HttpSettings

_MODALITIES = {modality.value: modality for modality in Modality}


class EmbeddingBody(EmbedFields, kw_only=True):
    """Body of `/v1/embeddings` and `/embeddings`."""

    input: Annotated[
        TextOrTokens | None,
        Meta(description="A string, a list of strings, token ids, lists of token ids, or objects with text or image."),
    ] = None
    inputs: Annotated[
        TextOrTokens | None, Meta(description="TEI's name for `input`; the answer is then a bare list of vectors.")
    ] = None
    messages: Annotated[
        list[Any] | None, Meta(description="vLLM's chat form: one conversation, or a list of conversations.")
    ] = None
    modality: Annotated[str | None, Meta(description="`text` (the default), `image` or `audio`.")] = None
    outputs: Annotated[
        list[str] | None,
        Meta(description="`dense`, `sparse`, `multi_vector`, `muvera`; absent is what the model is made for."),
    ] = None
    late_chunking: Annotated[
        bool | None,
        Meta(description="The inputs are the chunks of one document; each is embedded in the context of the others."),
    ] = None
    user: str | None = None


_DECODER = decoder_for(EmbeddingBody)


async def embeddings(request: Request, serving: Serving) -> Response:
    """Vectors of texts, token ids, images or sounds."""
    body = decode_body(request, _DECODER)
    return await answer(request, serving, body, read_body_inputs(body, serving.settings))


async def azure_embeddings(request: Request, serving: Serving) -> Response:
    """The same; the model is named in the path."""
    body = decode_body(request, _DECODER)
    body.model = request.params["model"]
    return await answer(request, serving, body, read_body_inputs(body, serving.settings))


async def answer(request: Request, serving: Serving, body: EmbeddingBody, inputs: Inputs) -> Response:
    """Embed and write in the form that was asked for."""
    if kinds.is_special(serving, body):
        return await kinds.answer(request, serving, body, inputs)
    embedded = await embed(request, serving, body, inputs)
    headers = embedded.headers
    compact = binary_response(request, embedded.vectors, embedded.form)
    if compact is not None:
        headers.append((b"x-prompt-tokens", str(embedded.usage.prompt_tokens).encode()))
        compact.headers += headers
        return compact
    if body.input is None and body.inputs is not None:
        return json_response(rows(embedded.vectors, base64=embedded.form.base64), headers=headers)
    if embedded.form.base64:
        return Response(packed_envelope(embedded), headers=headers)
    return json_response(envelope(embedded), headers=headers)


async def pooling(request: Request, serving: Serving) -> Response:
    """Pooling as vLLM has it: the vector or the matrix of each input."""
    body = decode_body(request, _DECODER)
    return await kinds.pooling(request, serving, body, read_body_inputs(body, serving.settings))


def read_body_inputs(body: EmbeddingBody, settings: HttpSettings) -> Inputs:
    """The inputs, whichever field holds them, with the modality that the body names.

    Raises:
        SchemaError: No inputs, or a modality that does not exist.
    """
    if body.input is None and body.inputs is None and body.messages is not None:
        return _conversations(body.messages)
    if body.input is None and body.inputs is not None:
        inputs = read_inputs(body.inputs, settings, "inputs")
    else:
        inputs = read_inputs(body.input, settings)
    name = body.modality
    if name is None or name == "text":
        return inputs
    modality = _MODALITIES.get(name)
    if modality is None:
        raise SchemaError(
            f"modality: {name[:80]!r} is not known; allowed are {', '.join(map(repr, _MODALITIES))}.",
            loc=("modality",),
            kind="enum",
        )
    return Inputs(modality, inputs.items)


def _conversations(messages: list[Any]) -> Inputs:
    """One text a conversation, the contents of its messages, one a line; or its only image or sound."""
    if not messages:
        raise SchemaError("messages: must hold at least one message.", loc=("messages",), kind="too_short")
    conversations = messages if isinstance(messages[0], list) else [messages]
    return gathered([_conversation(conversation, index) for index, conversation in enumerate(conversations)])


def _conversation(messages: list[Any], index: int) -> tuple[Modality, str]:
    contents = [message.get("content") if isinstance(message, dict) else None for message in messages]
    spoken = [content for content in contents if content]
    if len(spoken) == 1 and isinstance(spoken[0], list) and len(spoken[0]) == 1:
        return read_object({"content": spoken[0]}, "messages", index)
    return Modality.TEXT, "\n".join(content_text(content, "messages", index) for content in contents)
