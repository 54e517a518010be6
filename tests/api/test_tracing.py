"""Spans of requests, collected in this process."""

from __future__ import annotations

import asyncio
import logging
import sys

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from infinity_emb import EngineArgs
from infinity_emb.engine.array import AsyncEngineArray
from infinity_emb.errors import BackendError, MissingExtraError
from infinity_emb.metrics import HttpMetrics
from infinity_emb.server.app import Application
from infinity_emb.server.lifecycle import Lifecycle, Models
from infinity_emb.server.settings import HttpSettings
from infinity_emb.server.tracing import Tracing, tracing_of

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SECRET = "the recipe of the sauce"


@pytest.fixture
def spans():
    return InMemorySpanExporter()


@pytest.fixture
def tracing(spans):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    yield Tracing(provider)
    provider.shutdown()


def test_a_request_is_one_span_with_its_stages_and_none_of_its_text(spans, tracing):
    async def main():
        engine = EngineArgs(model_name_or_path="some/dummy", engine="dummy")
        array = AsyncEngineArray.from_args([engine])
        await array.astart()
        lifecycle = Lifecycle(["some/dummy"])
        lifecycle.open(array)
        app = Application(Models(lifecycle), HttpSettings(), HttpMetrics(), None, tracing)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
            answer = await client.post("/v1/embeddings", json={"input": SECRET}, headers={"traceparent": PARENT})
        await array.astop()
        return answer

    assert asyncio.run(main()).status_code == 200
    (span,) = spans.get_finished_spans()
    assert span.name == "POST /v1/embeddings"
    assert span.kind is SpanKind.SERVER
    assert f"{span.context.trace_id:032x}" == PARENT.split("-")[1]
    assert f"{span.parent.span_id:016x}" == PARENT.split("-")[2]
    found = span.attributes
    assert (found["http.response.status_code"], found["gen_ai.request.model"]) == (200, "some/dummy")
    assert (found["gen_ai.operation.name"], found["gen_ai.provider.name"]) == ("embeddings", "infinity_emb")
    assert found["infinity.computed_tokens"] == len(SECRET) + 1
    stages = [found[f"infinity.{stage}_s"] for stage in ("tokenize", "queue", "forward", "respond")]
    assert all(value >= 0 for value in stages)
    assert 0 < sum(stages) <= (span.end_time - span.start_time) / 1e9
    assert SECRET not in span.to_json()


def test_the_answer_says_which_span_it_was(served, spans, tracing):
    served.app._tracing = tracing
    answer = served.request("POST", "/rerank", json={"query": "a", "documents": ["b"]}, headers={"traceparent": PARENT})
    (span,) = spans.get_finished_spans()
    assert answer.headers["traceresponse"] == f"00-{PARENT.split('-')[1]}-{span.context.span_id:016x}-01"
    assert span.attributes["gen_ai.operation.name"] == "rerank"


def test_an_answer_that_is_not_sampled_or_not_traced_names_no_span(served, spans, tracing):
    assert "traceresponse" not in served.request("GET", "/health", headers={"traceparent": PARENT}).headers
    served.app._tracing = tracing
    unsampled = PARENT.removesuffix("01") + "00"
    assert "traceresponse" not in served.request("GET", "/health", headers={"traceparent": unsampled}).headers
    assert not spans.get_finished_spans()


def test_a_request_that_fails_names_its_operation_and_its_error(served, spans, tracing):
    served.app._tracing = tracing
    served.engine.error = BackendError("broken")
    served.post("/classify", {"input": ["x"]})
    found = spans.get_finished_spans()[0].attributes
    assert (found["gen_ai.operation.name"], found["error.type"]) == ("classify", "500")


@pytest.mark.parametrize("parent", ["", "nonsense", "00-0-0-01"])
def test_a_parent_that_cannot_be_read_is_none(served, spans, tracing, parent):
    served.app._tracing = tracing
    assert served.request("GET", "/health", headers={"traceparent": parent}).status_code == 200
    assert spans.get_finished_spans()[0].parent is None


def test_errors_of_the_server_are_marked_and_those_of_the_client_are_not(served, spans, tracing):
    served.app._tracing = tracing
    served.post("/v1/embeddings", {"input": []})
    served.engine.error = BackendError("broken")
    served.post("/v1/embeddings", {"input": "x"})
    client, server = spans.get_finished_spans()
    assert (client.status.status_code, server.status.status_code) == (StatusCode.UNSET, StatusCode.ERROR)


@pytest.mark.parametrize(
    ("variables", "asked"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_SDK_DISABLED": "true"}, True),
        ({"OTEL_TRACES_EXPORTER": "none"}, True),
    ],
)
def test_there_are_no_traces_unless_somebody_wants_them(variables, asked):
    assert tracing_of(variables, asked=asked) is None


def test_a_variable_of_opentelemetry_switches_them_on():
    tracing = tracing_of({"OTEL_TRACES_EXPORTER": "console"}, asked=False)
    assert isinstance(tracing, Tracing)
    tracing.close()


def test_a_missing_library_is_an_error_if_asked_for_and_else_a_warning(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(MissingExtraError, match=r"infinity_emb\[otel\]"):
        tracing_of({}, asked=True)
    with caplog.at_level(logging.WARNING, "infinity_emb"):
        assert tracing_of({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}, asked=False) is None
    assert "OTEL_EXPORTER_OTLP_ENDPOINT is set" in caplog.text
