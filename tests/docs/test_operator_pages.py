"""The pages for operators are true: every test, option, path and metric that they name is there, and none is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from infinity_emb.config.options import SETTING_BY_FLAG
from infinity_emb.metrics import HttpMetrics
from infinity_emb.server.routes import all_routes
from infinity_emb.server.settings import HttpSettings

ROOT = Path(__file__).parents[2]
SECURITY = (ROOT / "docs/security.md").read_text("utf-8")
OPERATIONS = (ROOT / "docs/operations.md").read_text("utf-8")


@pytest.mark.parametrize("reference", sorted(set(re.findall(r"`(tests/\S+::\w+)`", SECURITY))))
def test_every_test_that_is_named_exists(reference):
    path, _, name = reference.partition("::")
    assert re.search(rf"^\s*(async )?def {name}\(", (ROOT / path).read_text("utf-8"), re.MULTILINE)


def test_every_line_of_the_threats_names_a_test():
    table = SECURITY.partition("## Threats")[2]
    rows = [line for line in table.splitlines() if line.startswith("|")][2:]
    assert len(rows) > 10
    assert all("tests/" in row for row in rows)


def test_every_path_that_is_open_without_a_key_is_listed():
    table = SECURITY.partition("## Without a key")[2].partition("\n## ")[0]
    listed = set(re.findall(r"`(/[^`\s]*)`", table)) - {"/debug"}
    settings = HttpSettings()
    opened = {r.path for r in all_routes(settings) if r.access == "always" or r.access in settings.public_routes}
    assert listed == opened


@pytest.mark.parametrize("page", [SECURITY, OPERATIONS], ids=["security", "operations"])
def test_every_option_that_is_named_exists(page):
    flags = set(re.findall(r"--([a-z][a-z-]+)", page)) - {"inputs", "plain"}
    assert flags
    assert flags <= set(SETTING_BY_FLAG)


def test_every_metric_is_in_the_table():
    metrics = HttpMetrics()
    families = {family.name + ("_total" if family.type == "counter" else "") for family in metrics.collect()}
    assert set(re.findall(r"`((?:http|infinity|gen_ai)_[a-z0-9_]+)`", OPERATIONS)) == families
