"""Says at the end which clients the suite did not run."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from roster import CLIENTS, LIGHT_CLIENTS


def pytest_terminal_summary(terminalreporter) -> None:
    heavy = ", ".join(client.name for client in CLIENTS if client not in LIGHT_CLIENTS)
    terminalreporter.write_line(f"clients not run by the suite, only by `make test-clients`: {heavy}")
