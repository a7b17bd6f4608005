"""Logs that chance has changed: the short form of `make fuzz`, and that its oracle sees faults."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fuzz.documents import parse_document, serialize_document
from fuzz.mutation import Mutator
from fuzz.oracle import Fault, find_fault, find_lost_value, run_check
from fuzz.seeds import create_mutator, load_seeds
from fuzz.shrinking import shrink

from proctor.sessions.importers import openai_messages
from proctor.sessions.importers.imported_session import ImportedSession
from proctor.sessions.importers.session_files import AUTO, FORMATS, Format

SMALL = 4_000
INPUTS = 25
SPANS = '{"resourceSpans": [{"scopeSpans": [{"spans": [{"attributes": {"a": {'
TALK = [
    {"role": "user", "content": "Hello", "n": 7},
    {"role": "user", "content": "Capital of France?", "note": "Hello"},
    {"role": "user", "content": "And of Italy?"},
    {"role": "assistant", "content": "Rome", "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
]


@functools.cache
def known() -> tuple[dict[str, list[bytes]], Mutator]:
    result = load_seeds(largest=SMALL)
    return result, create_mutator(data for files in result.values() for data in files)


@pytest.mark.parametrize("name", [AUTO, *FORMATS])
def test_random_changes_are_read_or_reported(name: str, tmp_path: Path) -> None:
    """Small logs, changed once to three times, all hold what fuzz/oracle.py demands."""
    files, change = known()
    begin = [it for form, some in files.items() if name in (AUTO, form) for it in some]
    random = Random(name)
    form = None if name == AUTO else name
    for data in begin:
        assert find_fault(data, form, tmp_path / "chat.jsonl") is None
    for _ in range(INPUTS):
        data = random.choice([it for it in begin if len(it) <= SMALL])
        for _ in range(random.choice((1, 1, 3))):
            data = change.mutated(data, random)
        fault = find_fault(data, form, tmp_path / "chat.jsonl")
        assert fault is None, f"{fault}\n{data!r}"


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("otlp", '{"resourceSpans": [{"resource": {"a": "x"}, "scopeSpans": [0]}]}'),
        ("otlp", '{"resourceSpans": [{"scopeSpans": [{"scope": {"name": 7}, "spans": ["Co"]}]}]}'),
        ("otlp", f'{SPANS}"arrayValue": {{"values": [], "beside": "Capital"}}}}}}}}]}}]}}]}}'),
        ("langchain", '{"lc": 1, "id": ["a", "AIMessage"], "kwargs": {"content": "", "id": "r"}}'),
        ("proctor", '{"session": {"events": [{"type": "custom"}]}, "trial": "a word"}'),
        ("proctor", '{"session": {"events": [{"type": "custom"}], "name": "a"}, "name": "b"}'),
    ],
)
def test_faults_found_by_fuzzing_are_fixed(form: str, text: str, tmp_path: Path) -> None:
    """Small inputs that once lost a value are read completely."""
    assert parse_document(text.encode()) is not None
    assert find_fault(text.encode(), form, tmp_path / "chat.jsonl") is None


def test_changes_come_from_the_seed_alone() -> None:
    """The same random numbers make the same inputs, so that a finding can be had again."""
    files, change = known()
    data = files["claude-code"][0]
    once, again = ([change.mutated(data, Random(n)) for n in range(50)] for _ in range(2))
    assert once == again
    assert len(set(once)) > 40


class Wrong:
    """A reader of OpenAI's messages with something wrong about it."""

    NAME = openai_messages.NAME

    def __init__(self, change: Callable[[list[Any]], list[Any]]) -> None:
        self._change = change

    def looks_like(self, values: Sequence[Any]) -> bool:
        return bool(values)

    def read(self, values: Iterable[tuple[int, Any]], source: str) -> Iterator[ImportedSession]:
        changed = [(line, self._change(value)) for line, value in values]
        return openai_messages.read(changed, source)


def _crashes(messages: list[Any]) -> list[Any]:
    return [{**message, "content": message["contents"]} for message in messages]


def _hangs(messages: list[Any]) -> list[Any]:
    while messages:
        pass
    return messages


def _drops_a_field(messages: list[Any]) -> list[Any]:
    return [{key: it for key, it in message.items() if key != "n"} for message in messages]


def _drops_what_stands_elsewhere(messages: list[Any]) -> list[Any]:
    text = [message.get("content") for message in messages]
    return [{key: it for key, it in message.items() if key != "note" or it not in text} for message in messages]


def _hides_an_answer(messages: list[Any]) -> list[Any]:
    return [_hidden(it) if it["role"] == "assistant" else it for it in messages]


def _hides_who_is_not_known(messages: list[Any]) -> list[Any]:
    return [_hidden(it) if it["role"] == "critic" else it for it in messages]


def _hidden(message: dict[str, Any]) -> dict[str, Any]:
    return {**message, "content": "", "words": message["content"]}


def _does_not_count(messages: list[Any]) -> list[Any]:
    return [{"used" if key == "usage" else key: it for key, it in message.items()} for message in messages]


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (_crashes, "KeyError"),
        (_hangs, "hang"),
        (_drops_a_field, "lost"),
        (_drops_what_stands_elsewhere, "same record"),
        (_hides_an_answer, "unheard"),
        (_hides_who_is_not_known, "unheard"),
        (_does_not_count, "miscounted"),
    ],
)
def test_the_oracle_detects_a_faulty_reader(wrong: Any, kind: str) -> None:
    """A reader that fails, hangs, drops a field, or drops what stands elsewhere too, is caught; so
    is one that keeps what was said from a judge, or does not count what was used."""
    where = {_drops_what_stands_elsewhere: "note", _hides_who_is_not_known: "role"}.get(wrong)

    def fault(reader: Format) -> Fault | None:
        return run_check(lambda: find_lost_value(reader, [(1, TALK)], Random(1), where), seconds=0.5)

    assert fault(Wrong(lambda messages: messages)) is None
    result = fault(Wrong(wrong))
    assert result is not None
    assert result.kind == kind


def test_a_file_is_split_and_joined() -> None:
    """JSON in texts is opened, and closed as it was; what is no JSON is left to its bytes."""
    data = b'{"a": "{\\"b\\": [1, \\"x\\"]}"}\n{"c": null}'
    document = parse_document(data)
    assert document is not None
    assert serialize_document(document) == data
    assert parse_document(b'{"a": \n{"b": 1}') is None


def test_a_finding_is_minimized() -> None:
    """Of a long log only the line and the key that fail are left."""
    lines = [{"n": n, "more": {"text": "word " * 20}} for n in range(40)]
    data = "\n".join(json.dumps(line) for line in lines).encode()
    assert shrink(data, lambda it: b'"n": 17' in it) == b'{"n": 17}'
