"""Which backend serves when the user leaves it open."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from infinity_emb.types import Device, InferenceEngine

_GPU_NODES = ("/dev/nvidia0", "/dev/kfd")  # NVIDIA's and AMD's device files on Linux


def choose_engine(engine: InferenceEngine, device: Device) -> InferenceEngine:
    """Resolve `auto`: torch where there is a GPU and torch is installed, else openvino.

    Nothing heavy is imported to find out.
    """
    if engine is not InferenceEngine.AUTO:
        return engine
    if device in (Device.CUDA, Device.MPS, Device.XLA):
        return InferenceEngine.TORCH
    if device is Device.AUTO and gpu_present() and importlib.util.find_spec("torch") is not None:
        return InferenceEngine.TORCH
    return InferenceEngine.OPENVINO


def gpu_present() -> bool:
    """Whether this machine shows a GPU that torch could use."""
    if sys.platform == "darwin":
        return False  # MPS is slower than the CPU path for small models; --device mps asks for it
    if sys.platform == "win32":
        return importlib.util.find_spec("torch") is not None and Path("C:/Windows/System32/nvcuda.dll").exists()
    return any(Path(node).exists() for node in _GPU_NODES)
