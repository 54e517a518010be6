"""Fuzz for as long as you like: `python tests/fuzz/run.py --inputs 1000000 [--target bodies] [--seed 7] [--atheris]`.

An input that breaks a target is kept in `corpus/<target>/` and is run by the tests from then on. With `--atheris` (Linux,
`pip install atheris`) inputs are guided by coverage, one target at a time.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

CORPUS = Path(__file__).parent / "corpus"
HANG_S = 5


class Hang(BaseException):
    """No `except Exception` catches it."""


def _alarm(*_: object) -> None:
    raise Hang(f"one input took more than {HANG_S} s")


def keep(name: str, data: bytes) -> Path:
    """Put an input into the corpus."""
    path = CORPUS / name / hashlib.sha256(data).hexdigest()[:16]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def fuzz(target, inputs: int, seed: int) -> int:
    """Run so many mutated inputs; returns how many broke the target."""
    from mutate import mutated

    chance, broken = random.Random(seed), 0
    signal.signal(signal.SIGALRM, _alarm)
    started_s = time.monotonic()
    for _ in range(inputs):
        data = mutated(target.seeds, chance)
        signal.setitimer(signal.ITIMER_REAL, HANG_S)
        try:
            target.run(data)
        except BaseException as error:  # whatever it is, it is a find
            if isinstance(error, KeyboardInterrupt):
                raise
            broken += 1
            if broken <= 10:
                sys.stdout.write(
                    f"{target.name}: {type(error).__name__}: {str(error)[:200]} in {keep(target.name, data)}\n"
                )
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    took_s = time.monotonic() - started_s
    sys.stdout.write(f"{target.name:10} {inputs:8} inputs in {took_s:6.1f} s, {broken} broken\n")
    return broken


def guided(target, inputs: int, seed: int) -> None:
    """The same with coverage; does not return."""
    import atheris

    with tempfile.TemporaryDirectory() as seeds:
        for number, data in enumerate(target.seeds):
            (Path(seeds) / str(number)).write_bytes(data)
        atheris.instrument_all()
        atheris.Setup([sys.argv[0], f"-runs={inputs}", f"-seed={seed}", f"-timeout={HANG_S}", seeds], target.run)
        atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--target", default="")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--atheris", action="store_true")
    args = parser.parse_args()

    from targets import TARGETS

    chosen = [kind for kind in TARGETS if args.target in {"", kind.name}]
    shares = sum(kind.share for kind in chosen)
    broken = 0
    for kind in chosen:
        with tempfile.TemporaryDirectory() as folder:
            target = kind(Path(folder))
            if args.atheris:
                guided(target, args.inputs, args.seed)
            broken += fuzz(target, args.inputs * kind.share // shares, args.seed)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
