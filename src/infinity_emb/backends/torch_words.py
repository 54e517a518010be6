"""Hot path. The heads that `models.graph.words` writes as a graph, and token vectors, in float32 on torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from infinity_emb.backends.torch_heads import Modules, l2_norm
from infinity_emb.backends.torch_weights import read_weight

if TYPE_CHECKING:
    from collections.abc import Callable

    from infinity_emb.models.spec.codes import CodesSpec
    from infinity_emb.models.spec.judge import JudgeSpec
    from infinity_emb.models.spec.model import ModelSpec
    from infinity_emb.models.spec.sparse import SparseSpec
    from infinity_emb.models.spec.token_heads import HeadSpec, HeadsSpec

    Tensors: TypeAlias = "dict[str, Any]"

STANDARD_EPSILON = 1e-5  # fixed in the reference


class Answer:
    """The logit of yes behind each text's last token, less that of no.

    Args:
        torch: The module.
        judge: Which tokens answer.
        table: Weights of the words, `[vocabulary, hidden]`.
    """

    inputs = ("last_index",)

    def __init__(self, torch: Any, judge: JudgeSpec, table: Any) -> None:
        ids = [judge.true_id] if judge.false_id is None else [judge.true_id, judge.false_id]
        self._rows = table[ids].float()
        self._torch = torch

    def __call__(self, hidden: Any, arrays: Tensors) -> Tensors:
        """Token states `[slots, hidden]` → `logits` `[segments, 1]`."""
        logits = self._torch.nn.functional.linear(hidden[arrays["last_index"]].float(), self._rows)
        return {"logits": logits if logits.shape[1] == 1 else logits[:, :1] - logits[:, 1:]}


class Weights:
    """Weights of the vocabulary from the logits of a masked language model."""

    inputs = ("segment_ids",)

    def __init__(self, torch: Any, sparse: SparseSpec) -> None:
        self._torch, self._sparse = torch, sparse

    def __call__(self, logits: Any, arrays: Tensors) -> Tensors:
        """Logits `[rows, width, vocabulary]` → `sparse` `[rows, vocabulary]`."""
        value = logits.float().relu() * (arrays["segment_ids"] > 0)[..., None]
        value = value if self._sparse.total else value.amax(dim=1)
        for _ in range(2 if self._sparse.log_twice else 1):
            value = value.log1p()
        value = value.sum(dim=1) if self._sparse.total else value
        most = self._sparse.most
        return {"sparse": value if most is None else _keep_largest(self._torch, value, most)}


class Codes(Modules):
    """The codes of a dense vector, made by what `Modules` does."""

    def __init__(self, torch: Any, spec: ModelSpec, codes: CodesSpec, device: Any) -> None:
        super().__init__(torch, spec, device)
        self._codes = codes
        names = ("encoder.weight", "pre_bias", "latent_bias")
        self._weight, self._shift, self._bias = (read_weight(torch, codes.weights, name, device) for name in names)

    def __call__(self, hidden: Any, arrays: Tensors) -> Tensors:
        """Token states `[slots, hidden]` → `codes` `[segments, codes]`."""
        vector = super().__call__(hidden, arrays)["embedding"]
        if self._codes.standardized:
            vector = vector - vector.mean(dim=-1, keepdim=True)
            vector = vector / (vector.std(dim=-1, keepdim=True) + STANDARD_EPSILON)
        every = self._torch.nn.functional.linear(vector - self._shift, self._weight, self._bias)
        return {"codes": _keep_largest(self._torch, every, self._codes.kept).relu()}


class TokenVectors(Modules):
    """A vector a slot: what an embedder does before pooling, or a late interaction model does at all."""

    def __call__(self, hidden: Any, arrays: Tensors) -> Tensors:
        """Token states `[slots, hidden]` → `tokens` `[slots, dim]`."""
        made = super().__call__(hidden, arrays)
        return {"tokens": made["embedding"]}


class ModulesAndHeads(Modules):
    """The vector of an embedder, and what heads beside it make of the same token states."""

    def __init__(self, torch: Any, spec: ModelSpec, device: Any, heads: HeadsSpec) -> None:
        super().__init__(torch, spec, device)
        self._sparse = heads.sparse and _linear(torch, heads.sparse, device)
        self._multi = heads.multi_vector and _linear(torch, heads.multi_vector, device)

    def __call__(self, hidden: Any, arrays: Tensors) -> Tensors:
        """Token states `[slots, hidden]` → also `token_weights` `[slots, 1]` and `tokens` `[slots, dim]`."""
        made = super().__call__(hidden, arrays)
        hidden = hidden[-1] if hidden.ndim > 2 else hidden  # of the states of all layers the last
        if self._sparse:
            made["token_weights"] = self._sparse(hidden.float()).relu()
        if self._multi:
            vectors = self._multi(hidden.float())
            made["tokens"] = vectors / l2_norm(self._torch, vectors)
        return made


def _linear(torch: Any, head: HeadSpec, device: Any) -> Callable[[Any], Any]:
    weight = read_weight(torch, head.weights, f"{head.prefix}weight", device)
    bias = read_weight(torch, head.weights, f"{head.prefix}bias", device) if head.bias else None
    return lambda value: torch.nn.functional.linear(value, weight, bias)


def _keep_largest(torch: Any, value: Any, count: int) -> Any:
    top = torch.topk(value, min(count, value.shape[-1]), dim=-1)
    return torch.zeros_like(value).scatter_(-1, top.indices, top.values)


def make_head(torch: Any, spec: ModelSpec, module: Any, device: Any) -> Modules | Answer | Weights:
    """What follows the module of a checkpoint that is no plain scorer."""
    if spec.judge is not None:
        return Answer(torch, spec.judge, module.get_output_embeddings().weight)
    if spec.sparse is not None and spec.sparse.codes is not None:
        return Codes(torch, spec, spec.sparse.codes, device)
    if spec.sparse is not None:
        return Weights(torch, spec.sparse)
    if spec.heads is not None:
        return ModulesAndHeads(torch, spec, device, spec.heads)
    return TokenVectors(torch, spec, device) if spec.gives_tokens else Modules(torch, spec, device)
