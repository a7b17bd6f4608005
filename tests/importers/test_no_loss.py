"""Every value of a log is in the record: for mutated and truncated logs and for any JSON."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from proctor.errors import DatasetError
from proctor.sessions.importers.session_files import SessionFiles, detect_format, load_format
from tests.importers.examples import EXAMPLES, EXCHANGES, TAKEN_BACK
from tests.importers.logs import DATA, marked_in, read, values_in, written
from tests.support import pair_in_turn
from tests.tables import each_row

FORMATS = tuple(EXAMPLES)
MARK = "\u2042mark\u2042"
PUTS = [MARK, {MARK: 1}, [MARK], {"type": MARK}]
REAL = sorted(
    path
    for path in (DATA / "07_sessions").rglob("*.json*")
    if ".expected." not in path.name and path.stat().st_size < 200_000
)
quickly = settings(deadline=None, suppress_health_check=list(HealthCheck))
scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=8)
    | st.floats(allow_nan=False, allow_infinity=False)
)  # fmt: skip
# Keys and words that mean something in one format or the other, so that odd shapes come up.
WORDS = """type message role content parts text thinking tool_use tool_result name input id user
    model assistant tool_use_id system summary payload response_item event_msg session_meta
    messages info
    function_call call_id output arguments token_count functionCall functionResponse response args
    tool_calls function tool_call_id tool lc kwargs data human ai events session trial custom kind
    sessionId uuid parentUuid leafUuid gemini toolCalls result status $set $rewindTo tokens usage
    choices traj reward progress refusal audio transcript custom_id body error object
    web_search_call server_tool_use web_search_tool_result action
    timestamp total_token_usage last_token_usage input_tokens
    steps source tool_call_id function_name observation results source_call_id metrics is_copied_context
    subagent_trajectories mapping current_node parent children author recipient all content_type python
    chat_messages sender attachments toolRequests toolCallId toolName assistant.message user.message
    tool.execution_start tool.execution_complete session.shutdown modelMetrics requests value
    toolInvocationSerialized toolId isComplete
    trace trace.span span_data generation trace_id request part_kind tool-call tool-return user-prompt
    tool_name outcome retried step_number model_output observations action_output task agent started
    completed tasks_output raw modelUsage session_id subtype"""
MEANING = frozenset(WORDS.split())
words = st.sampled_from(sorted(MEANING))
anything = st.recursive(
    scalars | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words | st.text(max_size=5), inner, max_size=6),
    max_leaves=25,
)


def spots(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a value that can be written to, as (container, key)."""
    if isinstance(value, dict | list):
        keys = list(value) if isinstance(value, dict) else range(len(value))
        for key in keys:
            yield value, key
            yield from spots(value[key])


@pytest.mark.parametrize("name", FORMATS)
@given(values=st.lists(anything, max_size=6))
@example(values=[[], {}, None, [[]], {"": []}])
@example(values=[{"lc": 1, "id": [], "kwargs": {"type": 3}}, {"type": "ai", "data": {"content": 1}}])
@quickly
def test_any_json_is_kept(name: str, values: list[Any]) -> None:
    """Every format, forced on any JSON, neither fails nor loses a text, a number or a key."""
    marks: list[str] = []
    marked = [marked_in(value, MEANING, marks) for value in values]
    for some in (values, marked):
        imported = read(load_format(name), some)
        assert len(imported) > 0 or not some
    stored = written(read(load_format(name), marked))
    assert [mark for mark in marks if mark not in stored] == []
    detect_format(values)


@pytest.mark.thorough
@each_row(("name", "log"), [*EXAMPLES.items(), *TAKEN_BACK.items(), *EXCHANGES.items()])
def test_nothing_in_a_log_can_be_lost(name: str, log: list[Any]) -> None:
    """A word in any place of a log, as one of four values in turn (all in `make properties`), is in the record."""
    lost = []
    values = copy.deepcopy(log)
    for container, key, put in pair_in_turn(list(spots(values)), PUTS):
        before, container[key] = container[key], put
        if MARK not in written(read(load_format(name), values)):
            lost.append((key, before))
        container[key] = before
    assert lost == []


@pytest.mark.parametrize("path", REAL, ids=lambda path: f"{path.parent.name}/{path.name}")
@given(data=st.data())
@settings(max_examples=5, suppress_health_check=list(HealthCheck))
def test_changes_of_a_real_log_are_kept(path: Path, data: st.DataObject) -> None:
    """A word put anywhere into a real log, in the place of anything, is found in the record."""
    values = copy.deepcopy(values_in(path))
    form = detect_format(values)
    assert form is not None
    places = list(spots(values))
    container, key = data.draw(st.sampled_from(places))
    container[key] = data.draw(st.sampled_from(PUTS))
    assert MARK in written(read(form, values))


@pytest.mark.parametrize("path", REAL, ids=lambda path: f"{path.parent.name}/{path.name}")
@given(data=st.data())
@settings(max_examples=5, suppress_health_check=list(HealthCheck))
def test_the_rest_of_a_damaged_file_is_read(path: Path, data: st.DataObject) -> None:
    """Cut off anywhere, with bytes changed: each line is in a session or named as damaged."""
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(0, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    del raw[data.draw(st.integers(0, len(raw))) :]
    with TemporaryDirectory() as folder:
        file = Path(folder, path.name)
        file.write_bytes(raw)
        files = SessionFiles(file)
        try:
            imported = list(files)
        except DatasetError:
            assert files.problems or not raw.strip()
            return
    if path.suffix != ".jsonl" or any(problem.where == str(file) for problem in files.problems):
        return  # a document that is whole, or a file of which it is told that not all is a session
    stored = written(imported)
    damaged = {problem.where.rpartition(":")[2] for problem in files.problems}
    for number, line in enumerate(raw.split(b"\n"), start=1):
        if line.strip():
            assert str(number) in damaged or _some_of(bytes(line), stored)


def _some_of(line: bytes, kept: str) -> bool:
    """True if the longest text of a line is in what is kept."""
    value = json.loads(line)
    texts = [c[k] for c, k in spots([value]) if isinstance(c[k], str)]
    longest = max(texts, key=len, default="")
    return json.dumps(longest, ensure_ascii=False)[1:-1] in kept or longest in kept
