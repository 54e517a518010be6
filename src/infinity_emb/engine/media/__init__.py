"""From a URL to the bytes of an image or sound, without letting a caller reach what only this machine can reach."""

from infinity_emb.engine.media.fetcher import MediaFetcher
from infinity_emb.engine.media.media import Media
from infinity_emb.engine.media.policy import MediaPolicy
from infinity_emb.engine.media.refusal import MediaRefusedError, Refusal

__all__ = ["Media", "MediaFetcher", "MediaPolicy", "MediaRefusedError", "Refusal"]
