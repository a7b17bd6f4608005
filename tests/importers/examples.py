"""A small log of every format, written for the tests."""

from __future__ import annotations

from typing import Any

from tests.importers.agent_examples import AGENT_EXAMPLES, STREAM_JSON

STAMP = "2026-01-02T10:00:0{}.000Z"


def _claude(n: int, kind: str, message: Any, **more: Any) -> dict[str, Any]:
    above = f"u{n - 1}" if n > 1 else None
    ids = {"uuid": f"u{n}", "parentUuid": above, "sessionId": "cc-1"}
    return {"type": kind, "timestamp": STAMP.format(n), **ids, **more, "message": message}


def _claude_says(id_: str, part: Any, out: int) -> dict[str, Any]:
    usage = {"input_tokens": 5, "output_tokens": out, "cache_read_input_tokens": 100}
    usage["cache_creation_input_tokens"] = 20
    return {
        "id": id_, "type": "message", "role": "assistant", "model": "claude-x",
        "content": [part], "stop_reason": None, "usage": usage,
    }  # fmt: skip


def _claude_use(id_: str, name: str, given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": name, "input": given}


def _claude_result(id_: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id_, "content": content, **more}]}


CLAUDE: list[Any] = [
    {"type": "summary", "summary": "Counting files", "leafUuid": "u9"},
    _claude(1, "user", {"role": "user", "content": "How many files are here?"}),
    _claude(2, "assistant", _claude_says("m1", {"type": "thinking", "thinking": "I look."}, 1)),
    _claude(3, "assistant", _claude_says("m1", {"type": "text", "text": "Let me see."}, 1)),
    _claude(4, "assistant", _claude_says("m1", _claude_use("t1", "Bash", {"command": "ls"}), 30)),
    _claude(
        5,
        "user",
        _claude_result("t1", [{"type": "text", "text": "a.py"}, {"type": "text", "text": "b.py"}]),
        toolUseResult={"stdout": "a.py\nb.py", "durationMs": 12},
    ),
    _claude(6, "assistant", _claude_says("m2", _claude_use("t2", "Bash", {"command": "wc"}), 7)),
    _claude(7, "user", _claude_result("t2", "The user doesn't want this.", is_error=True)),
    _claude(8, "user", {"role": "user", "content": "Caveat"}, isMeta=True),
    _claude(9, "assistant", _claude_says("m3", {"type": "text", "text": "Two files."}, 4)),
]

GEMINI: list[Any] = [
    {"sessionId": "g-1", "projectHash": "h", "startTime": STAMP.format(0), "kind": "main"},
    {"id": "1", "timestamp": STAMP.format(1), "type": "user", "content": [{"text": "Read it."}]},
    {"$set": {"lastUpdated": STAMP.format(1)}},
    {
        "id": "2", "timestamp": STAMP.format(2), "type": "gemini", "content": "",
        "thoughts": [{"subject": "Reading", "description": "I read."}], "model": "gemini-x",
        "tokens": {
            "input": 40, "output": 3, "cached": 8, "thoughts": 5, "tool": 0, "total": 48,
        },
    },
    {
        "id": "2", "timestamp": STAMP.format(2), "type": "gemini", "content": "",
        "thoughts": [{"subject": "Reading", "description": "I read."}], "model": "gemini-x",
        "tokens": {
            "input": 40, "output": 3, "cached": 8, "thoughts": 5, "tool": 0, "total": 48,
        },
        "toolCalls": [
            {
                "id": "c1", "name": "read_file", "args": {"path": "a"}, "status": "success",
                "result": [{"functionResponse": {
                    "id": "c1", "name": "read_file", "response": {"output": "text of a"}}}],
                "resultDisplay": "",
            },
            {
                "id": "c2", "name": "read_file", "args": {"path": "b"}, "status": "error",
                "result": [{"functionResponse": {
                    "id": "c2", "name": "read_file", "response": {"error": "not found"}}}],
            },
            {"id": "c3", "name": "write_file", "args": {"path": "c"}, "status": "cancelled"},
        ],
    },
    {"id": "3", "timestamp": STAMP.format(3), "type": "info", "content": "Request cancelled."},
    {
        "id": "4", "timestamp": STAMP.format(4), "type": "gemini", "content": "It says so.",
        "model": "gemini-x", "tokens": {"input": 50, "output": 4, "cached": 0, "total": 54},
    },
]  # fmt: skip

