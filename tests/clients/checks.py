"""What a client script uses to say what it checked; stdlib only, since it runs in the client's own environment.

    with check("E1 E6", "a list of texts gives their vectors in order"):
        ...asserts...

Every check becomes one line of JSON on standard output, which `run.py` reads.
"""

from __future__ import annotations

import base64
import io
import json
import math
import os
import struct
import sys
import urllib.request
import wave
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MARK = "CHECK "
EMBEDDER, RERANKER, CLASSIFIER, SPARSE = "tiny/embedder", "tiny/reranker", "tiny/classifier", "tiny/sparse"
VISION, AUDIO = "tiny/vision", "tiny/audio"
LABELS = {"joy", "anger", "calm"}
DIM, VISION_DIM, AUDIO_DIM = 32, 24, 24
TEXTS = ["the cat sat on the mat", "paris is a city", "a dog"]
QUERY = "a city in france"
PIXEL = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

# Where the servers are: every model behind one port, one model alone on its own port, one with `--url-prefix /v1`,
# one that wants KEY, and one whose waiting line is full.
URL, EMBED_URL, RERANK_URL, CLASSIFY_URL, SPARSE_URL, VISION_URL, PREFIX_URL, KEYED_URL, BUSY_URL, KEY = (
    os.environ.get(f"CLIENTS_{name}", "")
    for name in (
        "URL",
        "EMBED_URL",
        "RERANK_URL",
        "CLASSIFY_URL",
        "SPARSE_URL",
        "VISION_URL",
        "PREFIX_URL",
        "KEYED_URL",
        "BUSY_URL",
        "KEY",
    )
)


@contextmanager
def check(rows: str, what: str, *, contradiction: str = "") -> Iterator[None]:
    """Report what happens inside; with a `contradiction`, failing is what clients.md says must happen."""
    why = ""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the boundary of a check: any error of any client is its result
        why = f"{type(error).__name__}: {error}" if str(error) else f"{type(error).__name__} at {_line_of(error)}"
    line = {"rows": rows.split(), "what": what, "why": why[:600], "contradiction": contradiction}
    print(MARK + json.dumps(line), flush=True)


def _line_of(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None and trace.tb_next.tb_frame.f_code.co_filename == sys.argv[0]:
        trace = trace.tb_next
    return f"line {trace.tb_lineno}" if trace else "?"


def post(url: str, body: dict[str, Any], **headers: str) -> Any:
    """The plain answer, for comparison."""
    sent = {"content-type": "application/json"} | headers
    request = urllib.request.Request(url, json.dumps(body).encode(), sent)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def vectors(texts: Sequence[str], **options: Any) -> list[list[float]]:
    """The vectors of the embedder, as plain numbers."""
    answer = post(
        URL + "/v1/embeddings", {"model": EMBEDDER, "input": list(texts), "encoding_format": "float"} | options
    )
    return [item["embedding"] for item in answer["data"]]


def tone(hertz: float, channels: int = 1, rate: int = 44_100) -> bytes:
    """Half a second of a tone as a WAV file."""
    numbers = [round(9_000 * math.sin(2 * math.pi * hertz * place / rate)) for place in range(rate // 2)]
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(channels)
        written.setsampwidth(2)
        written.setframerate(rate)
        written.writeframes(b"".join(struct.pack("<h", number) * channels for number in numbers))
    return file.getvalue()


def sound(*arguments: Any) -> str:
    """The same as a data URI."""
    return "data:audio/wav;base64," + base64.b64encode(tone(*arguments)).decode()


def sounds(sources: Sequence[str]) -> list[list[float]]:
    """The vectors of the model that reads sounds."""
    body = {"model": AUDIO, "input": list(sources), "modality": "audio", "encoding_format": "float"}
    return [item["embedding"] for item in post(URL + "/v1/embeddings", body)["data"]]


def images(sources: Sequence[str]) -> list[list[float]]:
    """The vectors of the model that reads images."""
    body = {"model": VISION, "input": list(sources), "modality": "image", "encoding_format": "float"}
    return [item["embedding"] for item in post(URL + "/v1/embeddings", body)["data"]]


def scores(query: str, texts: Sequence[str], **options: Any) -> list[float]:
    """Relevance scores of the reranker, in the order of the texts."""
    answer = post(URL + "/rerank", {"model": RERANKER, "query": query, "documents": list(texts)} | options)
    found = {item["index"]: item["relevance_score"] for item in answer["results"]}
    return [found[index] for index in range(len(texts))]


def same(got: Any, expected: Any, tolerance: float = 1e-5) -> None:
    """Numbers are the expected ones, within what packing a batch differently may change."""
    got, expected = list(_flat(got)), list(_flat(expected))
    assert len(got) == len(expected), f"{len(got)} numbers instead of {len(expected)}"
    worst = max(abs(a - b) for a, b in zip(got, expected, strict=True))
    assert worst <= tolerance, f"numbers differ by {worst}"


def equal(got: Any, expected: Any) -> None:
    assert got == expected, f"{got!r} instead of {expected!r}"


def falling(ranked: Sequence[float]) -> None:
    assert list(ranked) == sorted(ranked, reverse=True), f"not sorted: {ranked}"
    assert all(0 <= score <= 1 for score in ranked), f"not in 0..1: {ranked}"


def ranked_as_expected(indices: Sequence[int], got: Sequence[float], documents: Sequence[str] = TEXTS) -> None:
    """Results are sorted, and each score belongs to the document of its index."""
    falling(got)
    expected = scores(QUERY, documents)
    same(got, [expected[index] for index in indices])


def unpack(text: str) -> list[float]:
    """Base64 of little-endian float32."""
    raw = base64.b64decode(text, validate=True)
    return list(struct.unpack(f"<{len(raw) // 4}f", raw))


def raises(
    kind: type[BaseException] | tuple[type[BaseException], ...], call: Any, *arguments: Any, **named: Any
) -> Any:
    """The error that the call must raise."""
    try:
        value = call(*arguments, **named)
    except kind as error:
        return error
    raise AssertionError(f"no error; the call returned {str(value)[:200]}")


def _flat(value: Any) -> Iterator[float]:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _flat(item)
    else:
        yield float(value)
