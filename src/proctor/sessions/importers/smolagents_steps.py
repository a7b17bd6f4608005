"""Steps of smolagents (`agent.memory.get_full_steps()`, `get_succinct_steps()` or a `RunResult`).

The first step is the task. A step whose tool raised lists no call; the call is in the message of the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from proctor.records.session import ToolCall, Usage
from proctor.sessions.genai.values import parse_arguments
from proctor.sessions.importers.imported_session import ImportedSession, describe_type, flatten_values
from proctor.sessions.importers.json_values import as_list, as_mapping, as_text, first_count, take
from proctor.sessions.importers.openai_messages import UNNAMED_CALL
from proctor.sessions.importers.session_builder import CALL_FAILED, PendingSession, SessionBuilder, split_sessions

NAME = "smolagents"
_ACTION_KEYS = {"step_number", "model_output", "model_output_message", "observations", "action_output", "tool_calls"}
_FINAL = "final_answer"


def looks_like(values: Sequence[Any]) -> bool:
    """Return True for steps with a number and the output of a model, or an object with such steps."""
    items = flatten_values(values)
    return any(_is_action(item) or _is_run(item) or any(map(_is_action, as_list(item))) for item in items)


def _is_action(value: Any) -> bool:
    fields = as_mapping(value)
    return "step_number" in fields and len(_ACTION_KEYS & fields.keys()) > 2


def _is_step(value: Any) -> bool:
    fields = as_mapping(value)
    return _is_action(value) or isinstance(fields.get("task"), str) or isinstance(fields.get("system_prompt"), str)


def _is_run(value: Any) -> bool:
    return any(map(_is_action, as_list(as_mapping(value).get("steps"))))


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[ImportedSession]:
    """Read the runs of a file: a list of steps, an object with `steps`, or one step per line."""
    for pending in split_sessions(values, source, _is_step, _is_run):
        yield _read_run(pending)


def _read_run(pending: PendingSession) -> ImportedSession:
    builder, recorded = SessionBuilder(), dict(as_mapping(pending.value))
    steps = recorded.pop("steps") if _is_run(pending.value) else pending.value
    answers = [answer for number, step in enumerate(steps, start=1) for answer in _add_step(builder, number, step)]
    builder.recorded = recorded
    state = as_text(recorded.get("state"))
    is_failed = state is not None and state != "success"
    imported = msgspec.structs.replace(
        builder.build(None, NAME, pending.location, pending.strays),
        error=f"the run ended with {state}" if is_failed else None,
    )
    if (output := recorded.get("output")) is not None:
        answers.append(output)
    return msgspec.structs.replace(imported, output=answers[-1]) if answers else imported


def _add_step(builder: SessionBuilder, number: int, step: Any) -> list[Any]:
    """Add a step; return the final answer in it, if any."""
    rest = dict(as_mapping(step))
    if _is_action(step):
        answers = _add_action(builder, number, rest)
        builder.add_note(number, rest)
        return answers
    if (task := take(rest, "task", str)) is not None:
        builder.add_message("user", task)
    elif (prompt := take(rest, "system_prompt", str)) is not None:
        builder.add_message("system", prompt)
    elif (plan := take(rest, "plan", str)) is not None:
        builder.add_message("assistant", plan, name="plan")
        _add_usage(builder, number, rest)
    else:
        builder.add_unknown(f"step: {describe_type(step)}", step)
        return []
    builder.add_note(number, rest)
    return []


def _add_action(builder: SessionBuilder, number: int, step: dict[str, Any]) -> list[Any]:
    listed = as_list(step.get("tool_calls"))
    message = as_mapping(step.get("model_output_message"))
    calls = _read_calls(builder, listed or as_list(message.get("tool_calls")))
    error = step.get("error")
    reason = as_text(as_mapping(error).get("message")) or as_text(error) or (CALL_FAILED if error else None)
    builder.add_message("assistant", take(step, "model_output", str) or "", calls=calls)
    _add_usage(builder, number, step)
    observations, output = step.get("observations"), step.get("action_output")
    for call in calls:
        result = output if observations is None else observations
        builder.add_result(call.call_id, result, error=reason, name=call.name)
    if error and not calls:
        builder.add_event("error", error)
    if step.get("is_final_answer") is not True:
        return []
    answers = [call.arguments.get("answer") for call in calls if call.name == _FINAL]
    return [output if output is not None else next(iter(answers), observations)]


def _read_calls(builder: SessionBuilder, items: Sequence[Any]) -> list[ToolCall]:
    calls: list[ToolCall] = []
    for item in items:
        function = as_mapping(as_mapping(item).get("function"))
        if (name := as_text(function.get("name"))) is None:
            builder.add_unknown(UNNAMED_CALL, item)
            continue
        call_id = as_text(as_mapping(item).get("id"))
        calls.append(ToolCall(name, parse_arguments(function.get("arguments")), call_id=call_id))
    return calls


def _add_usage(builder: SessionBuilder, number: int, step: Mapping[str, Any]) -> None:
    counts = as_mapping(step.get("token_usage"))
    usage = Usage(first_count(counts, "input_tokens"), first_count(counts, "output_tokens"))
    if usage != Usage():
        builder.add_model_call((number,), None, usage)
