"""The faults that were reported in public about servers of this kind, by number: each has a test here, or a reason."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent

CASES = {
    1: "a bare string as input",
    2: "token ids as input",
    3: "lists of token ids with base64",
    4: "token ids outside the vocabulary",
    5: "base64 vectors",
    7: "an unknown encoding",
    8: "OpenAI's envelope and paths",
    9: "the list of models",
    10: "model names with slashes in paths",
    12: "a nested vector",
    13: "an empty list",
    14: "an empty list in process",
    15: "empty strings",
    18: "half characters and NUL",
    19: "more inputs than a batch holds",
    20: "large bodies",
    21: "a long text alone and in a list",
    22: "texts longer than the model reads",
    23: "which end is cut off",
    26: "truncation switched off",
    27: "positions that start behind the padding id",
    29: "long captions for CLIP",
    30: "pairs that are too long",
    33: "vectors at the wrong index",
    34: "vectors of other requests",
    35: "batch size changes vectors",
    36: "neighbours change vectors",
    39: "a cache that answers for something else",
    43: "order and number of reranked documents",
    44: "edge values of top_n",
    45: "sigmoid once",
    48: "a task the model was not made for",
    49: "the task of a folder",
    50: "documents as objects",
    51: "document: null",
    52: "no documents",
    53: "generative rerankers",
    56: "raw scores and several labels at once",
    57: "labels of the checkpoint",
    58: "classifying long texts",
    59: "NaN in answers",
    61: "vectors of zeros, and after a large request",
    62: "unit length",
    63: "pooling of the repository",
    65: "the last token beside padding",
    68: "prompts",
    69: "shorter vectors of unit length",
    70: "dimensions out of range",
    73: "int8 of a single text",
    75: "binary and ubinary",
    77: "padding that is attended to",
    78: "engines that disagree",
    80: "usage",
    82: "pictures of every mode",
    84: "broken pictures",
    86: "fetching addresses it should not",
    88: "data URIs",
    89: "media for a model that cannot read them",
    90: "one bad item among media",
    91: "vectors of pictures",
    92: "stereo sound",
    93: "sample rates",
    95: "formats of sound files",
    97: "an exception that hangs the server",
    100: "memory that grows",
    101: "one tokenizer in several threads",
    102: "clients that left",
    104: "more than the server can do",
    106: "health before start and after death",
    108: "no network",
    110: "starting and stopping in process",
    111: "results that JSON cannot hold",
    112: "which ONNX file",
    113: "acceleration that is not there",
    114: "options of several models",
}

WAITING: dict[int, str] = {}


def names_by_number() -> dict[int, list[str]]:
    """Number → names of its tests, read from the files of this folder."""
    found: dict[int, list[str]] = {}
    for file in sorted(FOLDER.glob("test_*.py")):
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_b"):
                number = node.name.removeprefix("test_b").partition("_")[0]
                found.setdefault(int(number), []).append(node.name)
    return found


@pytest.mark.parametrize("number", CASES)
def test_a_case_has_a_test_or_a_reason_why_not(number):
    assert (number in names_by_number()) != (number in WAITING), CASES[number]


def test_every_test_and_every_reason_belongs_to_a_listed_case():
    assert set(names_by_number()) | set(WAITING) <= set(CASES)
    assert len(CASES) == 75
