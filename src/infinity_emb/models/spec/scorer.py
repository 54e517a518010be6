"""Reads what a sequence classifier says of itself: labels, head, and the function that makes scores of its logits."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from infinity_emb.errors import CheckpointError
from infinity_emb.models.spec.activation import read_activation
from infinity_emb.models.spec.model import Activation
from infinity_emb.models.spec.weights import all_tensors
from infinity_emb.types import Task

if TYPE_CHECKING:
    from pathlib import Path

    from infinity_emb.models.spec.files import ConfigFile

SUFFIX = "ForSequenceClassification"
HEADS = (
    "classifier.weight",
    "classifier.out_proj.weight",
    "classification_head.out_proj.weight",
    "score.weight",
    "logits_proj.weight",
)
_DEFAULT_LABELS = 2  # what transformers assumes


class Scorer(NamedTuple):
    """A scorer's head.

    Attributes:
        task: RERANK for one label, else CLASSIFY, unless the caller chose.
        labels: Names in logit order.
        activation: Makes scores of logits by default.
    """

    task: Task
    labels: tuple[str, ...]
    activation: Activation


def read_scorer(config: ConfigFile, saved: ConfigFile, weights: tuple[Path, ...], task: Task | None) -> Scorer:
    """Read labels, head and activation.

    Args:
        config: The transformer's config.json.
        saved: config_sentence_transformers.json.
        weights: Of the transformer; the head must be among them.
        task: What the caller wants, or None for what the checkpoint suggests.

    Raises:
        CheckpointError: No head, a head that does not fit the labels, or rerank asked of several labels.
    """
    labels = read_labels(config)
    _check_head(weights, len(labels))
    suggested = Task.RERANK if len(labels) == 1 else Task.CLASSIFY
    chosen = task or suggested
    if chosen is Task.RERANK and len(labels) > 1:
        raise config.error(
            "id2label",
            f"the task rerank needs a head with one label, this one has {len(labels)} ({', '.join(labels[:4])} …). "
            "Serve it with the task classify.",
        )
    return Scorer(chosen, labels, _activation(config, saved, chosen, len(labels)))


def read_labels(config: ConfigFile) -> tuple[str, ...]:
    """Label names in logit order, from `id2label` (keys may be numbers or strings) or `num_labels`."""
    named = config.section("id2label").data
    if not named:
        count = config.whole("num_labels") or _DEFAULT_LABELS
        return tuple(f"LABEL_{position}" for position in range(count))
    try:
        positions = {int(key): str(name) for key, name in named.items()}
    except ValueError:
        raise config.error("id2label", f"the keys must be whole numbers, found {', '.join(named)}.") from None
    if sorted(positions) != list(range(len(positions))):
        raise config.error("id2label", f"the keys must be 0 to {len(positions) - 1}, found {sorted(positions)}.")
    return tuple(positions[position] for position in range(len(positions)))


def _check_head(weights: tuple[Path, ...], labels: int) -> None:
    """The head must be in the weights and have one row a label: a random head would answer nonsense."""
    tensors = all_tensors(weights)
    if not tensors:  # pickles or an ONNX file, which the backend checks
        return
    head = next((name for name in HEADS if name in tensors), None)
    file = weights[0].name
    if head is None:
        raise CheckpointError(
            f"{file}: no classification head ({', '.join(HEADS)}), although config.json names one. "
            "Scores from a random head would be meaningless. Serve it with the task embed, or use another checkpoint.",
            param=file,
        )
    rows = tensors[head].shape[0] if tensors[head].shape else 0
    if rows != labels:
        raise CheckpointError(
            f"{file}: {head} has {rows} rows, config.json names {labels} labels (id2label). Correct config.json.",
            param=f"{file}:{head}",
        )


def _activation(config: ConfigFile, saved: ConfigFile, task: Task, labels: int) -> Activation:
    """What the checkpoint names, else what transformers applies.

    Identity on a classifier is what sentence-transformers writes by default for several labels: no decision, so
    probabilities are made as transformers makes them.
    """
    named = (
        read_activation(saved, "activation_fn")
        or read_activation(config.section("sentence_transformers"), "activation_fn")
        or read_activation(config, "sbert_ce_default_activation_function")
    )
    if named is not None and (task is Task.RERANK or named is not Activation.IDENTITY):
        return named
    kind = config.text("problem_type")
    if task is Task.CLASSIFY and kind == "regression":
        return Activation.IDENTITY
    if labels == 1 or kind == "multi_label_classification":
        return Activation.SIGMOID
    return Activation.SOFTMAX
