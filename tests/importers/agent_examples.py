"""A small log of each format of agents, frameworks and chat exports, written for the tests."""

from __future__ import annotations

from typing import Any

STAMP = "2026-01-02T10:00:0{}.000Z"

ATIF: list[Any] = [
    {
        "schema_version": "ATIF-v1.8", "session_id": "a-1", "trajectory_id": "root", "extra": {"reward": 1.0},
        "agent": {"name": "walker", "version": "1", "model_name": "small"}, "notes": "a trial",
        "steps": [
            {"step_id": 1, "source": "system", "message": "Be careful."},
            {"step_id": 2, "source": "user", "message": "Old words", "is_copied_context": True, "tool_calls": [
                {"tool_call_id": "c0", "function_name": "ls", "arguments": {}}]},
            {"step_id": 3, "timestamp": STAMP.format(3), "source": "user", "message": [
                {"type": "text", "text": "Count the files."}]},
            {
                "step_id": 4, "source": "agent", "model_name": "large", "message": "I look.",
                "reasoning_content": "Two calls.", "llm_call_count": 1,
                "tool_calls": [
                    {"tool_call_id": "c1", "function_name": "ls", "arguments": {"in": "src"}, "extra": {"n": 5}},
                    {"tool_call_id": "c2", "function_name": "ask", "arguments": {"whom": "scout"}},
                ],
                "observation": {"results": [
                    {"source_call_id": "c1", "content": "one.py", "extra": {"exit_code": 0}},
                    {"source_call_id": None, "content": "see below", "subagent_trajectory_ref": [
                        {"trajectory_id": "scout-1"}]},
                    {"content": "A warning of the shell"},
                ]},
                "metrics": {"prompt_tokens": 100, "completion_tokens": 20, "cached_tokens": 60, "cost_usd": 0.25},
            },
            {"step_id": 5, "source": "agent", "message": "One file.", "llm_call_count": 2,
             "metrics": {"prompt_tokens": 130, "completion_tokens": 7}},
            {"step_id": 6, "source": "critic", "message": "Well done."},
        ],
        "final_metrics": {"total_prompt_tokens": 280, "total_completion_tokens": 31},
        "subagent_trajectories": [
            {
                "schema_version": "ATIF-v1.8", "trajectory_id": "scout-1", "agent": {"name": "scout"},
                "steps": [
                    {"step_id": 1, "source": "user", "message": "Look there."},
                    {"step_id": 2, "source": "agent", "message": "Done so."},
                ],
                "final_metrics": {"total_prompt_tokens": 50, "total_completion_tokens": 4},
            },
        ],
    }
]  # fmt: skip


def _node(key: str, parent: str | None, children: list[str], message: Any = None) -> dict[str, Any]:
    return {"id": key, "parent": parent, "children": children, "message": message}


def _chatgpt(key: str, role: str, content: Any, recipient: str = "all", **more: Any) -> dict[str, Any]:
    author = {"role": role, "name": more.pop("name", None), "metadata": {}}
    return {"id": f"m-{key}", "author": author, "content": content, "recipient": recipient, "create_time": 9.5, **more}


def _say(*parts: Any) -> dict[str, Any]:
    return {"content_type": "text", "parts": [*parts]}


CHATGPT: list[Any] = [
    {
        "title": "Sums", "conversation_id": "g-7", "create_time": 1700000000.5, "current_node": "e", "id": "g-7",
        "mapping": {
            "r": _node("r", None, ["s"]),
            "s": _node("s", "r", ["a", "b"], _chatgpt("s", "system", {
                "content_type": "user_editable_context", "user_profile": "A teacher"})),
            "a": _node("a", "s", [], _chatgpt("a", "user", _say("One and one?"))),
            "b": _node("b", "s", ["t"], _chatgpt("b", "user", {
                "content_type": "multimodal_text",
                "parts": [{"content_type": "image_asset_pointer", "asset_pointer": "file-1"}, "Two and two?"]})),
            "t": _node("t", "b", ["c"], _chatgpt("t", "assistant", {
                "content_type": "thoughts", "thoughts": [{"summary": "Use Python"}]})),
            "c": _node("c", "t", ["d"], _chatgpt("c", "assistant", {
                "content_type": "code", "language": "python", "text": "print(2 + 2)"}, "python",
                metadata={"model_slug": "gpt-x"})),
            "d": _node("d", "c", ["d2"], _chatgpt("d", "tool", {
                "content_type": "execution_output", "text": "4"}, name="python")),
            "d2": _node("d2", "d", ["e"], _chatgpt("d2", "tool", _say("drawn"), name="canvas")),
            "e": _node("e", "d2", [], _chatgpt("e", "assistant", _say("It is", "four."), end_turn=True)),
        },
    }
]  # fmt: skip

