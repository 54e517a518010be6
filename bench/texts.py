"""Real text for the runs: docstrings of the standard library as documents, first sentences of others as queries.

The mix is lognormal, as lengths of real corpora are: documents about 96 tokens on average (a quarter under 45, one in
twenty over 230), queries about 16. Lengths are estimated without a tokenizer (`approximate_tokens`), so that the sample
depends on the Python version and the seed alone; the report states what the model's tokenizer counted.
"""

from __future__ import annotations

import ast
import bisect
import contextlib
import inspect
import math
import os
import random
import re
import sysconfig
from dataclasses import dataclass
from pathlib import Path

_WORD = re.compile(r"\w+|[^\w\s]")
_SENTENCE = re.compile(r"^(.{12,}?[.?!])(?:\s|$)")
_SKIPPED = {"test", "tests", "idlelib", "lib2to3", "site-packages", "turtledemo", "ensurepip", "__pycache__"}
_TOKENS_PER_WORD = 1.22
_DOCUMENTS = (96, 0.75)  # mean tokens, sigma of the logarithm
_QUERIES = (16, 0.35)


@dataclass(frozen=True)
class Texts:
    """What every contender gets, in this order.

    Attributes:
        documents: No two alike.
        queries: No two alike.
    """

    documents: list[str]
    queries: list[str]


def sample(documents: int = 2048, queries: int = 2048, seed: int = 20) -> Texts:
    """Draw the texts; the same ones for the same Python version."""
    everything = sorted({" ".join(inspect.cleandoc(text).split()) for text in _docstrings()})
    sentences = {match.group(1) for text in everything if (match := _SENTENCE.match(text))}
    chance = random.Random(seed)
    return Texts(
        documents=_draw(everything, documents, _DOCUMENTS, chance),
        queries=_draw(sorted(sentences), queries, _QUERIES, chance),
    )


def approximate_tokens(text: str) -> float:
    """What a WordPiece tokenizer would make of a text, within a few per cent on average."""
    return _TOKENS_PER_WORD * len(_WORD.findall(text)) + 2


def _docstrings() -> list[str]:
    found = []
    root = Path(sysconfig.get_paths()["stdlib"])
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(set(folders) - _SKIPPED)
        for name in sorted(files):
            if name.endswith(".py"):
                with contextlib.suppress(SyntaxError, ValueError):  # a template, or a file for another version
                    found += _of(ast.parse(Path(folder, name).read_bytes()))
    return found


def _of(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Docstrings of a module, its classes and their functions (not of functions inside functions)."""
    text = ast.get_docstring(node, clean=False)
    found = [text] if text and len(text) >= 12 else []
    if isinstance(node, (ast.Module, ast.ClassDef)):
        for child in node.body:
            if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                found += _of(child)
    return found


def _draw(texts: list[str], count: int, mix: tuple[int, float], chance: random.Random) -> list[str]:
    """For each length drawn from the mix, the text nearest to it that is not taken yet."""
    mean, sigma = mix
    mu = _log_mean(mean, sigma)
    left = sorted((approximate_tokens(text), text) for text in texts)
    drawn = []
    for _ in range(min(count, len(left))):
        wanted = chance.lognormvariate(mu, sigma)
        place = bisect.bisect_left(left, (wanted, ""))
        drawn.append(left.pop(min(place, len(left) - 1))[1])
    return drawn


def _log_mean(mean: float, sigma: float) -> float:
    return math.log(mean) - sigma**2 / 2
