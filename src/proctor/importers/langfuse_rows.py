"""Exports of Langfuse, sorted into traces: whole traces, pages of an API, or one row a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from proctor.genai.values import is_too_deep
from proctor.importers.shapes import mapping, text, without

TYPES = frozenset(
    (
        *("SPAN", "EVENT", "GENERATION", "AGENT", "TOOL", "CHAIN"),
        *("RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL"),
    )
)
# A list of observations has these in place of what is too long for it.
_EMPTY: tuple[Any, ...] = (None, "", [], {}, "{}", "[]", "null")
# What exports to files write with underscores.
_SPELLINGS = {
    "trace_id": "traceId",
    "parent_observation_id": "parentObservationId",
    "observation_id": "observationId",
    "session_id": "sessionId",
    "user_id": "userId",
    "start_time": "startTime",
    "end_time": "endTime",
    "completion_start_time": "completionStartTime",
    "status_message": "statusMessage",
    "model_parameters": "modelParameters",
    "provided_model_name": "model",
    "usage_details": "usageDetails",
    "cost_details": "costDetails",
    "total_cost": "totalCost",
    "string_value": "stringValue",
    "data_type": "dataType",
}
# With no trace in it, a session is known by having nothing else either.
_OF_SESSIONS = frozenset(
    ("id", "traces", "createdAt", "updatedAt", "projectId", "environment", "public", "bookmarked")
)
_OF_TRACES = ("timestamp", "userId", "sessionId", "tags", "htmlPath", "scores")


class Rows:
    """What a file holds of one trace; `line` is where it is first named.

    `session` is the id of the session that the file gives it in, if it does.
    """

    def __init__(self, name: str, line: int) -> None:
        self.id = name
        self.line = line
        self.session: str | None = None
        self.trace: dict[str, Any] = {}
        # By their ids; what has none of its own has a number.
        self.observations: dict[str | int, dict[str, Any]] = {}
        self.scores: dict[str | int, dict[str, Any]] = {}
        self.odd: list[Any] = []

    def add_trace(self, row: Mapping[str, Any]) -> None:
        """Take what is told of the whole."""
        self.trace = _merged(self.trace, without(row, "observations", "scores"))
        self._add_all(row, "observations", self.add_observation)
        self._add_all(row, "scores", self.add_score)

    def _add_all(self, row: Mapping[str, Any], name: str, add: Any) -> None:
        given = row.get(name)
        several = given if isinstance(given, list) else [given] if given else []
        # A list of traces names its observations by their ids alone.
        ids = [one for one in several if isinstance(one, str) and several is given]
        if ids:
            self.trace = _merged(self.trace, {name: ids})
        for one in several:
            if isinstance(one, dict):
                add(spelled(one))
            elif one not in ids:
                self.odd.append({name: one})

    def add_observation(self, row: Mapping[str, Any]) -> None:
        """Take an observation; told twice, each fills what the other lacks."""
        name = text(row.get("id")) or len(self.observations)
        self.observations[name] = _merged(self.observations.get(name, {}), row)

    def add_score(self, row: Mapping[str, Any]) -> None:
        """Take a score."""
        name = text(row.get("id")) or len(self.scores)
        self.scores[name] = _merged(self.scores.get(name, {}), row)


class Sorted(NamedTuple):
    """The rows of a file by their traces, and what it tells of whole sessions, by their ids.

    `empty` are those that are given without any trace, with the lines where they stand.
    """

    traces: dict[str, Rows]
    sessions: dict[str, dict[str, Any]]
    empty: dict[str, int]


def _merged(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(before)
    also: list[Any] = list(found.pop("also", []))
    for key, value in after.items():
        if found.get(key) in _EMPTY:
            found[key] = value
        elif value not in _EMPTY and value != found[key]:
            also.append({key: value})
    return {**found, "also": also} if also else found


def spelled(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with the names that the API uses.

    >>> spelled({"trace_id": "t", "name": "a"})
    {'traceId': 't', 'name': 'a'}
    """
    return {
        _SPELLINGS.get(key, key) if _SPELLINGS.get(key) not in row else key: value
        for key, value in row.items()
    }


