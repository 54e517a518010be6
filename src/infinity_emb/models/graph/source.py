"""Where a checkpoint's graph comes from: a builder, the repository's own ONNX file, or an export through torch."""

from __future__ import annotations

import importlib.util
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from infinity_emb.errors import CheckpointError, NotComputedError
from infinity_emb.models.graph.build import build_graph
from infinity_emb.models.graph.export import export_file
from infinity_emb.models.graph.foreign import adapt_file, open_file
from infinity_emb.models.graph.registry import has_builder, supported_model_types
from infinity_emb.models.graph.unpickled import with_safe_parts, with_safetensors
from infinity_emb.models.onnx_files import OWN_FILES, folders_of, own_files
from infinity_emb.models.spec.model import DenseSpec, LayerNormSpec, NormalizeSpec, PoolingSpec
from infinity_emb.models.spec.rotary import depends_on_length

if TYPE_CHECKING:
    from infinity_emb.models.graph.graph import Graph
    from infinity_emb.models.spec.model import ModelSpec

_log = logging.getLogger("infinity_emb")

# Fields of the specification whose graphs only our own builders write.
_OWN_KINDS = {
    "judge": "reranks as a language model",
    "sparse": "is a sparse encoder",
    "media": "reads media beside text",
    "adapters": "has adapters for tasks",
    "route": "has several routes",
}


def obtain_graph(
    spec: ModelSpec, *, onnx_file: str | None = None, cache_folder: Path | None = None, export: bool = True
) -> tuple[Graph, str]:
    """The graph of a checkpoint and where it came from, in words.

    In this order: the file that was asked for; our own builder, if it knows the architecture and computes all that
    config.json asks for; the repository's float32 ONNX file; an export through torch, if that is installed.

    Args:
        spec: The checkpoint.
        onnx_file: A file to use, quantised or not: a path inside the repository, or an absolute one.
        export: Make one through torch, if there is no other.
        cache_folder: Where an exported file is kept; None is the cache folder of the package.

    Raises:
        NotComputedError: There is none.
        CheckpointError: It does not fit the checkpoint.
    """
    spec = with_safe_parts(spec, cache_folder)
    if onnx_file is not None or not (has_builder(spec.model_type) and _readable(spec)):
        _check_foreign(spec)
    if onnx_file is not None:
        path = _asked_for(spec, onnx_file)
        _log.info("using the ONNX file %s", path)
        return adapt_file(spec, path, open_file(path)), onnx_file
    if has_builder(spec.model_type) and _readable(spec):
        try:
            return build_graph(with_safetensors(spec, cache_folder)), "built from config"
        except NotComputedError as error:
            return _instead(spec, cache_folder, error, export=export)
    found = _other_way(spec, cache_folder, export=export)
    if found is None:
        raise _no_graph(spec)
    return found


def _instead(
    spec: ModelSpec, cache_folder: Path | None, refusal: NotComputedError, *, export: bool
) -> tuple[Graph, str]:
    """Another way for what the builder refuses, which is said; `refusal` itself where there is none."""
    if _only_built(spec):
        raise refusal
    found = _other_way(spec, cache_folder, export=export)
    if found is None:
        raise refusal
    _log.warning("%s: %s Computed by the graph %s instead.", spec.checkpoint.model_id, refusal, found[1])
    return found[0], f"{found[1]}, because {refusal.param} is not computed otherwise"


def _other_way(spec: ModelSpec, cache_folder: Path | None, *, export: bool) -> tuple[Graph, str] | None:
    """The repository's own file or an export; None if neither can be had."""
    for path in own_files(spec):
        model = open_file(path)
        if model.is_float32:
            _log.info("using the repository's own ONNX file %s", path)
            return adapt_file(spec, path, model), path.relative_to(spec.checkpoint.path).as_posix()
        _log.warning("%s is not a float32 graph; name it with --onnx-file to use it all the same", path)
    by_length = depends_on_length(spec)
    if by_length:
        _log.warning(
            "%s is not exported: its rotary scaling %r depends on the length of a text, which an export loses",
            spec.checkpoint.model_id,
            by_length,
        )
    if export and not by_length and spec.weights and importlib.util.find_spec("torch") is not None:
        path = export_file(spec, cache_folder)
        return adapt_file(spec, path, open_file(path)), "exported by torch"
    return None


def _check_foreign(spec: ModelSpec) -> None:
    """Refuse what only our own builders write: heads that speak in words, hidden fillings, several modalities."""
    kind = _only_built(spec)
    if kind:
        raise CheckpointError(
            f"{spec.checkpoint.model_id} {kind}; that needs a "
            f"graph built here, from safetensors of one of {', '.join(supported_model_types())}, or --engine torch. "
            "An ONNX file cannot be used for it.",
            param="config.json: model_type",
        )


def _only_built(spec: ModelSpec) -> str:
    """What of a checkpoint only our own builders write, in words; empty if there is nothing of the kind."""
    expansion = spec.late.expansion if spec.late else None
    known = (PoolingSpec, DenseSpec, LayerNormSpec, NormalizeSpec)
    other = [module for module in spec.modules if not isinstance(module, known)]
    if other or spec.words is not None:
        return "has modules that act on its token states before pooling"
    hides = "fills queries up with tokens that are not seen" if expansion is not None and not expansion.attend else ""
    return next((words for found, words in _OWN_KINDS.items() if getattr(spec, found)), hides)


def _readable(spec: ModelSpec) -> bool:
    return bool(spec.weights) or spec.words is not None


def _asked_for(spec: ModelSpec, name: str) -> Path:
    path = Path(name)
    if path.is_absolute() and path.is_file():
        return path
    if not path.is_absolute() and ".." not in path.parts:
        for folder in folders_of(spec):
            if (folder / path).is_file():
                return folder / path
    root = spec.checkpoint.path
    there = sorted(found.relative_to(root).as_posix() for found in root.rglob("*.onnx"))
    raise CheckpointError(
        f"--onnx-file {name} does not exist in {root}. ONNX files there: {', '.join(there) or 'none'}.", param=name
    )


def _no_graph(spec: ModelSpec) -> NotComputedError:
    return NotComputedError(
        f"{spec.checkpoint.model_id} has the architecture {spec.model_type!r}, for which there is no graph builder "
        f"(there is for {', '.join(supported_model_types())}), and no float32 ONNX file ({' or '.join(OWN_FILES)}). "
        'Install torch, through which the graph is then exported once: pip install "infinity_emb[torch]"; or use '
        "--engine torch; or put an ONNX file into the repository's folder and name it with --onnx-file.",
        param="config.json: model_type",
    )
