"""The clients that install quickly, against real servers, on every run of the suite; `make test-clients` runs all.

The environment is made once and kept in `.venv-clients`. If it cannot be made, these tests fail: they are never skipped.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from matrix import NOT_YET, ROWS
from report import Line, Outcome, matrix_lines, run_client
from roster import CLIENTS, LIGHT, LIGHT_CLIENTS
from servers import all_servers

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "clients.md"


@pytest.fixture(scope="module")
def urls(tmp_path_factory):
    LIGHT.ensure()
    with all_servers(tmp_path_factory.mktemp("models")) as urls:
        yield urls


@pytest.mark.parametrize("client", LIGHT_CLIENTS, ids=lambda client: client.name)
def test_every_check_of_the_client_passes(client, urls):
    lines = run_client(client, urls)
    assert len(lines) >= 3
    assert not [str(line) for line in lines if line.failed]


def test_a_client_that_does_not_run_fails_the_rows_it_should_prove(urls, tmp_path, monkeypatch):
    (tmp_path / "broken.py").write_text("raise SystemExit(3)", "utf-8")
    monkeypatch.setattr("report.FOLDER", tmp_path)
    (line,) = run_client(type(LIGHT_CLIENTS[0])("broken", "broken.py", LIGHT, (), ("E1",)), urls)
    assert line.failed
    assert line.rows == ("E1",)


def test_a_failed_check_an_unproven_row_and_a_known_contradiction_are_told_apart():
    outcome = Outcome(
        [Line("a", ("E1", "E4"), "x", ""), Line("b", ("E4",), "y", "wrong"), Line("c", ("R4",), "z", "w", "k")]
    )
    assert [outcome.verdict(row) for row in ("E1", "E4", "R4", "G1")] == ["ok", "FAIL", "unproven", "not yet"]
    assert not matrix_lines(outcome, whole=False)[1]
    proven = Outcome([Line("a", tuple(row.name for row in ROWS), "x", "")])
    assert matrix_lines(proven, whole=True)[1]


def test_the_page_names_every_client_and_explains_every_row_that_is_not_met():
    page = PAGE.read_text("utf-8")
    assert all(f"| {client.name} |" in page for client in CLIENTS)
    assert all(f"**{row}**" in page for row in NOT_YET)
    assert all(f"| {row.name} | {row.need} | {row.what} |" in page for row in ROWS)
