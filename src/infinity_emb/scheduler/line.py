"""Hot path. The requests of one class in the order they are served: arrival order, shared fairly among owners.

Start-time fair queueing (Goyal, Vin and Cheng, 1996) with tokens as the service: every request has a turn, that of its
next token, and the lowest turn goes first. An owner's next request takes its turn behind all that the owner has asked
for before, but not before what is being served now. With one owner that is arrival order.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from infinity_emb.scheduler.request import Request


class Line:
    """One class of the waiting line; iterating gives the requests, the next one first."""

    def __init__(self) -> None:
        self._owners: dict[bytes | None, OrderedDict[Request, None]] = {}
        self._asked: dict[bytes | None, int] = {}  # turn behind everything an owner has asked for
        self._now = 0

    def __bool__(self) -> bool:
        return bool(self._owners)

    def __len__(self) -> int:
        return sum(len(requests) for requests in self._owners.values())

    def __iter__(self) -> Iterator[Request]:
        if len(self._owners) == 1:
            (requests,) = self._owners.values()
            return iter(requests)
        return heapq.merge(*self._owners.values(), key=_turn)

    def oldest_arrival_s(self) -> float | None:
        """When the request arrived that waits longest; None if none waits."""
        return min((next(iter(requests)).arrived_s for requests in self._owners.values()), default=None)

    def add(self, request: Request) -> None:
        """A new request, behind those of its owner."""
        owner = request.owner
        request.turn = max(self._now, self._asked.get(owner, 0))
        self._asked[owner] = request.turn + request.waiting_tokens
        self._owners.setdefault(owner, OrderedDict())[request] = None

    def serve(self, request: Request, tokens: int) -> None:
        """So much of a request is taken."""
        self._now = max(self._now, request.turn)
        request.turn += tokens

    def remove(self, request: Request) -> bool:
        """Take a request out; False if it is not there."""
        requests = self._owners.get(request.owner)
        if requests is None or request not in requests:
            return False
        del requests[request]
        if not requests:
            del self._owners[request.owner]
            self._asked[request.owner] = request.turn  # what was given up is not held against its owner
            if not self._owners:  # nobody was kept waiting: all begin anew
                self._now = max(self._now, *self._asked.values())
                self._asked.clear()
        return True

    def put_back(self, returned: Iterable[tuple[Request, int]]) -> None:
        """Undo `serve` of so many tokens each; the requests are again where they were among those of their owners."""
        by_owner: dict[bytes | None, list[Request]] = {}
        for request, tokens in returned:
            request.turn -= tokens
            by_owner.setdefault(request.owner, []).append(request)
        for owner, requests in by_owner.items():
            _merge(self._owners.setdefault(owner, OrderedDict()), requests)


def _turn(request: Request) -> tuple[int, int]:
    return request.turn, request.number


def _merge(line: OrderedDict[Request, None], returned: list[Request]) -> None:
    """Put requests back among those at the head of the line, in order of arrival; few are ahead of the last of them."""
    last = max(request.number for request in returned)
    head = set(returned)
    for request in line:
        if request.number > last:
            break
        head.add(request)
    for request in sorted(head, key=lambda request: request.number, reverse=True):
        line[request] = None
        line.move_to_end(request, last=False)
