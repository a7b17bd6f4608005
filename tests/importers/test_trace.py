"""Assemble spans: results are matched to calls, and contents stay with their spans."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from proctor.evaluators.tool_calls import read_calls
from proctor.records.session import CustomEvent, Message, ModelCall, ToolCall, Usage
from proctor.records.session_events import UNANSWERED
from proctor.sessions.importers import langfuse, otlp
from tests.importers.growth import assert_linear
from tests.importers.logs import only
from tests.importers.traces import CALL, CHAT, pairs, row, said, span, spans, value, words


def call_of(city: str) -> dict[str, Any]:
    given = {"city": city}
    return said("assistant", {**CALL, "id": "call_0", "arguments": given})


def answer_of(words_: str) -> dict[str, Any]:
    return said("tool", {"type": "tool_call_response", "id": "call_0", "response": words_})


def asking(name: str, at: int, asked: list[Any], answer: dict[str, Any]) -> dict[str, Any]:
    about = {"gen_ai.input.messages": json.dumps(asked)}
    about["gen_ai.output.messages"] = json.dumps([answer])
    return span(name, at, {**CHAT, **about})


ROME = [said("user", words("Rome?")), call_of("Rome"), answer_of("Rainy")]
OSLO = [said("user", words("Oslo?")), call_of("Oslo"), answer_of("Snowy")]
FINE = said("assistant", words("I see."))


def results(*given: dict[str, Any]) -> dict[str, Any]:
    calls = only(otlp, spans(*given)).session[ToolCall]
    return {str(call.arguments["city"]): call.result for call in calls}


def test_each_call_with_a_reused_id_gets_its_own_result() -> None:
    """In the next turn of one talk each call has the answer that came after it."""
    later = [*ROME, FINE, *OSLO]
    first, second = asking("a", 0, ROME[:1], ROME[1]), asking("b", 1, ROME, FINE)
    third, fourth = asking("c", 2, later[:5], OSLO[1]), asking("d", 3, later, FINE)
    assert results(first, second, third, fourth) == {"Rome": "Rainy", "Oslo": "Snowy"}
    imported = only(otlp, spans(first, second, third))
    assert [call.result for call in imported.session[ToolCall]] == ["Rainy"]
    assert [e.data["arguments"] for e in imported.session[CustomEvent] if e.kind == UNANSWERED] == [{"city": "Oslo"}]


def test_two_agents_with_the_same_call_id_get_their_own_results() -> None:
    """An answer goes to the call before it in its own talk, whichever comes first."""
    asked = [asking("a", 0, ROME[:1], ROME[1]), asking("b", 1, OSLO[:1], OSLO[1])]
    answered = [asking("c", 2, OSLO, FINE), asking("d", 3, ROME, FINE)]
    assert results(*asked, *answered) == {"Rome": "Rainy", "Oslo": "Snowy"}


def test_a_result_in_a_later_span_is_found_after_the_history_was_cut() -> None:
    """A talk whose beginning is cut off looks like one that is known; the answer is found."""
    asked = [asking("a", 0, ROME[:1], ROME[1]), asking("b", 1, ROME, FINE)]
    later = asking("c", 2, [*ROME, FINE, OSLO[0]], OSLO[1])
    assert results(*asked, later, asking("d", 3, OSLO[1:], FINE)) == {"Rome": "Rainy", "Oslo": "Snowy"}


def test_tool_spans_with_the_same_id_match_their_calls_in_order() -> None:
    """Each call has its own span, and the result of a call with a span goes to no other call."""
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather"}
    tool["gen_ai.tool.call.id"] = "call_0"
    ran = span("t", 1, {**tool, "gen_ai.tool.call.arguments": '{"city": "Rome"}'})
    later = [*ROME, FINE, OSLO[0]]
    imported = only(
        otlp,
        spans(
            asking("a", 0, ROME[:1], ROME[1]), ran, asking("b", 2, ROME, FINE),
            asking("c", 3, later, OSLO[1]),
        ),
    )  # fmt: skip
    assert [call.arguments for call in imported.session[ToolCall]] == [{"city": "Rome"}]
    (open_,) = [e.data for e in imported.session[CustomEvent] if e.kind == UNANSWERED]
    assert open_["arguments"] == {"city": "Oslo"}


def test_a_span_keeps_contents_that_the_session_lacks() -> None:
    """The input of a guardrail stays with its span, even if a model received the same text."""
    guard = {"openinference.span.kind": "GUARDRAIL", "input.value": "Rome?", "output.value": "1"}
    imported = only(otlp, spans(asking("a", 0, ROME[:1], FINE), span("guard", 1, guard)))
    (stored,) = [e.data["found"] for e in imported.session[CustomEvent]]
    assert stored["attributes"] == guard
    chat, _ = imported.recorded["spans"]
    assert set(chat["attributes"]) == set(CHAT)
    assert [imported.session.events[place] for place in chat["asked"]] == [Message("user", "Rome?")]


def test_an_unreadable_answer_does_not_replace_the_question() -> None:
    """A question in place of the messages is kept and reported as unreadable."""
    chat = asking("a", 0, ROME[:1], FINE)
    chat["attributes"][-1]["value"] = value("Rome?")
    imported = only(otlp, spans(chat))
    assert imported.recorded["spans"][0]["attributes"]["gen_ai.output.messages"] == "Rome?"
    assert imported.session[ModelCall][0].details == {"unreadable": ["gen_ai.output.messages"]}


def test_the_role_of_a_developer_is_kept() -> None:
    """It becomes a system message, and the original role is recorded."""
    imported = only(otlp, spans(asking("a", 0, [said("developer", words("Be brief."))], FINE)))
    assert imported.session[Message][0] == Message("system", "Be brief.")
    assert "developer" in imported.recorded["spans"][0]["attributes"]["gen_ai.input.messages"]


def test_parts_of_messages_that_are_not_understood_are_counted() -> None:
    """They stay in the message unchanged; images are known."""
    odd = said("user", words("See:"), {"type": "hologram", "x": 1}, {"type": "uri", "uri": "a"})
    imported = only(otlp, spans(asking("a", 0, [odd], FINE)))
    assert imported.unknown_parts == {"part: hologram": 1}
    assert {"type": "hologram", "x": 1} in imported.session[Message][0].content


@pytest.mark.parametrize("shape", ["nested", "resources", "texts", "chats"])
def test_the_work_for_a_trace_is_linear(shape: str) -> None:

    def document(count: int) -> dict[str, Any]:
        tool = {"gen_ai.operation.name": "execute_tool"}
        nested = [span(f"s{n}", n, {**tool, "gen_ai.tool.name": f"t{n}"}, parent=f"s{n - 1}") for n in range(count)]
        long = "\n".join(f"line {n}" for n in range(50))
        texts = [asking(f"s{n}", n, [said("user", words(f"{n}\n{long}"))], FINE) for n in range(count)]
        chats = [span(f"s{n}", n, USED if n < 9 else CHAT, parent=f"s{n - 1}") for n in range(count)]
        alone = [spans(item)["resourceSpans"][0] for item in nested]
        for number, item in enumerate(alone):
            item["resource"] = {"attributes": pairs({"service.name": f"s{number}"})}
        if shape == "resources":
            return {"resourceSpans": alone}
        return spans(*{"nested": nested, "texts": texts, "chats": chats}[shape])

    assert_linear(lambda count: partial(only, otlp, document(count)), 40)


def test_a_long_resource_is_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The spans of one program share its resource, which may be long."""
    compared: list[Any] = []
    monkeypatch.setattr(otlp, "repr", compared.append, raising=False)
    document = spans(*(span(f"s{n}", n, {}) for n in range(200)))
    document["resourceSpans"][0]["resource"] = {"attributes": pairs({"k": "y" * 1_000_000})}
    imported = only(otlp, document)
    assert compared == []
    assert [len(session["k"]) for session in imported.recorded["resources"]] == [1_000_000]
    same = [spans(span(f"s{n}", n, {}))["resourceSpans"][0] for n in range(3)]
    imported = only(otlp, {"resourceSpans": same})
    assert imported.recorded["resources"] == [{"service.name": "shop"}]


