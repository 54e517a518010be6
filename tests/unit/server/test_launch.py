"""What the server's own process leaves out of its start, seen in a process of its own."""

from __future__ import annotations

import socket
import subprocess
import sys

PROGRAM = """
import sys
from infinity_emb.config.engine_args import EngineArgs
from infinity_emb.config.server_args import ServerArgs
from infinity_emb.errors import ConfigurationError
from infinity_emb.server.launch import run
try:
    run([EngineArgs(model_name_or_path="a", engine="dummy")], ServerArgs(host="127.0.0.1", ports=(int(sys.argv[1]),)))
except ConfigurationError as error:
    print(error.param)
import openvino
print(hasattr(openvino, "Core"), hasattr(openvino, "convert_model"), "numpy.ma" in sys.modules)
"""


def test_openvino_is_there_without_its_converter():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(taken.getsockname()[1])],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    assert ran.stdout.split() == ["port", "True", "False", "False"]
