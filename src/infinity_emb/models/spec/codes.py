"""Reads sparse encoders that code a dense vector (SparseAutoEncoder, also known as CSR): Wen et al. 2025."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from infinity_emb.errors import CheckpointError
from infinity_emb.models.spec.family import read_prompts
from infinity_emb.models.spec.files import join
from infinity_emb.models.spec.layer_mean import first_of
from infinity_emb.models.spec.model import Activation
from infinity_emb.models.spec.modules import FILE as MODULES_FILE
from infinity_emb.models.spec.modules import read_chain
from infinity_emb.models.spec.parts import make_spec
from infinity_emb.models.spec.scorer import Scorer
from infinity_emb.models.spec.weights import SINGLE, check_tensor, find_module_weights
from infinity_emb.types import PoolingMethod, Task

if TYPE_CHECKING:
    from pathlib import Path

    from infinity_emb.models.spec.files import Repository
    from infinity_emb.models.spec.model import ModelSpec
    from infinity_emb.models.spec.parts import Parts

AUTO_ENCODER = "SparseAutoEncoder"
DEFAULT_CODES, DEFAULT_KEPT = 512, 8


@dataclass(frozen=True, slots=True)
class CodesSpec:
    """`relu(top_k((x - pre_bias) @ W.T + latent_bias))` of a dense vector x.

    Attributes:
        inputs: Length of the dense vector.
        kept: Largest numbers that are kept; the others are zero.
        standardized: The dense vector is brought to mean 0 and deviation 1 first.
        weights: File with `encoder.weight` `[codes, inputs]`, `pre_bias` and `latent_bias`.
    """

    inputs: int
    kept: int
    standardized: bool
    weights: Path


def has_codes(parts: Parts) -> bool:
    """Whether it ends in an auto-encoder."""
    return any(entry.kind == AUTO_ENCODER for entry in parts.entries or ())


def read_codes(parts: Parts) -> tuple[ModelSpec, CodesSpec]:
    """An embedder and the auto-encoder behind it; `dim` is the number of codes.

    Raises:
        CheckpointError: Other modules around it, or weights that do not fit.
    """
    entries = parts.entries or ()
    kinds = [entry.kind for entry in entries]
    if kinds.index(AUTO_ENCODER) != len(kinds) - 1:
        raise CheckpointError(
            f"{MODULES_FILE}: a sparse encoder of the modules {', '.join(kinds)} is not supported. Supported: the "
            f"modules of an embedder, then {AUTO_ENCODER}.",
            param=MODULES_FILE,
        )
    chain = read_chain(parts.repository, entries[:-1], first_of(parts.transformer), PoolingMethod.AUTO)
    codes, count = _read_codes(parts.repository, entries[-1].folder, chain.vector_width)
    kept = parts.saved.whole("max_active_dims")
    if kept is not None:  # of the whole model; it wins
        codes = replace(codes, kept=kept)
    if codes.kept > count:
        raise CheckpointError(
            f"{entries[-1].folder}/config.json: k: {codes.kept} is more than the {count} codes there are.",
            param=f"{entries[-1].folder}/config.json:k",
        )
    scorer = Scorer(Task.SPARSE, (), Activation.IDENTITY)
    spec = make_spec(parts, scorer, replace(chain, vector_width=count), read_prompts(parts.saved))
    return spec, codes


def _read_codes(repository: Repository, folder: str, width: int) -> tuple[CodesSpec, int]:
    config = repository.config(join(folder, "config.json"), required=True)
    inputs, count = config.needed_whole("input_dim"), config.whole("hidden_dim") or DEFAULT_CODES
    if inputs != width:
        raise config.error("input_dim", f"{inputs} does not fit its input of width {width}.")
    weights, shown = find_module_weights(repository, folder), join(folder, SINGLE)
    for name, shape in (("encoder.weight", (count, inputs)), ("pre_bias", (inputs,)), ("latent_bias", (count,))):
        check_tensor(weights, shown, name, shape)
    kept = config.whole("k") or DEFAULT_KEPT
    return CodesSpec(inputs, kept, config.flag("normalize", default=False), weights), count
