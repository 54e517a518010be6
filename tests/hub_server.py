"""A small model hub on loopback that speaks what `huggingface_hub` calls, with the faults that real hubs have.

Small files are answered directly; weights are redirected to a storage address, as the public hub does.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from loopback import LoopbackServer

if TYPE_CHECKING:
    from loopback import Exchange, SeenRequest


@dataclass
class Repository:
    """A repository and its moods.

    Attributes:
        files: Name → content of the newest commit.
        token: Token that files need (gated); None is public.
        private: Without the token even the name is unknown.
        branches: Names that mean the newest commit.
        listed: File names that the API lists although they do not exist.
        cut_after: File name → bytes after which each download hangs up; the number of cuts is in `cuts`.
        cuts: File name → how many more downloads are cut.
    """

    files: dict[str, bytes]
    token: str | None = None
    private: bool = False
    branches: tuple[str, ...] = ("main",)
    listed: tuple[str, ...] = ()
    cut_after: dict[str, int] = field(default_factory=dict)
    cuts: dict[str, int] = field(default_factory=dict)

    @property
    def commit(self) -> str:
        digest = hashlib.sha1(usedforsecurity=False)
        for name in sorted(self.files):
            digest.update(name.encode() + b"\0" + self.files[name])
        return digest.hexdigest()

    def has(self, revision: str) -> bool:
        return revision == self.commit or revision in self.branches


class HubServer(LoopbackServer):
    """Serves `repositories`; `status` not None answers everything with that status."""

    def __init__(self, repositories: dict[str, Repository] | None = None) -> None:
        super().__init__(self._answer)
        self.repositories = repositories or {}
        self.status: int | None = None
        self.answer_everything_with: bytes | None = None

    def downloads(self, name: str) -> list[SeenRequest]:
        """Requests for the content of a file, wherever it is stored."""
        return [seen for seen in self.requests if seen.method == "GET" and seen.path.split("?")[0].endswith(f"/{name}")]

    def _answer(self, exchange: Exchange) -> None:
        path = unquote(urlsplit(exchange.path).path)
        if self.status is not None:
            exchange.send(self.status, b"{}")
        elif self.answer_everything_with is not None:
            exchange.send(200, self.answer_everything_with, {"Content-Type": "text/html"})
        elif path.startswith("/api/models/"):
            self._answer_api(exchange, path.removeprefix("/api/models/"))
        elif path.startswith("/storage/"):
            repository_id, _, name = path.removeprefix("/storage/").partition("/-/")
            self._send_file(exchange, self.repositories[repository_id], name)
        elif "/resolve/" in path:
            self._answer_resolve(exchange, path)
        else:
            exchange.send(404)

    def _answer_api(self, exchange: Exchange, path: str) -> None:
        for kind in ("/revision/", "/tree/"):
            repository_id, separator, revision = path.partition(kind)
            if separator:
                break
        else:
            repository_id, kind, revision = path, "/revision/", "main"
        repository = self._admit(exchange, repository_id, needs_token=False)
        if repository is None:
            return
        if not repository.has(revision):
            exchange.send(404, b"{}", {"X-Error-Code": "RevisionNotFound", "X-Error-Message": "Invalid rev id"})
        elif kind == "/tree/":
            self._send_json(exchange, [_tree_entry(name, content) for name, content in repository.files.items()])
        else:
            names = [*repository.files, *repository.listed]
            siblings = [{"rfilename": name} for name in names]
            self._send_json(exchange, {"id": repository_id, "sha": repository.commit, "siblings": siblings})

    def _answer_resolve(self, exchange: Exchange, path: str) -> None:
        repository_id, _, rest = path[1:].partition("/resolve/")
        repository = self._admit(exchange, repository_id, needs_token=True)
        if repository is None:
            return
        revision, _, name = rest.partition("/")
        commit = {"X-Repo-Commit": repository.commit}
        if not repository.has(revision):
            exchange.send(404, b"", {"X-Error-Code": "RevisionNotFound"})
        elif name not in repository.files:
            exchange.send(404, b"", {"X-Error-Code": "EntryNotFound", **commit})
        elif name.endswith((".safetensors", ".onnx")):
            content = repository.files[name]
            linked = {"X-Linked-ETag": f'"{_sha256(content)}"', "X-Linked-Size": str(len(content))}
            location = f"http://localhost:{self.server_address[1]}/storage/{repository_id}/-/{name}"
            exchange.send(302, b"", {"Location": location, **linked, **commit})
        else:
            self._send_file(exchange, repository, name)

    def _admit(self, exchange: Exchange, repository_id: str, *, needs_token: bool) -> Repository | None:
        repository = self.repositories.get(repository_id)
        token = exchange.seen.headers.get("authorization", "").removeprefix("Bearer ")
        wrong_token = repository is not None and repository.token not in {None, token}
        if repository is None or (repository.private and wrong_token):
            # the public hub hides private names in the same way
            exchange.send(404 if token else 401, b"{}", {"X-Error-Code": "RepoNotFound"})
            return None
        if needs_token and wrong_token:
            exchange.send(403 if token else 401, b"{}", {"X-Error-Code": "GatedRepo"})
            return None
        return repository

    def _send_file(self, exchange: Exchange, repository: Repository, name: str) -> None:
        content = repository.files[name]
        headers = {"ETag": f'"{_sha1(content)}"', "X-Repo-Commit": repository.commit, "Accept-Ranges": "bytes"}
        start, status = 0, 200
        span = exchange.seen.headers.get("range")
        if span is not None:
            start, status = int(span.removeprefix("bytes=").partition("-")[0]), 206
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        cut_after = None
        with self.lock:
            if exchange.command == "GET" and repository.cuts.get(name, 0) > 0:
                repository.cuts[name] -= 1
                cut_after = repository.cut_after[name]
        exchange.send(status, content[start:], headers, cut_after=cut_after)

    @staticmethod
    def _send_json(exchange: Exchange, value: object) -> None:
        exchange.send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})


def _tree_entry(name: str, content: bytes) -> dict[str, object]:
    entry: dict[str, object] = {"type": "file", "path": name, "size": len(content), "oid": _sha1(content)}
    if name.endswith((".safetensors", ".onnx")):
        entry["lfs"] = {"oid": _sha256(content), "size": len(content), "pointerSize": 134}
    return entry


def _sha1(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
