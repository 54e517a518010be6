"""The real command with a backend that raises for one certain text; everything else is as always."""

from __future__ import annotations

import sys

from infinity_emb.backends import openvino
from infinity_emb.cli import main

# token ids of "boom" in the vocabulary of all-MiniLM-L6-v2
POISON = 8797


class FaultyBackend(openvino.OpenVinoBackend):
    """Raises if the poison is anywhere in the batch."""

    def start(self, arrays):
        if (arrays["input_ids"] == POISON).any():
            raise RuntimeError("the model cannot do that")
        return super().start(arrays)


openvino.OpenVinoBackend = FaultyBackend  # type: ignore[misc]
sys.exit(main())
