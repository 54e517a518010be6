"""The environments of the clients: what is installed together, and how each is made once and then reused."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / ".venv-clients"
NODE_22 = 22
# The file of OpenAI's cl100k_base under the name tiktoken looks for, and a package that brings it along.
TOKEN_TABLE = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
TOKEN_TABLE_PACKAGE = "llama-index-core"
INSTALL_TIMEOUT_S = 900
QUIET = {
    "HF_ENDPOINT": "http://127.0.0.1:9",  # HF_HUB_OFFLINE would also stop InferenceClient from calling our server
    "DO_NOT_TRACK": "1",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "ANONYMIZED_TELEMETRY": "False",
    "NO_PROXY": "*",
}


class CannotInstallError(RuntimeError):
    """An environment could not be made."""


@dataclass(frozen=True)
class Environment:
    """Packages that are installed together.

    Attributes:
        name: Of its folder.
        packages: As pip or npm takes them.
        token_table: Bring OpenAI's table of tokens too, which tiktoken would fetch.
        node: npm packages instead of Python ones.
    """

    name: str
    packages: tuple[str, ...]
    token_table: bool = False
    node: bool = False

    @property
    def folder(self) -> Path:
        return FOLDER / self.name

    def ensure(self) -> None:
        """Make it if it is not there, or if its packages are no longer these.

        Raises:
            CannotInstallError: pip or npm failed, or there is no npm.
        """
        stamp = self.folder / ".installed"
        wanted = json.dumps([self.packages, self.token_table, "" if self.node else sys.version])
        if stamp.is_file() and stamp.read_text("utf-8") == wanted:
            return
        started_s = time.monotonic()
        print(f"installing {self.name}: {' '.join(self.packages)}", flush=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        if self.node:
            self._install_node()
        else:
            self._install_python()
        stamp.write_text(wanted, "utf-8")
        print(f"installed {self.name} in {time.monotonic() - started_s:.0f} s", flush=True)

    def command(self, script: Path) -> list[str]:
        """Runs a script in this environment."""
        if not self.node:
            return [str(self._python()), str(script)]
        for source in (script, script.with_name("checks.mjs")):
            shutil.copy(source, self.folder / source.name)  # modules are looked up from where the script lies
        return [self._node(), str(self.folder / script.name)]

    def versions(self, names: tuple[str, ...]) -> dict[str, str]:
        """Installed version of each of these packages."""
        if self.node:
            found = {name: self.folder / "node_modules" / name / "package.json" for name in names}
            return {name: json.loads(path.read_text("utf-8"))["version"] for name, path in found.items()}
        code = "import sys, importlib.metadata as m; print(*map(m.version, sys.argv[1:]))"
        done = subprocess.run(
            [self._python(), "-c", code, *names], capture_output=True, text=True, check=True, timeout=60
        )
        return dict(zip(names, done.stdout.split(), strict=True))

    def _python(self) -> Path:
        return self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    def _install_python(self) -> None:
        self._run([sys.executable, "-m", "venv", str(self.folder)])
        pip = [str(self._python()), "-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--no-compile"]
        self._run([*pip, *self.packages])
        if self.token_table:
            self._run([*pip[:3], "download", "--quiet", "--no-deps", "--dest", "table", TOKEN_TABLE_PACKAGE])
            with zipfile.ZipFile(next(self.folder.glob("table/*.whl"))) as wheel:
                name = next(name for name in wheel.namelist() if name.endswith(f"/{TOKEN_TABLE}"))
                (self.folder / "table" / TOKEN_TABLE).write_bytes(wheel.read(name))

    def _install_node(self) -> None:
        npm = shutil.which("npm")
        if npm is None or shutil.which("node") is None:
            raise CannotInstallError(f"{self.name} needs node and npm; install Node.js 20 or newer.")
        (self.folder / "package.json").write_text('{"private": true, "type": "module"}', "utf-8")
        self._run([npm, "install", "--no-fund", "--no-audit", "--loglevel=error", *self.packages])

    def _node(self) -> str:
        """The system's node, or the newer one that some clients want and the environment brought along."""
        brought = self.folder / "node_modules" / f"node-{_node_platform()}" / "bin" / "node"
        return str(brought) if brought.is_file() else "node"

    def _run(self, command: list[str]) -> None:
        try:
            done = subprocess.run(
                command, cwd=self.folder, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise CannotInstallError(f"{self.name}: {command[-1]} took over {INSTALL_TIMEOUT_S} s") from error
        if done.returncode != 0:
            raise CannotInstallError(f"{self.name}: {' '.join(command)}\n{(done.stdout + done.stderr)[-3000:]}")


def _node_platform() -> str:
    machine = {"x86_64": "x64", "AMD64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return f"{platform.system().lower()}-{machine}"


def newer_node() -> tuple[str, ...]:
    """The npm package that holds Node 22, where the system's is older."""
    node = shutil.which("node")
    if node is None:
        return ()
    found = subprocess.run([node, "--version"], capture_output=True, text=True, check=True, timeout=30).stdout
    return () if int(found.lstrip("v").split(".")[0]) >= NODE_22 else (f"node-{_node_platform()}@{NODE_22}",)
