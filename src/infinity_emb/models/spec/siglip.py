"""What is special about SigLIP: how long its vectors are, and that its texts are filled up to one length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.models.spec.files import ConfigFile, join
from infinity_emb.models.spec.model import Filling
from infinity_emb.models.spec.towers import TEXT, VISION, tower_config
from infinity_emb.models.spec.vocabulary import read_token_ids

if TYPE_CHECKING:
    from infinity_emb.models.spec.parts import Parts

_SETTINGS = "tokenizer_config.json"


def read_width(config: ConfigFile) -> int:
    """Numbers of a vector.

    Raises:
        CheckpointError: Texts and images have vectors of different lengths, or images are not pooled.
    """
    text, vision = (ConfigFile(f"{config.name}: {name}", tower_config(config.data, name)) for name in (TEXT, VISION))
    if not vision.flag("vision_use_head", default=True):
        raise vision.error("vision_use_head", "without the head an image has no vector. Supported: true.")
    width = vision.needed_whole("hidden_size")
    projected = text.whole("projection_size") or text.needed_whole("hidden_size")
    if projected != width:
        raise text.error("projection_size", f"texts have {projected} numbers, images {width}. They must be as many.")
    return width


def read_filling(parts: Parts) -> Filling:
    """The padding token of the tokenizer, up to the model's positions.

    Raises:
        CheckpointError: There is no padding token, or the model is not to see it.
    """
    settings = parts.repository.config(join(parts.folder, _SETTINGS))
    if "attention_mask" in (settings.data.get("model_input_names") or ()):
        raise settings.error(
            "model_input_names", "hiding the padding from this model is not supported. Supported: ['input_ids']."
        )
    token = settings.data.get("pad_token")
    content = token.get("content") if isinstance(token, dict) else token
    if not isinstance(content, str):
        raise settings.error("pad_token", f"{token!r} is no token; texts are filled up with it. Add it.")
    (number,) = read_token_ids(parts.repository, parts.folder, [content])
    text = ConfigFile(parts.transformer.config.name, tower_config(parts.transformer.config.data, TEXT))
    return Filling(text.needed_whole("max_position_embeddings"), number)
