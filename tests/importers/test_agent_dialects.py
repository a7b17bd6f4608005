"""Traces of agent frameworks, made by hand in the shapes that their instrumentations write.

What must hold for each of them stands once, in `sound`: the system message is there, each tool call
is one call with its result, nobody's result is a message of the user's, and input and output are
plain text.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.datasets.sessions import SessionDataset
from proctor.errors import ProctorError
from proctor.records.session import CustomEvent, Message, ModelCall, ToolCall, Usage
from proctor.records.session_events import UNANSWERED
from proctor.sessions.importers import langfuse, otlp
from proctor.sessions.importers.imported_session import ImportedSession
from tests.importers.logs import only
from tests.importers.traces import span, spans
from tests.support import ROOT
from tests.tables import each_row

DATA = Path(os.environ.get("PROCTOR_DATA", ROOT.parent / "shared" / "data"))

SYSTEM, QUESTION, ANSWER = "Look it up.", "Weather in Rome?", "It is sunny in Rome today."
PIECES = ("It is", " sunny", " in", " Rome", " today", ".")
CITY = {"city": "Rome"}
SUNNY = "sunny, 24 degrees"


def rows(*observations: dict[str, Any], **trace: Any) -> dict[str, Any]:
    """An export of Langfuse; observations are one second apart, in their order."""
    times = (f"2026-01-01T00:00:{second:02}Z" for second in range(60))
    return {
        "trace": {"id": "t1", "timestamp": "2026-01-01T00:00:00Z", **trace},
        "observations": [
            {"id": f"o{number}", "traceId": "t1", "startTime": time, "endTime": time, **row}
            for (number, row), time in zip(enumerate(observations), times, strict=False)
        ],
    }


def found(export: dict[str, Any]) -> ImportedSession:
    (result,) = langfuse.read([(1, export)], "trace.json")
    return result


def about(**attributes: Any) -> dict[str, Any]:
    return {"attributes": {name.replace("__", "."): it for name, it in attributes.items()}}


def sound(told: ImportedSession, *, system: bool = True, answer: str = ANSWER) -> None:
    """The assertions for one conversation in any dialect."""
    messages = [message for message in told.session[Message] if message.content]
    roles = [message.role for message in messages]
    assert (told.input, told.output) == (QUESTION, answer)
    assert [m.content for m in messages if m.role == "system"] == [SYSTEM] * system
    assert [m.content for m in messages if m.role == "user"] == [QUESTION]
    assert [m.content for m in messages if m.role == "assistant"] == [answer]
    assert roles.index("user") == int(system)
    (call,) = told.session[ToolCall]
    assert (call.name, call.arguments, call.result) == ("weather", CITY, SUNNY)
    assert not [event for event in told.session[CustomEvent] if event.kind == UNANSWERED]


# --- BeeAI: moments of a call are spans of the call's kind, and answers are logged as they stream.


def beeai_messages(*, streamed: bool, ids: bool) -> dict[str, Any]:
    meta = {"meta": {"id": "chat-1"}} if ids else {}
    texts = PIECES if streamed else (ANSWER,)
    return {
        "messages": [{"role": "assistant", "content": [{"type": "text", "text": text}], **meta} for text in texts],
        "finish_reason": "stop",
    }


BEEAI_ASKED = [
    {"role": "system", "content": [{"type": "text", "text": SYSTEM}]},
    {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
]
BEEAI_CALL = {"type": "tool-call", "id": "c1", "tool_name": "weather", "args": json.dumps(CITY)}
BEEAI_RESULT = {
    "type": "tool-result", "tool_call_id": "c1", "tool_name": "weather", "result": SUNNY,
}  # fmt: skip
BEEAI_DONE = [*BEEAI_ASKED, {"role": "assistant", "content": [BEEAI_CALL]}, {"role": "tool", "content": [BEEAI_RESULT]}]
# The arguments of the call come in pieces, too; only the first one names it.
BEEAI_PIECES = [
    {"role": "assistant", "content": [{**BEEAI_CALL, "args": '{"ci'}], "meta": {"id": "chat-0"}},
    {
        "role": "assistant",
        "content": [{"type": "tool-call", "id": "", "tool_name": "", "args": 'ty": "Rome"}'}],
        "meta": {"id": "chat-0"},
    },
]
LLM, TOOL = {"openinference__span__kind": "LLM"}, {"openinference__span__kind": "TOOL"}


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("ids", [True, False])
def test_beeai_streams_one_answer_and_calls_one_tool(streamed: bool, ids: bool) -> None:
    """Pieces of an answer are one message; a start and a finish inside a tool are no calls."""
    first = BEEAI_PIECES if streamed else [BEEAI_DONE[2]]
    attributes = found(
        rows(
            {"type": "AGENT", "name": "RequirementAgent", "input": {"prompt": QUESTION}},
            {
                "type": "GENERATION", "name": "chat", "parentObservationId": "o0", "model": "small",
                "input": {"messages": BEEAI_ASKED}, "output": {"messages": first},
                "metadata": about(**LLM),
            },
            {
                "type": "GENERATION", "name": "finish", "parentObservationId": "o1",
                "input": [None, {"id": "e1"}], "metadata": about(**LLM),
            },
            {
                "type": "TOOL", "name": "weather", "parentObservationId": "o0", "input": CITY,
                "output": SUNNY, "metadata": about(**TOOL, tool__name="weather"),
            },
            {
                "type": "TOOL", "name": "start", "parentObservationId": "o3",
                "input": [{"input": CITY}, {"id": "e2"}], "metadata": about(**TOOL),
            },
            {
                "type": "TOOL", "name": "finish", "parentObservationId": "o3",
                "input": [None, {"id": "e3"}], "metadata": about(**TOOL),
            },
            {
                "type": "GENERATION", "name": "chat", "parentObservationId": "o0", "model": "small",
                "input": {"messages": BEEAI_DONE},
                "output": beeai_messages(streamed=streamed, ids=ids), "metadata": about(**LLM),
            },
        )
    )  # fmt: skip
    sound(attributes)
    assert [call.model for call in attributes.session[ModelCall]] == ["small", "small"]


def test_older_beeai_writes_only_the_phases_of_calls() -> None:
    """Sibling spans start, success and finish are one call, with its tokens once."""

    def moment(number: int, target: str, kind: str, **more: Any) -> dict[str, Any]:
        name = target.rpartition(".")[2]
        attributes = {"target": target, "name": name, "openinference.span.kind": kind, **more}
        return span(f"{name}-{number}", number, attributes, parent="iteration")

    def numbered(side: str, messages: list[tuple[str, str]]) -> dict[str, str]:
        return {
            f"llm.{side}_messages.{n}.message.{key}": value
            for n, message in enumerate(messages)
            for key, value in zip(("role", "content"), message, strict=True)
        }

    tokens = {"llm.token_count.prompt": 20, "llm.token_count.completion": 6}
    asked = numbered("input", [("system", SYSTEM), ("user", QUESTION)])
    message_text = numbered("output", [("assistant", text) for text in PIECES])
    imported = only(
        otlp,
        spans(
            span("iteration", 0, {"openinference.span.kind": "CHAIN", "target": "groupId"}),
            moment(1, "tool.weather.start", "TOOL", **{"tool.parameters": json.dumps(CITY)}),
            moment(2, "tool.weather.success", "TOOL", **{"output.value": SUNNY}),
            moment(3, "tool.weather.finish", "TOOL"),
            moment(4, "backend.chat.start", "LLM", **{"llm.model_name": "small"}, **asked),
            moment(5, "backend.chat.success", "LLM", **message_text, **tokens),
            moment(6, "backend.chat.finish", "LLM", **{"llm.model_name": "small"}),
        ),
    )  # fmt: skip
    sound(imported)
    assert imported.session[ModelCall] == (ModelCall("small", Usage(20, 6), imported.session[ModelCall][0].latency_ms),)


def test_a_tool_that_fails_in_a_later_phase_has_failed() -> None:
    """The last phase of a call has its error."""
    start = {"target": "tool.weather.start", "name": "start", "openinference.span.kind": "TOOL"}
    error = {**start, "target": "tool.weather.error", "name": "error"}
    imported = only(
        otlp,
        spans(
            span("a", 1, start),
            span("b", 2, error, status={"code": 2, "message": "down"}),
            span("c", 3, {**start, "tool.parameters": json.dumps(CITY)}),
        ),
    )
    assert [(c.name, c.arguments, c.error) for c in imported.session[ToolCall]] == [
        ("weather", {}, "down"),
        ("weather", CITY, None),
    ]


def test_a_tool_may_be_called_start() -> None:
    """A span with a tool name is a tool call, even inside another tool."""
    imported = only(
        otlp,
        spans(
            span("outer", 0, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "run"}),
            span(
                "start", 1, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "start"},
                parent="outer",
            ),
            span("update", 2, {"gen_ai.operation.name": "execute_tool"}),
        ),
    )  # fmt: skip
    assert [call.name for call in imported.session[ToolCall]] == ["run", "start", "update"]


# --- LangGraph.js: the role of a tool's result is the name of the tool, or missing.


@pytest.mark.parametrize("role", ["weather", None, "tool"])
def test_langgraph_js_results_of_tools_are_not_messages_of_the_user(role: str | None) -> None:
    """The handler of Langfuse writes the name of a tool as the role of its message."""
    call = {"name": "weather", "args": CITY, "id": "c1", "type": "tool_call"}
    result: dict[str, Any] = {"content": SUNNY, "additional_kwargs": {}}
    if role is not None:
        result["role"] = role
    asked = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    asks = {"role": "assistant", "content": "", "tool_calls": [call]}
    imported = found(
        rows(
            {"type": "GENERATION", "name": "ChatOpenAI", "input": asked, "output": asks},
            {
                "type": "GENERATION",
                "name": "ChatOpenAI",
                "input": [*asked, asks, result],
                "output": {"role": "assistant", "content": ANSWER},
            },
        )
    )
    sound(imported)


def test_a_role_that_is_no_tool_name_is_unchanged() -> None:
    """An unknown role is not a tool that was never requested."""
    imported = found(rows({"type": "GENERATION", "input": [{"role": "weather", "content": QUESTION}]}))
    assert [message.role for message in imported.session[Message]] == ["user"]


# --- C# and Gemini: parts without a message around them, and names that begin with a capital.


@each_row(
    "answer",
    [
        [{"text": ANSWER}],
        [{"text": ANSWER, "functionCall": None, "inlineData": None, "thought": None}],
        [{"text": "thinking", "thought": True}, {"text": ANSWER}],
        {"parts": [{"text": ANSWER}]},
        {"role": "model", "parts": [{"text": ANSWER, "thoughtSignature": "x"}]},
        {"candidates": [{"content": {"role": "model", "parts": [{"text": ANSWER}]}}]},
        {"Candidates": [{"Content": {"Role": "model", "Parts": [{"Text": ANSWER}]}}]},
        {"Role": "model", "Parts": [{"Text": ANSWER, "FunctionCall": None}]},
        [{"Text": ANSWER}],
        {"role": "assistant", "contents": [{"$type": "text", "text": ANSWER}]},
    ],
)
def test_gemini_parts_are_joined_to_a_text(answer: Any) -> None:
    """As the output of a generation, and of a trace without one."""
    asked = {"contents": [{"role": "user", "parts": [{"text": QUESTION}]}]}
    item = found(rows({"type": "GENERATION", "input": asked, "output": answer}))
    assert (item.input, item.output) == (QUESTION, ANSWER)
    whole = found(rows({"type": "SPAN", "name": "main"}, input=QUESTION, output=answer))
    assert (whole.input, whole.output) == (QUESTION, ANSWER)


@pytest.mark.parametrize("answer", [[{"text": "a", "score": 0.5}], [{"title": "a"}], [{"text": 3}], [{"Id": 1}]])
def test_data_with_a_text_is_not_a_list_of_parts(answer: Any) -> None:
    """Documents that were found are what they are."""
    imported = found(rows({"type": "SPAN", "name": "main"}, input=QUESTION, output=answer))
    assert imported.output == answer


def test_gemini_from_csharp_calls_a_tool() -> None:
    """The keys of arguments and results are unchanged."""
    call = {"Role": "model", "Parts": [{"FunctionCall": {"Name": "weather", "Args": CITY}}]}
    result = {"Role": "user", "Parts": [{"FunctionResponse": {"Name": "weather", "Response": {"Sky": SUNNY}}}]}
    asked = {"Role": "user", "Parts": [{"Text": QUESTION}]}
    imported = found(
        rows(
            {"type": "GENERATION", "input": {"Contents": [asked]}, "output": call},
            {"type": "GENERATION", "input": {"Contents": [asked, call, result]}, "output": [{"Text": ANSWER}]},
        )
    )
    (made,) = imported.session[ToolCall]
    assert (made.name, made.arguments, made.result) == ("weather", CITY, {"Sky": SUNNY})
    assert (imported.input, imported.output) == (QUESTION, ANSWER)


# --- Microsoft's agent framework: the instructions stand beside the messages.


MESSAGES = [{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}]
CALLS = [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "weather", "arguments": CITY}]}]
RESULTS = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": SUNNY}]}]
SAID = [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}], "finish_reason": "stop"}]
INSTRUCTIONS = json.dumps([{"type": "text", "content": SYSTEM}])


@pytest.mark.parametrize("on", ["call", "agent", "both"])
def test_microsofts_agent_framework_keeps_its_instructions(on: str) -> None:
    """On the span of the call or only on that of the agent, in Langfuse's rows and in OTLP."""
    on_call = {"gen_ai.system_instructions": INSTRUCTIONS} if on != "agent" else {}
    on_agent = {"gen_ai.system_instructions": INSTRUCTIONS} if on != "call" else {}
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small", **on_call}
    agent = {"gen_ai.operation.name": "invoke_agent", **on_agent}
    tool = {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather",
        "gen_ai.tool.call.id": "c1", "gen_ai.tool.call.arguments": json.dumps(CITY),
        "gen_ai.tool.call.result": SUNNY,
    }  # fmt: skip
    talk = [(MESSAGES, CALLS), ([*MESSAGES, *CALLS, *RESULTS], SAID)]

    def chatted(number: int) -> dict[str, str]:
        asked, message = talk[number]
        return {"gen_ai.input.messages": json.dumps(asked), "gen_ai.output.messages": json.dumps(message)}

    sound(
        only(
            otlp,
            spans(
                span("agent", 0, agent),
                span("first", 1, {**chat, **chatted(0)}, parent="agent"),
                span("tool", 2, tool, parent="agent"),
                span("second", 3, {**chat, **chatted(1)}, parent="agent"),
            ),
        )
    )
    inside = {"parentObservationId": "o0"}
    sound(
        found(
            rows(
                {"type": "AGENT", "name": "agent", "metadata": {"attributes": agent}},
                *(
                    {
                        "type": "GENERATION", "input": asked, "output": message, **inside,
                        "metadata": {"attributes": chat},
                    }
                    for asked, message in talk[:1]
                ),
                {"type": "TOOL", "name": "weather", **inside, "metadata": {"attributes": tool}},
                {
                    "type": "GENERATION", "input": talk[1][0], "output": talk[1][1], **inside,
                    "metadata": {"attributes": chat},
                },
            )
        )
    )  # fmt: skip


