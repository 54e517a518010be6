"""docs/http.md names only what is served."""

from __future__ import annotations

import re
from pathlib import Path

from infinity_emb.server.errors import TABLE
from infinity_emb.server.fields import EmbedFields
from infinity_emb.server.routes import all_routes
from infinity_emb.server.settings import HttpSettings

PAGE = (Path(__file__).parents[2] / "docs" / "http.md").read_text("utf-8")


def test_every_path_of_the_page_is_served():
    served = {re.sub(r"\{model\}", "{id}", route.path) for route in all_routes(HttpSettings())}
    table = PAGE.partition("## Where what is served")[2].partition("##")[0]
    named = {re.sub(r"\{model\}", "{id}", path) for path in re.findall(r"`(?:POST |GET )?(/[^`\s]*)`", table)}
    assert named - served == {"/v1"}
    assert len(named) > 30


def test_every_option_of_the_page_is_a_field():
    section = PAGE.partition("## Options on every embedding route")[2].partition("Accept")[0]
    named = set(re.findall(r"`([a-z_]+)`", section))
    assert named
    assert named <= set(EmbedFields.__struct_fields__)


def test_every_status_of_the_table_of_errors_is_on_the_page():
    rows = PAGE.partition("## Errors")[2].partition("##")[0]
    statuses = {str(fault.status) for fault in TABLE.values()} - {"499"}
    assert all(status in rows for status in statuses)
