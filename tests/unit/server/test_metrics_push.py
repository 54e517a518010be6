"""Metrics sent to a collector on loopback by a real server around an engine double."""

# ruff: noqa: ASYNC110 - the loops wait for a server in the same event loop

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import signal
import sys
from types import SimpleNamespace

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from api.collector import Collector, read
from infinity_emb.errors import BackendError, ConfigurationError, MissingExtraError
from infinity_emb.metrics import HttpMetrics
from infinity_emb.server import metrics_push, process, telemetry
from infinity_emb.server.metrics_push import MetricsPush, push_of

OTEL = ("OTEL_METRIC_EXPORT_INTERVAL", "OTEL_METRICS_EXPORTER", "OTEL_TRACES_EXPORTER", "OTEL_SDK_DISABLED")
RENAMED = {
    "http_server_request_duration_seconds": (
        "http.server.request.duration",
        {"handler": "http.route", "method": "http.request.method", "status": "http.response.status_code"},
    ),
    "gen_ai_server_request_duration_seconds": (
        "gen_ai.server.request.duration",
        {"model": "gen_ai.request.model", "operation": "gen_ai.operation.name", "status": "error.type"},
    ),
    "gen_ai_client_token_usage": (
        "gen_ai.client.token.usage",
        {"model": "gen_ai.request.model", "operation": "gen_ai.operation.name"},
    ),
}


@pytest.fixture
def collector(monkeypatch):
    made = Collector()
    for name in OTEL:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", made.url)
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "vectors of the shop")
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _nothing_was_said_before():
    loggers = (metrics_push.logger, logging.getLogger("opentelemetry.exporter.otlp.proto.http.metric_exporter"))
    for said in itertools.chain.from_iterable(one.filters for one in loggers):
        if isinstance(said, telemetry.OncePerMinute):
            said._next_s = 0.0


async def serve_while(server, work):
    """Run the server, do something with a client of it, and stop it."""
    server.may_load.set()
    serving = asyncio.create_task(server.process.serve())
    async with httpx.AsyncClient(base_url=server.urls[0]) as client:
        while (await client.get("/health")).status_code != 200:
            await asyncio.sleep(0)
        await work(client)
    os.kill(os.getpid(), signal.SIGTERM)
    return await serving


def shown(page):
    """Families of the page of metrics by name, without those that are empty and what Python says of itself."""
    families = text_string_to_metric_families(page.decode())
    return {one.name: one for one in families if one.samples and not one.name.startswith(("python_", "process_"))}


def flat(point):
    return {name: str(value) for name, value in read(point.attributes).items()}


def sent_samples(metric):
    """A sent metric as the page shows one: (ending, attributes, bound) to number."""
    found = {}
    kind = metric.WhichOneof("data")
    for point in getattr(metric, kind).data_points:
        key = frozenset(flat(point).items())
        if kind != "histogram":
            found["", key, ""] = getattr(point, point.WhichOneof("value"))
            continue
        bounds = [*point.explicit_bounds, float("inf")] if point.explicit_bounds else []
        for bound, below in zip(bounds, itertools.accumulate(point.bucket_counts), strict=bool(bounds)):
            found["_bucket", key, bound] = below
        assert sum(point.bucket_counts) == point.count
        found["_count", key, ""], found["_sum", key, ""] = point.count, point.sum
    return found


def page_samples(family):
    found = {}
    for sample in family.samples:
        labels = {name: value for name, value in sample.labels.items() if name != "le"}
        if family.name in RENAMED:
            labels = attributes(family.name, labels)
        ending = sample.name[len(family.name) :] if family.type in {"histogram", "summary"} else ""
        bound = float(sample.labels["le"]) if "le" in sample.labels else ""
        found[ending, frozenset(labels.items()), bound] = sample.value
    return found


def attributes(name, labels):
    """What the conventions make of our labels."""
    named = {RENAMED[name][1][label]: value for label, value in labels.items()}
    if name.startswith("http_"):
        named["url.scheme"] = "http"
        if named["http.request.method"] == "OTHER":
            named["http.request.method"] = "_OTHER"
            del named["http.route"]
        if named["http.response.status_code"] == "500":
            named["error.type"] = "500"
        return named
    named["gen_ai.provider.name"] = "infinity_emb"
    if name.endswith("usage"):
        named["gen_ai.token.type"] = "input"
    elif named["error.type"] == "200":
        del named["error.type"]
    return named


