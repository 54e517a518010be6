"""Every example of the README is run as it stands there, against a server on another port."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DEFAULT_URL = "http://localhost:7997"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_readme_is_short() -> None:
    assert len(README.splitlines()) < 200


def test_every_link_to_a_file_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


def test_curl_example_answers_with_384_numbers(documented_server) -> None:
    (command,) = [block for block in blocks("sh") if block.startswith("curl")]
    answer = subprocess.run(
        ["bash", "-c", command.replace(DEFAULT_URL, documented_server.url)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert len(json.loads(answer.stdout)["data"][0]["embedding"]) == 384


def test_openai_example_prints_what_it_says(documented_server, capsys) -> None:
    (code,) = [block for block in blocks("python") if "from openai" in block]
    exec(compile(code.replace(DEFAULT_URL, documented_server.url), "README.md", "exec"), {})
    assert capsys.readouterr().out == "2 vectors of 384 numbers\n"


def test_pipeline_example_runs_in_a_plain_script(minilm_folder) -> None:
    (code,) = [block for block in blocks("python") if "InfinityPipeline" in block]
    script = code.replace('"sentence-transformers/all-MiniLM-L6-v2"', repr(str(minilm_folder)))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    shape, similarity = done.stdout.rsplit(" ", 1)
    assert shape == "(2, 384)"
    assert 0.2 < float(similarity) < 0.9
