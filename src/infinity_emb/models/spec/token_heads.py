"""Reads the heads that BGE-M3 has beside its dense vector: a weight a token, and a vector a token.

Chen et al. 2024, sections 3.1 to 3.3. They lie beside the weights, as FlagEmbedding saves them (`sparse_linear.pt`,
`colbert_linear.pt`) or as safetensors of the same names, or among the weights themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from infinity_emb.errors import CheckpointError, NotComputedError
from infinity_emb.models.pickled import read_shapes
from infinity_emb.models.safetensors_file import read_header
from infinity_emb.models.spec.files import join
from infinity_emb.models.spec.vocabulary import find_token_ids
from infinity_emb.models.spec.weights import all_tensors
from infinity_emb.types import Task

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from infinity_emb.models.spec.model import ModelSpec
    from infinity_emb.models.spec.parts import Parts

SPARSE, MULTI_VECTOR = "sparse_linear", "colbert_linear"
# Tokens that FlagEmbedding gives no weight, and their texts where no file of the tokenizer names them.
_UNUSED = {"cls_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
_NAMED_WITHOUT_FILE = "XLMRoberta"


@dataclass(frozen=True, slots=True)
class HeadSpec:
    """A linear layer on token states: `x @ W.T + b`.

    Attributes:
        weights: File with its tensors `weight` `[width, hidden]` and `bias` `[width]`.
        width: Numbers a token.
        bias: Whether there is one.
        prefix: Before the tensors' names.
    """

    weights: Path
    width: int
    bias: bool
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class HeadsSpec:
    """What a model gives beside its dense vector.

    Attributes:
        sparse: A token's weight is `relu` of it; a word weighs what the heaviest of its tokens does.
        multi_vector: Every token but the first has this vector, made unit length.
        unused_ids: Tokens without a weight.
    """

    sparse: HeadSpec | None
    multi_vector: HeadSpec | None
    unused_ids: tuple[int, ...]

    @property
    def all(self) -> tuple[HeadSpec, ...]:
        """Those that are there."""
        return tuple(head for head in (self.sparse, self.multi_vector) if head is not None)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """What they add to the model's own task."""
        found = ((Task.SPARSE, self.sparse), (Task.MULTI_VECTOR, self.multi_vector))
        return tuple(task for task, head in found if head is not None)

    def moved(self, place: Callable[[Path], Path]) -> HeadsSpec:
        """The same heads, their files elsewhere."""
        sparse, multi_vector = (
            None if head is None else replace(head, weights=place(head.weights))
            for head in (self.sparse, self.multi_vector)
        )
        return replace(self, sparse=sparse, multi_vector=multi_vector)


def add_heads(parts: Parts, spec: ModelSpec) -> ModelSpec:
    """The specification of an embedder with the heads of its repository, if there are any.

    Pickled ones are left unread unless pickles are allowed, which `withheld` tells.

    Raises:
        CheckpointError: A head is broken or of another shape.
    """
    refused: list[str] = []
    sparse = _read_head(parts, SPARSE, refused)
    multi_vector = _read_head(parts, MULTI_VECTOR, refused)
    if sparse is not None and sparse.width != 1:
        raise _wrong_shape(sparse.weights.name, f"[1, {spec.hidden_size}]")
    if refused:
        kinds = " and ".join("sparse" if name.startswith(SPARSE) else "multi-vector" for name in refused)
        withheld = (
            f"The repository has heads for {kinds} vectors ({', '.join(refused)}), but only as pickles, which can run "
            "code when they are loaded and are left unread. Pass --allow-pickle if you trust the repository (without "
            "torch they are then read as numbers alone), or convert them to safetensors of the same names."
        )
        spec = replace(spec, withheld=withheld, notes=(*spec.notes, withheld))
    if sparse is None and multi_vector is None:
        return spec
    return replace(spec, heads=HeadsSpec(sparse, multi_vector, _unused_ids(parts) if sparse else ()))


def _read_head(parts: Parts, name: str, refused: list[str]) -> HeadSpec | None:
    """One head as safetensors, among the weights, or as a pickle; names of pickles that may not be read are added."""
    repository, folder = parts.repository, parts.folder
    path = repository.path(folder, f"{name}.safetensors")
    if path.is_file():
        return _head(
            parts, path, {key: info.shape for key, info in read_header(path).items()}, ("", "linear.", f"{name}.")
        )
    inside = next((file for file in parts.weights if f"{name}.weight" in all_tensors((file,))), None)
    if inside is not None:
        return _head(parts, inside, {key: info.shape for key, info in read_header(inside).items()}, (f"{name}.",))
    path = repository.path(folder, f"{name}.pt")
    if not path.is_file():
        return None
    if not repository.allow_pickle:
        refused.append(path.name)
        return None
    try:
        shapes = read_shapes(path)
    except NotComputedError as error:  # there is no other way to read a head
        raise CheckpointError(error.message, param=path.name) from error
    return _head(parts, path, shapes, ("", "linear."))


def _head(parts: Parts, path: Path, shapes: dict[str, tuple[int, ...]], prefixes: tuple[str, ...]) -> HeadSpec:
    hidden = parts.transformer.hidden_size
    prefix = next((one for one in prefixes if f"{one}weight" in shapes), None)
    if prefix is None:
        names = ", ".join(shapes) or "nothing"
        raise CheckpointError(f"{path.name}: the tensor 'weight' is missing; it holds {names}.", param=path.name)
    shape = tuple(shapes[f"{prefix}weight"])
    biased = f"{prefix}bias" in shapes
    if len(shape) != 2 or shape[1] != hidden or (biased and tuple(shapes[f"{prefix}bias"]) != shape[:1]):
        raise _wrong_shape(path.name, f"[any, {hidden}] with a bias as long")
    return HeadSpec(path, shape[0], biased, prefix)


def _wrong_shape(name: str, wanted: str) -> CheckpointError:
    return CheckpointError(
        f"{name}: the tensor 'weight' is not {wanted}, which config.json's width asks for. The files do not belong "
        "together; download the repository again.",
        param=name,
    )


def _unused_ids(parts: Parts) -> tuple[int, ...]:
    repository, folder = parts.repository, parts.folder
    settings = repository.config(join(folder, "tokenizer_config.json")).data
    named = repository.config(join(folder, "special_tokens_map.json")).data
    known = str(settings.get("tokenizer_class") or "").startswith(_NAMED_WITHOUT_FILE)
    tokens = [
        _content(settings.get(field)) or _content(named.get(field)) or (text if known else None)
        for field, text in _UNUSED.items()
    ]
    found = find_token_ids(repository, folder, [token for token in tokens if token])
    return tuple(sorted({number for number in found if number is not None}))


def _content(value: Any) -> str | None:
    """A special token as the tokenizer's files write it: a string or an object."""
    value = value.get("content") if isinstance(value, dict) else value
    return value if isinstance(value, str) else None
