"""Tool calls and endings in the messages that a target returns: none of them is lost."""

from __future__ import annotations

from typing import Any

from langchain_core.agents import AgentAction
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from proctor import EvalReport, all_tools_succeeded, contains, evaluate, tool_call_count, tool_called, tool_not_called
from proctor.engine.cache import OPEN_CALL
from tests.tables import each_row

CHECKS = {
    "called": tool_called("pay"),
    "not_called": tool_not_called("pay"),
    "succeeded": all_tools_succeeded(),
    "none": tool_call_count(max_count=0),
    "text": contains,
}
INVALID = {"name": "pay", "args": "{bad", "id": "c1", "error": "bad JSON"}
USER, ANSWER = {"role": "user", "content": "?"}, {"role": "assistant", "content": "It is sunny."}
OPENAI = [USER, {"role": "tool", "tool_call_id": "c1", "content": "Error: no"}, ANSWER]
NAMED = [USER, {"role": "tool", "tool_call_id": "c1", "name": "pay", "content": "Error: no"}, ANSWER]
ANTHROPIC = [
    USER,
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "no", "is_error": True}]},
    ANSWER,
]
GEMINI = [
    {"role": "user", "parts": [{"text": "?"}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "pay", "response": {"error": "no"}}}]},
    {"role": "model", "parts": [{"text": "It is sunny."}]},
]


def run(output: Any) -> EvalReport:
    samples = [{"id": "1", "input": "?", "expected": "sunny"}]
    return evaluate(lambda question: output, samples, CHECKS, history=False, progress=False)


def verdicts(output: Any) -> dict[str, bool | None]:
    return {name: score.passed for name, score in run(output).results[0].scores.items()}


@each_row(
    "messages",
    [
        [HumanMessage("?"), AIMessage("", invalid_tool_calls=[INVALID]), AIMessage("It is sunny.")],
        [
            HumanMessage("?"),
            AIMessage("", invalid_tool_calls=[INVALID]),
            ToolMessage("no", tool_call_id="c1", status="error"),
            AIMessage("It is sunny."),
        ],
        [
            HumanMessage("?"),
            ToolMessage("no", tool_call_id="c1", name="pay", status="error"),
            AIMessage("It is sunny."),
        ],
        NAMED,
        GEMINI,
    ],
)
def test_a_failed_call_is_a_call(messages: list[Any]) -> None:
    """LangChain lists calls with invalid arguments separately; a result proves its call."""
    expected = {"called": True, "not_called": False, "succeeded": False, "none": False, "text": True}
    assert verdicts(messages) == expected


@each_row("messages", [OPENAI, ANTHROPIC])
def test_a_result_without_its_call_and_name_is_a_call_of_an_unknown_tool(messages: list[Any]) -> None:
    """It counts and can fail; whether a certain tool was called is unknown."""
    expected = {"called": None, "not_called": None, "succeeded": False, "none": False, "text": True}
    assert verdicts(messages) == expected


PENDING = {
    "anthropic": {
        "id": "m", "type": "message", "role": "assistant", "stop_reason": "tool_use",
        "content": [
            {"type": "text", "text": "It is sunny?"}, {"type": "tool_use", "id": "t", "name": "pay", "input": {}},
        ],
        "usage": {"input_tokens": 3, "output_tokens": 4},
    },
    "langchain": AIMessage("It is sunny?", tool_calls=[{"name": "pay", "args": {}, "id": "c1"}]),
    "langchain, invalid": AIMessage("It is sunny?", invalid_tool_calls=[INVALID]),
}  # fmt: skip


@each_row("name", list(PENDING))
def test_a_response_that_ends_with_an_open_call_is_no_final_answer(name: str) -> None:
    """The text beside the call is judged, and the run warns."""
    report = run(PENDING[name])
    assert report.metadata is not None
    assert OPEN_CALL in report.metadata.warnings
    assert report.results[0].output == "It is sunny?"
    assert report.results[0].scores["called"].passed is True


def _choice(reason: str) -> dict[str, Any]:
    message = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": "sunny"}}
    return {"id": "x", "object": "chat.completion", "choices": [message]}


@each_row(
    ("output", "reason"),
    [
        (_choice("content_filter"), "content_filter"),
        (
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "text", "text": "sunny"}],
                "stop_reason": "refusal",
            },
            "refusal",
        ),
        (
            {"candidates": [{"content": {"role": "model", "parts": [{"text": "sunny"}]}, "finishReason": "SAFETY"}]},
            "SAFETY",
        ),
        (AIMessage("sunny", response_metadata={"finish_reason": "content_filter"}), "content_filter"),
        (_choice("stop"), None),
    ],
)
def test_a_filtered_answer_gets_a_warning(output: Any, reason: str | None) -> None:
    """It is judged as it is, like an answer that was cut off."""
    report = run(output)
    assert report.metadata is not None
    warnings = [text for text in report.metadata.warnings if "filter" in text]
    assert len(warnings) == (reason is not None)
    assert all(f"finish reason {reason!r}" in text for text in warnings)


STEP = {"tool": "pay", "tool_input": {"amount": 3}}


@each_row(
    ("output", "succeeded"),
    [
        ({"input": "?", "output": "It is sunny.", "intermediate_steps": [(STEP, "paid")]}, True),
        ({"output": "It is sunny.", "intermediate_steps": [(AgentAction("pay", {"amount": 3}, ""), "paid")]}, True),
        ({"output": "It is sunny.", "intermediate_steps": [(STEP, "Error: no")]}, False),
        ({"output": "It is sunny.", "tool_calls": [{"name": "pay", "args": {"amount": 3}}]}, None),
    ],
)
def test_an_output_with_its_steps_becomes_output_and_session(output: Any, succeeded: bool | None) -> None:
    """As LangChain's AgentExecutor returns it; tool calls without results have an unknown outcome."""
    result = run(output).results[0]
    assert result.output == "It is sunny."
    scores = {name: score.passed for name, score in result.scores.items()}
    assert scores == {"called": True, "not_called": False, "succeeded": succeeded, "none": False, "text": True}


@each_row(
    "output",
    [{"output": "It is sunny."}, {"output": "sunny", "tool_calls": []}, {"output": "sunny", "tool_calls": [3]}],
)
def test_other_mappings_with_an_output_stay_as_they_are(output: Any) -> None:
    assert run(output).results[0].output == output
