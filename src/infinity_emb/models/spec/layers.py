"""Reads the small modules that may follow pooling: Dense, LayerNorm, Normalize."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.models.spec.activation import read_activation
from infinity_emb.models.spec.files import join
from infinity_emb.models.spec.model import Activation, DenseSpec, LayerNormSpec, NormalizeSpec
from infinity_emb.models.spec.weights import SINGLE, check_tensor, find_module_weights

if TYPE_CHECKING:
    from infinity_emb.models.spec.files import ConfigFile, Repository

VECTOR, TOKENS = "sentence_embedding", "token_embeddings"


def acts_on(config: ConfigFile) -> str:
    """Which features a module reads and writes: `sentence_embedding` or `token_embeddings`.

    Raises:
        CheckpointError: Others, or an output other than the input.
    """
    source = config.choice("module_input_name", {VECTOR: VECTOR, TOKENS: TOKENS}, VECTOR)
    target = config.text("module_output_name") or source
    if target != source:
        raise config.error("module_output_name", f"{target!r} is not supported. Supported: the same as the input.")
    return source


def read_dense(repository: Repository, folder: str, config: ConfigFile, width: int) -> DenseSpec:
    """Read a Dense module; a missing `activation_function` is Tanh, an explicit null is none.

    Args:
        repository: Where the files are.
        folder: The module's folder.
        config: Its config.json.
        width: Width of what it reads.

    Raises:
        CheckpointError: Widths that do not fit, missing weights, an unknown activation.
    """
    inputs, outputs = config.needed_whole("in_features"), config.needed_whole("out_features")
    if inputs != width:
        raise config.error("in_features", f"{inputs} does not fit its input of width {width}.")
    bias = config.flag("bias", default=True)
    weights = find_module_weights(repository, folder)
    shown = join(folder, SINGLE)
    check_tensor(weights, shown, "linear.weight", (outputs, inputs))
    if bias:
        check_tensor(weights, shown, "linear.bias", (outputs,))
    residual = config.flag("use_residual", default=False)
    if residual and inputs != outputs:
        check_tensor(weights, shown, "residual.weight", (outputs, inputs))
    return DenseSpec(
        in_features=inputs,
        out_features=outputs,
        bias=bias,
        activation=_dense_activation(config),
        weights=weights,
        on_tokens=acts_on(config) == TOKENS,
        residual=residual,
    )


def read_layer_norm(repository: Repository, folder: str, config: ConfigFile, width: int) -> LayerNormSpec:
    """Read a LayerNorm module.

    Raises:
        CheckpointError: Another width than its input, or missing weights.
    """
    size = config.needed_whole("dimension")
    if size != width:
        raise config.error("dimension", f"{size} does not fit its input of width {width}.")
    weights = find_module_weights(repository, folder)
    for name in ("norm.weight", "norm.bias"):
        check_tensor(weights, join(folder, SINGLE), name, (size,))
    return LayerNormSpec(size, weights)


def read_normalize(config: ConfigFile) -> NormalizeSpec:
    """Read a Normalize module.

    Raises:
        CheckpointError: It acts on token states.
    """
    if acts_on(config) == TOKENS:
        raise config.error("module_input_name", f"normalised token states are not supported. Supported: {VECTOR!r}.")
    return NormalizeSpec()


def _dense_activation(config: ConfigFile) -> Activation:
    if "activation_function" in config.data and config.data["activation_function"] is None:
        return Activation.IDENTITY
    return read_activation(config, "activation_function") or Activation.TANH
