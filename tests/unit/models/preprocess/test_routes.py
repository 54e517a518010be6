"""Which route the texts of a request take."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tiny_routes
from forward import spec_of
from infinity_emb.errors import TextRouteError
from infinity_emb.models.preprocess.routes import choose_route
from infinity_emb.types import TextOptions


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    return spec_of(tiny_routes.heads(tmp_path_factory.mktemp("routes")))


def named(spec, *names, default=None):
    """The same model with routes of other names."""
    return replace(spec.routes, default=default, by_name=dict.fromkeys(names, spec))


@pytest.mark.parametrize(
    ("options", "route"),
    [
        (TextOptions(), "document"),
        (TextOptions(input_type="query"), "query"),
        (TextOptions(input_type="document"), "document"),
        (TextOptions(prompt_name="query"), "query"),
        (TextOptions(prompt_name="passage"), "document"),
        (TextOptions(prompt="mine: ", input_type="query"), "query"),  # a text changes the text alone
        (TextOptions(prompt_name="other", input_type="query"), "query"),
        (TextOptions(prompt_name="other"), "document"),
    ],
)
def test_what_a_request_says_of_its_texts_chooses_the_route(options, route, spec):
    assert choose_route(spec, spec.routes, options) == (route, options)


def test_routes_of_any_name_are_chosen_by_it_and_change_no_prompt(spec):
    routes = named(spec, "title", "passage", default="title")
    assert choose_route(spec, routes, TextOptions(prompt_name="title")) == ("title", TextOptions())
    assert choose_route(spec, routes, TextOptions(input_type="document"))[0] == "passage"
    with pytest.raises(TextRouteError, match=r"routes are title, passage.*`prompt_name`") as caught:
        choose_route(spec, routes, TextOptions(input_type="query"))
    assert caught.value.param == "input_type"


def test_a_route_for_texts_takes_those_that_have_no_other(spec):
    routes = named(spec, "query", "text", default="query")
    for options in (TextOptions(), TextOptions(input_type="document")):
        assert choose_route(spec, routes, options)[0] == "text"
    assert choose_route(spec, routes, TextOptions(input_type="query"))[0] == "query"


def test_without_a_default_it_has_to_be_said(spec):
    with pytest.raises(TextRouteError, match=r"\(query, document\).*`input_type` \(query or document\)") as caught:
        choose_route(spec, named(spec, "query", "document"), TextOptions())
    assert caught.value.param == "input_type"
