"""The bound is proven by the number of arenas that many threads get in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, sys, threading
from infinity_emb.server.allocator import bound_arenas
print(bound_arenas())
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
met = threading.Barrier(16)
def hold():
    met.wait()
    libc.malloc(100)
    met.wait()
threads = [threading.Thread(target=hold) for _ in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
sys.stdout.flush()
libc.malloc_stats()
"""


def arenas(**variables: str) -> tuple[str, int]:
    """What `bound_arenas` returned and how many arenas 16 threads then had."""
    inherited = {
        name: value for name, value in os.environ.items() if name not in {"MALLOC_ARENA_MAX", "GLIBC_TUNABLES"}
    }
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=inherited | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return run.stdout.strip(), run.stderr.count("Arena ")


@pytest.mark.skipif(sys.platform != "linux", reason="glibc only")
def test_threads_share_as_many_arenas_as_there_are_cores():
    held, count = arenas()
    assert held == "True"
    assert count <= len(os.sched_getaffinity(0))


@pytest.mark.skipif(sys.platform != "linux", reason="glibc only")
def test_the_operators_choice_is_left_alone():
    assert arenas(MALLOC_ARENA_MAX="5") == ("False", 5)
