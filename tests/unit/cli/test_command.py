"""How a call finds its command, what it starts, and exit codes."""

from __future__ import annotations

import logging
import subprocess
import sys
import types

import pytest

from infinity_emb.cli.command import main
from infinity_emb.cli.serve import urls_of
from infinity_emb.config.server_args import ServerArgs
from infinity_emb.errors import ConfigurationError, MissingExtraError, RepositoryNotFoundError
from infinity_emb.types import Modality, ModelCard, Task


class Server:
    """Stands for the server: notes what it is started with."""

    def __init__(self) -> None:
        self.starts = []
        self.error = None
        self.code = 0

    def run(self, engine_args_list, server_args, *, on_ready):
        if self.error is not None:
            raise self.error
        self.starts.append((engine_args_list, server_args))
        on_ready([card(args.served_model_name) for args in engine_args_list])
        return self.code


def card(name):
    return ModelCard(
        served_name=name,
        model_id=name,
        source="local folder",
        revision=None,
        tasks=frozenset({Task.EMBED}),
        modalities=frozenset({Modality.TEXT}),
        backend="dummy",
        device="cpu",
        dtype="float32",
        dim=13,
        max_length=512,
        pooling="mean",
        normalized=True,
        labels=(),
        prompts={},
        default_prompt_name=None,
        batch_size=32,
    )


@pytest.fixture
def server(monkeypatch):
    server = Server()
    module = types.ModuleType("infinity_emb.server")
    module.run = server.run
    monkeypatch.setitem(sys.modules, "infinity_emb.server", module)
    return server


@pytest.fixture(autouse=True)
def _restore_log():
    log = logging.getLogger("infinity_emb")
    before = (log.handlers[:], log.level, log.propagate)
    yield
    log.handlers[:], log.level, log.propagate = before


@pytest.mark.parametrize("command", ["v2", "serve"])
def test_serves_with_what_was_said(server, command, capsys):
    code = main([command, "--model-id", "a/one", "--model-id", "b/two", "--batch-size", "8", "--port", "8000"])
    ((engine_args_list, server_args),) = server.starts
    assert code == 0
    assert [(args.model_name_or_path, args.batch_size) for args in engine_args_list] == [("a/one", 8), ("b/two", 8)]
    assert server_args.port == 8000
    out, err = capsys.readouterr()
    assert "http://localhost:8000" in out
    assert err == ""


def test_the_exit_code_is_the_servers(server):
    server.code = 3
    assert main(["v2"]) == 3


def test_v1_runs_as_v2_and_says_that_it_is_deprecated(server, capsys):
    assert main(["v1", "--model-name-or-path", "a/one"]) == 0
    assert server.starts[0][0][0].model_name_or_path == "a/one"
    assert "WARNING  The command v1 is deprecated" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["--batch-size", "4"]])
def test_a_call_without_a_command_says_so_and_runs_as_v2(server, capsys, arguments):
    assert main(arguments) == 0
    assert len(server.starts) == 1
    assert "ERROR    No command given" in capsys.readouterr().err


def test_a_word_that_is_no_command_is_a_wrong_call(server, capsys):
    assert main(["sing"]) == 2
    assert "No command given" in capsys.readouterr().err
    assert not server.starts


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["v2", "--batch-size", "many"], "'many' is not a whole number"),
        (["v2", "--engine", "x"], "'x' is not one of auto, openvino"),
        (["v2", "--url-prefix", "v1"], "must start with '/'"),
        (["v2", "--colour", "red"], "No such option"),
        (["v2", "--config", "/no/such.toml"], "there is no file"),
        (["help"], "No such command"),
    ],
)
def test_a_wrong_call_exits_with_2_and_a_message(server, capsys, arguments, message):
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "Traceback" not in err
    assert not server.starts


def test_lists_that_do_not_fit_exit_with_1(server, capsys):
    assert main(["v2", "--batch-size", "1", "--batch-size", "2"]) == 1
    assert capsys.readouterr().err == (
        "Error: --batch-size has 2 values for 1 model. "
        "Give one value for all models or exactly one for each --model-id.\n"
    )
    assert not server.starts


