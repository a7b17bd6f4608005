"""CrewAI: its log (`output_log_file="….json"`) with the start and the end of each task, or a `CrewOutput` as JSON.

The log has neither tool calls nor tokens; an output has tokens, and its tool calls only in the text of messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from proctor.records.session import Usage
from proctor.sessions.importers.imported_session import ImportedSession, describe_type, flatten_values
from proctor.sessions.importers.json_values import as_list, as_mapping, as_text, first_count, take
from proctor.sessions.importers.session_builder import PendingSession, SessionBuilder, split_sessions

NAME = "crewai"
_STATES = ("started", "completed")


def looks_like(values: Sequence[Any]) -> bool:
    """Return True for entries with a task, its agent and whether it started or completed."""
    items = flatten_values(values)
    return any(_is_entry(item) or _is_output(item) or any(map(_is_entry, as_list(item))) for item in items)


def _is_entry(value: Any) -> bool:
    fields = as_mapping(value)
    is_named = all(isinstance(fields.get(name), str) for name in ("task", "agent"))
    return is_named and fields.get("status") in _STATES


def _is_output(value: Any) -> bool:
    fields = as_mapping(value)
    return isinstance(fields.get("tasks_output"), list) and isinstance(fields.get("raw"), str)


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[ImportedSession]:
    """Read the logs of a file: lists of entries, or one entry per line."""
    for pending in split_sessions(values, source, _is_entry, _is_output):
        yield (_read_output if _is_output(pending.value) else _read_log)(pending)


def _read_log(pending: PendingSession) -> ImportedSession:
    builder = SessionBuilder()
    for number, entry in enumerate(pending.value, start=1):
        rest = dict(as_mapping(entry))
        if not _is_entry(entry):
            builder.add_unknown(f"entry: {describe_type(entry)}", entry)
            continue
        if rest["status"] == "started":
            builder.add_message("user", take(rest, "task", str) or "")
        elif as_text(rest.get("output")) is not None:
            builder.add_message("assistant", rest.pop("output"))
        builder.add_note(number, rest)
    imported = builder.build(None, NAME, pending.location, pending.strays)
    # A task that raises is never completed; the log has no other sign of it.
    states = [entry["status"] for entry in pending.value if _is_entry(entry)]
    error = "the last task started and was not completed" if states and states[-1] == "started" else None
    return msgspec.structs.replace(imported, error=error)


def _read_output(pending: PendingSession) -> ImportedSession:
    builder, recorded = SessionBuilder(), dict(pending.value)
    for number, task in enumerate(recorded.pop("tasks_output"), start=1):
        rest = dict(as_mapping(task))
        if (question := take(rest, "description", str)) is not None:
            builder.add_message("user", question)
        if (answer := take(rest, "raw", str)) is not None:
            builder.add_message("assistant", answer)
        if question is None and answer is None:
            builder.add_unknown(f"task: {describe_type(task)}", task)
        else:
            builder.add_note(number, rest)
    usage = read_token_usage(as_mapping(recorded.get("token_usage")))
    if usage.total_tokens:
        builder.add_model_call(("total",), None, usage)
    builder.recorded = recorded
    imported = builder.build(None, NAME, pending.location, pending.strays)
    return msgspec.structs.replace(imported, output=recorded["raw"])


def read_token_usage(counts: Mapping[str, Any]) -> Usage:
    """Return the usage of a crew, as `CrewOutput.token_usage` states it."""
    names = ("prompt_tokens", "completion_tokens", "cached_prompt_tokens", "cache_creation_tokens")
    inputs, outputs, cached, cache_write = (first_count(counts, name) for name in names)
    return Usage(inputs, outputs, cached, cache_write_tokens=cache_write)
