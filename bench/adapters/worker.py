"""Drive one library in its own process: texts in, seconds and vectors out, one JSON line each.

Usage: python worker.py ADAPTER MODEL_FOLDER OPTIONS_JSON, with the interpreter of the library's environment.
The first line out says that the first vector is there. Then for each line in, `{"texts": […], "call": 32}`, one out.
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import sys
import time
from typing import TextIO


def main(answers: TextIO) -> None:
    name, folder, options = sys.argv[1:4]
    adapter = importlib.import_module(name).Adapter(folder, **json.loads(options))
    adapter.encode(["The first text, so that nothing is left to be done on demand."])
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(_answer(adapter, json.loads(line))), file=answers, flush=True)


def _answer(adapter: object, asked: dict) -> dict:
    texts, call = asked["texts"], asked["call"]
    parts = []
    started_s = time.perf_counter()
    for start in range(0, len(texts), call):
        parts.append(adapter.encode(texts[start : start + call]))  # noqa: PERF401 - part of what is timed
    took_s = time.perf_counter() - started_s
    answer = {"seconds": took_s, "peak_bytes": _peak_bytes()}
    if asked.get("vectors"):
        import numpy as np

        array = np.concatenate([np.asarray(part, np.float32) for part in parts])
        answer["vectors"] = base64.b64encode(array.tobytes()).decode()
        answer["dim"] = array.shape[1]
    return answer


def _peak_bytes() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    # libraries that print must not disturb the answers
    with os.fdopen(os.dup(1), "w") as pipe:
        os.dup2(2, 1)
        main(pipe)