def kind_of_row(value: Any) -> str | None:
    """What a row is: an `export`, a `page`, a `session`, a `trace`, an `observation`, a `score`.

    None if it is none of them.

    >>> kind_of_row({"id": "o", "traceId": "t", "type": "SPAN", "startTime": "2026-01-01"})
    'observation'
    """
    if not isinstance(value, dict):
        return None
    row = spelled(value)
    if isinstance(row.get("trace"), dict) and isinstance(row.get("observations"), list):
        return "export"
    if isinstance(row.get("data"), list) and isinstance(row.get("meta"), dict):
        return "page"
    belongs = text(row.get("traceId")) is not None
    if belongs and "startTime" in row and isinstance(row.get("type"), str):
        return "observation"
    if belongs and "name" in row and ("value" in row or "stringValue" in row):
        return "score"
    has_id = text(row.get("id")) is not None
    if has_id and _holds_traces(row):
        return "session"
    if has_id and isinstance(row.get("observations"), list) and _tells_trace(row, 1):
        return "trace"
    return "trace" if has_id and not belongs and _tells_trace(row, 4) else None


def _tells_trace(row: Mapping[str, Any], least: int) -> bool:
    return sum(key in row for key in _OF_TRACES) >= least


def _holds_traces(row: Mapping[str, Any]) -> bool:
    traces = row.get("traces")
    if traces == []:
        return row.keys() <= _OF_SESSIONS
    first = spelled(mapping(traces[0])) if isinstance(traces, list) and traces else {}
    is_told = any(key in first for key in ("input", "output", "observations"))
    return text(first.get("id")) is not None and "timestamp" in first and is_told


def sort(values: Iterator[tuple[int, Any]], strays: list[tuple[str, Any]]) -> Sorted:
    """The rows of a file by their traces, in order; what is no row goes to the strays."""
    found = Sorted({}, {}, {})
    for line, value in values:
        for row in _flat(value):
            _place(row, line, found, strays)
    return found


def _flat(value: Any) -> Iterator[Any]:
    """Rows that stand in lists and pages, one by one."""
    if isinstance(value, list):
        for item in value:
            yield from _flat(item) if kind_of_row(item) == "page" else [item]
    elif kind_of_row(value) == "page":
        yield from value["data"]
        if rest := without(value, "data", "meta"):
            yield rest
    else:
        yield value


def _place(value: Any, line: int, found: Sorted, strays: list[tuple[str, Any]]) -> None:
    kind = None if is_too_deep(value) else kind_of_row(value)
    row = spelled(value) if kind not in (None, "page") else {}
    trace = spelled(row["trace"]) if kind == "export" else row
    name = text(trace.get("traceId" if kind in ("observation", "score") else "id"))
    if name is None:
        strays.append(("row", value))
        return
    if kind == "session":
        _place_session(name, row, line, found, strays)
        return
    rows = found.traces.setdefault(name, Rows(name, line))
    if kind == "export":
        rows.add_trace(trace)
        rows.add_trace(without(row, "trace"))
    elif kind == "trace":
        rows.add_trace(row)
    elif kind == "observation":
        rows.add_observation(row)
    else:
        rows.add_score(row)


def _place_session(
    name: str, row: Mapping[str, Any], line: int, found: Sorted, strays: list[tuple[str, Any]]
) -> None:
    """Each of its traces is one of the file, and of the first session only that has it."""
    found.sessions[name] = _merged(found.sessions.get(name, {}), without(row, "id", "traces"))
    if not row["traces"]:
        found.empty.setdefault(name, line)
    for one in row["traces"]:
        trace = spelled(mapping(one))
        id_of_trace = text(trace.get("id"))
        if id_of_trace is None:
            strays.append(("row", one))
            continue
        rows = found.traces.setdefault(id_of_trace, Rows(id_of_trace, line))
        rows.session = rows.session or name
        if rows.session != name:
            rows.odd.append({"session": without(row, "traces")})
        rows.add_trace(trace)


def looks_like_rows(value: Any) -> bool:
    """True if a JSON value is, or begins with, a row of Langfuse."""
    first = next(iter(_flat(value)), None)
    kind = kind_of_row(first)
    if kind == "observation":
        return mapping(first)["type"] in TYPES
    return kind is not None
