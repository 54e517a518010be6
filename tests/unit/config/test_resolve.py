"""The option table of the original (flag, variable, list, broadcast, wrong value) and the order of sources."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import click
import pytest

from infinity_emb.cli.parameters import click_options, given_flags
from infinity_emb.config.options import SETTING_BY_FLAG
from infinity_emb.config.resolve import Resolved, resolve
from infinity_emb.errors import ConfigurationError


def parse(arguments: list[str], variables: dict[str, str] | None = None) -> Resolved:
    """What a command line and an environment mean."""
    command = click.Command("v2", params=click_options(), callback=lambda **parsed: given_flags(parsed))
    return resolve(command.main(arguments, standalone_mode=False), variables or {})


TWO_MODELS = ["--model-id", "a/one", "--model-id", "b/two"]
ON, OFF = "on", "off"


class Row(NamedTuple):
    """An option: two values as written (one for options of the server), what they mean, a wrong one if there is any."""

    flag: str
    field: str
    default: Any
    written: Any
    meant: Any
    wrong: str | None

    @property
    def variable(self) -> str:
        return "INFINITY_" + self.flag.upper().replace("-", "_")


PER_MODEL = [
    Row("served-model-name", "served_model_name", "one/model", ("x", "y"), ("x", "y"), None),
    Row("batch-size", "batch_size", 32, ("8", "4"), (8, 4), "many"),
    Row("revision", "revision", None, ("main", "v2"), ("main", "v2"), None),
    Row("engine", "engine", "auto", ("torch", "ctranslate2"), ("torch", "ctranslate2"), "tensorflow"),
    Row("engine", "engine", "auto", ("optimum", "debugengine"), ("onnxruntime", "dummy"), "debug"),
    Row("device", "device", "auto", ("cpu", "cuda"), ("cpu", "cuda"), "gpu"),
    Row("device", "device", "auto", ("mps", "tensorrt"), ("mps", "tensorrt"), "0"),
    Row("device-id", "device_id", (), ("0,1", "2"), ((0, 1), (2,)), "a,b"),
    Row("dtype", "dtype", "auto", ("float16", "int8"), ("float16", "int8"), "float64"),
    Row("dtype", "dtype", "auto", ("bfloat16", "fp8"), ("bfloat16", "fp8"), "half"),
    Row("embedding-dtype", "embedding_dtype", "float32", ("int8", "ubinary"), ("int8", "ubinary"), "int4"),
    Row("pooling-method", "pooling_method", "auto", ("mean", "cls"), ("mean", "cls"), "max"),
    Row("task", "task", None, ("rerank", "auto"), ("rerank", None), "translate"),
    Row("threads", "threads", None, ("2", "auto"), (2, None), "0"),
    Row("onnx-file", "onnx_file", None, ("onnx/model.onnx", ""), ("onnx/model.onnx", None), None),
    Row("max-batch-tokens", "max_batch_tokens", None, ("4096", "auto"), (4096, None), "-1"),
    Row("max-waiting-tokens", "max_waiting_tokens", None, ("9", "8"), (9, 8), "1.5"),
    Row("queue-size", "queue_size", 32000, ("10", "20"), (10, 20), "0"),
    Row("max-client-batch-size", "max_client_batch_size", 2048, ("10", "20"), (10, 20), "0"),
    Row("cache-folder", "cache_folder", None, ("/x", ""), ("/x", None), None),
    Row("trust-remote-code", "trust_remote_code", False, (ON, OFF), (True, False), None),
    Row("model-warmup", "model_warmup", True, (OFF, ON), (False, True), None),
    Row("vector-disk-cache", "vector_disk_cache_path", "", (ON, OFF), ("auto_a_one", ""), None),
    Row("vector-cache-mb", "vector_cache_mb", 0, ("64", "0"), (64, 0), "-1"),
    Row("lengths-via-tokenize", "lengths_via_tokenize", False, (ON, OFF), (True, False), None),
    Row("compile", "compile", False, (OFF, ON), (False, True), None),
    Row("bettertransformer", "bettertransformer", True, (OFF, ON), (False, True), None),
    Row("onnx-disable-optimize", "onnx_disable_optimize", False, (ON, OFF), (True, False), None),
    Row("onnx-do-not-prefer-quantized", "onnx_do_not_prefer_quantized", False, (ON, OFF), (True, False), None),
    Row("allow-pickle", "allow_pickle", False, (ON, OFF), (True, False), None),
    Row("fidelity", "fidelity", 0.9999, ("0", "0.99"), (0.0, 0.99), "1"),
    Row("expect-fingerprint", "expect_fingerprint", None, ("0123abcd", ""), ("0123abcd", None), None),
    Row("compile-cache", "compile_cache", True, (OFF, ON), (False, True), None),
    Row("tuned", "tuned", True, (OFF, ON), (False, True), None),
    Row("deterministic", "deterministic", False, (ON, OFF), (True, False), None),
    Row("hang-limit-s", "hang_limit_s", 120.0, ("2.5", "60"), (2.5, 60.0), "0"),
    Row("media-urls", "media_urls", "public", ("any", "none"), ("any", "none"), "private"),
    Row("media-hosts", "media_hosts", (), ("a.test,.b.test", "c.test"), (("a.test", ".b.test"), ("c.test",)), None),
    Row("max-media-bytes", "max_media_bytes", 33_554_432, ("10", "20"), (10, 20), "0"),
    Row("max-image-pixels", "max_image_pixels", 67_108_864, ("10", "20"), (10, 20), "0"),
    Row("media-timeout-s", "media_timeout_s", 10.0, ("2.5", "60"), (2.5, 60.0), "-1"),
]

SERVER = [
    Row("preload-only", "preload_only", False, ON, True, None),
    Row("permissive-cors", "permissive_cors", False, ON, True, None),
    Row("host", "host", "0.0.0.0", "127.0.0.1", "127.0.0.1", None),
    Row("port", "port", 7997, "8000", 8000, "http"),
    Row("port", "port", 7997, "0", 0, "65536"),
    Row("url-prefix", "url_prefix", "", "/v1", "/v1", "v1"),
    Row("url-prefix", "url_prefix", "", "/", "", "/v1/"),
    Row("redirect-slash", "redirect_slash", "/docs", "", "", "docs"),
    Row("log-level", "log_level", "info", "trace", "trace", "loud"),
    Row("log-format", "log_format", "text", "json", "json", "xml"),
    Row("api-key", "api_keys", (), "sesame", ("sesame",), None),
    Row("api-key-file", "api_key_file", None, __file__, __file__, "/no/such/file"),
    Row("operator-key", "operator_keys", (), "sesame", ("sesame",), None),
    Row("access-log", "access_log", False, ON, True, None),
    Row("otel", "otel", False, ON, True, None),
    Row("proxy-root-path", "proxy_root_path", "", "/ai", "/ai", None),
    Row("uds", "uds", None, "/run/x.sock", "/run/x.sock", None),
    Row("rerank-document", "rerank_document", "auto", "object", "object", "list"),
    Row("token-ids", "token_ids", "cl100k", "model", "model", "p50k"),
    Row("public-routes", "public_routes", ("docs", "metrics"), "models,info", ("models", "info"), "health"),
    Row("public-routes", "public_routes", ("docs", "metrics"), "", (), "docs;info"),
    Row("request-timeout-s", "request_timeout_s", None, "2.5", 2.5, "0"),
    Row("shutdown-grace-s", "shutdown_grace_s", 30.0, "0", 0.0, "soon"),
    Row("max-body-bytes", "max_body_bytes", 268_435_456, "1000", 1000, "1MB"),
    Row("ssl-certfile", "ssl_certfile", None, __file__, __file__, "/no/such/file"),
]


def words(flag: str, *values: str) -> list[str]:
    """A flag repeated with each value; yes and no are flags of their own."""
    found = []
    for value in values:
        switch = {ON: [f"--{flag}"], OFF: [f"--no-{flag}"]}
        found += switch.get(value, [f"--{flag}", value])
    return found


def text(*values: str) -> str:
    """Values as a variable holds them."""
    return ";".join({ON: "true", OFF: "false"}.get(value, value) for value in values)


def values_of(resolved: Resolved, row: Row) -> tuple:
    return tuple(getattr(args, row.field) for args in resolved.engine_args)


def test_every_option_is_in_one_of_the_tables():
    tested = {row[0] for row in PER_MODEL} | {row[0] for row in SERVER}
    untested = {option.flag for option in SETTING_BY_FLAG.values()} - tested
    assert untested == {"model-id", "ssl-keyfile"}  # each with tests of its own


@pytest.mark.parametrize("row", PER_MODEL)
class TestPerModelOption:
    def test_default(self, row):
        assert values_of(parse(["--model-id", "one/model"]), row) == (row.default,)

    def test_flag_goes_to_models_by_position(self, row):
        assert values_of(parse(TWO_MODELS + words(row.flag, *row.written)), row) == row.meant

    def test_variable_is_a_list(self, row):
        end = "" if row.written[-1] else ";"
        assert values_of(parse(TWO_MODELS, {row.variable: text(*row.written) + end}), row) == row.meant

    def test_variable_may_end_with_a_separator(self, row):
        assert values_of(parse(TWO_MODELS, {row.variable: text(*row.written) + ";"}), row) == row.meant

    def test_another_number_of_values_is_refused(self, row):
        with pytest.raises(ConfigurationError, match=f"--{row.flag} has 3 values for 2 models"):
            parse(TWO_MODELS + words(row.flag, *row.written, row.written[0]))
        with pytest.raises(ConfigurationError, match=f"{row.variable} has 2 values for 1 model"):
            parse(["--model-id", "a/one"], {row.variable: text(*row.written) + ";"})

    def test_flag_wins_over_variable(self, row):
        resolved = parse(TWO_MODELS + words(row.flag, *row.written), {row.variable: text(*row.written[::-1])})
        assert values_of(resolved, row) == row.meant


@pytest.mark.parametrize(
    "row", [row for row in PER_MODEL if row.field not in {"served_model_name", "vector_disk_cache_path"}]
)
def test_one_value_is_for_all_models(row):
    assert values_of(parse(TWO_MODELS + words(row.flag, row.written[0])), row) == (row.meant[0],) * 2
    assert values_of(parse(TWO_MODELS, {row.variable: text(row.written[0])}), row) == (row.meant[0],) * 2


def test_one_switch_for_all_models_still_gives_each_its_own_disk_cache():
    resolved = parse([*TWO_MODELS, "--vector-disk-cache"])
    assert [args.vector_disk_cache_path for args in resolved.engine_args] == ["auto_a_one", "auto_b_two"]


@pytest.mark.parametrize("row", SERVER)
class TestServerOption:
    def test_default(self, row):
        assert getattr(parse([]).server_args, row.field) == row.default

    def test_flag(self, row):
        assert getattr(parse(words(row.flag, row.written)).server_args, row.field) == row.meant

    def test_variable(self, row):
        assert getattr(parse([], {row.variable: text(row.written)}).server_args, row.field) == row.meant


@pytest.mark.parametrize("row", [row for row in PER_MODEL + SERVER if row.wrong is not None])
class TestWrongValue:
    def test_on_the_command_line_is_a_usage_error_that_names_the_flag(self, row):
        with pytest.raises(click.UsageError) as usage:
            parse([f"--{row.flag}", row.wrong])
        assert usage.value.exit_code == 2
        assert f"--{row.flag}" in usage.value.format_message()

    def test_in_the_environment_is_an_error_that_names_the_variable(self, row):
        with pytest.raises(ConfigurationError, match=row.variable):
            parse([], {row.variable: row.wrong})


def test_the_number_of_model_ids_is_the_number_of_engines():
    assert [args.model_name_or_path for args in parse(TWO_MODELS).engine_args] == ["a/one", "b/two"]
    assert [args.model_name_or_path for args in parse([], {"INFINITY_MODEL_ID": "E;C;"}).engine_args] == ["E", "C"]
    assert [args.model_name_or_path for args in parse([]).engine_args] == ["sentence-transformers/all-MiniLM-L6-v2"]


def test_each_model_gets_its_own_option():
    resolved = parse([*TWO_MODELS, "--batch-size", "8", "--batch-size", "32"])
    assert [(args.served_model_name, args.batch_size) for args in resolved.engine_args] == [("a/one", 8), ("b/two", 32)]


def test_only_one_separator_at_the_end_is_ignored():
    with pytest.raises(ConfigurationError, match="INFINITY_MODEL_ID: it must not be empty"):
        parse([], {"INFINITY_MODEL_ID": "E;C;;"})


def test_the_old_name_of_the_model_option_is_still_read():
    (args,) = parse(["--model-name-or-path", "a/one"]).engine_args
    assert args.model_name_or_path == "a/one"


@pytest.mark.parametrize(
    "arguments", [["--model-id", "a/b", "--model-id", "a/b"], [*TWO_MODELS, "--served-model-name", "same"]]
)
def test_served_names_must_differ(arguments):
    with pytest.raises(ConfigurationError, match="Names must differ"):
        parse(arguments)


@pytest.mark.parametrize("word", ["true", "TRUE", "1"])
def test_list_variable_reads_true(word):
    assert parse([], {"INFINITY_COMPILE": word}).engine_args[0].compile


@pytest.mark.parametrize("word", ["false", "0", "no"])
def test_list_variable_reads_false_without_a_word(word):
    resolved = parse([], {"INFINITY_COMPILE": word})
    assert not resolved.engine_args[0].compile
    assert not resolved.warnings


@pytest.mark.parametrize("word", ["yes", "maybe", "2"])
def test_list_variable_reads_other_words_as_false_and_says_so(word):
    resolved = parse([], {"INFINITY_COMPILE": word})
    assert not resolved.engine_args[0].compile
    assert len(resolved.warnings) == 1
    assert f"INFINITY_COMPILE: '{word}' is read as false" in resolved.warnings[0]


@pytest.mark.parametrize(
    ("word", "meant", "warned"), [("yes", True, 0), ("t", True, 0), ("n", False, 0), ("si", False, 1)]
)
def test_single_variable_reads_more_words_as_true(word, meant, warned):
    resolved = parse([], {"INFINITY_PERMISSIVE_CORS": word})
    assert resolved.server_args.permissive_cors is meant
    assert len(resolved.warnings) == warned


def test_an_empty_variable_counts_as_not_set():
    names = ("BATCH_SIZE", "ENGINE", "PORT", "MODEL_ID", "THREADS", "LOG_LEVEL", "MODEL_WARMUP", "REQUEST_TIMEOUT_S")
    assert parse([], {f"INFINITY_{name}": "" for name in names}).engine_args == parse([]).engine_args


@pytest.mark.parametrize(
    "arguments", [["--no-bettertransformer"], ["--lengths-via-tokenize"], ["--onnx-do-not-prefer-quantized"]]
)
def test_an_option_without_effect_is_accepted_with_one_line(arguments):
    (warning,) = parse(arguments).warnings
    assert "has no effect" in warning
    assert not parse([]).warnings


def test_a_variable_of_the_original_without_effect_is_accepted_with_one_line():
    (warning,) = parse([], {"INFINITY_ANONYMOUS_USAGE_STATS": "1"}).warnings
    assert warning.startswith("INFINITY_ANONYMOUS_USAGE_STATS has no effect")


def test_the_report_masks_the_api_key():
    resolved = parse(["--api-key", "sesame", "--batch-size", "4"])
    assert "api-key = *** (--api-key)" in resolved.report
    assert "batch-size = 4 (--batch-size)" in resolved.report
    assert "sesame" not in repr(resolved)


def test_several_api_keys():
    assert parse(["--api-key", "one", "--api-key", "two"]).server_args.api_keys == ("one", "two")
    assert parse([], {"INFINITY_API_KEY": "one;two"}).server_args.api_keys == ("one", "two")
    assert parse([], {"INFINITY_API_KEY": ""}).server_args.api_keys == ()


def test_flag_wins_over_variable_over_file_over_default(tmp_path):
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"batch-size": 1, "host": "file", "port": 1, "queue-size": 7}))
    resolved = parse(
        ["--config", str(path), "--batch-size", "3"], {"INFINITY_BATCH_SIZE": "2", "INFINITY_HOST": "variable"}
    )
    (args,) = resolved.engine_args
    assert (args.batch_size, resolved.server_args.host, resolved.server_args.port) == (3, "variable", 1)
    assert (args.queue_size, args.max_client_batch_size) == (7, 2048)
    assert parse([], {"INFINITY_CONFIG": str(path)}).engine_args[0].batch_size == 1


def test_a_file_that_is_not_there_is_a_wrong_call():
    with pytest.raises(click.UsageError, match="there is no file"):
        parse(["--config", "/no/such/file.toml"])


def test_a_key_without_a_certificate_is_refused():
    with pytest.raises(ConfigurationError, match="needs --ssl-certfile"):
        parse(["--ssl-keyfile", __file__])


def test_ports_that_fit_no_model_count_are_refused():
    with pytest.raises(ConfigurationError, match="--port is given 3 times for 1 model"):
        parse(["--port", "1", "--port", "2", "--port", "3"])
