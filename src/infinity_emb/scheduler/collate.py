"""Hot path. Lays the items of a batch out as the named arrays of `backends.base`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infinity_emb.backends.base import Arrays, Layout
    from infinity_emb.models.features import Features
    from infinity_emb.scheduler.batch import Batch


FEWEST_COLUMNS = 64
NOBODY = -1  # the segment of a token that is seen by none


class Collator:
    """Builds only the arrays that the backend asks for.

    Args:
        inputs: Names of the arrays, see `backends.base`.
        layout: For the padding of the number of segments.
    """

    def __init__(self, inputs: tuple[str, ...], layout: Layout) -> None:
        self._inputs = inputs
        self._steps = layout.segment_steps

    def __call__(self, batch: Batch) -> Arrays:
        """Arrays of one batch; nothing in them is shared with earlier ones."""
        features = [request.items[position] for request, position in batch.entries]
        return self._rows(batch, features) if features[0].arrays is None else self._stacked(features)

    def _rows(self, batch: Batch, features: list[Features]) -> Arrays:
        """Texts in rows of token slots."""
        lengths = np.array([len(item.token_ids) for item in features])
        starts = np.array(batch.starts)
        ends = lengths.cumsum()
        steps = np.arange(int(ends[-1]))
        positions = steps - (ends - lengths).repeat(lengths)
        # the texts of a single row stand one behind the other, beginning at its first slot
        slots = steps if batch.rows == 1 else positions + starts.repeat(lengths)
        shape = (batch.rows, batch.width)
        arrays: Arrays = {}
        for name in self._inputs:
            if name == "input_ids":
                arrays[name] = _spread(np.concatenate([item.token_ids for item in features]), slots, shape)
            elif name == "position_ids":
                arrays[name] = _spread(positions, slots, shape)
            elif name in {"segment_ids", "key_segment_ids"}:
                arrays[name] = _spread(_segment_numbers(name, features, positions, lengths), slots, shape)
            elif name == "token_type_ids":
                arrays[name] = _types(batch, slots, shape)
            elif name == "adapter_ids":
                adapters = np.repeat([item.adapter for item in features], lengths)
                arrays[name] = _spread(adapters, slots, shape)
            elif name == "first_index":
                arrays[name] = self._indexes(starts + _left_out(features, lengths))
            elif name == "last_index":
                arrays[name] = self._indexes(starts + lengths - 1)
            elif name == "token_index":
                skipped = _left_out(features, lengths)
                kept = lengths - skipped
                within = np.minimum(np.arange(int(kept.max())), kept[:, None] - 1)
                arrays[name] = self._indexes((starts + skipped)[:, None] + within)
            else:
                arrays[name] = self._weights(name, batch, slots, positions, lengths)
        return arrays

    def _stacked(self, features: list[Features]) -> Arrays:
        """Images or sounds: one array a name, with an axis of items in front."""
        return {name: np.stack([item.arrays[name] for item in features if item.arrays]) for name in self._inputs}

    def _segments(self, count: int) -> int:
        return next((step for step in self._steps if step >= count), count)

    def _indexes(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        padded = np.zeros((self._segments(len(values)), *values.shape[1:]), np.int64)
        padded[: len(values)] = values
        return padded

    def _weights(
        self,
        name: str,
        batch: Batch,
        slots: NDArray[np.int64],
        positions: NDArray[np.int64],
        lengths: NDArray[np.int64],
    ) -> NDArray[np.float32]:
        """`pool_weights` or `position_weights`; tokens of a prompt that pooling leaves out weigh nothing."""
        count = len(batch.entries)
        weights = np.zeros((self._segments(count), pooled_columns(batch.rows * batch.width)), np.float32)
        prompts = np.array([request.items[position].prompt_tokens for request, position in batch.entries])
        value = (positions >= np.repeat(prompts, lengths)).astype(np.float32)
        if name == "position_weights":
            value *= positions + 1
        weights[np.repeat(np.arange(count), lengths), slots] = value
        return weights


def pooled_columns(slots: int) -> int:
    """Columns of the weights that pool so many slots: the next power of two, for the sake of few shapes."""
    return max(FEWEST_COLUMNS, 1 << (slots - 1).bit_length())


def _left_out(features: list[Features], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Leading tokens of each text that pooling leaves out; none where nothing would be left."""
    prompts = np.array([item.prompt_tokens for item in features])
    return np.where(prompts < lengths, prompts, 0)


def _spread(values: NDArray[np.int64], slots: NDArray[np.int64], shape: tuple[int, int]) -> NDArray[np.int64]:
    flat = np.zeros(shape[0] * shape[1], np.int64)
    flat[slots] = values
    return flat.reshape(shape)


def _segment_numbers(
    name: str, features: list[Features], positions: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.int64]:
    """`segment_ids` or `key_segment_ids` of all tokens one after the other."""
    numbers = np.repeat(np.arange(1, len(features) + 1), lengths)
    if name == "key_segment_ids":
        seen = lengths - np.array([item.unseen_tokens for item in features])
        numbers[positions >= np.repeat(seen, lengths)] = NOBODY
    return numbers


def _types(batch: Batch, slots: NDArray[np.int64], shape: tuple[int, int]) -> NDArray[np.int64]:
    features = [request.items[position] for request, position in batch.entries]
    if all(item.type_ids is None for item in features):
        return np.zeros(shape, np.int64)
    types = [np.zeros(len(f.token_ids), np.int64) if f.type_ids is None else f.type_ids for f in features]
    return _spread(np.concatenate(types), slots, shape)