CODEX: list[Any] = [
    {"timestamp": STAMP.format(n), "type": kind, "payload": payload}
    for n, (kind, payload) in enumerate(
        [
            ("session_meta", {"id": "cx-1", "cwd": "/p", "cli_version": "1"}),
            ("turn_context", {"model": "gpt-x", "cwd": "/p"}),
            ("response_item", {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "<environment_context>…</environment_context>"}]}),
            ("response_item", {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "Run the tests."}]}),
            ("event_msg", {"type": "user_message", "message": "Run the tests."}),
            ("response_item", {"type": "reasoning", "summary": []}),
            ("response_item", {
                "type": "function_call", "name": "shell", "call_id": "c1",
                "arguments": '{"command": ["pytest"]}'}),
            ("response_item", {
                "type": "function_call_output", "call_id": "c1",
                "output": '{"output": "1 failed", '
                '"metadata": {"exit_code": 1, "duration_seconds": 2}}'}),
            ("event_msg", {"type": "token_count", "info": {
                "total_token_usage": {"input_tokens": 90, "output_tokens": 9},
                "last_token_usage": {
                    "input_tokens": 90, "cached_input_tokens": 50, "output_tokens": 9}}}),
            ("response_item", {"type": "message", "role": "assistant", "content": [
                {"type": "output_text", "text": "One test fails."}]}),
        ]
    )
]  # fmt: skip

QWEN: list[Any] = [
    {
        "uuid": "1", "sessionId": "q-1", "timestamp": STAMP.format(1), "type": "user",
        "message": {"role": "user", "parts": [{"text": "Save it."}]},
    },
    {"uuid": "2", "sessionId": "q-1", "type": "system", "subtype": "context"},
    {
        "uuid": "3", "sessionId": "q-1", "timestamp": STAMP.format(3), "type": "assistant",
        "message": {"role": "model", "parts": [
            {"text": "I save.", "thought": True},
            {"functionCall": {"id": "w", "name": "write_file", "args": {"path": "x"}}}]},
        "model": "qwen-x",
        "usageMetadata": {
            "promptTokenCount": 10, "candidatesTokenCount": 4, "thoughtsTokenCount": 2,
            "totalTokenCount": 14,
        },
    },
    {
        "uuid": "4", "sessionId": "q-1", "timestamp": STAMP.format(4), "type": "tool_result",
        "message": {"role": "user", "parts": [{"functionResponse": {
            "id": "w", "name": "write_file", "response": {"error": "User declined"}}}]},
        "toolCallResult": {"callId": "w", "status": "cancelled"},
    },
    {
        "uuid": "5", "sessionId": "q-1", "timestamp": STAMP.format(5), "type": "assistant",
        "message": {"role": "model", "parts": [{"text": "It was not saved."}]},
        "model": "qwen-x",
    },
]  # fmt: skip

OPENAI: list[Any] = [
    {
        "task_id": 7, "trial": 1, "reward": 1.0, "info": {"cost": 0.2},
        "traj": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Weather in Rome?"}]},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "c1", "type": "function",
                 "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}]},
            {"role": "tool", "tool_call_id": "c1", "name": "weather", "content": "sunny"},
            {"role": "assistant", "content": "Sunny.", "refusal": None},
        ],
    },
    {"id": "second", "messages": [{"role": "user", "content": "Hello"}]},
]  # fmt: skip

LANGCHAIN: list[Any] = [
    [
        {"type": "human", "data": {"content": "Hi", "type": "human", "id": "h1"}},
        {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"],
         "kwargs": {
             "content": "", "type": "ai",
             "tool_calls": [{"name": "find", "args": {"q": 1}, "id": "c1", "type": "tool_call"}],
             "usage_metadata": {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11},
             "response_metadata": {"model_name": "m", "finish_reason": "tool_calls"}}},
        {"type": "tool", "data": {
            "content": "boom", "type": "tool", "tool_call_id": "c1", "status": "error"}},
        {"type": "ai", "data": {"content": [{"type": "text", "text": "Sorry."}], "type": "ai"}},
    ]
]  # fmt: skip

PROCTOR: list[Any] = [
    {
        "id": "p-1", "output": "Paris", "latency_ms": 12.5,
        "session": {"events": [
            {"type": "message", "role": "user", "content": "Capital of France?"},
            {"type": "tool_call", "name": "search", "arguments": {"q": "F"}, "result": "Paris"},
            {"type": "model_call", "model": "m", "usage": {"input_tokens": 3}},
            {"type": "custom", "kind": "Note", "data": {"n": 1}},
        ]},
    }
]  # fmt: skip


def _codex_item(**payload: Any) -> dict[str, Any]:
    return {"type": "response_item", "payload": payload, "timestamp": STAMP.format(8)}