CLAUDE_AI: list[Any] = [
    {
        "uuid": "k-1", "name": "Weather", "created_at": STAMP.format(0), "account": {"uuid": "acc"},
        "chat_messages": [
            {"uuid": "m1", "sender": "human", "text": "Rain in Rome?", "created_at": STAMP.format(1),
             "content": [{"type": "text", "text": "Rain in Rome?", "citations": []}],
             "attachments": [{"file_name": "a.txt", "extracted_content": "a map"}], "files": []},
            {"uuid": "m2", "sender": "assistant", "text": "No rain.", "created_at": STAMP.format(2), "content": [
                {"type": "thinking", "thinking": "I search."},
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "t1", "name": "web_search", "input": {"query": "Rome"}},
                {"type": "tool_result", "tool_use_id": "t1", "name": "web_search", "is_error": True,
                 "content": [{"type": "text", "text": "no page"}]},
                {"type": "text", "text": "No rain."},
            ]},
            {"uuid": "m3", "sender": "human", "text": "Thanks"},
            {"uuid": "m4", "sender": "judge", "text": "Ruled"},
        ],
    },
    {"uuid": "k-2", "name": "", "chat_messages": []},
]  # fmt: skip


def _copilot(number: int, kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data, "id": f"e{number}", "timestamp": STAMP.format(number % 10)}


COPILOT: list[Any] = [
    _copilot(1, "session.start", sessionId="co-1", copilotVersion="1.0", context={"cwd": "/p"}),
    _copilot(2, "system.message", role="system", content="You help."),
    _copilot(3, "user.message", content="Find the bug.", transformedContent="<now>Find the bug.", attachments=[]),
    _copilot(4, "assistant.message", messageId="m1", content="I read.", outputTokens=12, reasoningText="Read first.",
             toolRequests=[{"toolCallId": "t1", "name": "view", "arguments": {"path": "a"}, "type": "function",
                            "intentionSummary": "view a"}]),
    _copilot(5, "tool.execution_start", toolCallId="t1", toolName="view", arguments={"path": "a"}),
    _copilot(6, "tool.execution_start", toolCallId="t2", toolName="glob", arguments={"pattern": "*.py"}),
    _copilot(7, "tool.execution_complete", toolCallId="t1", success=True,
             result={"content": "text of a", "detailedContent": "diff of a"}, toolTelemetry={"n": 3}),
    _copilot(8, "tool.execution_complete", toolCallId="t2", success=False, error={"message": "denied", "code": "no"}),
    _copilot(9, "user.message", content="", transformedContent="Go on until it is done."),
    _copilot(10, "assistant.message", messageId="m2", content="Line 3.", outputTokens=5, parentToolCallId="t9"),
    _copilot(11, "assistant.turn_end", turnId="0"),
    _copilot(12, "session.shutdown", modelMetrics={"claude-x": {"requests": {"count": 2}, "usage": {
        "inputTokens": 400, "outputTokens": 17, "cacheReadTokens": 300, "cacheWriteTokens": 0}}}),
]  # fmt: skip

VSCODE: list[Any] = [
    {
        "version": 3, "sessionId": "v-1", "customTitle": "Reading", "creationDate": 1755347684754,
        "requests": [
            {
                "requestId": "r1", "message": {"text": "Read it", "parts": []}, "modelId": "copilot/x",
                "timestamp": 1755347728047, "result": {"errorDetails": {"message": "cut off"}},
                "response": [
                    {"value": "Reading ", "supportThemeIcons": False},
                    {"kind": "inlineReference", "name": "a.py", "inlineReference": {"path": "/a.py"}},
                    {"kind": "prepareToolInvocation", "toolName": "readFile"},
                    {"kind": "toolInvocationSerialized", "toolId": "readFile", "toolCallId": "c1", "isComplete": True,
                     "isConfirmed": True, "toolSpecificData": {"kind": "input", "rawInput": {"path": "a.py"}},
                     "resultDetails": {"output": "text of a"}},
                    {"kind": "toolInvocationSerialized", "toolId": "runInTerminal", "toolCallId": "c2",
                     "isConfirmed": False, "toolSpecificData": {"kind": "terminal", "command": "rm a.py"}},
                    {"kind": "markdownContent", "content": {"value": "Done.", "isTrusted": False}},
                    {"kind": "hologram", "data": "odd"},
                ],
            },
            {"requestId": "r2", "message": "And now?", "response": [{"value": "Nothing."}]},
        ],
    }
]  # fmt: skip


