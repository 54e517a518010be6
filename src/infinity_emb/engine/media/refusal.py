"""Why a URL is refused: one reason for each rule, so that callers, metrics and tests can tell them apart."""

from __future__ import annotations

import enum

from infinity_emb.errors import MediaError


class Refusal(str, enum.Enum):
    """The rule that a URL or its answer broke."""

    OFF = "fetching_off"
    SCHEME = "scheme"
    MALFORMED = "malformed_url"
    CREDENTIALS = "credentials"
    NUMBER_AS_HOST = "number_as_host"
    HOST_NOT_LISTED = "host_not_listed"
    UNRESOLVED = "unresolved"
    LOOPBACK = "loopback"
    PRIVATE = "private"
    LINK_LOCAL = "link_local"
    METADATA = "metadata"
    SHARED = "carrier_grade_nat"
    MULTICAST = "multicast"
    RESERVED = "reserved"
    EMBEDDED = "embedded_ipv4"
    REDIRECTS = "too_many_redirects"
    REDIRECT_TARGET = "redirect_without_target"
    UNREACHABLE = "unreachable"
    TLS = "tls"
    TOO_SLOW = "too_slow"
    TOO_LARGE = "too_large"
    STATUS = "status"
    BROKEN_ANSWER = "broken_answer"
    CONTENT_TYPE = "content_type"
    CONTENT_ENCODING = "content_encoding"
    DATA_URI = "data_uri"


class MediaRefusedError(MediaError):
    """A URL that may not be fetched, or whose answer may not be used.

    Args:
        refusal: The rule it broke.
        message: What was wrong, what is allowed and how to fix it.
        item_index: Position of the item in the request.
    """

    def __init__(self, refusal: Refusal, message: str, *, item_index: int | None = None) -> None:
        super().__init__(message, param="input", item_index=item_index)
        self.refusal = refusal

    def at(self, item_index: int) -> MediaRefusedError:
        """The same for an item of a request."""
        return MediaRefusedError(self.refusal, f"Item {item_index}: {self.message}", item_index=item_index)