def test_instructions_do_not_hide_messages_of_another_convention() -> None:
    """Instructions in an attribute and messages in events or numbered attributes go together."""
    imported = only(
        otlp,
        spans(
            span(
                "chat",
                0,
                {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.system_instructions": INSTRUCTIONS,
                    "gen_ai.prompt.0.role": "user",
                    "gen_ai.prompt.0.content": QUESTION,
                    "gen_ai.completion.0.content": ANSWER,
                },
            )
        ),
    )
    assert [(m.role, m.content) for m in imported.session[Message]] == [
        ("system", SYSTEM),
        ("user", QUESTION),
        ("assistant", ANSWER),
    ]


# --- All dialects in the data folder.


def every_trace() -> Iterator[Any]:
    folders = ("07_sessions", "08_traces/langfuse", "08_traces/otlp_openai_v2", "11_formats")
    for folder in folders:
        for path in sorted((DATA / folder).rglob("*.json*")):
            if ".chatml." in path.name:
                continue
            try:
                yield from ((path.relative_to(DATA), item) for item in SessionDataset(path))
            except ProctorError:
                # A file of another kind: scores, datasets, settings.
                continue


@pytest.mark.skipif(not DATA.exists(), reason=f"the data is not at {DATA} (set PROCTOR_DATA)")
def test_no_real_trace_has_one_of_these_mistakes() -> None:
    """Calls are counted once, results are of tools, ends are texts, and nothing is in pieces."""
    faults: list[Any] = []
    count = 0
    for path, sample in every_trace():
        count += 1
        session, output = sample.metadata["session"], sample.metadata.get("output")
        messages = session[Message]
        faults += [(path, sample.id, fault) for fault in _faults(session, messages, sample, output)]
    assert faults == []
    assert count > 300


