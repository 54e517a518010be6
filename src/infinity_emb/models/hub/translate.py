"""Errors of the hub's client, turned into ours with the next step to take."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from huggingface_hub import errors as foreign
from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined] # the client's own web library, httpx or httpx2

from infinity_emb.errors import (
    AccessDeniedError,
    CheckpointError,
    HubNetworkError,
    HubOfflineError,
    InfinityError,
    LoadError,
    RepositoryNotFoundError,
)
from infinity_emb.models.hub.storage import storage_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infinity_emb.models.hub.settings import HubSettings

WebError = HTTPError
# What the client may raise: web and disk errors, a missing cache entry, an answer that is no JSON, its chunk store's.
FOREIGN_ERRORS: tuple[type[Exception], ...] = (
    WebError,
    OSError,
    foreign.EntryNotFoundError,
    ValueError,
    RuntimeError,
    *((foreign.XetDownloadError,) if hasattr(foreign, "XetDownloadError") else ()),
)


def translate(error: BaseException, repository_id: str, revision: str | None, settings: HubSettings) -> LoadError:
    """Say what went wrong while `repository_id` was fetched."""
    wanted = f"{repository_id} at revision {revision}" if revision else repository_id
    hub = _hub(settings)
    for link in _chain(error):
        disk = storage_error(link, settings.hub_cache)
        if disk is not None:
            return disk
        if isinstance(link, foreign.OfflineModeIsEnabled):
            return HubOfflineError(
                f"{wanted} has to be fetched, but HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE was set when the hub's "
                "client was loaded. Unset it before the start, or give a local folder.",
                param="model_id",
            )
        if isinstance(link, foreign.HfHubHTTPError):
            return _refused(link, wanted, repository_id, hub)
    for link in _chain(error):
        if isinstance(link, json.JSONDecodeError):
            return not_a_hub(wanted, settings)
    return HubNetworkError(
        f"{wanted} could not be fetched from {hub}: {_in_words(error)}. Files that are complete are kept, so "
        "starting again goes on from there. Check the network, the proxy (HTTPS_PROXY) and HF_ENDPOINT; "
        "without a network give a local folder.",
        param="model_id",
    )


def not_a_hub(wanted: str, settings: HubSettings) -> HubNetworkError:
    """What answers is no hub, but perhaps a proxy's page."""
    return HubNetworkError(
        f"{_hub(settings)} did not answer like a hub when asked for {wanted}. Check HF_ENDPOINT, and whether a proxy "
        "or a log-in page stands in between.",
        param="model_id",
    )


def _hub(settings: HubSettings) -> str:
    return settings.endpoint or "the Hugging Face hub"


def _refused(error: foreign.HfHubHTTPError, wanted: str, repository_id: str, hub: str) -> LoadError:
    """The hub answered with an error status."""
    status = error.response.status_code
    if isinstance(error, foreign.RevisionNotFoundError):
        return RepositoryNotFoundError(
            f"{hub} has {repository_id}, but not the revision in {wanted!r}. "
            "Give a branch, tag or commit that exists, or leave --revision out for the newest.",
            param="revision",
        )
    if isinstance(error, foreign.RemoteEntryNotFoundError):
        path = error.response.request.url.path
        return CheckpointError(
            f"{hub} lists a file of {wanted} that it does not have: {path}. Try another revision.",
            param=path,
        )
    code = error.response.headers.get("X-Error-Code")
    if isinstance(error, foreign.GatedRepoError) or status == 403 or (status == 401 and code != "RepoNotFound"):
        return AccessDeniedError(
            f"{hub} refuses access to {wanted} ({status}). Accept the licence on the repository's page if it asks for "
            "that, then set HF_TOKEN to a token of that account that may read it. A repository that does not exist "
            "is refused in the same way: check the spelling.",
            param="model_id",
        )
    if status in {401, 404}:
        owner = (
            "" if "/" in repository_id else f" Most repositories have an owner: sentence-transformers/{repository_id}?"
        )
        return RepositoryNotFoundError(
            f"{hub} has no repository {repository_id} ({status}). Check the spelling.{owner} "
            "If it is private, set HF_TOKEN to a token that may read it.",
            param="model_id",
        )
    advice = "Wait a little, or set HF_TOKEN for a higher limit" if status == 429 else "Try again later"
    return HubNetworkError(f"{hub} answered {status} when asked for {wanted}. {advice}.", param="model_id")


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it, as far as the client goes: it wraps its errors."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen and not isinstance(link, InfinityError):
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def _in_words(error: BaseException) -> str:
    """The deepest cause, in one line: that is the one the network reported."""
    *_, deepest = _chain(error)
    text = str(deepest).strip().splitlines()
    return f"{text[0].rstrip('.')} ({type(deepest).__name__})" if text else type(deepest).__name__
