"""Decides which route the texts of a request take."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from infinity_emb.errors import TextRouteError
from infinity_emb.models.preprocess.prompts import BY_INPUT_TYPE

if TYPE_CHECKING:
    from infinity_emb.models.spec.model import ModelSpec
    from infinity_emb.models.spec.routed import RoutesSpec
    from infinity_emb.types import TextOptions

_TEXT = "text"  # a Router's name for whatever is one


def choose_route(spec: ModelSpec, routes: RoutesSpec, options: TextOptions) -> tuple[str, TextOptions]:
    """The route of texts that are read so, and how they are read on it.

    In this order: the route that `prompt_name` names, that of the kind whose prompt it names, that of `input_type`, the
    route for any text, the default. A name of a route that is no prompt leaves the prompt as it is where nothing is
    said, as the `task` of sentence-transformers does.

    Raises:
        TextRouteError: There is none for that kind, or nothing was said and there is no default.
    """
    name, kind = options.prompt_name, options.input_type
    if name is not None and name in routes.by_name:
        known = name in spec.prompts or name in BY_INPUT_TYPE
        return name, options if known else replace(options, prompt_name=None)
    by_prompt = next((found for found, names in BY_INPUT_TYPE.items() if name in names), None)
    for wanted in (by_prompt, kind):
        found = next((one for one in BY_INPUT_TYPE.get(wanted or "", ()) if one in routes.by_name), None)
        if found is not None:
            return found, options
    if _TEXT in routes.by_name:
        return _TEXT, options
    names = ", ".join(routes.by_name)
    if kind is not None:
        raise TextRouteError(
            f"input_type {kind!r} has no route in this model; its routes are {names}. "
            "Name one of them as `prompt_name`.",
            param="input_type",
        )
    if routes.default is None:
        raise TextRouteError(
            f"This model computes texts by several routes ({names}), and none of them is its default. Say which one: "
            "`input_type` (query or document), or the name of the route as `input_type`, `task` or `prompt_name`.",
            param="input_type",
        )
    return routes.default, options
