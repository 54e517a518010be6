"""Adds the modules that change token states, and come before pooling, to a chain."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from infinity_emb.models.spec.convolution import read_convolution
from infinity_emb.models.spec.files import join
from infinity_emb.models.spec.layer_mean import SWITCH, read_layer_mean
from infinity_emb.models.spec.recurrent import read_recurrent
from infinity_emb.models.spec.token_weights import TokenWeightsSpec, read_token_weights, weighed

if TYPE_CHECKING:
    from infinity_emb.models.spec.chain import Chain
    from infinity_emb.models.spec.files import ConfigFile, Repository
    from infinity_emb.models.spec.model import PoolingSpec

LAYER_MEAN, TOKEN_WEIGHTS, CONVOLUTION, RECURRENT = "WeightedLayerPooling", "WordWeights", "CNN", "LSTM"
# Where a module's configuration is not in config.json.
_FILES = {CONVOLUTION: "cnn_config.json", RECURRENT: "lstm_config.json"}


def add_token_module(repository: Repository, chain: Chain, kind: str, folder: str) -> Chain:
    """Read one of them.

    Raises:
        CheckpointError: Its configuration or weights are wrong, or it does not follow what is there.
    """
    config = repository.config(join(folder, _FILES.get(kind, "config.json")), required=not chain.vector_width)
    if chain.vector_width:
        raise config.error("", f"{kind} acts on token states, so it must come before Pooling.")
    if kind == LAYER_MEAN:
        return _add_layer_mean(repository, chain, folder, config)
    if kind == TOKEN_WEIGHTS:
        return replace(chain, modules=(*chain.modules, _read_token_weights(chain, config)))
    if kind == CONVOLUTION:
        convolution = read_convolution(repository, folder, config, chain.token_width)
        return replace(chain, token_width=convolution.out_features, modules=(*chain.modules, convolution))
    if not chain.worded:
        raise config.error("", f"{RECURRENT} behind a Transformer is not supported. Supported: behind WordEmbeddings.")
    recurrent = read_recurrent(repository, folder, config, chain.token_width)
    return replace(chain, token_width=recurrent.out_features, modules=(*chain.modules, recurrent))


def weighed_pooling(chain: Chain, config: ConfigFile, pooling: PoolingSpec) -> PoolingSpec:
    """The pooling, of weighed states if the chain weighs them.

    Raises:
        CheckpointError: It leaves the prompt out, of which the weights know nothing.
    """
    found = next((module for module in chain.modules if isinstance(module, TokenWeightsSpec)), None)
    if found is None:
        return pooling
    if not pooling.include_prompt and not chain.worded:
        raise config.error("include_prompt", f"false behind {TOKEN_WEIGHTS} is not supported. Supported: true.")
    return weighed(pooling, found)


def _read_token_weights(chain: Chain, config: ConfigFile) -> TokenWeightsSpec:
    if any(isinstance(module, TokenWeightsSpec) for module in chain.modules):
        raise config.error("", f"a second {TOKEN_WEIGHTS} is not supported.")
    return read_token_weights(config, chain.rows)


def _add_layer_mean(repository: Repository, chain: Chain, folder: str, config: ConfigFile) -> Chain:
    if chain.modules:
        raise config.error("", f"{LAYER_MEAN} must come directly behind the Transformer.")
    if not chain.layered:
        note = f"{LAYER_MEAN} does nothing, as in sentence-transformers, since config.json does not say {SWITCH}"
        return replace(chain, notes=(*chain.notes, note))
    return replace(chain, modules=(read_layer_mean(repository, folder, config, chain.token_width),))
