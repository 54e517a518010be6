"""The page on models names what is recognised, and every option it speaks of exists."""

from __future__ import annotations

import re
from pathlib import Path

from infinity_emb.models.graph.registry import supported_model_types
from infinity_emb.models.spec.judge import RULES
from infinity_emb.server.fields import EmbedFields
from infinity_emb.server.kinds import OUTPUTS
from infinity_emb.server.openai import EmbeddingBody
from infinity_emb.server.routes import all_routes
from infinity_emb.server.settings import HttpSettings
from measured import REFERENCE
from parity_rows import COLUMNS, declared

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


def measured():
    """Kind, name and architecture of each row of the table → its cells."""
    rows = re.findall(r"^\| (.+) \|$", PAGE.partition("<!-- measured")[2], re.MULTILINE)
    cells = [tuple(row.split(" | ")) for row in rows[1:]]
    assert rows[0].split(" | ")[3:] == list(COLUMNS)
    return {row[:3]: row[3:] for row in cells}


def test_the_table_shows_every_row_of_the_parity_suite_on_every_backend_that_computes_it():
    table = measured()
    assert list(table) == [row[:3] for row in declared()], "run make parity"
    for row in declared():
        cells = dict(zip(COLUMNS, table[row[:3]], strict=True))
        assert {engine for engine, cell in cells.items() if cell != "–"} == set(row.engines)  # noqa: RUF001 - the dash of the table
        reference = float(cells[REFERENCE]) if REFERENCE in row.engines else 0.0
        for engine in set(row.engines) - {REFERENCE}:
            # of cells with one figure; each number is held to its own size where it is measured
            assert float(cells[engine]) <= max(1e-5, 3 * reference), "much further from float64 than the reference is"


def test_every_architecture_with_a_builder_is_in_the_table():
    assert {architecture for _, _, architecture in measured()} >= set(supported_model_types())
