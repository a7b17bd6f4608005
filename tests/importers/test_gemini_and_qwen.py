"""Gemini CLI and Qwen Code: messages made of parts, and lines that amend earlier ones."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from proctor.records.session import CustomEvent, Message, ModelCall, ToolCall, Usage
from proctor.sessions.importers import gemini, qwen
from proctor.sessions.importers.gemini import read_api_usage as read_gemini_usage
from tests.importers.examples import GEMINI, QWEN
from tests.importers.logs import kinds, only, read, real, values_in, written


def test_later_lines_update_earlier_ones() -> None:
    """The same id is the same message: its tokens count once, its tools are those of the last."""
    imported = only(gemini, *GEMINI)
    assert kinds(imported) == [
        "user", "CustomEvent thinking", "assistant", "ToolCall read_file", "ToolCall read_file",
        "ToolCall write_file", "ModelCall gemini-x", "CustomEvent info", "assistant",
        "ModelCall gemini-x",
    ]  # fmt: skip
    assert imported.session.usage == Usage(90, 12, 8)
    assert [(call.result, call.error) for call in imported.session[ToolCall]] == [
        ("text of a", None),
        ({"error": "not found"}, "not found"),
        (None, "the call was cancelled"),
    ]
    assert (imported.id, imported.input, imported.output) == ("g-1", "Read it.", "It says so.")
    assert imported.recorded["about"]["lastUpdated"] == "2026-01-02T10:00:01.000Z"


def test_a_document_is_read() -> None:
    """The older form, one JSON with messages, gives the same."""
    head, *rest = GEMINI
    messages = [line for line in rest if "$set" not in line]
    imported = only(gemini, {**head, "messages": messages})
    assert imported.session == only(gemini, *GEMINI).session


def test_rewound_messages_are_kept_as_an_event() -> None:
    """Messages that were taken back are no part of the conversation, but are not lost."""
    imported = only(gemini, *GEMINI, {"$rewindTo": "2", "why": "x"}, {"$rewindTo": "nowhere"})
    assert kinds(imported) == [
        "user", "CustomEvent rewound", "ModelCall gemini-x", "ModelCall gemini-x",
        "CustomEvent mapping with $rewindTo",
    ]  # fmt: skip
    rewound = imported.session[CustomEvent][0].data
    assert (rewound["line"]["why"], len(rewound["taken"])) == ("x", 3)
    assert imported.output is None
    assert imported.session.usage == only(gemini, *GEMINI).session.usage  # it was spent


def test_repeated_rewinds_do_not_nest() -> None:
    """A thousand messages taken back one by one from the end are kept, with their tokens."""
    messages = [
        {"id": f"{n}", "type": "gemini", "content": "", "model": "m", "tokens": {"output": 1}} for n in range(1000)
    ]
    back = [{"$rewindTo": line["id"]} for line in reversed(messages)]
    imported = only(gemini, GEMINI[0], *messages, *back)
    assert imported.session.usage.output_tokens == 1000
    assert written(imported).count('"output":1') == 1000


def _said(id_: str, kind: str, words: str) -> dict[str, Any]:
    return {"id": id_, "type": kind, "content": [{"text": words}]}


def test_a_compressed_history_is_named_summary() -> None:
    """Earlier messages stay; their replacement is a summary."""
    start = [GEMINI[0], _said("1", "user", "Why?"), _said("2", "gemini", "So.")]
    short = [_said("8", "user", "They talked."), _said("9", "gemini", "I see.")]
    imported = only(gemini, *start, {"$set": {"messages": short}}, _said("3", "user", "And?"))
    assert [(m.role, m.name, m.content) for m in imported.session[Message]] == [
        ("user", None, "Why?"),
        ("assistant", None, "So."),
        ("user", "summary", "They talked."),
        ("assistant", "summary", "I see."),
        ("user", None, "And?"),
    ]
    assert (imported.input, imported.output, imported.unknown_parts) == ("Why?", "So.", {})
    back = only(gemini, *start, {"$set": {"messages": short}}, {"$rewindTo": "9"})
    assert [m.content for m in back.session[Message]] == ["Why?", "So.", "They talked."]


def test_a_history_that_continues_is_the_conversation() -> None:
    """Messages that only a `$set` contains are added, also after known ones."""
    messages = [_said("1", "user", "Why?"), _said("2", "gemini", "So."), _said("3", "user", "And?")]
    sets = [{"$set": {"messages": part}} for part in (messages[:1], messages[:2], messages[1:], [])]
    imported = only(gemini, GEMINI[0], *sets)
    assert [(m.name, m.content) for m in imported.session[Message]] == [
        (None, "Why?"), (None, "So."), (None, "And?"),
    ]  # fmt: skip


def test_calls_and_results_that_a_history_repeats_are_read_once() -> None:
    """It has them as parts of messages; `toolCalls` has them too."""
    answer = {"id": "c1", "name": "ls", "response": {"output": "a"}}
    result = {"functionResponse": answer}
    call = {"id": "c1", "name": "ls", "args": {}, "status": "success", "result": [result]}
    asked = {"functionCall": {"id": "c1", "name": "ls", "args": {}}}
    history: list[Any] = [
        {"id": "2", "type": "gemini", "content": [asked, {"text": "Look:"}], "toolCalls": [call]},
        {"id": "2r", "type": "user", "content": [result]},
    ]
    imported = only(gemini, GEMINI[0], {**history[0], "content": ""}, {"$set": {"messages": history}})
    assert kinds(imported) == ["assistant", "ToolCall ls"]
    assert (imported.output, imported.unknown_parts) == ("Look:", {})
    other = {"functionResponse": {**answer, "response": {"output": "b"}}}
    imported = only(gemini, GEMINI[0], history[0], {**history[1], "content": [other]})
    assert imported.unknown_parts == {"tool result without its call": 1}


def test_ids_like_our_keys_do_not_collide() -> None:
    """No id of a message can take the place of a line that has none."""
    odd = [f"#{n}" for n in range(4)] + ["0", "1", "#rewind 2 2", "(1, 0)"]
    lines = [
        line for id_ in odd for line in ("said", {"type": "gemini", "id": id_, "content": id_, "tokens": {"output": 1}})
    ]
    imported = only(gemini, GEMINI[0], *lines)
    assert [message.content for message in imported.session[Message]] == odd
    assert imported.unknown_parts == {"a string": len(odd)}
    assert imported.session.usage.output_tokens == len(odd)


def test_a_checkpoint_is_read() -> None:
    """A list of role and parts, where answers find their calls by name."""
    imported = only(
        gemini,
        [
            {"role": "user", "parts": [{"text": "Go"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "ls", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {
                "name": "ls", "response": {"output": "a"}}}]},
            {"role": "model", "parts": [{"text": "Done"}, {"odd": 1}]},
        ],
    )  # fmt: skip
    assert imported.session[ToolCall] == (ToolCall("ls", result="a"),)
    assert (imported.output, imported.unknown_parts) == ("Done", {"part: mapping with odd": 1})


def test_two_headers_are_two_sessions() -> None:
    """A file may hold several sessions after each other."""
    other = {**GEMINI[0], "sessionId": "g-2"}
    user = {"type": "user", "id": "9", "content": "Hi"}
    assert [imported.id for imported in read(gemini, [*GEMINI, other, user])] == ["g-1", "g-2"]


def test_the_real_gemini_log_adds_up() -> None:
    """Tokens by model are the expected ones."""
    folder = real("vibecodingtracker")
    (imported,) = read(gemini, values_in(folder / "gemini.jsonl"))
    wanted = json.loads((folder / "gemini.expected.json").read_text())["records"][0]
    total: Counter[str] = Counter()
    fresh: Counter[str] = Counter()
    for call in imported.session[ModelCall]:
        usage = call.usage
        total[call.model] += usage.total_tokens or 0
        fresh[call.model] += (usage.input_tokens or 0) - (usage.cached_tokens or 0)
    result = wanted["conversationUsage"]
    assert dict(total) == {model: usage["total_tokens"] for model, usage in result.items()}
    assert sorted(total.values()) == [40_956, 165_923]
    assert dict(fresh) == {model: usage["input_tokens"] for model, usage in result.items()}
    assert (imported.unknown_parts, len(imported.session[ToolCall])) == ({}, 12)


def test_qwen_thoughts_calls_and_declined_calls_are_read() -> None:
    """A cancelled tool failed; thoughts that are counted in the answer are not counted twice."""
    imported = only(qwen, *QWEN)
    assert kinds(imported) == [
        "user", "CustomEvent system", "CustomEvent thinking", "assistant", "ToolCall write_file",
        "ModelCall qwen-x", "CustomEvent toolCallResult", "assistant", "ModelCall qwen-x",
    ]  # fmt: skip
    assert imported.session[ToolCall][0].error == "User declined"
    assert imported.session.usage == Usage(10, 4)
    assert (imported.id, imported.input, imported.output) == ("q-1", "Save it.", "It was not saved.")


def test_qwen_lines_before_the_first_id_belong_to_it() -> None:
    """A line without an id belongs to the session around it, and odd ones are counted."""
    imported = only(qwen, {"odd": 1}, *QWEN, 3)
    assert imported.id == "q-1"
    assert imported.unknown_parts == {"mapping with odd": 1, "a number": 1}
    cancelled = dict(QWEN[3], message={"parts": [{"functionResponse": {"id": "w"}}]})
    assert only(qwen, *QWEN[:3], cancelled).session[ToolCall][0].error == "the call ended with cancelled"


def test_qwen_lines_keep_their_model() -> None:
    """Also on lines without an answer and on repeated lines."""
    user = {**QWEN[0], "model": "user-model"}
    again = {**QWEN[-1], "model": "other-model"}
    noted = [line.get("model") for line in only(qwen, user, QWEN[-1], again).recorded["log"]]
    assert noted == ["user-model", "qwen-x", "other-model"]


def test_thoughts_count_as_output() -> None:
    """They are added to the output, unless the total includes them."""
    result = {"promptTokenCount": 1, "thoughtsTokenCount": 5}
    assert read_gemini_usage(result) == Usage(1, 5)
    assert read_gemini_usage({}) == Usage()


def test_real_qwen_logs() -> None:
    """All three logs: questions, answers and tokens."""
    imported = [read(qwen, values_in(path))[0] for path in sorted(real("mlflow/qwen-code").iterdir())]
    assert [session.session.usage.total_tokens for session in imported] == [110, 250, 480]
    assert imported[0].output == "4"
    assert [call.success for session in imported for call in session.session[ToolCall]] == [False, True]
    assert [len(session.session[Message]) for session in imported] == [2, 3, 3]
