"""The Claude Agent SDK and CrewAI with their real packages, which the development environment does not have.

`pip install claude-agent-sdk crewai` into an environment with Proctor, then run this file there.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from proctor import all_tools_succeeded, evaluate, exact_match, tool_called, tool_not_called
from proctor.records.session import Usage
from proctor.records.trial import EvalResult

ANSWER = "It is sunny."
SAMPLES = [{"id": "1", "input": "Weather in Rome?", "expected": ANSWER}]
CHECKS = [exact_match, tool_called("weather"), tool_not_called("book"), all_tools_succeeded()]

# What Claude Code writes to its standard output, a line for each message, when it is asked once.
CLAUDE_LINES: list[dict[str, Any]] = [
    {"type": "system", "subtype": "init", "session_id": "s1", "model": "large", "tools": ["weather"], "uuid": "u1"},
    {"type": "system", "subtype": "task_started", "session_id": "s1", "task_id": "k", "description": "d", "uuid": "u2"},
    {"type": "assistant", "session_id": "s1", "uuid": "u3", "message": {"id": "m1", "role": "assistant",
        "model": "large", "usage": {"input_tokens": 3, "output_tokens": 1},
        "content": [{"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Rome"}}]}},
    {"type": "user", "session_id": "s1", "uuid": "u4", "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "sunny"}]}]}},
    {"type": "rate_limit_event", "session_id": "s1", "uuid": "u5", "rate_limit_info": {"status": "allowed"}},
    {"type": "assistant", "session_id": "s1", "uuid": "u6", "message": {"id": "m2", "role": "assistant",
        "model": "large", "usage": {"input_tokens": 4, "output_tokens": 2},
        "content": [{"type": "text", "text": ANSWER}]}},
    {"type": "result", "subtype": "success", "session_id": "s1", "uuid": "u7", "duration_ms": 5, "duration_api_ms": 4,
     "is_error": False, "num_turns": 2, "total_cost_usd": 0.5, "usage": {"input_tokens": 7, "output_tokens": 20},
     "modelUsage": {"large": {"inputTokens": 7, "outputTokens": 20, "costUSD": 0.5}}, "result": ANSWER},
]  # fmt: skip
CLAUDE_CODE = """#!{python}
import json, sys
for text in sys.stdin:
    line = json.loads(text)
    if line["type"] == "control_request":
        body = {{"subtype": "success", "request_id": line["request_id"], "response": {{}}}}
        print(json.dumps({{"type": "control_response", "response": body}}), flush=True)
    elif line["type"] == "user":
        print({lines!r}, flush=True)
"""


def run(target: Any, checks: Any = CHECKS) -> EvalResult:
    (result,) = evaluate(target, SAMPLES, checks, history=None).results
    assert result.trial.error is None
    return result


def verdicts(result: EvalResult) -> list[bool | None]:
    return [score.passed for score in result.scores.values()]


@pytest.fixture
def claude_options(tmp_path: Path) -> Any:
    """Options with a program that speaks as Claude Code does; skip without the SDK."""
    sdk = pytest.importorskip("claude_agent_sdk", reason="the Claude Agent SDK is not installed")
    program = tmp_path / "claude"
    lines = "\n".join(map(json.dumps, CLAUDE_LINES))
    program.write_text(CLAUDE_CODE.format(python=sys.executable, lines=lines), encoding="utf-8")
    program.chmod(0o755)
    return sdk.ClaudeAgentOptions(cli_path=program)


def test_the_messages_of_a_query_are_a_session(claude_options: Any) -> None:
    """`query` of the real SDK: output, tool call, tokens, cost, and messages about tasks."""
    from claude_agent_sdk import query  # type: ignore[import-not-found]

    async def ask(question: str) -> Any:
        return [message async for message in query(prompt=question, options=claude_options)]

    result = run(ask)
    assert verdicts(result) == [True] * 4
    assert result.trial.usage == Usage(7, 20, None, 0.5)
    assert "task_started" in repr(result.trial.session)


def test_the_last_message_of_a_query_is_an_answer_without_calls(claude_options: Any) -> None:
    """A function that returns only the `ResultMessage` has no session, so evaluators of tool calls skip."""
    from claude_agent_sdk import query

    async def ask(question: str) -> Any:
        return [message async for message in query(prompt=question, options=claude_options)][-1]

    result = run(ask)
    assert verdicts(result) == [True, None, None, None]
    assert result.trial.usage == Usage(7, 20, None, 0.5)


class ChatServer(BaseHTTPRequestHandler):
    """Asks for the weather, then answers; every response costs 20 and 2 tokens."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        message: dict[str, Any] = {"role": "assistant", "content": ANSWER}
        if not any(message["role"] == "tool" for message in body["messages"]):
            call = {"name": "weather", "arguments": '{"city": "Rome"}'}
            message = {"role": "assistant", "content": None,
                       "tool_calls": [{"id": "c1", "type": "function", "function": call}]}  # fmt: skip
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
        usage = {"prompt_tokens": 20, "completion_tokens": 2, "total_tokens": 22}
        data = json.dumps({"id": "x", "object": "chat.completion", "created": 1, "model": body["model"],
                           "choices": [choice], "usage": usage}).encode()  # fmt: skip
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def chat_url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for variable in ("CREWAI_DISABLE_TELEMETRY", "OTEL_SDK_DISABLED", "CREWAI_TESTING"):
        monkeypatch.setenv(variable, "true")
    monkeypatch.setenv("CREWAI_TRACING_ENABLED", "false")
    pytest.importorskip("crewai", reason="CrewAI is not installed")
    server = ThreadingHTTPServer(("127.0.0.1", 0), ChatServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def make_crew(url: str) -> Any:
    from crewai import LLM, Agent, Crew, Task  # type: ignore[import-not-found]
    from crewai.tools import tool  # type: ignore[import-not-found]

    @tool("weather")  # type: ignore[untyped-decorator]
    def weather(city: str) -> str:
        """Return the weather of a city."""
        return "sunny"

    model = LLM(model="openai/gpt-4o-mini", base_url=url, api_key="none")
    agent = Agent(role="forecaster", goal="answer", backstory="weather", llm=model, tools=[weather])
    return Crew(agents=[agent], tasks=[Task(description="{question}", expected_output="a sentence", agent=agent)])


def test_a_crew_returns_its_messages_and_tokens(chat_url: str) -> None:
    """A crew of the real package, made for each sample; and its agent alone."""
    result = run(lambda question: make_crew(chat_url).kickoff(inputs={"question": question}))
    assert verdicts(result) == [True] * 4
    assert result.trial.usage is not None
    assert (result.trial.usage.input_tokens, result.trial.usage.output_tokens) == (40, 4)
    agent = make_crew(chat_url).agents[0]
    for _ in range(2):
        result = run(lambda question: agent.kickoff(question))
        assert verdicts(result) == [True] * 4
        assert result.trial.usage is not None
        assert (result.trial.usage.input_tokens, result.trial.usage.output_tokens) == (40, 4)


def test_a_crew_that_is_used_again_counts_no_tokens_twice(chat_url: str) -> None:
    """Its second `kickoff` reports the tokens of both, so they are left out."""
    crew = make_crew(chat_url)
    usages = [run(lambda question: crew.kickoff(inputs={"question": question})).trial.usage for _ in range(2)]
    assert usages[0] is not None
    assert usages[0].total_tokens == 44
    assert usages[1] is None
