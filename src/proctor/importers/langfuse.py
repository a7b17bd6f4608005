"""Langfuse: traces as its pages, its API and its exports give them.

One trace is one session: its generations and tools are calls, its other observations are kept. A
session that is given with its traces is one, and they are its turns.
Rows of a trace may stand anywhere in a file, so it is read to its end before the first session is
given. Scores are recorded by name; one that has several values keeps the last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from proctor.genai.bodies import asked_in, said_in
from proctor.genai.names import is_known
from proctor.genai.spans import Reading
from proctor.genai.values import decoded
from proctor.importers.held import Held
from proctor.importers.imported import Imported, found_in
from proctor.importers.langfuse_ends import Ends, ends_of, first_told, opened
from proctor.importers.langfuse_observation import attributes_of, is_blank, told_by, took
from proctor.importers.langfuse_rows import TYPES, Rows, looks_like_rows, sort
from proctor.importers.langfuse_sessions import joined, without_traces
from proctor.importers.otlp_wire import as_it_was
from proctor.importers.shapes import amount, mapping, moment, stem, text, without
from proctor.importers.steps import fold_moments, moment_in, with_instructions
from proctor.importers.trace import (
    Step,
    assemble,
    first_asked,
    last_answer,
    models_in,
    odd_parts_in,
    theirs_beside,
)
from proctor.records.session import CustomEvent, Event, Session

NAME = "langfuse"

_OBSERVATION = frozenset(
    (
        *("id", "traceId", "parentObservationId", "type", "name", "level", "statusMessage"),
        *("startTime", "endTime", "completionStartTime", "createdAt", "updatedAt", "latency"),
        *("input", "output", "metadata", "model", "modelId", "modelParameters", "environment"),
        *("usage", "usageDetails", "costDetails", "providedCostDetails", "providedUsageDetails"),
        *("inputCost", "outputCost", "totalCost", "inputUsage", "outputUsage", "totalUsage"),
        *("calculatedInputCost", "calculatedOutputCost", "calculatedTotalCost", "unit"),
        *("promptTokens", "completionTokens", "totalTokens", "inputPrice", "outputPrice"),
        *("totalPrice", "timeToFirstToken", "promptId", "promptName", "promptVersion", "version"),
        *("internalModel", "internalModelId", "projectId", "usagePricingTierId", "also"),
        *("usagePricingTierName", "toolDefinitions", "toolCalls", "toolCallNames", "bookmarked"),
    )
)
_AROUND = ("SPAN", "AGENT", "CHAIN")


def looks_like(values: Sequence[Any]) -> bool:
    """True for a trace with its observations, and for rows of either."""
    return any(map(looks_like_rows, values))


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[Imported]:
    """The sessions of a file, one for each trace, in the order in which they are first named.

    The traces that are given in a session are one together.
    What belongs to no trace is kept with the first session, and counted there.
    """
    strays: list[tuple[str, Any]] = []
    lines: list[int] = []

    def noticed() -> Iterator[tuple[int, Any]]:
        for line, value in values:
            lines.append(line)
            yield line, value

    traces, sessions, empty = sort(noticed(), strays)
    together: dict[tuple[str, str], list[Rows]] = {}
    for rows in traces.values():
        key = ("trace", rows.id) if rows.session is None else ("session", rows.session)
        together.setdefault(key, []).append(rows)
    for (kind, name), group in together.items():
        found = []
        for rows in group:
            place = f"{source}:{rows.line}" if len(lines) > 1 else source
            found.append(_Telling(rows).imported(place, strays))
            strays = []
        yield found[0] if kind == "trace" else joined(name, sessions[name], found)
    for name, line in empty.items():
        if ("session", name) not in together:
            place = f"{source}:{line}" if len(lines) > 1 else source
            yield without_traces(name, sessions[name], NAME, place)
    if strays:
        counted = Counter(kind for kind, _ in strays)
        events: list[Event] = [found_in(kind, as_it_was(value)) for kind, value in strays]
        yield Imported(stem(source), Session(events), NAME, source, passed_over=dict(counted))


class _Telling:
    """One trace on its way to be a session."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._passed_over: Counter[str] = Counter()

    def imported(self, source: str, strays: Iterable[tuple[str, Any]]) -> Imported:
        """The session, with everything that was recorded beside it."""
        rows = list(self._rows.observations.items())
        steps = fold_moments([_step(name, row) for name, row in rows])
        steps = with_instructions(steps, (attributes_of(row) for _, row in rows))
        parts, places, own, asked = assemble(steps)
        ends = self._ends(steps, parts)
        before = len(ends.before)
        events = [*ends.before, *parts, *ends.after]
        observations: list[dict[str, Any]] = []
        for number, ((_, row), step) in enumerate(zip(rows, steps, strict=True)):
            place = before + places[number]
            entry = self._entry(row, step.reading, Held(own[number]))
            if asked[number]:
                entry["asked"] = [before + given for given in asked[number]]
            if isinstance(events[place], CustomEvent):
                events[place] = found_in(step.label, entry)
                if step.reading is None and _type(row) not in TYPES:
                    self._passed_over[step.label] += 1
                entry = {key: row[key] for key in ("id", "name") if key in row}
            observations.append({**entry, "event": place})
        for kind, value in (*strays, *(("odd row", odd) for odd in self._rows.odd)):
            events.append(found_in(kind, as_it_was(value)))
            self._passed_over[kind] += 1
        self._passed_over.update(odd_parts_in(Session([*parts, *ends.said])))
        held = Held([*ends.before, *ends.after])
        return self._sum_up(source, Session(events), observations, held)

    def _ends(self, steps: Sequence[Step], parts: Sequence[Event]) -> Ends:
        """What the whole was asked and said, where none of its parts tells of it.

        Where no row tells of the whole, the outermost observations do.
        """
        rows = self._rows.observations
        outer = [
            rows[step.id]
            for step in sorted(steps, key=lambda step: step.began or 0)
            if step.parent not in rows and _may_be_whole(rows[step.id], step.reading)
        ]
        trace = self._rows.trace
        return ends_of(
            first_told([trace, *outer], "input"),
            first_told([trace, *reversed(outer)], "output"),
            parts,
        )

    def _entry(self, row: Mapping[str, Any], reading: Reading | None, held: Held) -> dict[str, Any]:
        """Everything about an observation but what was read from it and stands in the session."""
        sources = () if reading is None else reading.sources
        for name in row.keys() - _OBSERVATION:
            self._passed_over[f"field: {str(name)[:60]}"] += 1
        attributes = attributes_of(row)
        for name in attributes:
            if not is_known(name):
                self._passed_over[f"attribute: {name[:80]}"] += 1
        left = {
            name: value
            for name, value in row.items()
            if not is_blank(value) and not (name in sources and held.takes(value))
        }
        entry = theirs_beside(("asked", "event"), left)
        if attributes:
            about = mapping(decoded(row.get("metadata")))
            entry["metadata"] = {**about, "attributes": held.lean(attributes, sources)}
        return entry

    def _sum_up(
        self,
        source: str,
        session: Session,
        observations: list[dict[str, Any]],
        held: Held,
    ) -> Imported:
        trace = self._rows.trace
        given, answer = opened(trace.get("input")), opened(trace.get("output"))
        rows = [trace, *self._rows.observations.values()]
        times = [row.get(name) for row in rows for name in ("timestamp", "startTime", "endTime")]
        known = sorted(filter(None, map(moment, times)))
        kept = {
            name: value
            for name, value in trace.items()
            if not is_blank(value) and not (name in ("input", "output") and held.takes(value))
        }
        scores = list(self._rows.scores.values())
        recorded: dict[str, Any] = {
            "title": trace.get("name"),
            "tags": trace.get("tags"),
            "user_id": trace.get("userId"),
            "session_id": trace.get("sessionId"),
            "started_at": known[0].isoformat() if known else None,
            "ended_at": known[-1].isoformat() if known else None,
            "latency_ms": took(trace),
            "cost": amount(trace.get("totalCost")),
            **models_in(session),
            "scores": {str(row.get("name")): _value(row) for row in scores},
            "score_rows": scores,
            "trace": without(kept, "id", "name", "tags", "userId", "sessionId"),
            "observations": observations,
        }
        asked, last = first_asked(session), last_answer(session)
        return Imported(
            self._rows.id,
            session,
            NAME,
            source,
            given if asked is None and asked_in(given) is None else asked,
            answer if last is None and said_in(answer) is None else last,
            {name: value for name, value in recorded.items() if not is_blank(value)},
            dict(self._passed_over),
            is_named=True,
        )


def _step(name: str | int, row: Mapping[str, Any]) -> Step:
    told = told_by(row)
    began = moment(row.get("startTime"))
    return Step(
        name,
        text(row.get("parentObservationId")),
        None if began is None else began.timestamp(),
        f"observation: {_type(row).lower()[:60]}",
        told.reading,
        told.is_plain,
        moment_in(text(row.get("name")) or "", attributes_of(row)),
    )


def _type(row: Mapping[str, Any]) -> str:
    return str(row.get("type")).upper()


def _may_be_whole(row: Mapping[str, Any], reading: Reading | None) -> bool:
    """What a tool was given, or an embedding, nobody said."""
    return _type(row) in _AROUND if reading is None else reading.kind == "model"


def _value(score: Mapping[str, Any]) -> Any:
    """A number, or the word of a category."""
    value, word = score.get("value"), score.get("stringValue")
    return word if word and (value is None or score.get("dataType") == "CATEGORICAL") else value
