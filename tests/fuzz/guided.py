"""One target under atheris, which never returns: `python guided.py TARGET FOLDER [flags of libFuzzer …]`; run by `run.py`."""

from __future__ import annotations

import shlex
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

import atheris

INSTRUMENTED = ["infinity_emb", "zipfile", "ipaddress", "json", "urllib.parse"]


def main() -> None:
    """Instrument what is imported from here on, then fuzz."""
    name, *flags = sys.argv[1:]
    with atheris.instrument_imports(include=INSTRUMENTED):
        from targets import TARGETS
    (kind,) = [target for target in TARGETS if target.name == name]
    target = kind(Path(tempfile.mkdtemp()))  # below the folder that `run.py` removes
    itself = shlex.join([sys.executable, __file__, name])  # what `-merge` runs by the shell
    atheris.Setup([itself, *flags], target.run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
