"""ATIF: the Agent Trajectory Interchange Format of Harbor, versions 1.0 to 1.8.

Tool results are inside the step of their calls. Steps that a trajectory copied from an earlier one are messages
named "context"; their calls and tokens count only there. Embedded sub-agents are sessions of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from proctor.records.session import Role, ToolCall, Usage
from proctor.sessions.genai.values import parse_arguments
from proctor.sessions.importers.imported_session import ImportedSession, describe_type, flatten_values
from proctor.sessions.importers.json_values import as_list, as_mapping, as_number, as_text, first_count, omit_keys, take
from proctor.sessions.importers.openai_messages import UNNAMED_CALL
from proctor.sessions.importers.session_builder import SessionBuilder, merge_distinct, split_sessions

NAME = "atif"
_VERSION = "ATIF-"
_SUB_AGENTS = "subagent_trajectories"
_ROLES: Mapping[Any, Role] = {"system": "system", "user": "user", "agent": "assistant"}


def looks_like(values: Sequence[Any]) -> bool:
    """Return True for objects with a schema version of ATIF."""
    versions = (as_mapping(item).get("schema_version") for item in flatten_values(values))
    return any(isinstance(version, str) and version.startswith(_VERSION) for version in versions)


def _is_trajectory(value: Any) -> bool:
    return isinstance(as_mapping(value).get("steps"), list)


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[ImportedSession]:
    """Read the trajectories of a file, each with its embedded sub-agents."""
    for pending in split_sessions(values, source, is_document=_is_trajectory):
        yield from _read_trajectory(as_mapping(pending.value), pending.location, pending.strays)


def _read_trajectory(
    document: Mapping[str, Any], source: str, strays: Sequence[Any], parent_id: str | None = None
) -> Iterator[ImportedSession]:
    builder = SessionBuilder()
    sub_agents = [item for item in as_list(document.get(_SUB_AGENTS)) if _is_trajectory(item)]
    recorded = omit_keys(document, "steps", _SUB_AGENTS)
    others = [item for item in as_list(document.get(_SUB_AGENTS)) if not _is_trajectory(item)]
    if others or not isinstance(document.get(_SUB_AGENTS), list | None):
        recorded[_SUB_AGENTS] = others or document[_SUB_AGENTS]
    session_id, trajectory_id = as_text(document.get("session_id")), as_text(document.get("trajectory_id"))
    agent = as_mapping(document.get("agent"))
    if parent_id is not None:
        recorded = merge_distinct(recorded, {"sub_agent_of": parent_id})
        session_id = f"{parent_id}/{trajectory_id or as_text(agent.get('name')) or 'sub-agent'}"
    builder.recorded = recorded
    model = as_text(agent.get("model_name"))
    has_usage = [
        _add_step(builder, number, step, model) for number, step in enumerate(as_list(document.get("steps")), start=1)
    ]
    totals = as_mapping(document.get("final_metrics"))
    usage = _read_usage(totals, "total_")
    if not any(has_usage) and usage != Usage():
        builder.add_model_call(("total",), model, usage)
    imported = builder.build(session_id, NAME, source, strays)
    yield imported
    for sub_agent in sub_agents:
        yield from _read_trajectory(sub_agent, source, (), imported.id)


def _add_step(builder: SessionBuilder, number: int, step: Any, model: str | None) -> bool:
    """Add a step; return True if it has the usage of a model call."""
    rest = dict(as_mapping(step))
    source = as_text(rest.get("source"))
    role = _ROLES.get(source)
    if role is None and isinstance(rest.get("tool_calls"), list):
        role = "assistant"
    if role is None or not isinstance(rest.get("message", ""), str | list):
        if source is not None and rest.get("message"):
            builder.add_unknown_role(source, rest["message"], omit_keys(rest, "source", "message"))
        else:
            builder.add_unknown(f"step: {describe_type(step)}", step)
        return False
    if source in _ROLES:
        del rest["source"]
    builder.add_time(rest.get("timestamp"))
    content = rest.pop("message", "")
    if rest.get("is_copied_context") is True:
        builder.add_message(role, content, name="context")
        builder.add_note(number, rest)
        return False
    if (thought := take(rest, "reasoning_content", str)) is not None:
        builder.add_event("thinking", thought)
    calls = _take_calls(builder, number, rest)
    builder.add_message(role, content, calls=calls)
    usage = _read_usage(as_mapping(rest.get("metrics")))
    has_call = usage != Usage() or bool(first_count(rest, "llm_call_count"))
    if has_call:
        builder.add_model_call((number,), as_text(rest.get("model_name")) or model, usage)
    _add_observation(builder, number, rest, calls)
    builder.add_note(number, rest)
    return usage != Usage()


def _take_calls(builder: SessionBuilder, number: int, step: dict[str, Any]) -> list[ToolCall]:
    calls: list[ToolCall] = []
    for item in take(step, "tool_calls", list) or ():
        fields = dict(as_mapping(item))
        name = take(fields, "function_name", str)
        if name is None:
            builder.add_unknown(UNNAMED_CALL, item)
            continue
        call_id = take(fields, "tool_call_id", str)
        calls.append(ToolCall(name, parse_arguments(fields.pop("arguments", None)), call_id=call_id))
        if fields:
            builder.add_note(number, {"of": call_id, **fields})
    return calls


def _add_observation(builder: SessionBuilder, number: int, step: dict[str, Any], calls: Sequence[ToolCall]) -> None:
    """Add the results of a step; a result without a call is a message from the environment."""
    observation = dict(as_mapping(step.get("observation")))
    results = take(observation, "results", list)
    if results is None:
        return
    if observation:
        step["observation"] = observation
    else:
        del step["observation"]
    named_ids = {as_text(as_mapping(item).get("source_call_id")) for item in results}
    open_calls = (call for call in calls if call.call_id is None or call.call_id not in named_ids)
    for item in results:
        fields = dict(as_mapping(item))
        if not fields:
            builder.add_unknown(f"result: {describe_type(item)}", item)
            continue
        call_id, content = take(fields, "source_call_id", str), fields.pop("content", None)
        if call_id is not None:
            builder.add_result(call_id, content)
        elif (call := next(open_calls, None)) is not None:
            builder.add_result(call.call_id, content, name=call.name)
        else:
            builder.add_message("user", content, name="observation")
        if fields:
            builder.add_note(number, {"of": call_id, **fields})


def _read_usage(metrics: Mapping[str, Any], prefix: str = "") -> Usage:
    """Return the usage of a step, or of a trajectory with the prefix `total_`; prompt tokens include cached ones."""
    return Usage(
        first_count(metrics, f"{prefix}prompt_tokens"),
        first_count(metrics, f"{prefix}completion_tokens"),
        first_count(metrics, f"{prefix}cached_tokens"),
        as_number(metrics.get(f"{prefix}cost_usd")),
    )
