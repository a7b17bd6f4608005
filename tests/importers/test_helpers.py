"""Helpers of the importers, each with one example."""

from pathlib import Path
from typing import Any

from proctor.records.session import Message, Usage
from proctor.sessions import current
from proctor.sessions.genai import bodies, message_parser, messages, spans, values
from proctor.sessions.importers import (
    codex,
    content_matcher,
    conversation,
    gemini,
    imported_session,
    json_values,
    langchain_messages,
    langfuse,
    langfuse_rows,
    openai_messages,
    otlp_wire,
    session_files,
    trace,
)
from proctor.sessions.importers.session_builder import SessionBuilder
from tests.tables import each_row


@each_row(
    ("actual", "expected"),
    [
        (
            (
                current.parse_cut_off_count(current.describe_cut_off(1200)),
                current.parse_cut_off_count("2 outputs were lost"),
            ),
            (1200, None),
        ),
        (current.check_usage(Usage(-5, 3), "the server"), Usage()),
        (
            bodies.to_camel_case({"Role": "model", "Parts": [{"Text": "Hi", "FunctionCall": None}]}),
            {"role": "model", "parts": [{"text": "Hi", "functionCall": None}]},
        ),
        (
            message_parser._parse_call(
                {"type": "web_search_call", "action": {"type": "search", "query": "Rome"}}
            ).arguments,
            {"type": "search", "query": "Rome"},
        ),
        (message_parser._get_hosted_result({"type": "web_search_call", "status": "completed"}), "completed"),
        (message_parser.is_bare_message({"content": "sunny", "additional_kwargs": {}}), True),
        (
            (message_parser.parse_role("Human"), message_parser.parse_role("bot"), message_parser.parse_role("critic")),
            ("user", "assistant", None),
        ),
        (
            messages.read_instructions({"gen_ai.system_instructions": '[{"content": "Be brief."}]'}),
            [Message(role="system", content="Be brief.")],
        ),
        (spans.get_operation({"openinference.span.kind": "CHAIN"}), "chain"),
        (spans.is_container_span({"gen_ai.operation.name": "invoke_agent"}), True),
        (
            (values.parse_arguments('{"q": "Paris"}'), values.parse_arguments("Paris"), values.parse_arguments(None)),
            ({"q": "Paris"}, {"": "Paris"}, {}),
        ),
        ((values.text_or_none(7), values.text_or_none(""), values.text_or_none(None)), ("7", None, None)),
        ((values.is_known_attribute("gen_ai.response.id"), values.is_known_attribute("acme.blob")), (True, False)),
        (values.join_texts(["One", "Two"], "user"), "One\nTwo"),
        (values.join_texts(["The capital is ", "Paris."], "assistant"), "The capital is Paris."),
        (values.join_texts(["Let me look.", values.BREAK, "It is Paris."], "assistant"), "Let me look.\nIt is Paris."),
        (
            codex.read_usage({"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 10}),
            Usage(input_tokens=100, output_tokens=10, cached_tokens=60),
        ),
        (codex._find_exit_code("Exit code: 0\nWall time: 1 seconds\nOutput:\nExit code: 1"), 0),
        (
            (
                content_matcher.is_structural("gen_ai.prompt.0.role", "user"),
                content_matcher.is_structural("gen_ai.prompt.0.content", "user"),
            ),
            (True, False),
        ),
        (content_matcher.read_phase("start", {"target": "tool.weather.start", "name": "start"}), "tool.weather.start"),
        (
            (content_matcher.read_phase("start", {}), content_matcher.read_phase("start", {"tool.name": "start"})),
            ("start", ""),
        ),
        (
            (
                conversation.has_messages({"messages": [{"role": "user", "content": "Hi"}]}),
                conversation.has_messages("Hi"),
            ),
            (True, False),
        ),
        (
            (
                conversation.list_state_names({"messages": [], "category": "refund"}),
                conversation.list_state_names({"category": "refund"}),
            ),
            (("category",), ()),
        ),
        (
            (
                conversation.is_langchain_json('[{"lc": 1, "type": "constructor"}]'),
                conversation.is_langchain_json("Paris"),
            ),
            (True, False),
        ),
        (
            gemini.read_usage({"input": 40, "output": 3, "cached": 8, "thoughts": 5, "tool": 0, "total": 48}),
            Usage(input_tokens=40, output_tokens=8, cached_tokens=8),
        ),
        (
            imported_session.wrap_raw_event("observation: span", {"name": "plan", "input": "Go"}).data,
            {"found": {"name": "plan", "input": "Go"}},
        ),
        (
            json_values.remaining_fields({"role": "user", "id": {"odd": 1}, "more": 2}, {"role": "user", "id": None}),
            {"id": {"odd": 1}, "more": 2},
        ),
        (
            (
                imported_session.describe_type({"type": "hologram"}),
                imported_session.describe_type({"a": 1, "b": 2}),
                imported_session.describe_type(3),
            ),
            ("hologram", "mapping with a, b", "a number"),
        ),
        (
            imported_session.describe_value([{"from": "human", "value": "Hi"}, {"from": "gpt"}]),
            'a list of 2, first an object with the keys from "human", value',
        ),
        (
            imported_session.describe_value({"id": 1, "turns": [{"role": "critic", "said": "No."}]}),
            'an object with the keys id, turns (a list of 1, first an object with the keys role "critic", said)',
        ),
        (json_values.join_parts([{"text": "a"}, {"text": "b"}], types=()), "a\nb"),
        (
            (
                json_values.extract_text([{"type": "image"}, {"type": "text", "text": "Hi"}]),
                json_values.extract_text([]),
            ),
            ("Hi", None),
        ),
        (
            json_values.find_unknown_parts([{"type": "image"}, {"type": "hologram"}, {"text": "Hi"}]),
            [{"type": "hologram"}],
        ),
        (
            (
                imported_session.default_session_id("logs/chat.jsonl.gz"),
                imported_session.default_session_id("logs/chat.jsonl:3"),
            ),
            ("chat", "chat:3"),
        ),
        (
            langchain_messages.read_usage(
                {"input_tokens": 9, "output_tokens": 2, "input_token_details": {"cache_read": 4}}
            ),
            Usage(input_tokens=9, output_tokens=2, cached_tokens=4),
        ),
        (
            langfuse_rows.read_usage({"usageDetails": {"input": 5, "input_cache_read": 40, "output": 2, "total": 47}}),
            Usage(input_tokens=45, output_tokens=2, cached_tokens=40),
        ),
        (
            langfuse_rows.get_duration_ms({"startTime": "2026-01-01T00:00:00Z", "endTime": "2026-01-01T00:00:01.5Z"}),
            1500.0,
        ),
        (langfuse_rows.normalize_keys({"trace_id": "t", "name": "a"}), {"traceId": "t", "name": "a"}),
        (
            langfuse_rows.classify_row({"id": "o", "traceId": "t", "type": "SPAN", "startTime": "2026-01-01"}),
            "observation",
        ),
        ((otlp_wire.is_document({"resourceSpans": []}), otlp_wire.is_document({"spans": []})), (True, False)),
        (otlp_wire.to_storable([1]), [1]),
        (openai_messages.read_usage({"prompt_tokens": 9, "completion_tokens": 2}).total_tokens, 11),
        (
            openai_messages.read_usage({"input_tokens": 5, "cache_read_input_tokens": 100, "output_tokens": 2}),
            Usage(input_tokens=105, output_tokens=2, cached_tokens=100),
        ),
        (
            (
                session_files._find_document_error(b'[\n {"role": "user",\n  "con'),
                session_files._find_document_error(b'{"cut\n{"a": 1}\n'),
            ),
            (2, None),
        ),
        (trace.merge_source_fields({"id": "s1"}, {"id": 7, "flags": 1}), {"id": "s1", "their id": 7, "flags": 1}),
        (trace.rename_conflicts(["id"], {"id": 7, "their id": 8}), {"their id 2": 7, "their id": 8}),
    ],
)
def test_a_helper_of_the_importers_returns_this_value(actual: Any, expected: Any) -> None:
    assert actual == expected


def test_pieces_of_a_streamed_answer_are_joined() -> None:
    pieces = [{"role": "assistant", "id": "m1", "content": text} for text in ("Par", "is")]
    assert message_parser._join_fragments(pieces) == [{"role": "assistant", "id": "m1", "content": "Paris"}]


def test_content_lines_have_the_keys_above_them() -> None:
    value = {"role": "user", "content": "Hi\nyou", "a": {"role": "user", "b": ['{"c": 2}']}}
    assert [(".".join(path), line) for path, line in content_matcher.iterate_content(value)] == [
        ("", "Hi"),
        ("", "you"),
        ("a.role", "user"),
        ("a.b.c", "2"),
    ]


def test_the_input_and_output_of_a_trace_become_messages() -> None:
    messages = langfuse.read_trace_messages({"question": "Where?"}, {"answer": "There.", "sources": 2}, [])
    assert messages.inputs == [Message(role="user", content="Where?")]
    assert messages.outputs == [Message(role="assistant", content={"answer": "There.", "sources": 2})]


def test_fields_that_the_session_lacks_are_found() -> None:
    call = {"type": "tool_use", "id": "c1", "name": "find", "input": {"q": 1}}
    matcher = openai_messages.add_parsed(
        SessionBuilder(), message_parser.parse_messages([{"role": "assistant", "content": [call]}])
    )
    assert matcher.unmatched_fields({"content": [call], "stop_reason": "tool_use"}) == {"stop_reason": "tool_use"}


def test_problems_are_grouped_by_file() -> None:
    problems = session_files.ReadProblems()
    for line in (3, 4):
        problems.add(Path("notes.json"), "not valid JSON", line)
    assert [str(problem) for problem in problems.by_file] == [
        "notes.json: 2 lines with problems, such as line 3: not valid JSON"
    ]
