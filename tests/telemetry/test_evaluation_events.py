"""Scores as events `gen_ai.evaluation.result`, through the Logs API of the real SDK."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import opentelemetry._logs as logs
import opentelemetry._logs._internal as logs_internal
import opentelemetry.trace as api
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.util._once import Once

from proctor import Score
from proctor.sessions.telemetry.run_observer import LOGS, build_pipeline, list_exporters
from tests.telemetry.observation import chat_span, id_of, named, observe, tool_span
from tests.telemetry.test_provider import Collector, environment


@pytest.fixture(autouse=True)
def _no_logger_provider_of_another_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs_internal, "_LOGGER_PROVIDER", None)
    monkeypatch.setattr(logs_internal, "_LOGGER_PROVIDER_SET_ONCE", Once())


@pytest.fixture
def events() -> Iterator[InMemoryLogRecordExporter]:
    """What leaves the program through its logger provider."""
    exporter = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    logs.set_logger_provider(provider)
    yield exporter
    provider.shutdown()


def read(events: InMemoryLogRecordExporter) -> list[tuple[Any, dict[str, Any]]]:
    """The log records with their attributes, without those of the run."""
    records = [item.log_record for item in events.get_finished_logs()]
    return [(record, _without_run(dict(record.attributes or {}))) for record in records]


def _without_run(attributes: dict[str, Any]) -> dict[str, Any]:
    assert attributes["proctor.run.id"] == "run-1"
    return {name: value for name, value in attributes.items() if name.startswith(("gen_ai.", "error."))}


def close_enough(output: str, expected: str) -> Score:
    return Score(0.5, passed=output == expected, reason="half right")


def skips(output: str) -> Score:
    return Score.skipped("nothing to judge")


def fails(output: str) -> Score:
    raise ValueError("no judge")


def measures(output: str) -> Score:
    return Score(0, passed=False)


@pytest.mark.usefixtures("provider")
def test_each_score_is_an_event_with_the_attributes_of_the_convention(events: InMemoryLogRecordExporter) -> None:
    """Values are numbers, labels are pass, fail and skipped; an error has a type and no label."""
    observe(lambda text: text, evaluators=[close_enough, skips, fails, measures])
    records = read(events)
    assert {record.event_name for record, _ in records} == {"gen_ai.evaluation.result"}
    attributes = {fields.pop("gen_ai.evaluation.name"): fields for _, fields in records}
    assert attributes["close_enough"] == {
        "gen_ai.evaluation.score.value": 0.5,
        "gen_ai.evaluation.score.label": "pass",
        "gen_ai.evaluation.explanation": "half right",
    }
    assert attributes["skips"] == {
        "gen_ai.evaluation.score.label": "skipped",
        "gen_ai.evaluation.explanation": "nothing to judge",
    }
    assert attributes["fails"]["error.type"] == "evaluation_failed"
    assert attributes["fails"].keys() == {"error.type", "gen_ai.evaluation.explanation"}
    assert attributes["measures"] == {"gen_ai.evaluation.score.value": 0.0, "gen_ai.evaluation.score.label": "fail"}
    assert isinstance(attributes["measures"]["gen_ai.evaluation.score.value"], float)


def test_an_event_is_a_child_of_the_operation_that_is_judged(
    provider: TracerProvider, exported: InMemorySpanExporter, events: InMemoryLogRecordExporter
) -> None:
    """The last operation of the target is judged; tools, and calls of evaluators, are not."""

    def agent(text: str) -> str:
        with api.get_tracer("a.framework").start_as_current_span("invoke_agent") as span:
            span.set_attribute("gen_ai.operation.name", "invoke_agent")
            span.set_attribute("gen_ai.response.id", "resp-9")
            with chat_span(text, "Paris"), tool_span("search", {}):
                pass
        return "Paris"

    def judge(output: str) -> bool:
        with chat_span("Is it right?", "Yes"):
            return True

    observe(agent, evaluators=[judge, close_enough])
    (span,) = named(exported, "invoke_agent")
    assert span.context is not None
    for record, fields in read(events):
        assert (record.trace_id, record.span_id) == (span.context.trace_id, id_of(span))
        assert record.trace_flags & 1, "the span is sampled"
        assert fields["gen_ai.response.id"] == "resp-9"
    assert provider is not None


@pytest.mark.usefixtures("provider")
def test_without_an_operation_the_event_is_a_child_of_the_trial(
    exported: InMemorySpanExporter, events: InMemoryLogRecordExporter
) -> None:
    """A target without spans is judged by its trial."""
    observe(lambda text: text, ["a", "b"], [close_enough])
    trials = {id_of(span) for span in named(exported, "proctor trial")}
    assert {record.span_id for record, _ in read(events)} == trials
    assert len(trials) == 2


def test_without_a_tracer_provider_events_have_no_span(events: InMemoryLogRecordExporter) -> None:
    """A program that sets only a logger provider still receives the scores."""
    watched = observe(lambda text: text, evaluators=[close_enough])
    ((record, fields),) = read(events)
    assert not record.span_id
    assert fields["gen_ai.evaluation.score.label"] == "pass"
    assert watched.warnings == []


@pytest.mark.usefixtures("provider")
def test_explanations_are_contents(events: InMemoryLogRecordExporter) -> None:
    """Without contents, the explanation is left out."""
    settings = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "false"}
    observe(lambda text: text, evaluators=[close_enough], environment=settings)
    ((_, fields),) = read(events)
    assert "gen_ai.evaluation.explanation" not in fields


class LogCollector(Collector):
    """An OTLP/HTTP collector of log records."""

    def __init__(self, status: int = 200) -> None:
        self.records: list[Any] = []
        super().__init__(status)

    def take(self, path: str, body: bytes) -> None:
        assert path == "/v1/logs"
        for resource in ExportLogsServiceRequest.FromString(body).resource_logs:
            self.records += [record for scope in resource.scope_logs for record in scope.log_records]


@pytest.mark.parametrize("status", [200, 400])
def test_events_go_to_the_collector_in_the_environment(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All events arrive when the run ends; what the collector refuses is counted in a warning."""
    collector = LogCollector(status)
    try:
        settings = environment(monkeypatch, OTEL_EXPORTER_OTLP_LOGS_ENDPOINT=f"{collector.url}/v1/logs")
        watched = observe(lambda text: text, [f"{i}" for i in range(20)], [close_enough], environment=settings)
    finally:
        collector.close()
    assert len(collector.records) == 20
    assert {record.event_name for record in collector.records} == {"gen_ai.evaluation.result"}
    expected = "OpenTelemetry: 20 of 20 evaluation events could not be exported. "
    assert [text.partition("Fix:")[0] for text in watched.warnings] == ([] if status == 200 else [expected])


def test_log_records_need_a_setting_of_their_own() -> None:
    """An endpoint for traces alone exports no events: many backends of traces accept no log records."""
    assert list_exporters({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"}, LOGS) == []
    assert list_exporters({"OTEL_LOGS_EXPORTER": "otlp,console"}, LOGS) == ["otlp_proto_http", "console"]
    _, warning = build_pipeline({"OTEL_LOGS_EXPORTER": "carrier-pigeon"}, LOGS)
    assert warning is not None
    assert "exports no evaluation events: the exporter 'carrier-pigeon' is not installed" in warning
