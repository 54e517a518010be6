"""Fixtures for every test; any socket that leaves this machine is blocked."""

from __future__ import annotations

import ipaddress
import os
import socket
from pathlib import Path

import pytest
from hypothesis import settings

from infinity_emb.models.hub import EMBEDDED_MODEL_ID, HubSettings, resolve

# A busy machine is no fault of the code; the time of a whole test is bounded by pytest-timeout.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

TESTS = Path(__file__).parent
LONGEST_FIRST = ("parity", "chaos", "e2e", "docs", "cases", "fuzz", "clients", "contract")

_real_connect = socket.socket.connect


def _loopback_only(self: socket.socket, address: object) -> None:
    if self.family in (socket.AF_INET, socket.AF_INET6):
        host = address[0]  # type: ignore[index]
        try:
            loopback = ipaddress.ip_address(host).is_loopback
        except ValueError:
            loopback = host == "localhost"
        if not loopback:
            raise PermissionError(f"tests may only connect to loopback, not to {address!r}")
    _real_connect(self, address)  # type: ignore[arg-type]


@pytest.fixture(autouse=True, scope="session")
def _block_network():
    socket.socket.connect = _loopback_only  # type: ignore[method-assign]
    yield
    socket.socket.connect = _real_connect  # type: ignore[method-assign]


@pytest.fixture(scope="session")
def minilm_folder() -> Path:
    """The real all-MiniLM-L6-v2: the folder named by INFINITY_TEST_MODEL, or fetched once as the server would."""
    named = os.environ.get("INFINITY_TEST_MODEL")
    if named:
        return Path(named)
    settings = HubSettings.from_environment({**os.environ, "HF_HUB_OFFLINE": ""})
    return resolve(EMBEDDED_MODEL_ID, settings=settings).path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Folders with the longest files first, so that processes that share the suite end together."""
    order = {name: number for number, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: order.get(item.path.relative_to(TESTS).parts[0], len(order)))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a CI run that skipped something for want of a library: everything is installed there."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not os.environ.get("CI") or reporter is None:
        return
    skipped = reporter.stats.get("skipped", ())
    missing = sorted({str(report.nodeid) for report in skipped if "could not import" in str(report.longrepr)})
    if missing:
        reporter.write_line("skipped although CI has all they need: " + ", ".join(missing), red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