def _faults(session: Any, said: Any, sample: Any, output: Any) -> Iterator[str]:
    answers = [m for m in said if m.role == "assistant" and m.content]
    # These state their output as data, in a call or a field.
    is_structured = sample.metadata["format"] in ("pydantic-ai", "smolagents")
    if answers and not isinstance(output, str) and not is_structured:
        yield f"the output is no text: {output!r:.80}"
    if any(m.role == "user" for m in said) and not isinstance(sample.input, str | None):
        yield f"the input is no text: {sample.input!r:.80}"
    made = Counter(call.call_id for call in session[ToolCall] if call.call_id)
    made += Counter(
        event.data["call_id"]
        for event in session[CustomEvent]
        if event.kind == UNANSWERED and event.data.get("call_id")
    )
    asked = Counter(call.call_id for m in said for call in m.tool_calls if call.call_id)
    if any(made[call_id] != times for call_id, times in asked.items()):
        yield "a call is counted more or less often than it was asked for"
    results = {repr(call.result) for call in session[ToolCall] if call.result}
    if any(m.role == "user" and m.content and repr(m.content) in results for m in said):
        yield "the result of a tool is a message of the user"
    if any(call.name in ("start", "success", "finish") for call in session[ToolCall]):
        yield "a moment of a call is a call"
    pieces = [m.content for m in said if m.role == "assistant" and isinstance(m.content, str)]
    if len(pieces) > 5 and all(len(piece) < 12 for piece in pieces):
        yield "an answer is in pieces"
