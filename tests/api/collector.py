"""A collector on loopback that takes OTLP over HTTP, as the exporters of OpenTelemetry's SDK send it."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """Keeps what it was sent; `status` is what it answers, and it answers nothing while `may_answer` is not set."""

    def __init__(self):
        self.metrics = []
        self.traces = []
        self.status = 200
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.paths = []
        collector = self

        class Take(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                collector._take(self.path, body)
                self.send_response(collector.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Take)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def _take(self, path, body):
        self.paths.append(path)
        self.may_answer.wait(30)
        if path == "/v1/metrics":
            self.metrics.append(ExportMetricsServiceRequest.FromString(body))
        else:
            self.traces.append(ExportTraceServiceRequest.FromString(body))

    def close(self):
        self.may_answer.set()
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()

    def last(self):
        """Metrics of the last sending by name, and its resource's attributes."""
        (whole,) = self.metrics[-1].resource_metrics
        (scoped,) = whole.scope_metrics
        return {metric.name: metric for metric in scoped.metrics}, read(whole.resource.attributes)


def read(attributes):
    """A dictionary of OTLP's list of attributes."""
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in attributes}
