"""Reads models that put texts and images, or texts and sounds, into one space: CLIP, SigLIP, CLAP and their kind."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from infinity_emb.errors import CheckpointError
from infinity_emb.models.spec import siglip
from infinity_emb.models.spec.chain import Chain
from infinity_emb.models.spec.family import CROSS_ENCODER, Prompts, read_prompts
from infinity_emb.models.spec.image import read_image
from infinity_emb.models.spec.model import Activation, Filling, ModelSpec, NormalizeSpec
from infinity_emb.models.spec.modules import FILE as MODULES_FILE
from infinity_emb.models.spec.parts import Parts, make_spec
from infinity_emb.models.spec.scorer import Scorer
from infinity_emb.models.spec.sound import read_sounds
from infinity_emb.types import Modality, Task

if TYPE_CHECKING:
    from collections.abc import Callable

    from infinity_emb.models.spec.files import ConfigFile, Repository
    from infinity_emb.models.spec.media import MediaSpec


class _Family(NamedTuple):
    """One kind of joint model.

    Attributes:
        media: What it reads beside text.
        width: The length of a vector.
        filling: What texts are filled up with.
    """

    media: Callable[[Repository, str, ConfigFile], MediaSpec]
    width: Callable[[ConfigFile], int]
    filling: Callable[[Parts], Filling | None] = lambda _: None


def _projected(config: ConfigFile) -> int:
    return config.whole("projection_dim") or 512


# model_type → how it is read
FAMILIES: dict[str, _Family] = {
    "clap": _Family(read_sounds, _projected),
    "clip": _Family(read_image, _projected),
    "siglip": _Family(read_image, siglip.read_width, siglip.read_filling),
}
_KINDS = frozenset({"Transformer", "CLIPModel", "Normalize"})


def is_joint(parts: Parts) -> bool:
    """Whether a checkpoint is one of these."""
    return parts.transformer.model_type in FAMILIES


def read_joint(parts: Parts, task: Task | None) -> ModelSpec:
    """The view of such a model that reads text; `media_view` gives the others.

    Vectors are of unit length, also where the repository does not ask for it: texts and images have lengths of their
    own, which would tell them apart in an index that holds both.

    Raises:
        CheckpointError: Another task than embed, or modules that are not computed.
    """
    transformer = parts.transformer
    if task not in {None, Task.EMBED}:
        raise CheckpointError(
            f"config.json: model_type: {transformer.model_type} gives vectors of texts and media; it cannot do the "
            f"task {task}. Serve it with the task embed.",
            param="config.json:model_type",
        )
    for position, entry in enumerate(parts.entries or ()):
        if entry.kind not in _KINDS:
            raise CheckpointError(
                f"{MODULES_FILE}: [{position}]: {entry.kind} behind a model of texts and media is not supported. "
                f"Supported: {', '.join(sorted(_KINDS))}.",
                param=f"{MODULES_FILE}:[{position}].type",
            )
    family = FAMILIES[transformer.model_type]
    media = family.media(parts.repository, parts.folder, transformer.config)
    width = family.width(transformer.config)
    own = parts.entries is not None and parts.family != CROSS_ENCODER
    prompts = read_prompts(parts.saved) if own else Prompts({}, None)
    spec = make_spec(
        parts, Scorer(Task.EMBED, (), Activation.IDENTITY), Chain(width, width, (NormalizeSpec(),)), prompts
    )
    note = f"reads text and {media.modality.value} into one space of unit vectors"
    filling = family.filling(parts)
    return replace(spec, hidden_size=width, media=(media,), filling=filling, notes=(*spec.notes, note))


def media_view(spec: ModelSpec, modality: Modality) -> ModelSpec:
    """The same checkpoint as a model that reads images or sounds."""
    return replace(spec, reads=modality, max_length=spec.media_spec(modality).positions)
