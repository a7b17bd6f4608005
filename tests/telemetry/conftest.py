"""OpenTelemetry as a program would set it up, and taken back after each test."""

from __future__ import annotations

from collections.abc import Iterator

import opentelemetry.trace as api
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.util._once import Once


@pytest.fixture(autouse=True)
def _no_provider_of_another_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK lets a process set its provider only once; each test is a process in this."""
    monkeypatch.setattr(api, "_TRACER_PROVIDER", None)
    monkeypatch.setattr(api, "_TRACER_PROVIDER_SET_ONCE", Once())


@pytest.fixture
def exported() -> InMemorySpanExporter:
    """What leaves the program through `provider`."""
    return InMemorySpanExporter()


@pytest.fixture
def provider(exported: InMemorySpanExporter) -> Iterator[TracerProvider]:
    """A provider of the program's, set before the run."""
    made = provider_to(exported)
    api.set_tracer_provider(made)
    yield made
    made.shutdown()


def provider_to(exporter: InMemorySpanExporter) -> TracerProvider:
    """A provider whose spans go to an exporter at once."""
    made = TracerProvider(shutdown_on_exit=False)
    made.add_span_processor(SimpleSpanProcessor(exporter))
    return made
