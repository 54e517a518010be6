"""Reuse of finished vectors: in memory, on disk, and between identical inputs that are in flight at once."""

from infinity_emb.engine.cache.embedding import EmbeddingCache, make_cache
from infinity_emb.engine.cache.entry import Entry, KeyMaker
from infinity_emb.engine.cache.reuse import CacheCounts, Reuse

__all__ = ["CacheCounts", "EmbeddingCache", "Entry", "KeyMaker", "Reuse", "make_cache"]
