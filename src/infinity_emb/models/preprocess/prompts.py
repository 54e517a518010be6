"""Decides which prompt goes before each input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.errors import InvalidInputError

if TYPE_CHECKING:
    from infinity_emb.models.spec.model import ModelSpec
    from infinity_emb.types import TextOptions

# Names under which repositories keep the prompt of a kind, in the order of sentence-transformers; the last are Jina's.
BY_INPUT_TYPE = {
    "query": ("query", "retrieval.query"),
    "document": ("document", "passage", "corpus", "retrieval.passage"),
}


def resolve_prompt(spec: ModelSpec, options: TextOptions) -> str:
    """The text put before each input: `prompt`, else `prompt_name`, else `input_type`, else the model's default.

    An `input_type` for which the model has no prompt gives none, rather than the default: that one may be the prompt
    of the other kind. The names `query` and `document` are always accepted, as in sentence-transformers.

    Raises:
        InvalidInputError: The model has no prompt of that name.
    """
    if options.prompt is not None:
        return options.prompt
    if options.prompt_name is not None:
        name = options.prompt_name
        if name not in spec.prompts and name not in BY_INPUT_TYPE:
            known = ", ".join(repr(known) for known in spec.prompts) or "none at all"
            raise InvalidInputError(
                f"prompt_name {name!r} is not a prompt of this model; it has {known}. "
                "Use one of these, or give the text itself as `prompt`.",
                param="prompt_name",
            )
        names = (name, *BY_INPUT_TYPE.get(name, ())) if spec.adapters else (name,)
        return next((spec.prompts[one] for one in names if one in spec.prompts), "")
    if options.input_type is not None:
        names = BY_INPUT_TYPE[options.input_type]
        return next((spec.prompts[one] for one in names if one in spec.prompts), "")
    if spec.default_prompt_name is not None:
        return spec.prompts.get(spec.default_prompt_name, "")
    return ""


def resolve_adapter(spec: ModelSpec, options: TextOptions) -> int:
    """Number of the adapter from 1 on: that named by `prompt_name`, else that of `input_type`; 0 for none.

    A `prompt` given as text changes the text alone.
    """
    names: tuple[str, ...] = ()
    if options.prompt_name is not None:
        names = (options.prompt_name, *BY_INPUT_TYPE.get(options.prompt_name, ()))
    elif options.input_type is not None:
        names = BY_INPUT_TYPE[options.input_type]
    return next((spec.adapters.index(name) + 1 for name in names if name in spec.adapters), 0)
