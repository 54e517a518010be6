from __future__ import annotations

import errno
import logging
import threading

from infinity_emb.models.hub import lock
from infinity_emb.models.hub.lock import exclusive


def test_the_second_waits_until_the_first_is_done(tmp_path, caplog):
    order = []
    waiting = threading.Event()

    class Announce(logging.Handler):
        def emit(self, _record):
            waiting.set()

    handler = Announce()
    lock.logger.addHandler(handler)

    def second():
        with exclusive(tmp_path / "x.lock", waiting="please wait"):
            order.append("second")

    thread = threading.Thread(target=second)
    with caplog.at_level(logging.INFO), exclusive(tmp_path / "x.lock", waiting="") as locked:
        assert locked
        thread.start()
        assert waiting.wait(30)
        order.append("first")
    thread.join(30)
    lock.logger.removeHandler(handler)
    assert order == ["first", "second"]
    assert "please wait" in caplog.text


def test_a_file_system_without_locks_is_no_obstacle(tmp_path, monkeypatch):
    def refuse(*_arguments, **_options):
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(lock, "_acquire", refuse)
    with exclusive(tmp_path / "x.lock", waiting="") as locked:
        assert locked is False
