"""OTLP/JSON: spans of models, tools and agents, and log records with what was said.

One trace is one session, and a file may hold many, one document a line or all in one. Spans of a
trace may stand anywhere in a file, so it is read to its end before the first session is given. What
one conversation spread over several traces stays several sessions; each says which conversation it
belongs to, and its messages repeat what came before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from proctor.importers.imported import Imported, found_in
from proctor.importers.otlp_trace import FORMAT, Trace
from proctor.importers.otlp_wire import Odd, Record, is_document, records_in
from proctor.importers.shapes import stem
from proctor.records.session import Session

NAME = FORMAT


def looks_like(values: Sequence[Any]) -> bool:
    """True for what OpenTelemetry exports: `resourceSpans`, or `resourceLogs`."""
    return any(map(is_document, values))


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[Imported]:
    """The sessions of a file, one for each trace, in the order in which they are first named.

    What belongs to no trace is kept with the first session, and counted there.
    """
    traces: dict[str | None, Trace] = {}
    strays: list[Odd] = []
    lines = 0
    for line, document in values:
        lines += 1
        for found in records_in(document):
            if isinstance(found, Odd):
                strays.append(found)
            elif found.trace is None and found.kind == "log":
                strays.append(Odd("log record", _shown(found)))
            else:
                traces.setdefault(found.trace, Trace(line)).add(found)
    for name, trace in traces.items():
        place = f"{source}:{trace.line}" if lines > 1 else source
        yield trace.imported(name or stem(place), place, strays)
        strays = []
    if strays:
        yield _unread(strays, source)


def _shown(record: Record) -> dict[str, Any]:
    told = record._asdict()
    return {name: value for name, value in told.items() if value not in (None, {}, (), [], "")}


def _unread(strays: Sequence[Odd], source: str) -> Imported:
    """A file in which there is no trace at all."""
    passed_over: dict[str, int] = {}
    for stray in strays:
        passed_over[stray.kind] = passed_over.get(stray.kind, 0) + 1
    events = [found_in(*stray) for stray in strays]
    return Imported(stem(source), Session([*events]), NAME, source, passed_over=passed_over)
