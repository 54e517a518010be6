"""Reads what a checkpoint says of the images it takes: their size, and how the reference library prepares them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infinity_emb.errors import CheckpointError
from infinity_emb.models.spec.files import ConfigFile, join, missing
from infinity_emb.models.spec.media import MediaSpec
from infinity_emb.models.spec.towers import VISION, tower_config
from infinity_emb.types import Modality

if TYPE_CHECKING:
    from infinity_emb.models.spec.files import Repository

FILE, JOINT_FILE = "preprocessor_config.json", "processor_config.json"
PIXELS = "pixel_values"
# What the image processor of a family takes where the file is silent, as far as it is not what CLIP's takes.
_OPTIONS: dict[str, dict[str, Any]] = {
    "siglip": {
        "do_center_crop": False,
        "size": {"height": 224, "width": 224},
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    }
}
# Families that put a state of the whole image before those of its patches.
_WITH_CLASS = frozenset({"clip"})


def read_image(repository: Repository, folder: str, config: ConfigFile) -> MediaSpec:
    """The images of a model with a vision transformer in it.

    Raises:
        CheckpointError: A file is missing or broken, or its options give images of another size than the model reads.
    """
    vision = ConfigFile(f"{config.name}: {VISION}", tower_config(config.data, VISION))
    size, patch = vision.needed_whole("image_size"), vision.needed_whole("patch_size")
    if patch > size:
        raise vision.error("patch_size", f"{patch} is larger than the image, {size}.")
    shape = (vision.needed_whole("num_channels"), size, size)
    if shape[0] != 3:
        raise vision.error("num_channels", f"{shape[0]} is not supported. Supported: 3.")
    model_type = config.text("model_type") or ""
    stated = {name: value for name, value in read_options(repository, folder).data.items() if value is not None}
    positions = (size // patch) ** 2 + (model_type in _WITH_CLASS)
    return MediaSpec(Modality.IMAGE, positions, {PIXELS: shape}, _OPTIONS.get(model_type, {}) | stated)


def read_options(repository: Repository, folder: str, section: str = "image_processor") -> ConfigFile:
    """The options of the preprocessor: of its own file, or of the file that holds those of all.

    Args:
        repository: Where the files are.
        folder: Of the model.
        section: Name in the file that holds those of all.

    Raises:
        CheckpointError: There are none.
    """
    joint = repository.config(join(folder, JOINT_FILE)).section(section)
    if joint.exists:
        return joint
    options = repository.config(join(folder, FILE))
    if not options.exists:
        raise missing(join(folder, FILE), "It says how images or sounds are prepared for the model")
    return options


def edges(value: Any, field: str, *, square: bool) -> tuple[int, int] | int:
    """A size as `(height, width)`, or as the length of the shortest edge.

    Args:
        value: A number, or an object with `height` and `width` or `shortest_edge`.
        field: Of the file, for messages.
        square: Whether a number alone means both edges.

    Raises:
        CheckpointError: None of these.
    """
    match value:
        case {"height": int(height), "width": int(width)} if height > 0 and width > 0:
            return height, width
        case {"shortest_edge": int(shortest), **rest} if shortest > 0 and not any(rest.values()):
            return shortest
        case int(number) if number > 0:
            return (number, number) if square else number
    raise CheckpointError(
        f"{FILE}: {field}: {value!r} is no size that is read here. Supported: height and width, or shortest_edge.",
        param=f"{FILE}:{field}",
    )
