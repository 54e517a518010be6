"""The load generator: one process, one thread, raw sockets; it shares no interpreter with what it measures.

Reads a job as JSON from standard input, writes the result as JSON to standard output. Closed loop: each connection
sends its next request when the answer is there. Open loop (`rate`): requests are due at fixed times, whether or not
earlier ones were answered, and latency counts from the time they were due.

Throughput gives each request credit for the share of its time that lies inside the window, so that a server that
answers in bursts of many seconds is neither favoured nor punished by where the window ends.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time

_CHUNK_BYTES = 1 << 18
_GIVE_UP_S = 180.0
_CLOSED = 0  # stands for a status where the server closed the connection instead


class Connection:
    """One keep-alive connection and the request under way on it."""

    __slots__ = ("due_s", "head", "left_bytes", "sock", "status")

    def __init__(self, address: tuple[str, int]) -> None:
        self.sock = socket.create_connection(address)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self.head = b""
        self.left_bytes = -1
        self.status = 0
        self.due_s = 0.0

    def send(self, message: bytes, due_s: float) -> None:
        self.due_s = due_s
        self.head = b""
        self.left_bytes = -1
        self.sock.sendall(message)

    def read(self) -> bool:
        """Take what is there; True when the answer is complete."""
        data = self.sock.recv(_CHUNK_BYTES)
        if not data:
            self.status = _CLOSED
            return True
        if self.left_bytes < 0:
            self.head += data
            end = self.head.find(b"\r\n\r\n")
            if end < 0:
                return False
            self.status = int(self.head[9:12])
            self.left_bytes = _content_bytes(self.head[:end]) - (len(self.head) - end - 4)
        else:
            self.left_bytes -= len(data)
        return self.left_bytes <= 0


class Load:
    """A job being carried out."""

    def __init__(self, job: dict) -> None:
        self._messages = [_message(job, body.encode()) for body in job["bodies"]]
        self._next = 0
        self._address = (job["host"], job["port"])
        self._rate = job.get("rate")
        self._selector = selectors.DefaultSelector()
        self._begin_s = time.perf_counter() + job["warm_s"]
        self._end_s = self._begin_s + job["duration_s"]
        self._idle: list[Connection] = []
        self._busy = 0
        self._connections = job["connections"]
        self.latencies_ms: list[float] = []
        self.credit = 0.0
        self.statuses: dict[int, int] = {}

    def run(self) -> dict:
        """Send until the window ends, then wait for what is under way."""
        for _ in range(1 if self._rate else self._connections):
            self._connect()
        used_s = time.process_time()
        if self._rate is None:
            for connection in self._idle:
                self._send(connection, time.perf_counter())
            self._idle.clear()
        self._loop()
        return self._result(time.process_time() - used_s)

    def _loop(self) -> None:
        due_s = time.perf_counter()
        while True:
            now_s = time.perf_counter()
            if self._rate:
                while due_s <= min(now_s, self._end_s):
                    if not self._idle:
                        self._connect()
                    self._send(self._idle.pop(), due_s)
                    due_s += 1 / self._rate
            if now_s >= self._end_s and (not self._busy or now_s > self._end_s + _GIVE_UP_S):
                return
            wait_s = max(0.0, due_s - now_s) if self._rate and due_s < self._end_s else 0.5
            for key, _ in self._selector.select(wait_s):
                connection = key.data
                if connection in self._idle:  # nothing was asked: the server closes a connection that rests
                    self._idle.remove(connection)
                    self._drop(connection)
                elif connection.read():
                    self._answered(connection)

    def _answered(self, connection: Connection) -> None:
        now_s = time.perf_counter()
        self._busy -= 1
        sent_s, status = connection.due_s, connection.status
        self.statuses[status] = self.statuses.get(status, 0) + 1
        if status == 200:
            inside_s = min(now_s, self._end_s) - max(sent_s, self._begin_s)
            if inside_s > 0:
                self.credit += inside_s / (now_s - sent_s)
            if sent_s >= self._begin_s or now_s >= self._begin_s:
                self.latencies_ms.append((now_s - sent_s) * 1e3)
        if status == _CLOSED or now_s >= self._end_s:
            self._drop(connection)
        elif self._rate:
            self._idle.append(connection)
        else:
            self._send(connection, now_s)

    def _drop(self, connection: Connection) -> None:
        self._selector.unregister(connection.sock)
        connection.sock.close()

    def _connect(self) -> None:
        connection = Connection(self._address)
        self._selector.register(connection.sock, selectors.EVENT_READ, connection)
        self._idle.append(connection)

    def _send(self, connection: Connection, due_s: float) -> None:
        connection.send(self._messages[self._next], due_s)
        self._next = (self._next + 1) % len(self._messages)
        self._busy += 1

    def _result(self, used_s: float) -> dict:
        window_s = self._end_s - self._begin_s
        self.latencies_ms.sort()
        bad = sum(count for status, count in self.statuses.items() if status != 200) + self._busy
        return {
            "requests_per_s": self.credit / window_s,
            "answered": len(self.latencies_ms),
            "sent": sum(self.statuses.values()) + self._busy,
            "errors": bad,
            "statuses": self.statuses,
            "latencies_ms": {name: _at(self.latencies_ms, share) for name, share in _SHARES.items()},
            "client_cpu_share": used_s / max(1e-9, time.perf_counter() - self._begin_s),
        }


_SHARES = {"min": 0.0, "p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


def _at(ordered: list[float], share: float) -> float | None:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None


def _message(job: dict, body: bytes) -> bytes:
    head = (
        f"POST {job['path']} HTTP/1.1\r\nHost: {job['host']}:{job['port']}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _content_bytes(head: bytes) -> int:
    lower = head.lower()
    start = lower.find(b"content-length:")
    if start < 0:
        raise ValueError("the answer has no content-length; this client reads no chunked answers")
    return int(lower[start + 15 :].split(b"\r\n", 1)[0])


if __name__ == "__main__":
    json.dump(Load(json.load(sys.stdin)).run(), sys.stdout)
