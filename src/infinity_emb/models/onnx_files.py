"""ONNX files that a repository brings along."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from infinity_emb.models.spec.model import ModelSpec

# Looked for in this order, first beside config.json, then in the repository's root. Files of any other name
# (quantised, optimised for one machine, left by another program) are used only when they are asked for.
OWN_FILES = ("onnx/model.onnx", "model.onnx")


def folders_of(spec: ModelSpec) -> tuple[Path, ...]:
    """Where a checkpoint's files are looked for."""
    return tuple(dict.fromkeys((spec.folder, spec.checkpoint.path)))


def own_files(spec: ModelSpec) -> list[Path]:
    """Files that are used without being asked for, the first one first."""
    return [place for folder in folders_of(spec) for name in OWN_FILES if (place := folder / name).is_file()]


def with_data(places: Iterable[Path]) -> tuple[Path, ...]:
    """The first of these files there is, and those beside it that hold its weights (`model.onnx_data` and the like)."""
    for place in places:
        if place.is_file():
            return tuple(sorted(file for file in place.parent.iterdir() if file.name.startswith(place.name)))
    return ()
