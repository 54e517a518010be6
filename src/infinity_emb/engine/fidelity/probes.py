"""The fixed inputs of the self-check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.types import Task, TextOptions

if TYPE_CHECKING:
    from infinity_emb.models.features import Features
    from infinity_emb.models.preprocess.text import TextPreprocessor
    from infinity_emb.models.spec.model import ModelSpec

# Long enough to fill a row, short enough that the memory of attention stays small for models of 32k tokens.
LONGEST_TOKENS = 512
QUERY = "How does a server make sure that its vectors are right?"
PROBES = (
    "",
    "a",
    "Hello, world!",
    "The quick brown fox jumps over the lazy dog.",
    "the the the the the the the the",
    "A self-check compares what a server computes with what it should compute, number by number.",
    "Paris is the capital of France; 2,102,650 people live there.",
    "Größe, naïveté, œuvre, señor, Łódź.",
    "Москва слезам не верит.",
    "人工智能正在改变世界。",
    "吾輩は猫である。名前はまだ無い。",
    "أهلاً وسهلاً بكم",
    "नमस्ते दुनिया",
    "def mean(values):\n    return sum(values) / len(values)\n",
    "Soup is eaten with a spoon, noodles with chopsticks, bread by hand. " * 12,
    "one two three four five six seven eight nine ten " * 200,
)


def _known_words(rows: int) -> list[list[int]]:
    """Texts of words that a vocabulary surely knows, from all over it; it may know none of `PROBES`."""
    return [[number * (rows - 1) // length for number in range(1, length + 1)] for length in (1, 2, 3, 7, 40, 200)]


def probe_features(preprocessor: TextPreprocessor, spec: ModelSpec) -> list[Features]:
    """The probes as the model would read them: texts, or pairs for a reranker. Those without any token are left out."""
    options = TextOptions(max_length=min(spec.max_length, LONGEST_TOKENS))
    if spec.task is Task.RERANK:
        features = preprocessor.pairs(QUERY, PROBES, options)
    else:
        features = preprocessor.texts(PROBES, options)
    if spec.words is not None:
        features += preprocessor.texts(_known_words(int(spec.config["vocab_size"])), options)
    for number, one in enumerate(features):  # every adapter has its turn, and none as well
        one.adapter = number % (len(spec.adapters) + 1)
    return [one for one in features if one.cost > 0 and not one.empty]
