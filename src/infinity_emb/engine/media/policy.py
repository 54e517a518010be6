"""What may be fetched, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from infinity_emb.types import MediaUrls

if TYPE_CHECKING:
    from infinity_emb.config.engine_args import EngineArgs

MEBIBYTE_BYTES = 1024 * 1024

# A store that knows no better calls every file by one of these; the decoder finds out.
_NEUTRAL_TYPES = frozenset({"", "application/octet-stream", "binary/octet-stream"})
# An image only by name: it is a document that refers to others.
_DOCUMENT_TYPES = frozenset({"image/svg+xml"})


@dataclass(frozen=True, slots=True)
class MediaPolicy:
    """Limits of one engine.

    Attributes:
        urls: Public addresses only, any address, or no fetching at all; `data:` URIs are always read.
        hosts: Only these hosts; `.example.org` stands for every host below example.org. Empty is every host.
        max_bytes: Largest file, before and after decompression.
        max_request_bytes: Most bytes of all files of one request.
        timeout_s: Time for one file, from the first lookup to the last byte, redirects included.
        max_redirects: Hops after the first.
    """

    urls: MediaUrls = MediaUrls.PUBLIC
    hosts: tuple[str, ...] = ()
    max_bytes: int = 32 * MEBIBYTE_BYTES
    max_request_bytes: int = 256 * MEBIBYTE_BYTES
    timeout_s: float = 10.0
    max_redirects: int = 3

    @classmethod
    def from_engine_args(cls, args: EngineArgs) -> MediaPolicy:
        """What the options say."""
        return cls(
            urls=args.media_urls,
            hosts=tuple(host.lower() for host in args.media_hosts),
            max_bytes=args.max_media_bytes,
            timeout_s=args.media_timeout_s,
        )

    def lists(self, host: str) -> bool:
        """Whether a host (lower case, no final dot) may be asked."""
        if not self.hosts:
            return True
        return any(host.endswith(entry) if entry.startswith(".") else host == entry for entry in self.hosts)

    @staticmethod
    def takes_type(content_type: str, kind: str) -> bool:
        """Whether an answer of this type can hold media of that kind (`image` or `audio`)."""
        if content_type in _NEUTRAL_TYPES:
            return True
        return content_type.startswith(f"{kind}/") and content_type not in _DOCUMENT_TYPES
