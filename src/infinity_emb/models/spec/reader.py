"""Reads a checkpoint's files into a `ModelSpec`: the only place where the parts are put together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from infinity_emb.errors import CheckpointError
from infinity_emb.models.spec.adapters import add_adapters
from infinity_emb.models.spec.chain import Chain
from infinity_emb.models.spec.family import CROSS_ENCODER, FILE, MULTI_VECTOR_ENCODER, Prompts, read_prompts
from infinity_emb.models.spec.files import Repository
from infinity_emb.models.spec.joint import is_joint, read_joint
from infinity_emb.models.spec.judge import CAUSAL_SUFFIX, RULES, read_logit_score, recognise, refuse_template
from infinity_emb.models.spec.late import COLBERT, read_late
from infinity_emb.models.spec.layer_mean import first_of
from infinity_emb.models.spec.model import Activation, ModelSpec, PoolingMode
from infinity_emb.models.spec.modules import FILE as MODULES_FILE
from infinity_emb.models.spec.modules import override_mode, plain_chain, read_chain
from infinity_emb.models.spec.parts import Parts, make_spec, read_parts
from infinity_emb.models.spec.routed import find_routes, join_routes
from infinity_emb.models.spec.scorer import SUFFIX, Scorer, read_scorer
from infinity_emb.models.spec.sparse import is_sparse, read_sparse
from infinity_emb.models.spec.static import read_static
from infinity_emb.models.spec.token_heads import add_heads
from infinity_emb.models.spec.words import read_words
from infinity_emb.types import PoolingMethod, Task

if TYPE_CHECKING:
    from infinity_emb.models.hub.checkpoint import Checkpoint
    from infinity_emb.models.spec.transformer import Transformer


def read_spec(
    checkpoint: Checkpoint,
    *,
    task: Task | None = None,
    pooling: PoolingMethod = PoolingMethod.AUTO,
    allow_pickle: bool = False,
) -> ModelSpec:
    """Read and check a checkpoint.

    Args:
        checkpoint: Where the files are.
        task: What it shall do; None is what it is made for.
        pooling: Pooling to use instead of the repository's own.
        allow_pickle: Accept weights that exist only as pickles.

    Raises:
        CheckpointError: A file is missing, broken or asks for something that is not supported, or the checkpoint
            cannot do the task. `param` names the file, and the field where there is one.
    """
    repository = Repository(checkpoint, allow_pickle)
    found = find_routes(repository)
    if found is None:
        return _read_chain(repository, task, pooling)
    views, routes = found
    return join_routes(routes, {name: _read_chain(view, task, pooling) for name, view in views.items()})


def _read_chain(repository: Repository, task: Task | None, pooling: PoolingMethod) -> ModelSpec:
    """What has one chain of modules, or none."""
    own = read_static(repository, task, pooling) or read_words(repository, task, pooling)
    return own or _read_transformer(read_parts(repository), task, pooling)


def _read_transformer(parts: Parts, task: Task | None, pooling: PoolingMethod) -> ModelSpec:
    """Whatever begins with a transformer."""
    if is_joint(parts):
        return read_joint(parts, task)
    judge = _judge_spec(parts) if task in {None, Task.RERANK} else None
    if judge is not None:
        return judge
    if is_sparse(parts, task):
        return read_sparse(parts, task)
    if parts.family == MULTI_VECTOR_ENCODER or COLBERT in parts.transformer.architecture:
        return read_late(parts, task)
    chosen = _choose(parts, task)
    if chosen is not Task.EMBED:
        scorer = read_scorer(parts.transformer.config, parts.saved, parts.weights, task)
        return _scorer_spec(parts, scorer)
    return _embedder_spec(parts, pooling)


def _choose(parts: Parts, task: Task | None) -> Task:
    """EMBED, or RERANK for any scorer (the number of labels decides later)."""
    classifier = parts.transformer.architecture.endswith(SUFFIX)
    family = parts.family
    if family == CROSS_ENCODER and parts.entries and len(parts.entries) > 1:
        kinds = ", ".join(entry.kind for entry in parts.entries)
        raise CheckpointError(
            f"{MODULES_FILE}: a cross-encoder of the modules {kinds} is not supported. Supported: Transformer alone.",
            param=MODULES_FILE,
        )
    made_for_scores = classifier and (parts.entries is None or family == CROSS_ENCODER)
    if task in {Task.RERANK, Task.CLASSIFY, Task.MULTI_VECTOR} and not classifier:
        name = parts.transformer.architecture or parts.transformer.model_type
        raise CheckpointError(
            f"config.json: architectures: {name} has no classification head, so it cannot do the task {task}; "
            f"that needs a *{SUFFIX} checkpoint, or for rerank one of the language models {', '.join(RULES)}. "
            "Serve it with the task embed, or use another checkpoint.",
            param="config.json:architectures",
        )
    if family == CROSS_ENCODER and not classifier and task is None:
        raise CheckpointError(
            f"{FILE}: model_type: a cross-encoder without a *{SUFFIX} head is not supported.",
            param=f"{FILE}:model_type",
        )
    return task or (Task.RERANK if made_for_scores else Task.EMBED)


def _judge_spec(parts: Parts) -> ModelSpec | None:
    """A language model that reranks: known by name, or a cross-encoder of Transformer and LogitScore."""
    transformer, repository = parts.transformer, parts.repository
    if not transformer.architecture.endswith(CAUSAL_SUFFIX):
        return None
    names = f"{repository.checkpoint.model_id} {transformer.config.data.get('_name_or_path') or ''}"
    known = recognise(repository, parts.folder, transformer.architecture, names)
    if known is None and parts.family != CROSS_ENCODER:
        return None
    if known is None:
        kinds = [entry.kind for entry in parts.entries or ()]
        if kinds != ["Transformer", "LogitScore"] or parts.entries is None:
            raise CheckpointError(
                f"{MODULES_FILE}: a cross-encoder on a causal language model of the modules {', '.join(kinds)} is not "
                "supported. Supported: Transformer, LogitScore.",
                param=MODULES_FILE,
            )
        refuse_template(repository, parts.folder)
        rows = transformer.config.needed_whole("vocab_size")
        known = read_logit_score(repository, parts.entries[1].folder, rows), transformer.max_length
    judge, length = known
    scorer = Scorer(Task.RERANK, ("LABEL_0",), Activation.SIGMOID)
    prompts = read_prompts(parts.saved) if parts.family == CROSS_ENCODER else Prompts({}, None)
    spec = make_spec(parts, scorer, Chain(transformer.hidden_size), prompts)
    note = f"reranks as {judge.name}: the score is a logit of the next token"
    return replace(spec, judge=judge, max_length=min(length, transformer.max_length), notes=(*spec.notes, note))


def _scorer_spec(parts: Parts, scorer: Scorer) -> ModelSpec:
    own = parts.family == CROSS_ENCODER
    prompts = read_prompts(parts.saved) if own else Prompts({}, None)
    return make_spec(parts, scorer, Chain(parts.transformer.hidden_size), prompts)


def _embedder_spec(parts: Parts, pooling: PoolingMethod) -> ModelSpec:
    start = first_of(parts.transformer)
    embedder = Scorer(Task.EMBED, (), Activation.IDENTITY)
    own = parts.entries is not None and parts.family != CROSS_ENCODER
    if own and parts.entries:
        if parts.transformer.purpose not in {None, "feature-extraction"}:
            raise CheckpointError(
                f"transformer_task {parts.transformer.purpose!r} gives no token states to embed. "
                "Supported for an embedder: feature-extraction.",
                param="sentence_bert_config.json:transformer_task",
            )
        chain = read_chain(parts.repository, parts.entries, start, pooling)
        return _finished(parts, make_spec(parts, embedder, chain, read_prompts(parts.saved)))
    mode = override_mode(pooling) or _plain_mode(parts.transformer)
    chain = plain_chain(start.token_width, mode)
    return _finished(parts, make_spec(parts, embedder, chain, Prompts({}, None)))


def _finished(parts: Parts, spec: ModelSpec) -> ModelSpec:
    """What an embedder may have beside its modules."""
    return add_heads(parts, add_adapters(parts.transformer.config, spec))


def _plain_mode(transformer: Transformer) -> PoolingMode:
    """Mean, or the last token of a causal language model, as sentence-transformers assumes."""
    causal = transformer.config.flag("is_causal", default=True)
    return PoolingMode.LAST_TOKEN if causal and transformer.architecture.endswith("ForCausalLM") else PoolingMode.MEAN
