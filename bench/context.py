"""What every scenario is given: the model, the texts, the peers, and how long it may take."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import environments

if TYPE_CHECKING:
    from environments import Environment

    from texts import Texts


@dataclass(frozen=True)
class Context:
    """One run.

    Attributes:
        model: Folder of the checkpoint, given to every contender.
        texts: Documents and queries, the same for all.
        rounds: How often each measurement is repeated, in turn with what it is compared with.
        scale: Factor on every duration.
        install: Whether environments of peers may be set up.
        bfloat16: Whether this CPU computes in it.
    """

    model: str
    texts: Texts
    rounds: int
    scale: float
    install: bool
    bfloat16: bool

    @property
    def quick(self) -> bool:
        """Whether durations are cut, and with them what would take long."""
        return self.scale < 1

    @property
    def connections(self) -> int:
        """For requests of many documents; a quick run cannot wait for as many as a full one."""
        return 4 if self.quick else 16

    def seconds(self, full_s: float) -> float:
        """Duration of one measurement that takes so long in a full run."""
        return max(1.0, full_s * self.scale)

    def count(self, full: int, multiple: int = 32) -> int:
        """Number of texts for a measurement that takes so many in a full run."""
        return max(multiple * 2, int(full * self.scale) // multiple * multiple)

    def precisions(self) -> dict[str, tuple[str, ...]]:
        """Our configurations by name, with their flags; the defaults apart only where they are another precision."""
        both = {"defaults": (), "float32": ("--dtype", "float32")}
        return both if self.bfloat16 else {"float32": both["float32"]}

    def ours(self, *flags: str, model: str | None = None) -> list[str]:
        """Command of our server."""
        model = model or self.model
        return [sys.executable, "-m", "infinity_emb", "v2", "--model-id", model, "--served-model-name", "bench", *flags]

    def infinity(self, *flags: str) -> list[str]:
        """Command of the original at 0.0.78.

        Raises:
            NotAvailableError: It is not installed.
        """
        environments.provide(environments.INFINITY, install=self.install)
        program = environments.INFINITY.command("infinity_emb")
        # its default --bettertransformer fails without a package that cannot be installed beside current libraries
        options = ["--served-model-name", "bench", "--device", "cpu", "--no-bettertransformer", "--host", "127.0.0.1"]
        return [program, "v2", "--model-id", self.model, *options, *flags]

    def converted(self) -> dict[str, str]:
        """Folders of the model in other formats, by format; a format that could not be written is left out."""
        environments.provide(environments.TORCH, install=self.install)
        output = environments.ROOT / "models" / hashlib.sha256(self.model.encode()).hexdigest()[:12]
        script = environments.ROOT.parent / "adapters" / "prepare.py"
        python = environments.TORCH.command("python")
        subprocess.run([python, str(script), self.model, str(output)], check=True, capture_output=True)
        return {name: str(output / name) for name in ("onnx", "ctranslate2") if (output / name).is_dir()}

    def versions(self, environment: Environment) -> str:
        """Names and versions of what an environment holds."""
        return ", ".join(f"{name} {v}" for name, v in environments.provide(environment, install=False).items())
