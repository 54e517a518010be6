"""Language models that are asked whether a document answers a query: which ones are known, and how they are asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from infinity_emb.errors import CheckpointError
from infinity_emb.models.spec.files import join
from infinity_emb.models.spec.vocabulary import read_token_ids

if TYPE_CHECKING:
    from infinity_emb.models.spec.files import Repository

CAUSAL_SUFFIX = "ForCausalLM"


@dataclass(frozen=True, slots=True)
class Question:
    """How query and document are put to the model. Every text is tokenized by itself; `{…}` are places to fill.

    Attributes:
        begin: Before everything; never cut.
        query: Around the query.
        between: Between query and document; never cut.
        document: Around the document.
        end: Behind the document, one after the other; never cut.
        joined: Query, `between` and document are tokenized as one text, which is cut at its end. Else the query keeps
            at most three quarters of the limit and the document what is left.
        instruction: Used where the caller gives none.
        instructed: Around an instruction, put before `query`; "" where `query` or `end` hold the place for it.
    """

    begin: str
    query: str
    between: str
    document: str
    end: tuple[str, ...]
    joined: bool = False
    instruction: str = ""
    instructed: str = ""


@dataclass(frozen=True, slots=True)
class JudgeSpec:
    """A causal language model that scores pairs. The score is a logit: of `true_id`, less that of `false_id`.

    Attributes:
        true_id: Token that says yes.
        false_id: Token that says no; None where the logit of yes alone is the score.
        question: How it is asked; None joins the pair as the tokenizer's own template does.
        name: Of the rule that recognised it.
    """

    true_id: int
    false_id: int | None
    question: Question | None
    name: str


@dataclass(frozen=True, slots=True)
class _Rule:
    """One family of language models that rerank.

    Attributes:
        marks: Parts of the repository's name, lower case; one of them must be in it.
        architectures: Of config.json; one of them must be the checkpoint's.
        true: Token that says yes.
        false: Token that says no, or None.
        max_length: The length its authors use.
        question: How it is asked.
    """

    marks: tuple[str, ...]
    architectures: tuple[str, ...]
    true: str
    false: str | None
    max_length: int
    question: Question


_QWEN3 = Question(
    begin="<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
    'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n',
    query="<Instruct>: {instruction}\n<Query>: {query}",
    between="\n",
    document="<Document>: {document}",
    end=("<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",),
    joined=True,
    instruction="Given a web search query, retrieve relevant passages that answer the query",
)
_BGE_GEMMA = Question(
    begin="<bos>",
    query="A: {query}",
    between="\n",
    document="B: {document}",
    end=("\n", "{instruction}"),
    instruction="Given a query A and a passage B, determine whether the passage contains an answer to the query by "
    "providing a prediction of either 'Yes' or 'No'.",
)
_MIXEDBREAD = Question(
    begin="<|endoftext|><|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant."
    "<|im_end|>\n<|im_start|>user\n",
    query="query: {query}",
    between="\n",
    document="document: {document}",
    end=(
        "\n",
        (
            "You are a search relevance expert who evaluates how well documents match search queries. For each "
            "query-document pair, carefully analyze the semantic relationship between them, then provide your binary "
            "relevance judgment (0 for not relevant, 1 for relevant).\nRelevance:"
        ),
        "<|im_end|>\n<|im_start|>assistant\n",
    ),
    instructed="instruction: {instruction}\n",
)
# The words are those of the models' own pages, which no file of the repository that a program can read repeats.
RULES = {
    "qwen3-reranker": _Rule(("qwen3-reranker",), ("Qwen3ForCausalLM",), "yes", "no", 8192, _QWEN3),
    "bge-reranker-v2-gemma": _Rule(("bge-reranker-v2-gemma",), ("GemmaForCausalLM",), "Yes", None, 1024, _BGE_GEMMA),
    "mxbai-rerank-v2": _Rule(
        ("mxbai-rerank-base-v2", "mxbai-rerank-large-v2"), ("Qwen2ForCausalLM",), "1", "0", 8192, _MIXEDBREAD
    ),
}


def recognise(repository: Repository, folder: str, architecture: str, name: str) -> tuple[JudgeSpec, int] | None:
    """The judge that a plain repository is and the length its authors use; None if it is none that is known.

    Args:
        repository: Where the files are.
        folder: The transformer's folder.
        architecture: Of its config.json.
        name: Names it goes by: as asked for, and as config.json remembers it.

    Raises:
        CheckpointError: Its tokenizer lacks the answers.
    """
    for label, rule in RULES.items():
        if architecture in rule.architectures and any(mark in name.lower() for mark in rule.marks):
            words = [rule.true, *([rule.false] if rule.false else [])]
            ids = read_token_ids(repository, folder, words)
            return JudgeSpec(ids[0], ids[1] if rule.false else None, rule.question, label), rule.max_length
    return None


def read_logit_score(repository: Repository, module: str, rows: int) -> JudgeSpec:
    """The LogitScore module of a cross-encoder, for a pair that goes through the tokenizer's own template.

    Args:
        repository: Where the files are.
        module: Folder of the module.
        rows: Size of the vocabulary.

    Raises:
        CheckpointError: A token outside the vocabulary, or another input than the logits of the next token.
    """
    config = repository.config(join(module, "config.json"), required=True)
    source = config.text("module_input_name") or "causal_logits"
    if source != "causal_logits":
        raise config.error("module_input_name", f"{source!r} is not supported. Supported: 'causal_logits'.")
    ids = [config.whole(field, least=0) for field in ("true_token_id", "false_token_id")]
    if ids[0] is None:
        raise config.error("true_token_id", "the field is missing. Add it, or download the file again.")
    for field, number in zip(("true_token_id", "false_token_id"), ids, strict=True):
        if number is not None and number >= rows:
            raise config.error(field, f"{number} is outside the vocabulary of {rows} tokens.")
    return JudgeSpec(ids[0], ids[1], None, "LogitScore")


def refuse_template(repository: Repository, folder: str) -> None:
    """Raise if the pair would go through a chat template, which is a program and is not run here.

    Raises:
        CheckpointError: There is one.
    """
    settings = repository.config(join(folder, "tokenizer_config.json"))
    places = [
        *(["tokenizer_config.json"] if settings.data.get("chat_template") else []),
        *(name for name in ("chat_template.jinja", "chat_template.json") if repository.path(folder, name).is_file()),
    ]
    if places:
        raise CheckpointError(
            f"{join(folder, places[0])}: chat_template: this cross-encoder puts its pairs through a chat template of "
            f"its own, which is not supported. Known without one: {', '.join(RULES)}.",
            param=f"{places[0]}:chat_template",
        )
