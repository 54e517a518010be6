"""Environments of the peers: each in a folder of its own under `bench/.venvs`, set up with pip when it is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).with_name(".venvs")
_STAMP = "installed.json"


@dataclass(frozen=True)
class Environment:
    """A place with other libraries than ours.

    Attributes:
        name: Folder.
        requirements: What pip installs, pinned where a comparison is about one release.
        shown: Distributions whose versions the report names.
    """

    name: str
    requirements: tuple[str, ...]
    shown: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Where it is."""
        return ROOT / self.name

    def command(self, name: str) -> str:
        """Path of a program in it."""
        folder = "Scripts" if sys.platform == "win32" else "bin"
        return str(self.folder / folder / name)


INFINITY = Environment(
    "infinity",
    ("torch==2.13.0", "infinity-emb[server,torch]==0.0.78"),
    ("infinity_emb", "torch", "transformers", "sentence-transformers"),
)
TORCH = Environment(
    "torch",
    ("torch==2.13.0", "sentence-transformers[onnx,openvino]>=5,<7", "ctranslate2>=4.8"),
    ("sentence-transformers", "torch", "transformers", "openvino", "onnxruntime", "ctranslate2"),
)
FASTEMBED = Environment("fastembed", ("fastembed>=0.9",), ("fastembed", "onnxruntime"))


class NotAvailableError(Exception):
    """A peer cannot be had here; the text says why."""


def provide(environment: Environment, *, install: bool) -> dict[str, str]:
    """Make sure of an environment.

    Args:
        environment: Which.
        install: Whether it may be set up now.

    Returns:
        Versions of what it shows.

    Raises:
        NotAvailableError: It is missing and may not, or cannot, be installed.
    """
    stamp = environment.folder / _STAMP
    wanted = list(environment.requirements)
    if stamp.exists() and json.loads(stamp.read_text()) == wanted:
        return _versions(environment)
    if not install:
        raise NotAvailableError("not installed; a full run (make bench) installs it")
    print(f"Setting up bench/.venvs/{environment.name} (once): {', '.join(wanted)}", flush=True)
    _run([sys.executable, "-m", "venv", "--clear", str(environment.folder)])
    pip = [environment.command("python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "--only-binary=:all:", "--prefer-binary", *wanted])
    stamp.write_text(json.dumps(wanted))
    return _versions(environment)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise NotAvailableError(f"cannot be installed: {(lines or [done.stderr.strip() or 'no message'])[0][:300]}")


def _versions(environment: Environment) -> dict[str, str]:
    code = (
        "import json, sys; from importlib.metadata import version\n"
        "print(json.dumps({name: version(name) for name in sys.argv[1:]}))"
    )
    command = [environment.command("python"), "-c", code, *environment.shown]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotAvailableError(f"is broken: {done.stderr.strip().splitlines()[-1][:300]}")
    versions: dict[str, str] = json.loads(done.stdout)
    return versions
