"""Texts that have broken embedding servers: 200 of them, deterministic."""

from __future__ import annotations

import random

ODD = (
    "",
    " ",
    "   \t\n ",
    "\n\n",
    " leading and trailing ",
    "double  spaces\tand\ttabs",
    "Hello, World!",
    "UPPER lower MiXeD",
    "naïve café übermäßig straße",
    "e\u0301 combining and é composed",
    "你好,世界。人工智能",
    "こんにちは世界 カタカナ ひらがな",
    "한국어 문장",
    "مرحبا بالعالم",
    "नमस्ते दुनिया",
    "привет, мир! Как дела?",
    "😀 emoji 👩‍👩‍👧‍👦 family 🏳️‍🌈 flag 👍🏽",
    "zero\u200bwidth\u200djoiner \ufeff bom",
    "nul \x00 byte and \x07 bell",
    "soft\u00adhyphen non\u00a0breaking",
    "[CLS] written [SEP] by [MASK] hand [PAD]",
    "<s> written </s> by <mask> hand <pad> <unk>",
    "http://example.org/path?query=1&other=2#fragment",
    "def f(x): return x ** 2  # code",
    "3.14159 1,000,000 -5e10 0xFF",
    "ﬁ ligature ① circled ½ half ™",
    "𝓯𝓪𝓷𝓬𝔂 𝕦𝕟𝕚𝕔𝕠𝕕𝕖 \U0001f9ff \U00020000",  # noqa: RUF001 - odd on purpose
    "``quoted'' 'single' \"double\" «angle» „low“",
    "a" * 300,
    "word " * 400,
    "你" * 200,
    "!?" * 150,
    "İstanbul ŞEKER ǅ ß ẞ Σίσυφος",
    "line one\r\nline two\rline three\u2028four",
)
_TEXT = (
    "the quick brown fox capital of peru lima tea coffee potatoes berlin population search embeddings rank documents "
    "café straße привет 世界 한국어 unbelievable internationalisation 2019 3.5 e-mail don't it's (brackets) [x] a-b_c 😀"
)
_WORDS = _TEXT.split()


def sample(count: int = 200, seed: int = 7) -> list[str]:
    """The odd ones, then random ones of 1 to 120 words."""
    chance = random.Random(seed)
    made = [" ".join(chance.choices(_WORDS, k=chance.randint(1, 120))) for _ in range(count - len(ODD))]
    return [*ODD, *made]


def sample_words(chance: random.Random, count: int) -> list[str]:
    """Words of several scripts, drawn by `chance`."""
    return chance.choices(_WORDS, k=count)
