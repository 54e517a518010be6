"""`import infinity_emb` and `infinity_emb --help` load no web, model or numeric library."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = (
    "fastapi",
    "httpx",
    "huggingface_hub",
    "msgspec",
    "numpy",
    "onnx",
    "onnxruntime",
    "openvino",
    "orjson",
    "prometheus_client",
    "tokenizers",
    "torch",
    "transformers",
    "uvicorn",
    "uvloop",
)
LIST_LOADED = "import json, sys; print(json.dumps(sorted(name for name in sys.modules if '.' not in name)))"

SCRIPTS = {
    "import": "import infinity_emb",
    "public types": "from infinity_emb.primitives import Device, EmbeddingDtype; from infinity_emb import EngineArgs",
    "--help": "from infinity_emb.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass",
    "v2 --help": "from infinity_emb.cli import main\ntry: main(['v2', '--help'])\nexcept SystemExit: pass",
    "--version": "from infinity_emb.cli import main\ntry: main(['--version'])\nexcept SystemExit: pass",
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_nothing_heavy_is_loaded(script):
    done = subprocess.run(
        [sys.executable, "-c", f"{script}\n{LIST_LOADED}"], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert not loaded & set(HEAVY)


def test_the_list_would_notice_a_heavy_library():
    done = subprocess.run(
        [sys.executable, "-c", f"import numpy\n{LIST_LOADED}"], capture_output=True, text=True, timeout=60, check=True
    )
    assert "numpy" in json.loads(done.stdout)
