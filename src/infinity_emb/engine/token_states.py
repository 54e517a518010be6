"""Token states of an embedder: a second view of its checkpoint, loaded when first asked for.

The graph that embeds gives back pooled vectors only, which is what makes it fast. Whoever asks for a vector a token, or
for late chunking, pays for this view: its own compiled copy and its own worker.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import weakref
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING

from infinity_emb.engine.runtime import ModelRuntime
from infinity_emb.errors import NotReadyError
from infinity_emb.models.spec.convolution import ConvolutionSpec
from infinity_emb.models.spec.model import DenseSpec, PoolingSpec
from infinity_emb.models.spec.recurrent import RecurrentSpec
from infinity_emb.types import Task

if TYPE_CHECKING:
    from infinity_emb.config.engine_args import EngineArgs
    from infinity_emb.engine.loader import LoadedModel
    from infinity_emb.models.spec.model import ModelSpec

_WIDENING = (DenseSpec, ConvolutionSpec, RecurrentSpec)
_log = logging.getLogger("infinity_emb")


class TokenStates:
    """The view of one model; `runtime` loads it, `stop` gives it back.

    Args:
        args: Of the engine.
        model: Loaded.
    """

    def __init__(self, args: EngineArgs, model: LoadedModel) -> None:
        self._args = args
        self._model = model
        self._view = token_view(model.spec)
        self._turn = threading.Lock()
        self._runtime: ModelRuntime | None = None
        self._stopped = False

    async def runtime(self) -> ModelRuntime:
        """The running view, loaded by the first caller while the others wait.

        Raises:
            NotReadyError: The engine stopped.
            LoadError: It cannot be loaded.
        """
        if self._runtime is not None:
            return self._runtime
        return await asyncio.get_running_loop().run_in_executor(None, self._load)

    def stop(self, grace_s: float) -> None:
        """Answer what was accepted and give the memory back."""
        with self._turn:
            self._stopped = True
            runtime, self._runtime = self._runtime, None
        if runtime is not None:
            if runtime.stop(grace_s):
                for backend in runtime.backends:
                    backend.close()
            else:
                _log.error("the view of token states does not end; its memory is lost until the process ends")

    def _load(self) -> ModelRuntime:
        with self._turn:
            if self._stopped:
                raise NotReadyError("The engine stopped.", retry_after_s=5)
            if self._runtime is None:
                _log.info("loading %s once more, for vectors of single tokens", self._model.card.served_name)
                load = partial(self._model.renew, other=self._view)
                backends = [load(number) for number in range(len(self._model.backends))]
                args = self._args
                runtime = ModelRuntime(backends, args.batch_size, args.queue_size, args.max_waiting_tokens, renew=load)
                runtime.start()
                weakref.finalize(self, runtime.stop, 0.0)
                self._runtime = runtime
            return self._runtime


def token_view(spec: ModelSpec) -> ModelSpec:
    """An embedder up to its pooling, as sentence-transformers gives out `token_embeddings`."""
    modules = tuple(takewhile(lambda module: not isinstance(module, PoolingSpec), spec.modules))
    widths = [module.out_features for module in modules if isinstance(module, _WIDENING)]
    return replace(
        spec,
        task=Task.MULTI_VECTOR,
        modules=modules,
        dim=widths[-1] if widths else spec.hidden_size,
        truncate_dim=None,
        heads=None,
    )