def test_what_the_collector_gets_is_what_the_page_shows(monkeypatch, collector, running):
    server = running(monkeypatch)

    async def work(client):
        await client.post("/v1/embeddings", json={"input": ["one two", "three"]})
        await client.post("/rerank", json={"query": "a", "documents": ["b", "c"]})
        await client.post("/classify", json={"input": ["b"]})
        assert (await client.get("/nowhere")).status_code == 404
        server.engines[0].error = BackendError("broken")
        assert (await client.post("/v1/embeddings", json={"input": "x"})).status_code == 500

    pages, push = [], server.process._push
    metrics, collect = server.process._applications[0].serving.metrics, push._collect
    push._collect = lambda: (pages.append(metrics.exposition()), collect())[1]
    assert asyncio.run(serve_while(server, work)) == 0
    sent, resource = collector.last()
    assert resource["service.name"] == "vectors of the shop"
    page = {name_of(family): family for family in shown(pages[-1]).values()}
    assert len(page) > 15
    assert set(page) == set(sent)
    assert {name: sent_samples(sent[name]) for name in page} == {name: page_samples(page[name]) for name in page}


def name_of(family):
    return RENAMED[family.name][0] if family.name in RENAMED else family.name + "_total" * (family.type == "counter")


def test_operations_of_models_are_named_as_the_conventions_do(monkeypatch, collector, running):
    server = running(monkeypatch)

    async def work(client):
        await client.post("/v1/embeddings", json={"input": ["one two", "three"]})
        await client.post("/rerank", json={"query": "a", "documents": ["b"]})
        await client.post("/classify", json={"input": ["b"]})

    asyncio.run(serve_while(server, work))
    sent, _ = collector.last()
    usage, duration = sent["gen_ai.client.token.usage"], sent["gen_ai.server.request.duration"]
    assert (usage.unit, duration.unit) == ("{token}", "s")
    operations = sorted(flat(point)["gen_ai.operation.name"] for point in duration.histogram.data_points)
    assert operations == ["classify", "embeddings", "rerank"]
    (tokens,) = [one for one in usage.histogram.data_points if flat(one)["gen_ai.operation.name"] == "embeddings"]
    assert (tokens.count, tokens.sum) == (1, 7)
    assert list(tokens.explicit_bounds[:4]) == [1, 4, 16, 64]
    assert list(tokens.bucket_counts[:4]) == [0, 0, 1, 0]
    assert sent["infinity_items_total"].sum.is_monotonic
    assert sent["infinity_items_total"].sum.aggregation_temporality == 2  # cumulative
    assert sent["http.server.request.duration"].histogram.aggregation_temporality == 2


def test_traces_and_metrics_of_one_server_name_the_same_service(monkeypatch, collector, running):
    monkeypatch.delenv("OTEL_TRACES_EXPORTER")
    answers = []

    async def work(client):
        answers.append(await client.post("/v1/embeddings", json={"input": "x"}))

    asyncio.run(serve_while(running(monkeypatch), work))
    spans = {}
    for whole in itertools.chain.from_iterable(one.resource_spans for one in collector.traces):
        assert read(whole.resource.attributes) == collector.last()[1]
        spans |= {span.span_id.hex(): span for scoped in whole.scope_spans for span in scoped.spans}
    _, trace, span, _ = answers[0].headers["traceresponse"].split("-")
    assert (spans[span].trace_id.hex(), spans[span].name) == (trace, "POST /v1/embeddings")


def test_they_are_sent_again_and_again(monkeypatch, collector, running):
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "1")

    async def work(client):
        while len(collector.metrics) < 3:
            await client.get("/livez")

    asyncio.run(serve_while(running(monkeypatch), work))


def test_a_collector_that_refuses_hurts_nobody_and_is_complained_of_once(monkeypatch, collector, running, caplog):
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "1")
    collector.status = 400

    async def work(client):
        while len(collector.metrics) < 5:
            assert (await client.post("/v1/embeddings", json={"input": "x"})).status_code == 200

    assert asyncio.run(serve_while(running(monkeypatch), work)) == 0
    complaints = [one for one in caplog.records if one.name.startswith("opentelemetry.exporter")]
    assert len(complaints) == 1


