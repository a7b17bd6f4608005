"""Where spans go: the program's provider, a collector that the environment names, or nowhere."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import opentelemetry.trace as api
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from proctor.sessions.telemetry import run_observer
from proctor.sessions.telemetry.run_observer import build_pipeline, get_program_provider, list_exporters
from tests.tables import each_row
from tests.telemetry.conftest import provider_to
from tests.telemetry.observation import chat_span, observe


class Collector:
    """An OTLP/HTTP collector on this machine."""

    def __init__(self, status: int = 200) -> None:
        self.spans: list[Span] = []
        self.services: set[str] = set()
        self.requests = 0
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                collector.take(self.path, body)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, path: str, body: bytes) -> None:
        assert path == "/v1/traces"
        self.requests += 1
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            for attribute in resource.resource.attributes:
                if attribute.key == "service.name":
                    self.services.add(attribute.value.string_value)
            for scope in resource.scope_spans:
                self.spans.extend(scope.spans)

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join(10)
        self._server.server_close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _no_settings_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in tuple(os.environ):
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)


def environment(monkeypatch: pytest.MonkeyPatch, **settings: str) -> dict[str, str]:
    """Settings as the exporter reads them, too."""
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    return settings


def test_environment_variables_suffice(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is exported completely to the collector in the environment when it ends."""
    settings = environment(monkeypatch, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    watched = observe(lambda text: text, [f"{i}" for i in range(40)], [lambda o, e: o == e], environment=settings)
    assert watched.warnings == []
    names = sorted(span.name for span in collector.spans)
    assert names.count("proctor trial") == 40
    assert len(names) == 81
    (root,) = [span for span in collector.spans if span.name == "proctor run capitals"]
    trials = [span for span in collector.spans if span.name == "proctor trial"]
    assert {span.parent_span_id for span in trials} == {root.span_id}
    assert collector.services == {"proctor"}
    assert not isinstance(api.get_tracer_provider(), TracerProvider)


def test_a_service_keeps_its_name(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service name in the environment is used."""
    settings = environment(
        monkeypatch,
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=collector.url + "/v1/traces",
        OTEL_RESOURCE_ATTRIBUTES="team=blue, service.name=nightly",
        OTEL_BSP_MAX_QUEUE_SIZE="4096",
    )
    assert observe(lambda text: text, environment=settings).warnings == []
    assert collector.services == {"nightly"}


def test_the_programs_provider_comes_first(
    collector: Collector, provider: TracerProvider, exported: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that has set one exports by it; nothing is sent twice."""
    settings = environment(monkeypatch, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    observe(lambda text: text, environment=settings)
    assert collector.requests == 0
    assert len(exported.get_finished_spans()) == 2


def test_a_provider_that_is_set_later_is_used(
    collector: Collector, exported: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our spans go on to the collector; the program's come into the sessions and go its way."""
    settings = environment(monkeypatch, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)

    def agent(text: str) -> str:
        if get_program_provider() is None:
            api.set_tracer_provider(provider_to(exported))
        with chat_span(text, "yes"):
            pass
        return text

    watched = observe(agent, list("abc"), environment=settings, concurrency=1)
    recorded = [result.trial.session is not None for result in watched.results]
    assert recorded == [False, True, True]
    assert {span.name for span in collector.spans} == {"proctor run capitals", "proctor trial"}
    assert {span.name for span in exported.get_finished_spans()} == {"chat small"}


def test_an_unreachable_collector_is_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run does not change, and its end waits only while spans are sent."""
    monkeypatch.setattr(run_observer, "STALL_SECONDS", 0.1)
    monkeypatch.setattr(run_observer, "CLOSE_SECONDS", 1e9)
    settings = environment(monkeypatch, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    watched = observe(lambda text: text, list("abc"), [lambda o, e: o == e], environment=settings)
    assert all(result.passed for result in watched.results)
    (warning,) = watched.warnings
    assert warning.startswith("OpenTelemetry: 7 of 7 spans could not be exported")


def test_a_collector_that_refuses_is_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong key is found out at once and not tried again."""
    refusing = Collector(status=401)
    settings = environment(monkeypatch, OTEL_EXPORTER_OTLP_ENDPOINT=refusing.url, OTEL_BSP_SCHEDULE_DELAY="20")
    refused = threading.Event()
    monkeypatch.setattr(refusing, "take", lambda path, body: refused.set())
    try:
        watched = observe(lambda text: text == "a" or refused.wait(60), list("ab"), environment=settings, concurrency=1)
    finally:
        refusing.close()
    (warning,) = watched.warnings
    assert "3 of 3 spans" in warning


@each_row(
    ("settings", "exporters"),
    [
        ({}, []),
        ({"OTEL_TRACES_EXPORTER": "none"}, []),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, ["otlp_proto_http"]),
        ({"OTEL_TRACES_EXPORTER": " otlp, console "}, ["otlp_proto_http", "console"]),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, ["otlp_proto_http"]),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, ["otlp_proto_http"]),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"}, []),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_TRACES_EXPORTER": "none"}, []),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, ["otlp_proto_grpc"]),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "smoke"}, ["otlp (smoke)"]),
    ],
)
def test_exporters_are_listed_from_the_environment(settings: dict[str, str], exporters: list[str]) -> None:
    """OpenTelemetry's own variables, and none of ours."""
    assert list_exporters(settings) == exporters


