"""Loads tokenizer.json and brings it to the state in which the reference libraries use it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from infinity_emb.errors import CheckpointError
from infinity_emb.models.preprocess import clip_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from tokenizers import Tokenizer

    from infinity_emb.models.spec.model import ModelSpec

FILE, SETTINGS_FILE = "tokenizer.json", "tokenizer_config.json"
# Classes whose normalizer follows tokenizer_config.json rather than tokenizer.json; lower-casing is their default.
_BERT_CLASSES = frozenset(
    {"BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer", "MPNetTokenizer", "MobileBertTokenizer"}
)
# What the reference libraries take for a repository that names no class.
_CLASS_BY_TYPE = {
    "albert": "AlbertTokenizer",
    "bart": "BartTokenizer",
    "bert": "BertTokenizer",
    "clap": "RobertaTokenizer",
    "camembert": "CamembertTokenizer",
    "deberta": "DebertaTokenizer",
    "deberta-v2": "DebertaV2Tokenizer",
    "distilbert": "DistilBertTokenizer",
    "electra": "ElectraTokenizer",
    "mobilebert": "MobileBertTokenizer",
    "mpnet": "MPNetTokenizer",
    "roberta": "RobertaTokenizer",
    "xlm-roberta": "XLMRobertaTokenizer",
}
# Classes that give no type ids, whatever their template says.
_UNTYPED_CLASSES = frozenset(
    {
        "AlbertTokenizer",
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
    try:
        if (spec.folder / FILE).is_file() or not clip_tokenizer.is_there(spec.folder):
            tokenizer = Tokenizer.from_file(str(spec.folder / FILE))
        else:
            tokenizer = clip_tokenizer.load(spec.folder)
    except Exception as error:  # the library raises no narrower one
        raise CheckpointError(
            f"{FILE}: the tokenizers library cannot read it ({error}). Download it again, or update tokenizers.",
            param=FILE,
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    if spec.static is not None:  # tokenizer.json alone counts, and special tokens are not added
        from tokenizers.processors import TemplateProcessing  # noqa: PLC0415 - see above

        tokenizer.post_processor = TemplateProcessing(single="$A", pair="$A $B", special_tokens=[])
        return tokenizer
    _follow_settings(tokenizer, settings, tokenizer_class(spec.config, settings))
    _add_missing_tokens(tokenizer, settings)
    if spec.do_lower_case:
        _lower_case(tokenizer)
    if spec.late is not None:
        _keep_whole(tokenizer, spec.late.markers)
    return tokenizer


def load_settings(folder: Path) -> dict[str, Any]:
    """tokenizer_config.json, empty if there is none."""
    return _load_json(folder / SETTINGS_FILE) if (folder / SETTINGS_FILE).is_file() else {}


def tokenizer_class(config: dict[str, Any], settings: dict[str, Any]) -> str:
    """Name of the tokenizer class, without the suffix of the fast ones; "" if neither file nor family tells."""
    named = settings.get("tokenizer_class") or config.get("tokenizer_class")
    return str(named or _CLASS_BY_TYPE.get(str(config.get("model_type")), "")).removesuffix("Fast")


def _load_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path.name}: cannot be read ({error}). Download it again.", param=path.name) from error
    if not isinstance(data, dict):
        raise CheckpointError(f"{path.name}: expected a JSON object. Download it again.", param=path.name)
    return data


def _follow_settings(tokenizer: Tokenizer, settings: dict[str, Any], name: str) -> None:
    """Let tokenizer_config.json decide where the reference libraries let it decide; `name` is the tokenizer class."""
    from tokenizers.normalizers import BertNormalizer  # noqa: PLC0415 - see above
    from tokenizers.pre_tokenizers import ByteLevel  # noqa: PLC0415 - see above

    if name in _BERT_CLASSES and isinstance(tokenizer.normalizer, BertNormalizer):
        tokenizer.normalizer = BertNormalizer(
            clean_text=tokenizer.normalizer.clean_text,
            handle_chinese_chars=bool(settings.get("tokenize_chinese_chars", True)),
            strip_accents=settings.get("strip_accents"),
            lowercase=bool(settings.get("do_lower_case", True)),
        )
    spaced = settings.get("add_prefix_space")
    splitter = tokenizer.pre_tokenizer
    if name == "RobertaTokenizer" and isinstance(spaced, bool) and isinstance(splitter, ByteLevel):
        tokenizer.pre_tokenizer = ByteLevel(
            add_prefix_space=spaced, trim_offsets=splitter.trim_offsets, use_regex=splitter.use_regex
        )


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


def _keep_whole(tokenizer: Tokenizer, markers: tuple[str, ...]) -> None:
    """Make special what stands before queries and documents, where it is a token that the tokenizer breaks up."""
    from tokenizers import AddedToken  # noqa: PLC0415 - see above

    for marker in markers:
        for text in (marker, marker.split(None, 1)[0] if marker.split() else ""):
            if text and tokenizer.token_to_id(text) is not None:
                if tokenizer.encode(text, add_special_tokens=False).tokens != [text]:
                    tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True)])
                break


def _lower_case(tokenizer: Tokenizer) -> None:
    """Put lower-casing first, unless it is there (the module's `do_lower_case`)."""
    from tokenizers.normalizers import Lowercase, Sequence  # noqa: PLC0415 - see above

    present = tokenizer.normalizer
    steps: list[Any] = [] if present is None else [present]
    if isinstance(present, Sequence):
        steps = [present[index] for index in range(len(present))]
    if not any(isinstance(step, Lowercase) for step in steps):
        tokenizer.normalizer = Sequence([Lowercase(), *steps])


def reads_types(config: dict[str, Any], settings: dict[str, Any]) -> bool:
    """Whether the tokenizer's type ids reach the model: it has rows for them, and its tokenizer class gives them."""
    rows = config.get("type_vocab_size")
    names = settings.get("model_input_names")
    if not isinstance(rows, int) or rows < 2:
        return False
    if isinstance(names, list):
        return "token_type_ids" in names
    return tokenizer_class(config, settings) not in _UNTYPED_CLASSES
