"""A checkpoint that has every tensor in the shape that is asked for."""

from __future__ import annotations

import numpy as np
import pytest

from infinity_emb.models.graph.builder import GraphBuilder
from infinity_emb.models.graph.graph import Weight

MEDIA = {"pixel_values": (3, 224, 224), "input_features": (1, 1001, 64)}


class AnyShape(tuple):
    """Equal to every shape."""

    __slots__ = ()

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    __hash__ = None


class AnyLocation:
    shape = AnyShape()


class AnyTensors:
    scope = ""

    def has(self, name):  # noqa: ARG002 - the shape of the real class
        return True

    def find(self, name):
        return name, AnyLocation()

    def weight(self, location):  # noqa: ARG002 - the shape of the real class
        return Weight(np.zeros(1, np.float32), 1)


@pytest.fixture
def builder():
    return GraphBuilder(AnyTensors(), media=MEDIA)
