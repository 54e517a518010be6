"""Embedders with a Router: what is read of each route, and what is refused by name."""

from __future__ import annotations

import pytest

import tiny
import tiny_routes
from forward import spec_of
from infinity_emb.errors import CheckpointError
from infinity_emb.models.spec.model import NormalizeSpec, PoolingSpec


def refused(folder, reason, param):
    with pytest.raises(CheckpointError, match=reason) as caught:
        spec_of(folder)
    assert caught.value.param == param


def test_each_route_has_the_shared_modules_and_its_own(tmp_path):
    spec = spec_of(tiny_routes.heads(tmp_path))
    assert list(spec.routes.by_name) == ["query", "document"]
    assert (spec.route, spec.routes.default) == ("document", "document")
    weights = set()
    for route in spec.routes.by_name.values():
        pooling, dense, unit = route.modules
        assert isinstance(pooling, PoolingSpec)
        assert isinstance(unit, NormalizeSpec)
        assert (dense.out_features, route.dim, route.folder) == (20, 20, tmp_path)
        weights.add(dense.weights.parent.name)
    assert weights == {"query_0_Dense", "document_0_Dense"}


def test_routes_may_have_folders_tokenizers_and_lengths_of_their_own(tmp_path):
    routes = spec_of(tiny_routes.two_transformers(tmp_path / "two")).routes.by_name
    assert {name: route.model_type for name, route in routes.items()} == {"query": "roberta", "document": "bert"}
    assert routes["query"].max_length == 12 < routes["document"].max_length
    assert routes["query"].prompts == tiny_routes.PROMPTS
    routes = spec_of(tiny_routes.static_queries(tmp_path / "table")).routes.by_name
    assert routes["query"].static is not None
    assert routes["document"].static is None


@pytest.mark.parametrize(
    ("kind", "parameters", "default"),
    [
        (tiny_routes.ROUTER, {"default_route": "query"}, "query"),
        (tiny_routes.ROUTER, {"default_route": None}, "query"),  # the first one
        (tiny_routes.ROUTER, {"default_route": None, "allow_empty_key": False}, None),
        (tiny_routes.FORMER, {}, None),  # it left such texts as they were
        (tiny_routes.FORMER, {"default_route": "document"}, "document"),
    ],
)
def test_the_default_route_is_that_of_the_file_or_the_first_one(kind, parameters, default, tmp_path):
    spec = spec_of(tiny_routes.heads(tmp_path, kind=kind, **parameters))
    assert spec.routes.default == default
    assert spec.route == (default or "query")


@pytest.mark.parametrize(
    ("parameters", "reason", "field"),
    [
        ({"route_mappings": {"('query', 'text')": "query"}}, "routes by modality", "parameters.route_mappings"),
        ({"default_route": "title"}, "none of the routes query, document", "parameters.default_route"),
        ({"allow_empty_key": "no", "default_route": None}, "neither true nor false", "allow_empty_key"),
    ],
)
def test_wrong_parameters_are_refused(parameters, reason, field, tmp_path):
    folder = tiny_routes.heads(tmp_path, **parameters)
    refused(folder, reason, f"2_Router/router_config.json:{field}")


def test_routes_of_other_modalities_are_refused(tmp_path):
    folder = tiny_routes.heads(tmp_path, routes=("text", "image"), default_route="text")
    refused(folder, "reads something else than text", "2_Router/router_config.json:structure")


def test_routes_of_different_lengths_are_refused(tmp_path):
    folder = tiny_routes.static_queries(tmp_path)
    config = tiny_routes.tiny_modules.read(folder / "router_config.json")
    config["structure"]["document"].pop()
    tiny.write_json(folder / "router_config.json", config)
    refused(folder, "query 24, document 32", "router_config.json:structure")


def test_a_second_router_and_one_without_its_file_are_refused(tmp_path):
    folder = tiny_routes.heads(tmp_path)
    tiny.write_modules(folder, [("", "Transformer"), ("1_Pooling", "Pooling"), *[("2_Router", tiny_routes.ROUTER)] * 2])
    refused(folder, "a second Router", "modules.json")
    tiny.write_modules(folder, [("", "Transformer"), ("1_Pooling", "Pooling"), ("9_Router", tiny_routes.FORMER)])
    refused(folder, "missing", "9_Router/config.json")


def test_a_module_that_no_embedder_has_is_refused_inside_a_route_too(tmp_path):
    folder = tiny_routes.heads(tmp_path)
    config = tiny_routes.tiny_modules.read(folder / "2_Router/router_config.json")
    config["types"]["query_0_Dense"] = "sentence_transformers.sparse_encoder.modules.splade_pooling.SpladePooling"
    tiny.write_json(folder / "2_Router/router_config.json", config)
    refused(folder, "SpladePooling.*is not supported in an embedder", "modules.json:[2].type")


def test_a_folder_outside_the_repository_is_refused(tmp_path):
    folder = tiny_routes.heads(tmp_path)
    config = {"types": {"../x": "a.Dense"}, "structure": {"query": ["../x"]}, "parameters": {}}
    tiny.write_json(folder / "2_Router/router_config.json", config)
    refused(folder, "leaves the repository", "2_Router/router_config.json:types")
