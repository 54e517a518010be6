"""Reads which tasks a checkpoint has adapters for (jina-embeddings-v3), and the prompts that belong to them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from infinity_emb.models.spec.files import join

if TYPE_CHECKING:
    from infinity_emb.models.spec.files import ConfigFile, Repository
    from infinity_emb.models.spec.model import ModelSpec

FIELD = "lora_adaptations"
MODULE = "custom_st.Transformer"  # in modules.json; what its code does is computed here
_MODEL_TYPES = ("xlm-roberta",)


def is_adapted(repository: Repository, folder: str = "") -> bool:
    """Whether the transformer in a folder has adapters of the kind that is computed here."""
    config = repository.config(join(folder, "config.json"))
    return config.data.get("model_type") in _MODEL_TYPES and bool(config.data.get(FIELD))


def add_adapters(config: ConfigFile, spec: ModelSpec) -> ModelSpec:
    """The specification of an embedder with its adapters, each with a prompt of the same name, maybe an empty one.

    Raises:
        CheckpointError: The names are no list of different words, or a prompt is none.
    """
    names = config.data.get(FIELD)
    if not names:
        return spec
    if not isinstance(names, list) or not all(isinstance(one, str) and one for one in names):
        raise config.error(FIELD, f"{names!r} is not a list of names. Correct the file.")
    if len(set(names)) < len(names):
        raise config.error(FIELD, f"{names!r} has a name twice. Correct the file.")
    instructions = config.section("task_instructions")
    texts = {name: instructions.text(name) or "" for name in names}
    note = f"adapters for {', '.join(names)}: a request's task or prompt_name chooses one, without either none is used"
    return replace(spec, adapters=tuple(names), prompts=texts | spec.prompts, notes=(*spec.notes, note))
