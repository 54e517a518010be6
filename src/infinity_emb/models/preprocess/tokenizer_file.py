"""Loads tokenizer.json and brings it to the state in which the reference libraries use it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from infinity_emb.errors import CheckpointError

if TYPE_CHECKING:
    from pathlib import Path

    from tokenizers import Tokenizer

    from infinity_emb.models.spec.model import ModelSpec

FILE, SETTINGS_FILE = "tokenizer.json", "tokenizer_config.json"
# Classes whose normalizer follows tokenizer_config.json rather than tokenizer.json; lower-casing is their default.
_BERT_CLASSES = frozenset(
    {"BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer", "MPNetTokenizer", "MobileBertTokenizer"}
)
_BERT_TYPES = frozenset({"bert", "distilbert", "electra", "mpnet", "mobilebert"})
# Classes that rebuild their own special-token template, so that add_bos_token and add_eos_token say nothing.
_OWN_TEMPLATE = _BERT_CLASSES | {
    "AlbertTokenizer",
    "CamembertTokenizer",
    "DebertaTokenizer",
    "DebertaV2Tokenizer",
    "MPNetTokenizer",
    "RobertaTokenizer",
    "XLMRobertaTokenizer",
}
# Classes that give no type ids, whatever their template says.
_UNTYPED_CLASSES = frozenset(
    {
        "BartTokenizer",
        "CamembertTokenizer",
        "DistilBertTokenizer",
        "MPNetTokenizer",
        "RobertaTokenizer",
        "XLMRobertaTokenizer",
    }
)
_TOKEN_FIELDS = frozenset({"content", "single_word", "lstrip", "rstrip", "normalized", "special"})


def load_tokenizer(spec: ModelSpec) -> Tokenizer:
    """The tokenizer of a checkpoint, without truncation and padding (a stored limit must not leak into results).

    Raises:
        CheckpointError: tokenizer.json cannot be read.
    """
    from tokenizers import Tokenizer  # noqa: PLC0415 - heavy; not needed to describe a checkpoint

    settings = load_settings(spec.folder)
    stored = _load_json(spec.folder / FILE)
    _follow_settings(stored, settings, spec.model_type)
    try:
        tokenizer = Tokenizer.from_str(json.dumps(stored))
    except Exception as error:  # the library raises no narrower one
        raise CheckpointError(
            f"{FILE}: the tokenizers library cannot read it ({error}). Download it again, or update tokenizers.",
            param=FILE,
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    _add_missing_tokens(tokenizer, settings)
    if spec.do_lower_case:
        _lower_case(tokenizer)
    _add_ends(tokenizer, settings)
    return tokenizer


def load_settings(folder: Path) -> dict[str, Any]:
    """tokenizer_config.json, empty if there is none."""
    return _load_json(folder / SETTINGS_FILE) if (folder / SETTINGS_FILE).is_file() else {}


def tokenizer_class(settings: dict[str, Any]) -> str:
    """Name of the class that wrote the files, without the suffix of the fast ones; "" if it is not said."""
    return str(settings.get("tokenizer_class") or "").removesuffix("Fast")


def _load_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path.name}: cannot be read ({error}). Download it again.", param=path.name) from error
    if not isinstance(data, dict):
        raise CheckpointError(f"{path.name}: expected a JSON object. Download it again.", param=path.name)
    return data


def _follow_settings(stored: dict[str, Any], settings: dict[str, Any], model_type: str) -> None:
    """Let tokenizer_config.json decide where the reference libraries let it decide."""
    name = tokenizer_class(settings)
    normalizer = stored.get("normalizer")
    bert = name in _BERT_CLASSES or (not name and model_type in _BERT_TYPES)
    if bert and isinstance(normalizer, dict) and normalizer.get("type") == "BertNormalizer":
        normalizer["lowercase"] = bool(settings.get("do_lower_case", True))
        normalizer["strip_accents"] = settings.get("strip_accents")
        normalizer["handle_chinese_chars"] = bool(settings.get("tokenize_chinese_chars", True))
    splitter = stored.get("pre_tokenizer")
    if (
        name == "RobertaTokenizer"
        and isinstance(settings.get("add_prefix_space"), bool)
        and isinstance(splitter, dict)
        and splitter.get("type") == "ByteLevel"
    ):
        splitter["add_prefix_space"] = settings["add_prefix_space"]


def _add_missing_tokens(tokenizer: Tokenizer, settings: dict[str, Any]) -> None:
    """Tokens that only tokenizer_config.json lists, in the order of their numbers."""
    from tokenizers import AddedToken  # noqa: PLC0415 - see above

    listed = settings.get("added_tokens_decoder")
    if not isinstance(listed, dict):
        return
    known = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    rows = [row for _, row in sorted(listed.items(), key=lambda item: int(item[0])) if isinstance(row, dict)]
    tokenizer.add_tokens(
        [
            AddedToken(**{key: value for key, value in row.items() if key in _TOKEN_FIELDS})
            for row in rows
            if row.get("content") not in known
        ]
    )


def _lower_case(tokenizer: Tokenizer) -> None:
    """Put lower-casing first, unless it is there (the module's `do_lower_case`)."""
    from tokenizers.normalizers import Lowercase, Sequence  # noqa: PLC0415 - see above

    present = tokenizer.normalizer
    steps: list[Any] = [] if present is None else [present]
    if isinstance(present, Sequence):
        steps = [present[index] for index in range(len(present))]
    if not any(isinstance(step, Lowercase) for step in steps):
        tokenizer.normalizer = Sequence([Lowercase(), *steps])


def _add_ends(tokenizer: Tokenizer, settings: dict[str, Any]) -> None:
    """Begin and end tokens exactly when tokenizer_config.json says so, for the classes that listen to it."""
    from tokenizers.processors import TemplateProcessing  # noqa: PLC0415 - see above

    if tokenizer_class(settings) in _OWN_TEMPLATE or not settings.keys() & {"add_bos_token", "add_eos_token"}:
        return
    ends = {}
    for kind in ("bos", "eos"):
        token = settings.get(f"{kind}_token")
        name = token.get("content") if isinstance(token, dict) else token
        number = tokenizer.token_to_id(name) if isinstance(name, str) else None
        if settings.get(f"add_{kind}_token") and number is not None:
            ends[kind] = (name, number)
    pieces = [f"{ends['bos'][0]}:{{0}}"] if "bos" in ends else []
    pieces += ["${1}:{0}"] + ([f"{ends['eos'][0]}:{{0}}"] if "eos" in ends else [])
    first, second = ([piece.format(kind, name) for piece in pieces] for kind, name in ((0, "A"), (1, "B")))
    tokenizer.post_processor = TemplateProcessing(
        single=first, pair=first + second, special_tokens=list(dict(ends.values()).items())
    )


def reads_types(config: dict[str, Any], settings: dict[str, Any]) -> bool:
    """Whether the tokenizer's type ids reach the model: it has rows for them, and its tokenizer class gives them."""
    rows = config.get("type_vocab_size")
    names = settings.get("model_input_names")
    if not isinstance(rows, int) or rows < 2:
        return False
    if isinstance(names, list):
        return "token_type_ids" in names
    return tokenizer_class(settings) not in _UNTYPED_CLASSES
