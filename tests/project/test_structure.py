"""The shape of the code: layers, small files, names, docstrings, the list of public names."""

from __future__ import annotations

import ast
import importlib
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "infinity_emb"
MODULES = sorted(path for path in PACKAGE.rglob("*.py"))
LINES_MAX = 400
LINES_MEDIAN = 100
STATEMENTS_MAX = 40
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "manager", "handler", "common", "misc"}


def name_of(path):
    return str(path.relative_to(PACKAGE))


def lines_of(path):
    return len(path.read_text("utf-8").splitlines())


def test_imports_run_one_way():
    command = Path(sys.executable).with_name("lint-imports")
    if not command.exists():
        pytest.skip("import-linter is not installed (dependency group `check`)")
    done = subprocess.run([command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_file_is_long():
    assert not {name_of(path): lines_of(path) for path in MODULES if lines_of(path) > LINES_MAX}


def test_the_median_file_is_short(record_property):
    median = statistics.median(map(lines_of, MODULES))
    record_property("median_lines", median)
    assert median < LINES_MEDIAN


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_opens_with_a_sentence_on_what_it_is_for(path):
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8")))
    assert docstring
    assert docstring.splitlines()[0].rstrip()[-1] in ".:!?"


def test_no_module_is_named_after_nothing():
    assert not [name_of(path) for path in PACKAGE.rglob("*") if set(re.split(r"[_.]", path.name)) & FORBIDDEN_NAMES]


def test_no_class_is_named_after_nothing():
    found = [
        f"{name_of(path)}:{node.lineno} {node.name}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef) and re.search(r"(Utils?|Helpers?|Manager|Handler|Common)$", node.name)
    ]
    assert not found


def test_functions_have_few_statements():
    found = []
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                statements = sum(isinstance(inner, ast.stmt) for inner in ast.walk(node)) - 1
                if statements >= STATEMENTS_MAX:
                    found.append(f"{name_of(path)}:{node.lineno} {node.name} {statements}")
    assert not found


def test_a_lint_exception_says_why():
    found = [
        f"{name_of(path)}:{number}"
        for path in MODULES
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if re.search(r"# (noqa|type: ignore)", line)
        and not re.search(r"# noqa: [A-Z0-9, ]+ - \w+|type: ignore\[", line)
    ]
    assert not found


@pytest.mark.parametrize("module", ["infinity_emb", "infinity_emb.primitives"])
def test_every_public_name_can_be_imported_and_says_what_it_is(module):
    found = importlib.import_module(module)
    assert sorted(found.__all__) == sorted(set(found.__all__))
    for name in found.__all__:
        public = getattr(found, name)
        if name.startswith("__") or not (isinstance(public, type) or callable(public)):
            continue
        assert public.__doc__, name
        if isinstance(public, type):
            members = [member for member in vars(public) if not member.startswith("_")]
            for member in members:
                value = vars(public)[member]
                if callable(value) or isinstance(value, (property, classmethod, staticmethod)):
                    assert value.__doc__ or getattr(value, "__func__", value).__doc__, f"{name}.{member}"


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").exists()
