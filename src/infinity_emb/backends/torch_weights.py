"""Reads the tensors of small modules for torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from infinity_emb.models.safetensors_file import load_tensor

if TYPE_CHECKING:
    from pathlib import Path


def read_weight(torch: Any, file: Path, name: str, device: Any) -> Any:
    """A tensor of a module as float32 on the device."""
    if file.suffix == ".safetensors":
        return torch.from_numpy(np.array(load_tensor(file, name))).to(device)
    return torch.load(file, map_location=device, weights_only=True)[name].float()