def _span(number: int, data: Any, error: Any = None) -> dict[str, Any]:
    return {
        "object": "trace.span", "id": f"s{number}", "trace_id": "tr-1", "parent_id": "s9", "error": error,
        "started_at": f"2026-01-02T10:00:0{number}+00:00", "ended_at": f"2026-01-02T10:00:0{number}.5+00:00",
        "span_data": data,
    }  # fmt: skip


_CALL = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Rome"}'}
_QUESTION = {"role": "user", "content": "Weather in Rome?"}

OPENAI_AGENTS: list[Any] = [
    {
        "data": [
            {"object": "trace", "id": "tr-1", "workflow_name": "Weather", "group_id": "chat", "metadata": {"k": 7}},
            _span(3, {"type": "function", "name": "weather", "input": '{"city": "Rome"}', "output": "An error",
                      "mcp_data": None}, {"message": "no such city", "data": {"tool_name": "weather"}}),
            _span(2, {"type": "generation", "input": [_QUESTION], "output": [_CALL], "model": "small",
                      "model_config": {"temperature": 0.5}, "usage": {"input_tokens": 40, "output_tokens": 22}}),
            _span(1, {"type": "custom", "name": "turn", "data": {"usage": {"input_tokens": 40, "output_tokens": 22}}}),
            _span(4, {"type": "handoff", "from_agent": "A", "to_agent": "B"}),
            _span(5, {"type": "generation", "model": "small", "input": [
                _QUESTION, _CALL, {"type": "function_call_output", "call_id": "c1", "output": "An error"}],
                "output": [{"type": "message", "role": "assistant", "content": [
                    {"type": "output_text", "text": "I do not know."}]}],
                "usage": {"input_tokens": 60, "output_tokens": 9}}),
            _span(6, {"type": "guardrail", "name": "no_secrets", "triggered": True}, {"message": "tripped"}),
        ],
    }
]  # fmt: skip

PYDANTIC_AI: list[Any] = [
    [
        {"kind": "request", "instructions": "Be brief.", "run_id": "run-1", "timestamp": STAMP.format(1), "parts": [
            {"part_kind": "system-prompt", "content": "You know cities.", "dynamic_ref": None},
            {"part_kind": "user-prompt", "content": ["How large is Paris?", {"kind": "image-url", "url": "a.png"}]}]},
        {"kind": "response", "model_name": "small", "run_id": "run-1", "finish_reason": "tool_call", "parts": [
            {"part_kind": "thinking", "content": "Look it up.", "signature": "sig"},
            {"part_kind": "text", "content": "One moment.", "id": "t-1"},
            {"part_kind": "tool-call", "tool_name": "lookup", "args": '{"city": "Pariss"}', "tool_call_id": "c1"},
            {"part_kind": "tool-call", "tool_name": "weather", "args": {"city": "Paris"}, "tool_call_id": "c2"}],
         "usage": {"input_tokens": 50, "output_tokens": 20, "cache_read_tokens": 10, "details": {"n": 8}}},
        {"kind": "request", "instructions": "Be brief.", "run_id": "run-1", "parts": [
            {"part_kind": "tool-return", "tool_name": "lookup", "tool_call_id": "c1", "content": "unknown city",
             "outcome": "retried", "retry": {"attempt": 1}},
            {"part_kind": "retry-prompt", "tool_name": "weather", "tool_call_id": "c2", "content": "too late"},
            {"part_kind": "retry-prompt", "tool_name": None, "content": "Answer in JSON."},
            {"part_kind": "odour", "content": "roses"}]},
        {"kind": "response", "model_name": "small", "run_id": "run-1", "parts": [
            {"part_kind": "tool-call", "tool_name": "final_result", "args": {"size": 2}, "tool_call_id": "c3"}],
         "usage": {"input_tokens": 70, "output_tokens": 5}},
        {"kind": "request", "run_id": "run-1", "parts": [
            {"part_kind": "tool-return", "tool_name": "final_result", "tool_call_id": "c3", "content": "Done.",
             "outcome": "success"}]},
    ]
]  # fmt: skip


