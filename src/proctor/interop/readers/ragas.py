"""ragas: single- and multi-turn samples, and results with one column per metric, in JSON Lines, JSON and CSV."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor.interop.imported import ImportedFile
from proctor.interop.run_builder import NOT_A_NUMBER, Notes, RunBuilder, make_id, make_sample
from proctor.interop.tables import has_all, make_samples, parse_number, parse_python, read_header, read_records
from proctor.records.sample import CONTEXT, Sample
from proctor.records.session import Message, Session, ToolCall

NAME = "ragas"
# The fields of a sample; any other column is a metric.
_FIELDS = frozenset((
    "user_input", "retrieved_contexts", "reference_contexts", "retrieved_context_ids", "reference_context_ids",
    "response", "multi_responses", "reference", "rubrics", "rubric", "persona_name", "query_style", "query_length",
    "synthesizer_name", "reference_tool_calls", "reference_topics",
))  # fmt: skip
_NOT_METADATA = ("user_input", "response", "reference", "retrieved_contexts")
_ROLES = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system"}


def recognize(path: Path, head: bytes) -> bool:
    """Return True if a file has samples or results of ragas, which all have `user_input`."""
    header = read_header(path, head)
    return "user_input" in header if header else has_all(head, ["user_input"])


def read(path: Path) -> ImportedFile:
    """Read samples or results; rows with a response are a run, which may have no scores."""
    records = read_records(path)
    if path.suffix.lower() in (".csv", ".tsv"):
        records = [{name: _parse_cell(name, cell) for name, cell in row.items()} for row in records]
    notes = Notes()
    if records and not any("user_input" in record for record in records):
        return ImportedFile(NAME, samples=tuple(make_samples(records, notes)), warnings=notes.texts)
    builder = RunBuilder(notes)
    samples: dict[str, Sample[Any, Any]] = {}
    for record in records:
        sample, output, session = _read_record(record)
        samples.setdefault(sample.id, sample)
        # ragas gives NaN to a metric that raised, and its files have null or an empty cell for it.
        scores = {
            name: builder.score(NOT_A_NUMBER if value is None else parse_number(value))
            for name, value in record.items()
            if name not in _FIELDS
        }
        if output is not None or scores:
            builder.add(sample, scores, output=output, session=session)
    runs = (builder.build(path.stem),) if builder.samples else ()
    return ImportedFile(NAME, samples=tuple(samples.values()), runs=runs, warnings=notes.texts)


def _parse_cell(name: str, cell: Any) -> Any:
    """Return the value of a cell; lists and mappings are Python text, and texts of people stay as they are."""
    if name in ("response", "reference"):
        return cell
    value = parse_python(cell)
    return cell if name == "user_input" and not is_typed_chat(value) else value


def is_typed_chat(value: Any) -> bool:
    """Return True for a list of messages with a type, as a multi-turn sample has."""
    return isinstance(value, list) and all(isinstance(item, dict) and "type" in item for item in value)


def _read_record(record: Mapping[str, Any]) -> tuple[Sample[Any, Any], Any, Session | None]:
    value: Any = record.get("user_input")
    output, session = record.get("response"), None
    if is_typed_chat(value):
        session = Session([_read_message(message) for message in value])
        value, output = _split_conversation(session, output)
    metadata = {
        name: item
        for name, item in record.items()
        if name in _FIELDS and name not in _NOT_METADATA and item is not None
    }
    if record.get("retrieved_contexts") is not None:
        metadata[CONTEXT] = record["retrieved_contexts"]
    expected = record.get("reference")
    return make_sample(make_id(value, expected), value, expected, metadata), output, session


def _read_message(message: Mapping[str, Any]) -> Message:
    calls = tuple(
        ToolCall(str(call.get("name")), dict(call.get("args") or {})) for call in message.get("tool_calls") or ()
    )
    return Message(_ROLES.get(str(message.get("type")), "user"), message.get("content"), tool_calls=calls)  # type: ignore[arg-type]


def _split_conversation(session: Session, response: Any) -> tuple[Any, Any]:
    """Return the input, all up to the last message of the user, and the output, the last answer after it."""
    messages = session[Message]
    last = max((number for number, message in enumerate(messages) if message.role == "user"), default=-1)
    asked = [{"role": message.role, "content": message.content} for message in messages[: last + 1]]
    answers = [message.content for message in messages[last + 1 :] if message.role == "assistant"]
    return (asked[0]["content"] if len(asked) == 1 else asked), (answers[-1] if answers else response)
