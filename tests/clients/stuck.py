"""The real command with a backend that never finishes, so that its waiting line stays full."""

from __future__ import annotations

import sys
import threading

from infinity_emb.backends import dummy
from infinity_emb.cli import main
from infinity_emb.scheduler.supervisor import Supervisor

_never = threading.Event()


class StuckBackend(dummy.DummyBackend):
    """Starts a batch and waits for ever; the process is killed in the end."""

    def start(self, arrays):
        _never.wait()
        return super().start(arrays)


dummy.DummyBackend = StuckBackend  # type: ignore[misc]
Supervisor.look = lambda *_: None  # type: ignore[method-assign]  # or it would replace the worker that hangs
sys.exit(main())