def test_a_missing_exporter_is_reported() -> None:
    """The run continues without it, and the report says what is missing."""
    watched = observe(lambda text: text, environment={"OTEL_TRACES_EXPORTER": "smoke"})
    (warning,) = watched.warnings
    assert "'smoke' is not installed" in warning
    assert "otlp_proto_http" in warning
    assert 'pip install "proctor[otel]"' in warning


def test_wrong_settings_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the exporter makes of them is its own affair; a run does not fail for it."""
    settings = environment(
        monkeypatch,
        OTEL_EXPORTER_OTLP_ENDPOINT="http://x",
        OTEL_BSP_MAX_QUEUE_SIZE="3",
        OTEL_BSP_MAX_EXPORT_BATCH_SIZE="7",
    )
    made, problem = build_pipeline(settings)
    assert made is None
    assert problem is not None
    assert "because of its settings" in problem


NOTHING = """
import asyncio, sys
from datetime import UTC, datetime
from proctor.engine.rescore import RescorePlan
from proctor.records.run import RunMetadata
from proctor.sessions.telemetry import observe_run

class Runner:
    max_concurrency = None
    async def run(self, *asked):
        return "result"

async def work():
    runner = Runner()
    async with observe_run(RunMetadata("r", "n", datetime.now(UTC))) as observed:
        wrapped = observed.make_runner(RescorePlan(()), lambda _setup: runner)
        assert await wrapped.run(None, None, None, 0) == "result"
        assert observed.wrap_evaluators([]) == ()
        print(wrapped is runner)

asyncio.run(work())
print(sorted(name for name in sys.modules if name.startswith("opentelemetry")))
"""


def python(code: str, **settings: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code], env=settings, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.splitlines()


def test_nothing_is_loaded_where_nothing_is_configured() -> None:
    """The packages are installed, and stay on disk."""
    assert python(NOTHING) == ["False", "[]"]


ABSENT = """
import importlib.machinery

finder = importlib.machinery.PathFinder.find_spec
importlib.machinery.PathFinder.find_spec = classmethod(
    lambda cls, name, path=None, target=None:
        None if name.partition(".")[0] == "opentelemetry" else finder(name, path, target)
)
"""


def test_nothing_is_wrapped_without_the_packages() -> None:
    """A run that cannot be observed pays nothing for it."""
    assert python(ABSENT + NOTHING) == ["True", "[]"]


def test_settings_without_the_packages_are_a_warning() -> None:
    """Somebody who configured it wants to know."""
    code = ABSENT + (
        "from proctor.sessions.telemetry.run_observer import build_pipeline\n"
        "print(build_pipeline({'OTEL_TRACES_EXPORTER': 'otlp'})[1])\n"
    )
    (line,) = python(code)
    assert line.startswith("OpenTelemetry is configured but cannot be loaded")
    assert line.endswith('pip install "proctor[otel]"')
