"""A server whose vectors are wrong does not serve them, and one with the wrong model for an index does not start."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tiny import tiny_bert

PROGRAM = str(Path(__file__).parent / "mispooled.py")


def refused(folder, cache, *program, options=()):
    """What the command says before it ends by itself."""
    command = [sys.executable, *program, "v2", "--model-id", str(folder), "--engine", "openvino", "--port", "0"]
    command += ["--host", "127.0.0.1", "--cache-folder", str(cache), "--threads", "1", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.e2e
def test_a_graph_that_pools_wrongly_is_refused_with_the_true_figures(tmp_path):
    said = refused(tiny_bert(tmp_path / "model"), tmp_path / "cache", PROGRAM)
    assert "gives wrong results here: in float32" in said
    assert float(re.search(r"min cosine (-?[\d.]+)", said).group(1)) < 0.99
    assert "--fidelity" in said
    assert "Traceback" not in said


@pytest.mark.e2e
def test_an_unexpected_fingerprint_is_refused_with_both_named(tmp_path):
    expected = ("--expect-fingerprint", "0123456789abcdef")
    said = refused(tiny_bert(tmp_path / "model"), tmp_path / "cache", "-m", "infinity_emb", options=expected)
    assert re.search(r"has the fingerprint [0-9a-f]{16}, but --expect-fingerprint asks for 0123456789abcdef", said)
