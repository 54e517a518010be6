"""Answer a question with the best docstrings of Python's standard library, through a running server.

    make serve                                            # in another terminal
    python examples/search_docstrings.py "parse command line arguments"

Needs nothing but Python and numpy; the vectors are kept in a file, so only the first question embeds everything.
"""

from __future__ import annotations

import argparse
import ast
import base64
import hashlib
import json
import sys
import sysconfig
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import NamedTuple

import numpy as np

BATCH = 128
SKIPPED_FOLDERS = {"site-packages", "test", "tests", "idlelib", "lib2to3", "turtledemo", "__pycache__"}


class Docstring(NamedTuple):
    """A docstring and what it belongs to."""

    name: str
    text: str


def collect(library: Path) -> list[Docstring]:
    """Docstrings of modules, classes and functions, found by parsing: nothing is imported or run."""
    found: dict[str, Docstring] = {}
    for path in sorted(library.rglob("*.py")):
        relative = path.relative_to(library)
        if SKIPPED_FOLDERS & set(relative.parts):
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except SyntaxError:
            continue  # a few files of the library are broken on purpose, for its own tests
        module = ".".join(relative.with_suffix("").parts).removesuffix(".__init__")
        for name, text in _docstrings(tree, module):
            found.setdefault(text, Docstring(name, text))
    return list(found.values())


def _docstrings(node: ast.AST, name: str) -> list[tuple[str, str]]:
    found = []
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        text = ast.get_docstring(node)
        if text and len(text) > 20:
            found.append((name, f"{name}: {text}"))
        for child in node.body:
            child_name = getattr(child, "name", None)
            if child_name is not None:
                found.extend(_docstrings(child, f"{name}.{child_name}"))
    return found


def embed(url: str, texts: list[str], *, progress: bool = False) -> np.ndarray:
    """Vectors `[n, dim]` from the server's OpenAI route."""
    parts = []
    for start in range(0, len(texts), BATCH):
        body = json.dumps({"input": texts[start : start + BATCH], "encoding_format": "base64"}).encode()
        request = urllib.request.Request(f"{url}/v1/embeddings", body, {"content-type": "application/json"})
        with urllib.request.urlopen(request) as response:
            data = json.load(response)["data"]
        parts.append(np.stack([np.frombuffer(base64.b64decode(item["embedding"]), "<f4") for item in data]))
        if progress:
            _draw_progress(min(start + BATCH, len(texts)), len(texts))
    return np.concatenate(parts)


def _draw_progress(done: int, total: int) -> None:
    filled = 40 * done // total
    end = "\n" if done == total else ""
    print(f"\r[{'#' * filled}{'.' * (40 - filled)}] {done}/{total} docstrings", end=end, file=sys.stderr, flush=True)


def library_vectors(url: str, docstrings: list[Docstring]) -> np.ndarray:
    """Vectors of all docstrings; kept in a file between questions."""
    digest = hashlib.sha256("\0".join(item.text for item in docstrings).encode()).hexdigest()[:16]
    kept = Path(tempfile.gettempdir()) / f"docstring-vectors-{digest}.npy"
    if kept.exists():
        vectors: np.ndarray = np.load(kept)
        if len(vectors) == len(docstrings):
            return vectors
    vectors = embed(url, [item.text for item in docstrings], progress=True)
    np.save(kept, vectors)
    return vectors


def search(
    url: str, question: str, docstrings: list[Docstring], vectors: np.ndarray, top: int = 5
) -> list[tuple[float, Docstring]]:
    """The best docstrings with their cosine similarity, best first."""
    scores = vectors @ embed(url, [question])[0]
    return [(float(scores[index]), docstrings[index]) for index in np.argsort(-scores)[:top]]


def main() -> None:
    """Read the question from the command line."""
    parser = argparse.ArgumentParser(description="Search the docstrings of Python's standard library.")
    parser.add_argument("question", help='such as "parse command line arguments"')
    parser.add_argument("--url", default="http://localhost:7997", help="where the server listens")
    parser.add_argument("--limit", type=int, help="use only so many docstrings")
    arguments = parser.parse_args()
    docstrings = collect(Path(sysconfig.get_path("stdlib")))[: arguments.limit]
    try:
        vectors = library_vectors(arguments.url, docstrings)
        best = search(arguments.url, arguments.question, docstrings, vectors)
    except urllib.error.HTTPError as error:
        sys.exit(f"The server answered {error.code}: {error.read().decode(errors='replace')}")
    except urllib.error.URLError as error:
        sys.exit(f"No server at {arguments.url} ({error.reason}). Start one with `make serve`, or name it with --url.")
    for score, item in best:
        first_line = item.text.partition(": ")[2].strip().partition("\n")[0]
        print(f"{score:.3f}  {item.name}\n       {first_line[:100]}")


if __name__ == "__main__":
    main()