@pytest.mark.usefixtures("server")
def test_a_wrong_variable_exits_with_1(capsys, monkeypatch):
    monkeypatch.setenv("INFINITY_ENGINE", "tensorflow")
    assert main(["v2"]) == 1
    assert "Error: INFINITY_ENGINE: 'tensorflow' is not one of" in capsys.readouterr().err


@pytest.mark.parametrize("error", [ConfigurationError, MissingExtraError, RepositoryNotFoundError])
def test_an_error_of_ours_is_one_message_without_a_traceback(server, capsys, error):
    server.error = error("what was wrong and how to fix it")
    assert main(["v2"]) == 1
    assert capsys.readouterr().err == "Error: what was wrong and how to fix it\n"


def test_at_log_level_debug_the_traceback_comes_too(server, capsys):
    server.error = ConfigurationError("port 7997 is in use")
    assert main(["v2", "--log-level", "debug", "--api-key", "sesame"]) == 1
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert "api-key = *** (--api-key)" in err
    assert "sesame" not in err


def test_an_interrupt_before_the_start_exits_with_130(server):
    server.error = KeyboardInterrupt()
    assert main(["v2"]) == 130


def test_a_fault_of_ours_is_not_hidden(server):
    server.error = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        main(["v2"])


@pytest.mark.usefixtures("server")
def test_with_json_lines_the_start_is_one_of_them(capsys):
    assert main(["v2", "--log-format", "json"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert '"message": "ready"' in err


def test_help_lists_the_commands(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert "v1" in out
    assert "v2" in out


def test_help_of_v2_lists_options_by_heading_and_hides_those_without_effect(capsys):
    assert main(["v2", "--help"]) == 0
    out = capsys.readouterr().out
    assert "Computation:" in out
    assert "INFINITY_BATCH_SIZE" in out
    assert "bettertransformer" not in out
    assert "model-name-or-path" not in out


@pytest.mark.parametrize("option", ["--show-completion", "--install-completion"])
def test_completion_says_how_to_set_it_up(capsys, option):
    assert main([option]) == 0
    assert "_INFINITY_EMB_COMPLETE=bash_source" in capsys.readouterr().out


def test_the_shell_gets_completions(monkeypatch, capsys):
    monkeypatch.setenv("_INFINITY_EMB_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "infinity_emb v2 --engine op")
    monkeypatch.setenv("COMP_CWORD", "3")
    with pytest.raises(SystemExit):
        main([])
    assert "openvino" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("settings", "urls"),
    [
        ({}, ["http://localhost:7997"]),
        ({"host": "127.0.0.1", "ports": (1, 2)}, ["http://127.0.0.1:1", "http://127.0.0.1:2"]),
        ({"host": "::1"}, ["http://[::1]:7997"]),
        ({"ssl_certfile": __file__}, ["https://localhost:7997"]),
        ({"uds": "/run/x.sock"}, ["unix:/run/x.sock"]),
    ],
)
def test_urls(settings, urls):
    assert urls_of(ServerArgs(**settings), 2) == urls


HEAVY = (
    "numpy uvicorn fastapi starlette pydantic msgspec orjson onnx openvino onnxruntime torch transformers tokenizers "
    "huggingface_hub httpx prometheus_client"
)


@pytest.mark.parametrize(
    "code",
    [
        "import infinity_emb",
        "from infinity_emb import EngineArgs, MANAGER, logger, __version__; EngineArgs(); MANAGER.port",
        "import infinity_emb.primitives",
        "from infinity_emb.cli import main; assert main(['--help']) == 0",
        "from infinity_emb.cli import main; assert main(['v2', '--help']) == 0",
        "from infinity_emb.cli import main; assert main(['--version']) == 0",
    ],
)
def test_loads_no_web_model_or_numeric_library(code):
    program = f"{code}\nimport sys\nloaded = [name for name in {HEAVY!r}.split() if name in sys.modules]\nsys.exit(str(loaded) if loaded else 0)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_python_dash_m_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "infinity_emb", "--version"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stdout.startswith("infinity_emb, version ")