# Logs in which something was taken back, with all that may stand around it.
TAKEN_BACK: dict[str, list[Any]] = {
    "claude-code": [
        _claude(1, "user", {"role": "user", "content": "Count the files."}),
        _claude(2, "assistant", _claude_says("m1", {"type": "text", "text": "Which?"}, 9)),
        _claude(3, "user", {"role": "user", "content": "All of tham."}),
        _claude(4, "assistant", _claude_says("m2", _claude_use("t1", "Bash", {"cmd": "ls"}), 30)),
        _claude(5, "user", _claude_result("t1", "a.py"), toolUseResult={"stdout": "a.py"}),
        _claude(6, "assistant", _claude_says("m3", {"type": "text", "text": "One."}, 4)),
        _claude(7, "user", {"role": "user", "content": "All of them."}, parentUuid="u2"),
        _claude(8, "assistant", _claude_says("m4", {"type": "text", "text": "Two."}, 5)),
        {
            "type": "attachment", "uuid": "u9", "parentUuid": "u8", "sessionId": "cc-1",
            "attachment": {"type": "queued_command", "prompt": "In all folders.", "more": 7},
        },
    ],
    "codex": [
        *CODEX,
        _codex_item(type="message", role="user", content="Mend it."),
        {"type": "event_msg", "payload": {"type": "user_message", "message": "Mend it."}},
        _codex_item(type="web_search_call", status="completed", action={"query": "pytest"}, n=1),
        {"type": "event_msg", "payload": {"type": "token_count", "info": {
            "last_token_usage": {"input_tokens": 40, "output_tokens": 4}}}},
        _codex_item(type="message", role="assistant", content="Mended."),
        {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}, "n": 2},
        _codex_item(type="message", role="user", content=[
            {"type": "input_text", "text": "<image name=[Image #1]>"},
            {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
            {"type": "input_text", "text": "</image>"},
            {"type": "input_text", "text": "Explain [Image #1]."},
        ]),
        _codex_item(type="image_generation_call", id="ig", status="completed", result="BBBB",
                    revised_prompt="A tree", n=3),
    ],
    "gemini": [
        *GEMINI,
        {"$set": {"messages": [
            {"id": "8", "type": "user", "content": [{"text": "So far: a was read."}]},
            {"id": "9", "type": "gemini", "content": [
                {"functionCall": {"id": "c9", "name": "ls", "args": {"in": "b"}}}, {"text": "On."}],
             "toolCalls": [{"id": "c9", "name": "ls", "args": {"in": "b"}, "status": "success",
                            "result": [{"functionResponse": {
                                "id": "c9", "name": "ls", "response": {"output": "c"}}}]}]},
            {"id": "10", "type": "user", "content": [{"functionResponse": {
                "id": "c9", "name": "ls", "response": {"output": "c"}}}]},
        ]}},
        {"id": "11", "type": "user", "content": "Go on."},
        {"$rewindTo": "10"},
    ],
}  # fmt: skip

# What APIs were asked and gave back, with tools that they ran themselves.
EXCHANGES: dict[str, list[Any]] = {
    "claude-code": STREAM_JSON,
    "openai": [
        {
            "object": "response", "id": "r1", "model": "m", "instructions": "Be brief.",
            "input": [{"role": "user", "content": "Weather in Rome?"}],
            "output": [
                {"type": "reasoning", "id": "rs", "summary": []},
                {"type": "web_search_call", "id": "ws", "status": "completed",
                 "action": {"type": "search", "query": "Rome"}},
                {"type": "mcp_list_tools", "id": "ml", "tools": ["find"]},
                {"type": "message", "role": "assistant", "id": "m1",
                 "content": [{"type": "output_text", "text": "Sunny.", "annotations": []}]},
            ],
            "usage": {"input_tokens": 5, "output_tokens": 3},
        },
        {
            "id": "b1", "custom_id": "q-1", "error": None,
            "response": {"status_code": 200, "body": {
                "object": "chat.completion", "model": "m",
                "choices": [
                    {"index": 0, "message": {"role": "assistant", "content": "Paris"}},
                    {"index": 1, "message": {"role": "assistant", "content": "It is Paris"}},
                ],
                "usage": {"prompt_tokens": 3, "completion_tokens": 1},
            }},
        },
        {"id": "b2", "custom_id": "q-2", "response": None, "error": {"code": "expired"}},
        {"id": "a1", "messages": [
            {"role": "user", "content": "And in Paris?"},
            {"role": "assistant", "content": [
                {"type": "text", "text": "Looking."},
                {"type": "server_tool_use", "id": "s1", "name": "web_search",
                 "input": {"query": "Paris"}},
                {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [
                    {"type": "web_search_result", "url": "u", "title": "Weather"}]},
                {"type": "text", "text": "Rain."},
            ]},
            {"role": "user", "content": "Sing it."},
            {"role": "assistant", "content": None, "refusal": "Not that."},
            {"role": "assistant", "content": None, "audio": {"id": "v1", "transcript": "La la."}},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "No more."}]},
        ]},
    ],
}  # fmt: skip

EXAMPLES = {
    "claude-code": CLAUDE,
    "gemini": GEMINI,
    "codex": CODEX,
    "qwen": QWEN,
    "openai": OPENAI,
    "langchain": LANGCHAIN,
    "proctor": PROCTOR,
    **AGENT_EXAMPLES,
}
