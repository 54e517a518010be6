"""Where torch computes and in which number format, checked against what this machine has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infinity_emb import extras
from infinity_emb.errors import ConfigurationError
from infinity_emb.types import Device, Dtype

if TYPE_CHECKING:
    from infinity_emb.backends.base import BackendOptions

_DTYPES = (Dtype.FLOAT32, Dtype.FLOAT16, Dtype.BFLOAT16)


def choose_device(torch: Any, options: BackendOptions) -> Any:
    """The `torch.device` to compute on; `auto` is the first CUDA device, else the CPU.

    CUDA, MPS and XLA follow torch's documented API and are not run by this project's tests.

    Raises:
        ConfigurationError: This machine or this build of torch has no such device.
        MissingExtraError: `xla` without torch_xla.
    """
    kind = options.device
    if kind is Device.AUTO:
        kind = Device.CUDA if torch.cuda.is_available() else Device.CPU
    if kind is Device.CPU:
        return torch.device("cpu")
    if kind is Device.CUDA:
        return _cuda(torch, options.device_id or 0)
    if kind is Device.MPS:
        if torch.backends.mps.is_available():
            return torch.device("mps")
        raise _unavailable(torch, kind, "MPS needs an Apple GPU and a torch built for macOS")
    if kind is Device.XLA:
        return extras.require("torch_xla", "torch", "--device xla").device(options.device_id)
    raise _unavailable(torch, kind, "torch does not compute there")


def choose_dtype(torch: Any, dtype: Dtype, device: Any) -> Dtype:
    """The number format; `auto` is float32, on CUDA the half precision that the GPU computes natively.

    Raises:
        ConfigurationError: torch does not offer it here.
    """
    if dtype is Dtype.AUTO:
        if device.type != "cuda":
            return Dtype.FLOAT32
        return Dtype.BFLOAT16 if torch.cuda.is_bf16_supported() else Dtype.FLOAT16
    if dtype not in _DTYPES:
        raise ConfigurationError(
            f"--dtype {dtype} is not offered by --engine torch; choose one of auto, "
            f"{', '.join(name.value for name in _DTYPES)}.",
            param="dtype",
        )
    return dtype


def _cuda(torch: Any, number: int) -> Any:
    if not torch.cuda.is_available():
        raise _unavailable(torch, Device.CUDA, "it sees no CUDA GPU")
    count = torch.cuda.device_count()
    if not 0 <= number < count:
        raise ConfigurationError(
            f"--device-id {number} does not exist: torch sees {count} CUDA devices, numbered from 0 to {count - 1}.",
            param="device_id",
        )
    return torch.device("cuda", number)


def _unavailable(torch: Any, device: Device, reason: str) -> ConfigurationError:
    usable = ["auto", "cpu"]
    if torch.cuda.is_available():
        usable.append("cuda")
    if torch.backends.mps.is_available():
        usable.append("mps")
    return ConfigurationError(
        f"--device {device} cannot be used with torch {torch.__version__}: {reason}. "
        f"Choose one of {', '.join(usable)}.",
        param="device",
    )
