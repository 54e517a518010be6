from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from infinity_emb.metrics import HttpMetrics


def samples(metrics):
    families = text_string_to_metric_families(metrics.exposition().decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_requests_are_counted_by_handler_method_and_kind_of_status():
    metrics = HttpMetrics()
    metrics.record("/a", "POST", 200, (10, 100), 0.05)
    metrics.record("/a", "POST", 201, (20, 200), 0.3)
    metrics.record("/a", "POST", 404, (0, 5), 2.0)
    found = samples(metrics)
    assert found["http_requests_total", (("handler", "/a"), ("method", "POST"), ("status", "2xx"))] == 2
    assert found["http_requests_total", (("handler", "/a"), ("method", "POST"), ("status", "4xx"))] == 1
    assert found["http_request_size_bytes_sum", (("handler", "/a"),)] == 30
    assert found["http_response_size_bytes_count", (("handler", "/a"),)] == 3


def test_durations_fall_into_cumulative_buckets():
    metrics = HttpMetrics()
    for duration_s in (0.1, 0.11, 0.7, 5.0):
        metrics.record("/a", "GET", 200, (0, 0), duration_s)
    found = samples(metrics)
    name = "http_request_duration_seconds_bucket"
    counts = [
        found[name, (("handler", "/a"), ("le", bound), ("method", "GET"))] for bound in ("0.1", "0.5", "1.0", "+Inf")
    ]
    assert counts == [1, 2, 3, 4]
    assert found["http_request_duration_highr_seconds_count", ()] == 4
    assert found["http_request_duration_highr_seconds_sum", ()] == 0.1 + 0.11 + 0.7 + 5.0


def test_work_refusals_and_gauges_are_shown_by_model():
    metrics = HttpMetrics()
    metrics.record_work("m", "embed", items=2, tokens=30, truncated=1)
    metrics.record_work("m", "embed", items=1, tokens=5, truncated=0)
    metrics.record_refusal("overloaded")
    metrics.record_abandoned()
    metrics.watch_models(lambda: [("m", {"infinity_queue_items": 4})])
    found = samples(metrics)
    labels = (("model", "m"), ("task", "embed"))
    assert (found["infinity_items_total", labels], found["infinity_tokens_total", labels]) == (3, 35)
    assert found["infinity_truncated_items_total", labels] == 1
    assert found["infinity_refused_requests_total", (("code", "overloaded"),)] == 1
    assert found["infinity_abandoned_requests_total", ()] == 1
    assert found["infinity_queue_items", (("model", "m"),)] == 4


def test_two_servers_in_one_process_count_apart():
    one, other = HttpMetrics(), HttpMetrics()
    one.record_abandoned()
    assert samples(other)["infinity_abandoned_requests_total", ()] == 0
