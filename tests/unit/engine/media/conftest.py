from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from stub_network import PICTURE

from loopback import LoopbackServer


def send_picture(exchange) -> None:
    exchange.send(200, PICTURE, {"Content-Type": "image/png"})


@pytest.fixture
def picture_server():
    with LoopbackServer(send_picture) as server:
        yield server
