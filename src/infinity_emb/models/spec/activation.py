"""Maps the import path of an activation class, as checkpoints store it, to our enumeration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.models.spec.model import Activation

if TYPE_CHECKING:
    from infinity_emb.models.spec.files import ConfigFile

CLASSES = {
    "Identity": Activation.IDENTITY,
    "Tanh": Activation.TANH,
    "Sigmoid": Activation.SIGMOID,
    "Softmax": Activation.SOFTMAX,
    "ReLU": Activation.RELU,
    "GELU": Activation.GELU,
    "SiLU": Activation.SILU,
}


def read_activation(config: ConfigFile, field: str) -> Activation | None:
    """The activation that a field names, such as `torch.nn.modules.activation.Tanh`; None if the field is absent.

    Raises:
        CheckpointError: A class we do not compute; code of the repository is never run for it.
    """
    path = config.text(field)
    if path is None:
        return None
    module, _, name = path.rpartition(".")
    if name not in CLASSES or not (module == "torch.nn" or module.startswith("torch.nn.modules.")):
        supported = ", ".join(f"torch.nn.{known}" for known in CLASSES)
        raise config.error(field, f"the activation {path!r} is not supported. Supported: {supported}.")
    return CLASSES[name]