def _smolagents_call(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _action(number: int, calls: list[Any], message_calls: list[Any], **more: Any) -> dict[str, Any]:
    return {
        "step_number": number, "timing": {"duration": 0.5}, "tool_calls": calls, "error": None, "model_output": "",
        "model_output_message": {"role": "assistant", "content": "", "tool_calls": message_calls},
        "observations": None, "action_output": None, "is_final_answer": False,
        "token_usage": {"input_tokens": 100 + number, "output_tokens": 10 + number}, **more,
    }  # fmt: skip


_LOOKUP = _smolagents_call("c1", "lookup", {"city": "Paris"})
_FAILED = _smolagents_call("c2", "lookup", {"city": "Atlantis"})
_ANSWER = _smolagents_call("c3", "final_answer", {"answer": "two million"})

SMOLAGENTS: list[Any] = [
    [
        {"system_prompt": "You use tools."},
        {"task": "How large is Paris?", "task_images": None},
        {"plan": "First look it up.", "token_usage": {"input_tokens": 30, "output_tokens": 3}},
        _action(1, [_LOOKUP], [_LOOKUP], model_output="I look.", observations="2 million"),
        _action(2, [], [_FAILED], error={"type": "AgentToolExecutionError", "message": "no such city"}),
        _action(3, [], [], error={"type": "AgentParsingError", "message": "no action"}, model_output="Hm"),
        _action(4, [_ANSWER], [_ANSWER], observations="two million", is_final_answer=True),
    ]
]  # fmt: skip

CREWAI: list[Any] = [
    [
        {"timestamp": "2026-01-02 10:00:00", "task_name": "find", "task": "How large is Paris?", "agent": "Reader",
         "status": "started"},
        {"timestamp": "2026-01-02 10:00:05", "task_name": "find", "task": "How large is Paris?", "agent": "Reader",
         "status": "completed", "output": "two million"},
    ],
    {
        "raw": "Two million.", "pydantic": None, "json_dict": None,
        "tasks_output": [{"description": "Write it.", "raw": "Two million.", "agent": "Writer", "messages": []}],
        "token_usage": {"prompt_tokens": 40, "completion_tokens": 4, "total_tokens": 44, "successful_requests": 1},
    },
]  # fmt: skip

STREAM_JSON: list[Any] = [
    {"type": "system", "subtype": "init", "session_id": "st-1", "tools": ["Task"], "uuid": "u1"},
    {"type": "assistant", "session_id": "st-1", "parent_tool_use_id": None, "uuid": "u2", "message": {
        "id": "m1", "role": "assistant", "model": "large", "usage": {"input_tokens": 3, "output_tokens": 1},
        "content": [{"type": "text", "text": "I ask."}]}},
    {"type": "assistant", "session_id": "st-1", "parent_tool_use_id": None, "uuid": "u3", "message": {
        "id": "m1", "role": "assistant", "model": "large", "usage": {"input_tokens": 3, "output_tokens": 1},
        "content": [{"type": "tool_use", "id": "t1", "name": "Task", "input": {"prompt": "read"}}]}},
    {"type": "assistant", "session_id": "st-1", "parent_tool_use_id": "t1", "uuid": "u4", "message": {
        "id": "m2", "role": "assistant", "model": "small", "usage": {"input_tokens": 5, "output_tokens": 2},
        "content": [{"type": "text", "text": "I read."}]}},
    {"type": "user", "session_id": "st-1", "parent_tool_use_id": None, "uuid": "u5", "message": {
        "role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "gone", "is_error": True}]},
     "tool_use_result": "Error: gone"},
    {"type": "assistant", "session_id": "st-1", "parent_tool_use_id": None, "uuid": "u6", "message": {
        "id": "m3", "role": "assistant", "model": "large", "usage": {"input_tokens": 4, "output_tokens": 1},
        "content": [{"type": "text", "text": "It is gone."}]}},
    {"type": "result", "subtype": "success", "session_id": "st-1", "is_error": False, "result": "It is gone.",
     "total_cost_usd": 0.75, "usage": {"input_tokens": 7, "output_tokens": 30},
     "modelUsage": {
         "large": {"inputTokens": 7, "outputTokens": 30, "cacheReadInputTokens": 100, "cacheCreationInputTokens": 20,
                   "costUSD": 0.5},
         "small": {"inputTokens": 5, "outputTokens": 12, "costUSD": 0.25}}},
]  # fmt: skip

AGENT_EXAMPLES = {
    "atif": ATIF,
    "chatgpt": CHATGPT,
    "claude-ai": CLAUDE_AI,
    "copilot-cli": COPILOT,
    "vscode-chat": VSCODE,
    "openai-agents": OPENAI_AGENTS,
    "pydantic-ai": PYDANTIC_AI,
    "smolagents": SMOLAGENTS,
    "crewai": CREWAI,
}
