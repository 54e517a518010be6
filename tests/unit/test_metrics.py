from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from infinity_emb.measures import Histogram, StageTimes
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


def test_the_time_of_a_request_is_shown_by_stage():
    metrics, times = HttpMetrics(), StageTimes()
    times.tokenize_s, times.queue_s, times.forward_s, times.computed_s = 0.002, 0.3, 0.04, 100.0
    metrics.record_stages("m", times.seconds(100.5))
    found = samples(metrics)
    sums = {s: found["infinity_stage_seconds_sum", (("model", "m"), ("stage", s))] for s in ("tokenize", "queue")}
    assert sums == {"tokenize": 0.002, "queue": 0.3}
    labels = (("le", "0.5"), ("model", "m"), ("stage", "respond"))
    assert found["infinity_stage_seconds_bucket", labels] == 1
    assert found["infinity_stage_seconds_bucket", (("le", "0.25"), *labels[1:])] == 0


def test_batches_and_the_cache_are_shown_by_model():
    metrics, fill = HttpMetrics(), Histogram((0.5, 1.0))
    for value in (0.4, 0.5, 0.9):
        fill.observe(value)
    metrics.watch_models(tuple, lambda: [("m", {"fill_ratio": fill.copy()}, {"memory_hits": 3})])
    found = samples(metrics)
    assert found["infinity_batch_fill_ratio_bucket", (("le", "0.5"), ("model", "m"))] == 2
    assert found["infinity_batch_fill_ratio_count", (("model", "m"),)] == 3
    assert found["infinity_cache_items_total", (("how", "memory_hits"), ("model", "m"))] == 3


def test_operations_are_shown_by_model_and_status_and_their_tokens_once_a_request():
    metrics = HttpMetrics()
    metrics.record_operation("m", "embeddings", 200, 0.03)
    metrics.record_operation("m", "embeddings", 429, 0.001)
    metrics.record_work("m", "embed", items=2, tokens=30, truncated=0)
    metrics.record_work("m", "sparse", items=2, tokens=5, truncated=0)
    metrics.record_work("m", "sparse", items=2, tokens=0, truncated=0)  # of the same pass as another output
    metrics.record_work("m", "rerank", items=1, tokens=9, truncated=0)
    found = samples(metrics)
    name, labels = "gen_ai_server_request_duration_seconds", (("model", "m"), ("operation", "embeddings"))
    assert found[f"{name}_count", (*labels, ("status", "200"))] == 1
    assert found[f"{name}_bucket", (("le", "0.02"), *labels, ("status", "200"))] == 0
    assert found[f"{name}_bucket", (("le", "0.04"), *labels, ("status", "200"))] == 1
    assert found[f"{name}_count", (*labels, ("status", "429"))] == 1
    assert found["gen_ai_client_token_usage_count", labels] == 2
    assert found["gen_ai_client_token_usage_sum", labels] == 35
    assert found["gen_ai_client_token_usage_bucket", (("le", "16"), *labels)] == 1


def test_durations_are_shown_finer_by_exact_status():
    metrics = HttpMetrics()
    metrics.record("/a", "POST", 200, (0, 0), 0.004)
    metrics.record("/a", "POST", 201, (0, 0), 3.0)
    found = samples(metrics)
    name, labels = "http_server_request_duration_seconds", (("handler", "/a"), ("method", "POST"))
    assert found[f"{name}_bucket", (labels[0], ("le", "0.005"), labels[1], ("status", "200"))] == 1
    assert found[f"{name}_sum", (*labels, ("status", "201"))] == 3.0
    assert found["http_request_duration_seconds_bucket", (labels[0], ("le", "1.0"), labels[1])] == 1
    assert found["http_request_duration_seconds_count", labels] == 2