USED = {**CHAT, "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 20}
PART = {**CHAT, "gen_ai.usage.input_tokens": 60}


@pytest.mark.parametrize(
    ("given", "used"),
    [
        # Only the outer span tells it, also where another stands between.
        ([span("a", 0, USED), span("b", 1, CHAT, parent="a")], [Usage(100, 20)]),
        ([span("a", 0, USED), span("x", 1, {}, parent="a"), span("b", 2, CHAT, parent="x")], [Usage(100, 20)]),
        # Each of the two tells a part; what the inner one tells holds.
        ([span("a", 0, USED), span("b", 1, PART, parent="a")], [Usage(60, 20)]),
        # Two calls in one, and only one tells: what is told around them is not counted again.
        (
            [span("a", 0, USED), span("b", 1, USED, parent="a"), span("c", 2, CHAT, parent="a")],
            [Usage(100, 20), Usage()],
        ),
        # Two that do not tell have it together.
        (
            [span("a", 0, USED), span("b", 1, CHAT, parent="a"), span("c", 2, CHAT, parent="a")],
            [Usage(), Usage(100, 20)],
        ),
        # Of three in each other the nearest that tells is believed.
        ([span("a", 0, USED), span("b", 1, PART, parent="a"), span("c", 2, CHAT, parent="b")], [Usage(60, 20)]),
    ],
)
def test_usage_that_only_an_outer_span_has_counts(given: list[dict[str, Any]], used: list[Usage]) -> None:
    """A framework that counts the tokens of a client's call, and the client does not."""
    for some in (given, given[::-1]):
        calls = only(otlp, spans(*some)).session[ModelCall]
        assert sum((call.usage for call in calls), Usage()) == sum(used, Usage())
    assert [call.usage for call in only(otlp, spans(*given)).session[ModelCall]] == used


def test_other_spans_of_a_trace_are_not_counted_as_calls() -> None:
    """Spans with a name and an input, and unknown rows, look like tool calls."""
    plan = row("plan", "SPAN", 0, input={"goal": "x"}, output="y", error=True)
    stray = {"name": "go", "input": {}, "tool": "go"}
    imported = only(langfuse, {"trace": {"id": "t"}, "observations": [plan]}, stray)
    assert read_calls(imported.session.view()) == []
    (stored, _) = [event.data["found"] for event in imported.session[CustomEvent]]
    assert (stored["name"], stored["input"]) == ("plan", {"goal": "x"})
    odd = {**span("guard", 0, {"x": 1}), "input": {"a": 1}, "tool_name": "guard"}
    assert read_calls(only(otlp, {**spans(odd), "tool": stray}).session.view()) == []


def test_fields_of_a_span_do_not_replace_our_fields() -> None:
    """A field whose name the record uses gets another name."""
    theirs = {"id": "x", "asked": [9], "event": 7, "scope": "y", "odd": 1}
    imported = only(otlp, spans({**asking("a", 0, ROME[:1], FINE), **theirs}))
    (stored,) = imported.recorded["spans"]
    assert {name: stored[f"their {name}"] for name in theirs} == theirs
    assert (stored["id"], stored["asked"], stored["event"]) == ("a", [0], 2)
    both = only(otlp, spans({**span("a", 0, {}), "id": 1, "their id": 2, "their id 2": 3}))
    (stored,) = [event.data["found"] for event in both.session[CustomEvent]]
    assert (stored["their id"], stored["their id 2"], stored["their id 3"]) == (2, 3, 1)
    seen = row("plan", "TOOL", 0, asked=[9], event=7, **{"their event": 8})
    (stored,) = only(langfuse, {"trace": {"id": "t"}, "observations": [seen]}).recorded["observations"]
    assert (stored["their asked"], stored["event"]) == ([9], 0)
    assert (stored["their event"], stored["their event 2"]) == (8, 7)


def test_rows_without_ids_have_no_children() -> None:
    """An id that looks like a number of ours is an id."""
    rows = [row("", "TOOL", 0, input={"a": 1}), row("#0", "TOOL", 1, input={"a": 2})]
    rows[0]["name"] = rows[1]["name"] = "go"
    imported = only(langfuse, {"trace": {"id": "t"}, "observations": rows})
    assert [call.arguments for call in imported.session[ToolCall]] == [{"a": 1}, {"a": 2}]


def test_nested_spans_of_one_tool_are_one_call() -> None:
    """With nothing, or with spans that are no calls, between them; a tool in another is two."""
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather"}
    chain = span("chain", 1, {"openinference.span.kind": "CHAIN"}, parent="outer")
    inner = span("inner", 2, tool, parent="chain")
    imported = only(otlp, spans(span("outer", 0, tool), chain, inner))
    assert len(imported.session[ToolCall]) == 1
    other = span("inner", 2, {**tool, "gen_ai.tool.name": "search"}, parent="chain")
    imported = only(otlp, spans(span("outer", 0, tool), chain, other))
    assert [call.name for call in imported.session[ToolCall]] == ["weather", "search"]
