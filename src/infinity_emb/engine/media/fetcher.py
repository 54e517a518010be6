"""Fetches the images or sounds of a request beside the event loop, all or none of them."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from infinity_emb.engine.media.fetch import Network, fetch
from infinity_emb.engine.media.refusal import MediaRefusedError, Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infinity_emb.engine.media.media import Media
    from infinity_emb.engine.media.policy import MediaPolicy

THREADS = 8


class MediaFetcher:
    """Threads of one engine that fetch; `close` ends them.

    Args:
        policy: What is allowed.
        network: The way out; None is the real one.
    """

    def __init__(self, policy: MediaPolicy, network: Network | None = None) -> None:
        self._policy = policy
        self._network = network or Network()
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="infinity-media")

    async def fetch(self, urls: Sequence[str], kind: str, places: Sequence[int] | None = None) -> list[Media]:
        """The files, in the order of the URLs. The first one that fails ends the others.

        Args:
            urls: http, https or data.
            kind: `image` or `audio`.
            places: Of the URLs among the items of the request; None is their own order.

        Raises:
            MediaRefusedError: `item_index` says which one failed, `refusal` why.
        """
        budget = _Budget(self._policy)
        loop = asyncio.get_running_loop()
        items = zip(range(len(urls)) if places is None else places, urls, strict=True)
        work = [loop.run_in_executor(self._pool, self._one, index, url, kind, budget) for index, url in items]
        try:
            return list(await asyncio.gather(*work))
        finally:
            budget.spent = True
            for future in work:
                future.cancel()

    def close(self) -> None:
        """End the threads; what they fetch is given up at its deadline."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _one(self, index: int, url: str, kind: str, budget: _Budget) -> Media:
        try:
            media = fetch(url, kind, budget.policy(), self._network)
            budget.take(len(media.content))
        except MediaRefusedError as error:
            raise error.at(index) from error
        return media


class _Budget:
    """Bytes that the files of one request may still have; the threads of one request share it.

    Counting is not exact to a file: those that run at the same time each see what was left when they began.
    """

    def __init__(self, policy: MediaPolicy) -> None:
        self._policy = policy
        self._left_bytes = policy.max_request_bytes
        self.spent = False

    def policy(self) -> MediaPolicy:
        """The policy for the next file.

        Raises:
            MediaRefusedError: Nothing is left, or another file failed.
        """
        if self.spent or self._left_bytes <= 0:
            raise self._over()
        return replace(self._policy, max_bytes=min(self._policy.max_bytes, self._left_bytes))

    def take(self, size_bytes: int) -> None:
        """Count a file.

        Raises:
            MediaRefusedError: Together they are too large.
        """
        self._left_bytes -= size_bytes
        if self._left_bytes < 0:
            raise self._over()

    def _over(self) -> MediaRefusedError:
        limit = self._policy.max_request_bytes
        return MediaRefusedError(Refusal.TOO_LARGE, f"The files of one request are larger than {limit} bytes together.")
