"""The conformance matrix: what the server must support, and how much breaks without it.

M: a popular client breaks. S: a client is degraded, or a less common one breaks. O: optional.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One capability."""

    name: str
    need: str
    what: str


ROWS = tuple(
    Row(*line.split(" ", 2))
    for line in """\
E1 M input is a string or a list of strings, at /v1/embeddings and /embeddings
E2 M input is one or several lists of cl100k token ids
E3 M empty strings and white space have vectors
E4 M encoding_format: base64 is exact, absent or null means numbers
E5 M dimensions: fewer, native, 0, null; also as output_dimension
E6 M data is in input order with its index
E7 M object, model and usage of an embeddings answer
E8 O unknown request fields are ignored
E9 M modality: text, image or audio, from a URL or data URI
E10 S inputs as objects: {"text": ...}, {"image": ...}
E11 S Jina's options task, late_chunking, normalized, embedding_type, truncate
E12 S vLLM's chat form: messages in place of input
E13 O truncate_prompt_tokens
E14 S Voyage's input_type, truncation, output_dtype, base64 of that dtype
E15 S Azure's path and api-key header
C1 M /v2/embed with texts, images, inputs and every option
C2 M the /v2/embed answer: by type, with billed input tokens
C3 M /v1/embed: a plain list, or by type
C4 S embedding types int8, uint8, binary, ubinary, base64
R1 M rerank at /rerank, /v1/rerank and /v2/rerank
R2 M top_n larger than the list, null, or absent
R3 M results sorted, each with its index; all of them without top_n
R4 M document is a string on the native path, an object on /v1 and /v2, absent if not asked for
R5 M object, usage, id, model and billed search units of a rerank answer
R6 S no further keys inside a result
R7 S documents as objects: text, rank_fields, content
R8 S top_k, and data equal to results
R9 M scores in 0..1, raw_scores gives logits
R10 O booleans written as strings
T1 M TEI's /embed
T2 M POST / does what the model is for
T3 M TEI's /rerank with texts, also below a prefix at the origin
T4 M /info
T5 S /predict: one text, a pair, several
T6 S /embed_sparse
T7 S /similarity and its form on POST /
T8 S /tokenize, /decode, /embed_all
T9 O timing headers
I1 M /models in Infinity's and OpenAI's form at once
I2 M /classify
I3 S /embeddings_image and /embeddings_audio
H1 M overload is 429 with an integer Retry-After
H2 S x-request-id on every answer
H3 S a trailing slash keeps the POST
H4 S CORS preflight when enabled
G1 O gRPC tei.v1""".splitlines()
)

# Rows that this release does not meet; docs/clients.md gives the reasons to users.
NOT_YET = {
    "G1": "HTTP only",
}
