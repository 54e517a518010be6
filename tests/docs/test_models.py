"""The page on models names what is recognised, and every option it speaks of exists."""

from __future__ import annotations

import re
from pathlib import Path

from infinity_emb.models.spec.judge import RULES
from infinity_emb.server.fields import EmbedFields
from infinity_emb.server.kinds import OUTPUTS
from infinity_emb.server.openai import EmbeddingBody
from infinity_emb.server.routes import all_routes
from infinity_emb.server.settings import HttpSettings

PAGE = (Path(__file__).parents[2] / "docs/models.md").read_text("utf-8")


def test_every_language_model_that_reranks_is_named_with_its_architecture_and_length():
    for rule in RULES.values():
        for word in (*rule.marks, *rule.architectures, str(rule.max_length)):
            assert word in PAGE


def test_routes_and_outputs_on_the_page_are_served():
    paths = {route.path for route in all_routes(HttpSettings())}
    assert set(re.findall(r"`(/[a-z_]+)`", PAGE)) <= paths
    assert all(f"`{name}`" in PAGE for name in OUTPUTS)


def test_options_on_the_page_are_fields_of_a_request():
    fields = {*EmbedFields.__struct_fields__, *EmbeddingBody.__struct_fields__}
    named = set(re.findall(r"`([a-z_]+): ", PAGE)) - {"sparse_embedding"}
    assert named
    assert named <= fields