def test_a_collector_that_hangs_neither_holds_requests_nor_the_end(monkeypatch, collector, running, caplog):
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "1")
    monkeypatch.setattr(process, "_TELL_S", 0.05)
    monkeypatch.delenv("OTEL_TRACES_EXPORTER")
    collector.may_answer.clear()

    async def work(client):
        while "/v1/metrics" not in collector.paths:
            await client.get("/livez")
        assert (await client.post("/v1/embeddings", json={"input": "x"})).status_code == 200

    assert asyncio.run(serve_while(running(monkeypatch), work)) == 0
    assert collector.paths.count("/v1/metrics") == 1, "a second sending began before the first one ended"
    assert "not taken by the collector" in caplog.text


def test_a_sending_that_fails_in_an_unforeseen_way_is_told_and_the_next_one_goes_on(caplog):
    sent, fails = [], [ValueError("a bug")]

    def collect():
        if fails:
            raise fails.pop()
        return ()

    async def main():
        done = asyncio.Event()
        loop = asyncio.get_running_loop()
        exporter = SimpleNamespace(
            export=lambda data: (sent.append(data), loop.call_soon_threadsafe(done.set)), shutdown=lambda: None
        )
        push = MetricsPush(collect, SimpleNamespace(of=tuple), exporter, 0.001)
        push.start()
        await done.wait()
        await push.stop()

    asyncio.run(main())
    assert len(sent) >= 2
    assert "a bug" in caplog.text


def test_the_console_is_written_to(monkeypatch, collector, running):
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "console")

    async def work(client):
        await client.get("/livez")

    written = []
    monkeypatch.setattr(
        "opentelemetry.sdk.metrics.export.ConsoleMetricExporter.export", lambda _, data: written.append(data.to_json())
    )
    asyncio.run(serve_while(running(monkeypatch), work))
    (whole,) = json.loads(written[-1])["resource_metrics"]
    assert "http.server.request.duration" in {one["name"] for one in whole["scope_metrics"][0]["metrics"]}
    assert not collector.metrics


@pytest.mark.parametrize(
    ("variables", "asked"),
    [
        ({}, False),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, False),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:9"}, False),
        ({"OTEL_SDK_DISABLED": "True"}, True),
        ({"OTEL_METRICS_EXPORTER": "none"}, True),
        ({"OTEL_METRICS_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}, False),
    ],
)
def test_nothing_is_sent_unless_somebody_wants_it(variables, asked):
    assert push_of(variables, HttpMetrics().collect, asked=asked, scheme="http") is None


@pytest.mark.parametrize(
    ("variables", "asked"),
    [
        ({}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}, False),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://127.0.0.1:9"}, False),
        ({"OTEL_METRICS_EXPORTER": "console"}, False),
    ],
)
def test_a_flag_or_a_variable_switches_it_on(variables, asked):
    assert isinstance(push_of(variables, HttpMetrics().collect, asked=asked, scheme="http"), MetricsPush)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_METRICS_EXPORTER", "prometheus"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "soon"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "0"),
    ],
)
def test_a_value_that_is_not_understood_is_an_error_if_asked_for_and_else_a_warning(name, value, caplog):
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", name: value}
    with pytest.raises(ConfigurationError, match=f"{name} is '{value}'"):
        push_of(variables, HttpMetrics().collect, asked=True, scheme="http")
    assert push_of(variables, HttpMetrics().collect, asked=False, scheme="http") is None
    assert "there will be no metrics" in caplog.text


def test_a_missing_library_is_an_error_if_asked_for_and_else_a_warning(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.metrics.export", None)
    with pytest.raises(MissingExtraError, match=r"infinity_emb\[otel\]"):
        push_of({}, HttpMetrics().collect, asked=True, scheme="http")
    variables = {"OTEL_METRICS_EXPORTER": "otlp"}
    assert push_of(variables, HttpMetrics().collect, asked=False, scheme="http") is None
    assert "OTEL_METRICS_EXPORTER is set, but there will be no metrics" in caplog.text


def test_complaints_come_once_a_minute(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(telemetry.time, "monotonic", lambda: now[0])
    calm, heard = telemetry.OncePerMinute(), []
    for now[0] in (5.0, 6.0, 64.9, 65.0, 66.0):
        heard.append(calm.filter(None))
    assert heard == [True, False, False, True, False]
