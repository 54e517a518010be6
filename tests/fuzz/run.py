"""Fuzz for as long as you like: `make fuzz`, or `python tests/fuzz/run.py --inputs 1000000 [--target bodies] [--seed 7]`.

atheris guides the inputs by coverage, one process a target; with `--plain`, which needs nothing, they are mutated at
random. Inputs that found a new way through the code are written to `corpus/<target>.txt` (base64, one a line), those
that broke a target to `corpus/<target>/`; the tests run all of them from then on.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from corpus import interesting, keep, keep_interesting, kept
from mutate import TOKENS, mutated

HANG_S = 5
MOST_BYTES = 20_000


class Hang(BaseException):
    """No `except Exception` catches it."""


def _alarm(*_: object) -> None:
    raise Hang(f"one input took more than {HANG_S} s")


def plain(target, inputs: int, seed: int) -> int:
    """Run so many mutated inputs; returns how many broke the target."""
    chance, broken = random.Random(seed), 0
    signal.signal(signal.SIGALRM, _alarm)
    for _ in range(inputs):
        data = mutated(target.seeds, chance, MOST_BYTES)
        signal.setitimer(signal.ITIMER_REAL, HANG_S)
        try:
            target.run(data)
        except BaseException as error:  # whatever it is, it is a find
            if isinstance(error, KeyboardInterrupt):
                raise
            broken += 1
            if broken <= 10:
                path = keep(target.name, data)
                sys.stdout.write(f"{target.name}: {type(error).__name__}: {str(error)[:200]} in {path}\n")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    return broken


def guided(target, inputs: int, seed: int, folder: Path) -> tuple[int, int]:
    """Let atheris run so many; returns how many it ran and how many broke the target (it stops at the first)."""
    found, finds, dictionary = folder / "found", folder / "finds", folder / "dictionary"
    for path in (found, finds):
        path.mkdir()
    dictionary.write_text("".join(f'"{_quoted(token)}"\n' for token in TOKENS if len(token) <= 64), "ascii")
    for number, data in enumerate([*target.seeds, *kept(target.name), *interesting(target.name)]):
        (found / str(number)).write_bytes(data[:MOST_BYTES])
    flags = [f"-runs={inputs}", f"-seed={seed}", f"-timeout={HANG_S}", f"-max_len={MOST_BYTES}", f"-dict={dictionary}"]
    flags += [f"-artifact_prefix={finds}/", "-print_final_stats=1", "-rss_limit_mb=4096", str(found)]
    output = _atheris(target.name, flags, folder)
    ran = int((re.findall(r"stat::number_of_executed_units: (\d+)", output) or ["0"])[-1])
    broken = [keep(target.name, path.read_bytes()) for path in finds.iterdir()]
    if broken or not ran:
        sys.stdout.write(f"{target.name}: {', '.join(map(str, broken)) or 'atheris broke off'}\n{output[-3000:]}\n")
    smaller = folder / "smaller"
    smaller.mkdir()
    _atheris(target.name, ["-merge=1", f"-max_len={MOST_BYTES}", str(smaller), str(found)], folder)
    keep_interesting(target.name, [path.read_bytes() for path in smaller.iterdir()])
    return ran, len(broken) + (not ran)


def _quoted(token: bytes) -> str:
    return "".join(chr(byte) if byte < 128 and chr(byte).isalnum() else f"\\x{byte:02x}" for byte in token)


def _atheris(name: str, flags: list[str], folder: Path) -> str:
    command = [sys.executable, str(Path(__file__).with_name("guided.py")), name, *flags]
    done = subprocess.run(
        command,
        env=os.environ | {"TMPDIR": str(folder)},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    return done.stdout + done.stderr


def main() -> int:
    """Fuzz, and print one line a target and a sum."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--target", default="", help="one of them only")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--plain", action="store_true", help="random mutations, without atheris")
    args = parser.parse_args()

    from targets import TARGETS

    chosen = [kind for kind in TARGETS if args.target in {"", kind.name}]
    shares = sum(kind.share for kind in chosen)
    all_inputs = all_broken = 0
    for kind in chosen:
        inputs, started_s = args.inputs * kind.share // shares, time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            own = Path(folder) / "target"
            own.mkdir()
            target = kind(own)
            if args.plain:
                broken = plain(target, inputs, args.seed)
            else:
                inputs, broken = guided(target, inputs, args.seed, Path(folder))
        took_s = time.monotonic() - started_s
        sys.stdout.write(f"{kind.name:10} {inputs:8} inputs in {took_s:6.1f} s, {broken} broken\n")
        sys.stdout.flush()
        all_inputs, all_broken = all_inputs + inputs, all_broken + broken
    sys.stdout.write(f"{'all':10} {all_inputs:8} inputs, {all_broken} broken\n")
    return 1 if all_broken else 0


if __name__ == "__main__":
    sys.exit(main())
