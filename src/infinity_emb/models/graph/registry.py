"""`model_type` of config.json → the architecture that builds its graph, loaded when chosen."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from infinity_emb.errors import NotComputedError

if TYPE_CHECKING:
    from infinity_emb.models.graph.architecture import Architecture, Config, JointArchitecture

_PACKAGE = "infinity_emb.models.graph"
_ARCHITECTURES: dict[str, str] = {
    "albert": f"{_PACKAGE}.albert:ALBERT",
    "bag": f"{_PACKAGE}.static:BAG",
    "bert": f"{_PACKAGE}.bert:BERT",
    "camembert": f"{_PACKAGE}.bert:ROBERTA",
    "deberta-v2": f"{_PACKAGE}.deberta_v2:DEBERTA_V2",
    "distilbert": f"{_PACKAGE}.distilbert:DISTILBERT",
    "electra": f"{_PACKAGE}.bert:ELECTRA",
    "eurobert": f"{_PACKAGE}.eurobert:EUROBERT",
    "gemma": f"{_PACKAGE}.decoder:GEMMA",
    "gemma3_text": f"{_PACKAGE}.gemma3:GEMMA3",
    "gte": f"{_PACKAGE}.gte:GTE",
    "llama": f"{_PACKAGE}.decoder:LLAMA",
    "mistral": f"{_PACKAGE}.decoder:MISTRAL",
    "modernbert": f"{_PACKAGE}.modernbert:MODERNBERT",
    "mpnet": f"{_PACKAGE}.mpnet:MPNET",
    "mt5": f"{_PACKAGE}.t5:MT5",
    "new": f"{_PACKAGE}.gte:NEW",
    "nomic_bert": f"{_PACKAGE}.nomic_bert:NOMIC_BERT",
    "qwen2": f"{_PACKAGE}.decoder:QWEN2",
    "qwen3": f"{_PACKAGE}.decoder:QWEN3",
    "roberta": f"{_PACKAGE}.bert:ROBERTA",
    "static": f"{_PACKAGE}.static:STATIC",
    "t5": f"{_PACKAGE}.t5:T5",
    "umt5": f"{_PACKAGE}.t5:UMT5",
    "words": f"{_PACKAGE}.static:WORDS",
    "xlm-roberta": f"{_PACKAGE}.xlm_roberta:XLM_ROBERTA",
}
# The same for models that read media beside text.
_JOINT: dict[str, str] = {
    "clap": f"{_PACKAGE}.clap:CLAP",
    "clip": f"{_PACKAGE}.clip:CLIP",
    "siglip": f"{_PACKAGE}.siglip:SIGLIP",
}
# (model_type, field of config.json, its value) → another architecture that goes by the same model_type
_VARIANTS: dict[tuple[str, str, str], str] = {
    ("bert", "position_embedding_type", "alibi"): f"{_PACKAGE}.jina_bert:JINA_BERT",
}


def has_builder(model_type: str) -> bool:
    """Whether a graph can be built without torch."""
    return model_type in _ARCHITECTURES or model_type in _JOINT


def supported_model_types() -> tuple[str, ...]:
    """Every `model_type` with a builder."""
    return tuple(sorted({*_ARCHITECTURES, *_JOINT}))


def architecture(model_type: str, config: Config) -> Architecture:
    """Load an architecture; raises `CheckpointError` if there is no builder for it."""
    if model_type not in _ARCHITECTURES:
        raise NotComputedError(
            f"There is no graph builder for the architecture {model_type!r} (there is one for "
            f"{', '.join(supported_model_types())}). Use --engine torch, which runs all that transformers runs.",
            param="config.json: model_type",
        )
    target = _ARCHITECTURES[model_type]
    for (name, field, value), variant in _VARIANTS.items():
        if name == model_type and config.get(field) == value:
            target = variant
    found: Architecture = _load(target)
    return found


def joint_architecture(model_type: str) -> JointArchitecture:
    """Load an architecture that reads media; the caller knows that there is one."""
    found: JointArchitecture = _load(_JOINT[model_type])
    return found


def _load(target: str) -> Any:
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)
