"""The contract of an architecture: how token ids become token states, and token states become logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from infinity_emb.errors import CheckpointError, NotComputedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from infinity_emb.models.graph.builder import GraphBuilder
    from infinity_emb.types import Modality

Config: TypeAlias = "dict[str, Any]"
Encode: TypeAlias = "Callable[[GraphBuilder, Config], str]"
Score: TypeAlias = "Callable[[GraphBuilder, Config, str, int], str]"


@dataclass(frozen=True, slots=True)
class Architecture:
    """One family of checkpoints.

    Attributes:
        encode: `(builder, config) -> hidden`, float32 `[slots, hidden]`.
        score: `(builder, config, hidden, labels) -> logits`, float32 `[segments, labels]`;
            None where the family has no sequence classification head.
        prefixes: Prefixes that a wrapping class puts before tensor names.
    """

    encode: Encode
    score: Score | None
    prefixes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JointArchitecture:
    """One family of checkpoints that put several modalities into one space.

    Attributes:
        towers: What is read → `(builder, config) -> vectors`, float32 `[segments, dim]`, not yet of unit length.
        prefixes: As of `Architecture`.
    """

    towers: Mapping[Modality, Encode]
    prefixes: tuple[str, ...] = ()


def require_config(config: Config, name: str) -> Any:
    """A value of config.json that the architecture cannot do without; raises `CheckpointError`."""
    if config.get(name) is None:
        raise CheckpointError(
            f"config.json has no {name!r}, which the architecture {config.get('model_type')!r} needs. "
            "Download the repository again or add the value.",
            param=f"config.json: {name}",
        )
    return config[name]


def check_config(config: Config, name: str, *known: Any) -> None:
    """Refuse a value of config.json that changes the result and is not computed; absent and null are fine.

    Raises:
        CheckpointError: The value is none of `known`.
    """
    value = config.get(name)
    if value is None or value in known:
        return
    raise NotComputedError(
        f"config.json: {name} is {value!r}, which the graph builder for {config.get('model_type')!r} does not compute "
        f"(it knows {', '.join(map(repr, known)) or 'none but null'}). Use --engine torch for this model.",
        param=f"config.json: {name}",
    )
