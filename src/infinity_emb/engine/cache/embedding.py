"""Hot path. Embedding through the caches: rows that are known, rows that someone computes already, rows to compute."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from infinity_emb.config.environment import environ, own_cache
from infinity_emb.engine.cache.disk import DiskCache
from infinity_emb.engine.cache.entry import Entry, KeyMaker
from infinity_emb.engine.cache.memory import MemoryCache
from infinity_emb.engine.cache.reuse import CacheCounts, Reuse
from infinity_emb.types import Task, Usage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import TypeAlias

    from infinity_emb.backends.base import Arrays
    from infinity_emb.config.engine_args import EngineArgs
    from infinity_emb.models.features import Features
    from infinity_emb.models.spec.model import ModelSpec
    from infinity_emb.types import ModelCard, TextInput, TextOptions

    Embed: TypeAlias = Callable[[list[TextInput]], Awaitable[tuple[list[Features], Arrays]]]

BYTES_PER_MB = 1_000_000
# About 400 MB of 384-dimensional vectors.
DISK_ENTRIES = 250_000


class EmbeddingCache:
    """What one engine reuses.

    Args:
        args: Whether and where to keep vectors.
        identity: Fingerprint of the model and everything that changes its outputs.
        dim: Length of a vector.
        by_name: As of `KeyMaker`.

    Raises:
        StorageError: The file of the disk cache cannot be opened.
    """

    def __init__(self, args: EngineArgs, identity: str, dim: int, *, by_name: bool = False) -> None:
        self._dim = dim
        memory = MemoryCache(args.vector_cache_mb * BYTES_PER_MB) if args.vector_cache_mb else None
        disk = None
        if args.vector_disk_cache_path:
            folder = Path(args.cache_folder).expanduser() if args.cache_folder else own_cache(environ())
            name = args.vector_disk_cache_path.replace("/", "_")
            disk = DiskCache(folder / "vectors" / f"{name}.sqlite", DISK_ENTRIES)
        self._reuse = Reuse(memory, disk)
        self._identity = identity
        self._keys = KeyMaker(identity, by_name=by_name)

    @property
    def counts(self) -> CacheCounts:
        """Hits and misses since the engine was made."""
        return self._reuse.counts

    def of_route(self, name: str) -> EmbeddingCache:
        """The same memory and file for another route of the model, whose vectors have keys of their own."""
        route = copy(self)
        route._keys = KeyMaker(f"{self._identity} {name}")  # noqa: SLF001 - of this very class
        return route

    async def outputs(
        self, inputs: Sequence[TextInput], prompt: str, options: TextOptions, embed: Embed
    ) -> tuple[Arrays, Usage]:
        """Outputs of the model for all inputs, as `ModelRuntime.compute` gives them, and what they would have cost.

        Args:
            inputs: Texts or token ids.
            prompt: The text put before each of them.
            options: How they are read.
            embed: Computes some of them.

        Raises: whatever `embed` raises.
        """

        async def compute(positions: list[int]) -> list[Entry]:
            features, outputs = await embed([inputs[position] for position in positions])
            rows = np.concatenate([outputs[name] for name in ("embedding", "norm") if name in outputs], axis=1)
            return [Entry(row.copy(), len(f.token_ids), f.truncated) for row, f in zip(rows, features, strict=True)]

        entries = await self._reuse.entries(self._keys.keys(list(inputs), prompt, options), compute)
        rows = np.stack([entry.row for entry in entries])
        usage = Usage(
            prompt_tokens=sum(entry.tokens for entry in entries),
            truncated=tuple(position for position, entry in enumerate(entries) if entry.truncated),
        )
        outputs = {"embedding": rows[:, : self._dim]}
        if rows.shape[1] > self._dim:
            outputs["norm"] = rows[:, self._dim :]
        return outputs, usage

    def close(self) -> None:
        """Close the file of the disk cache."""
        self._reuse.close()


def make_cache(args: EngineArgs, card: ModelCard, spec: ModelSpec) -> EmbeddingCache | None:
    """None unless the model embeds and the user wants vectors kept.

    Raises: as `EmbeddingCache`.
    """
    if spec.task is not Task.EMBED or not (args.vector_cache_mb or args.vector_disk_cache_path):
        return None
    return EmbeddingCache(args, str(card.extra["fingerprint"]), spec.dim, by_name=bool(spec.adapters))
