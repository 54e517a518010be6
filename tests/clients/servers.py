"""The servers that the clients talk to: the real command, on tiny real checkpoints."""

from __future__ import annotations

import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from checks import AUDIO, CLASSIFIER, EMBEDDER, LABELS, RERANKER, SPARSE, VISION
from roster import LIGHT
from tiny_sparse import tiny_splade

import tiny
import tiny_joint
import tiny_sound
from serving import free_port, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = "correct-horse"
BUSY_TIMEOUT_S = 60


@contextmanager
def all_servers(folder: Path) -> Iterator[dict[str, str]]:
    """Start them all; gives the environment variables that `checks.py` reads."""
    embedder = tiny.tiny_bert(folder / EMBEDDER)
    reranker = tiny.tiny_bert(folder / RERANKER, labels=("relevant",), seed=1)
    classifier = tiny.tiny_bert(folder / CLASSIFIER, labels=tuple(sorted(LABELS)), seed=2)
    models = [part for model in (embedder, reranker, classifier) for part in ("--model-id", str(model))]
    sparse = ["--model-id", str(tiny_splade(folder / SPARSE))]
    vision = ["--model-id", str(tiny_joint.tiny_clip(folder / VISION))]
    audio = ["--model-id", str(tiny_sound.tiny_clap(folder / AUDIO))]
    alone = [str(free_port()) for _ in range(6)]
    ports = [part for port in alone for part in ("--port", port)]
    table = {"TIKTOKEN_CACHE_DIR": str(LIGHT.folder / "table")}
    stuck = [sys.executable, str(Path(__file__).with_name("stuck.py"))]
    with ExitStack() as stack:
        # Given once for each model after one for all: every model also answers alone on its own port.
        every = stack.enter_context(serve(*ports, *models, *sparse, *vision, *audio))
        prefix = stack.enter_context(serve(*models, "--url-prefix", "/v1", "--permissive-cors"))
        keyed = stack.enter_context(serve("--model-id", str(embedder), "--api-key", KEY))
        options = ("--model-id", str(embedder), "--engine", "dummy", "--queue-size", "1", "--no-model-warmup")
        busy = stack.enter_context(serve(*options, program=stuck))
        for server in (every, prefix, keyed, busy):
            server.wait_until_ready()
        _fill(f"{busy.url}/v1/embeddings")
        urls = [f"http://127.0.0.1:{port}" for port in alone]
        yield {
            "CLIENTS_URL": every.url,
            "CLIENTS_EMBED_URL": urls[0],
            "CLIENTS_RERANK_URL": urls[1],
            "CLIENTS_CLASSIFY_URL": urls[2],
            "CLIENTS_SPARSE_URL": urls[3],
            "CLIENTS_VISION_URL": urls[4],
            "CLIENTS_PREFIX_URL": prefix.url,
            "CLIENTS_KEYED_URL": keyed.url,
            "CLIENTS_BUSY_URL": busy.url,
            "CLIENTS_KEY": KEY,
            "CLIENTS_MODEL": str(embedder),
            **table,
        }


def _fill(url: str) -> None:
    """Send requests that will never be answered until the line is full."""
    deadline_s = time.monotonic() + BUSY_TIMEOUT_S
    refused = threading.Event()
    while not refused.is_set():
        if time.monotonic() > deadline_s:
            raise AssertionError("the waiting line of the stuck server did not fill up")
        threading.Thread(target=_wait_for_answer, args=(url, refused), daemon=True).start()
        refused.wait(0.2)


def _wait_for_answer(url: str, refused: threading.Event) -> None:
    request = urllib.request.Request(url, b'{"input": "x"}', {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request):
            pass
    except urllib.error.HTTPError as error:
        if error.code == 429:
            refused.set()
        error.close()
    except OSError:
        return  # the server has been killed at the end
