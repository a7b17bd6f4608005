"""Mutations change an output or a session by rule, and never count a change that changes nothing."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.redaction.secrets import find_keys
from proctor.records.sample import Sample
from proctor.records.session import Message, Session, ToolCall
from proctor.records.trial import Trial
from proctor.validity.mutations import MUTATIONS, UNCHANGED, change_value, mutate
from proctor.validity.text_mutations import mark_changes, split_sentences
from tests.tables import each_row

ANSWER = (
    "The bridge opened in May 1999. It is 1200 m long and cost $5 million. It is located in Spain, near Madrid. "
    "It isn't free on Monday."
)


def trial(output: Any, expected: Any = None, session: Session | None = None) -> Trial:
    return Trial(Sample("1", "question", expected), output, session=session)


def apply(name: str, output: Any, expected: Any = None, seed: int = 0) -> Any:
    """The output of a mutant, or None if the mutation does not apply."""
    mutant = mutate(trial(output, expected), MUTATIONS[name], seed)
    return None if mutant is None else mutant.trial.output


# A mutation, an output, and a pattern of the changed output; None if it does not apply.
CASES = [
    ("changed_number", "It costs 12 dollars.", r"It costs [3-9]2 dollars\.|It costs 22 dollars\."),
    ("changed_number", "It was 0.05 of 0.05.", r"It was (0\.0[1-46-9]) of \1\."),
    ("changed_number", "There are three boats.", r"There are (?!three)[a-z]+ boats\."),
    ("changed_number", "1. Open the door", None),
    ("changed_number", "It opened in May 1999.", None),
    ("changed_number", "Use gpt-4o or H2O.", None),
    ("changed_number", 7, r"[1-689]"),
    ("changed_number", True, None),
    ("changed_date", "Closed on Monday.", r"Closed on (?!Monday)\w+day\."),
    ("changed_date", "It opened in 1999.", r"It opened in (?!1999)(19|20)\d\d\."),
    ("changed_date", "Due 2024-03-05.", r"Due 202[2356]-03-05\."),
    ("changed_date", "You may march on.", None),
    ("changed_name", "The capital is Paris, in France.", r"The capital is .*, in .*\."),
    ("changed_name", "The answer is unknown.", None),
    ("changed_name", "Paris", r"(?!Paris)[A-Z]\w+"),
    ("changed_unit", "It is 5 km long.", r"It is 5 (m|cm|mm|mi) long\."),
    ("changed_unit", "It costs $5.", r"It costs [€£¥]5\."),
    ("changed_unit", "Five of them.", None),
    ("negation", "It is open.", r"It is not open\."),
    ("negation", "They do not pay.", r"They do pay\."),
    ("negation", "Yes.", r"No\."),
    ("negation", "Is it open?", None),
    ("negation", False, r"True"),
    ("dropped_claim", "It is open all day. It costs 12 euros.", r"It is open all day\.|It costs 12 euros\."),
    ("dropped_claim", "It is open.", None),
    ("dropped_claim", ["a", "b"], r"\['[ab]'\]"),
    ("contradiction", "Paris", r"Paris\. On the contrary, it is not Paris\."),
    ("contradiction", "It is open.", r"It is open\. On the contrary: it is not open\."),
    ("truncation", "Paris is the capital.", r"Paris is[a-z ]*"),
    ("truncation", "No.", None),
    ("paraphrase", "They do not pay.", r"They don't pay\."),
    ("paraphrase", "Ask what it is.", None),
    ("whitespace", "Paris", r"Paris\n"),
    ("markdown", "Paris", r"\*\*Paris\*\*"),
    ("markdown", "It is wide and 5 km long.", r"It is (\*\*wide\*\* and 5 km long|wide and 5 km \*\*long\*\*)\."),
    ("casing", "Paris", r"PARIS"),
    ("casing", "USA", None),
    ("casing", "The bridge is long and wide.", r"the bridge is long and wide\."),
    ("casing", "Paris is long and wide.", None),
    ("unit_spelling", "It is 5 km long.", r"It is 5 kilometers long\."),
    ("unit_spelling", "It fell by 5%.", r"It fell by 5 percent\."),
    ("unit_spelling", "It is 1 km long.", None),
    ("number_format", "It has 1200 seats.", r"It has 1,200 seats\."),
    ("number_format", "It has 1,200 seats.", r"It has 1200 seats\."),
    ("number_format", "It opened in 1999.", None),
]


@each_row("name, output, pattern", CASES)
def test_a_mutation_changes_what_its_name_says(name: str, output: Any, pattern: str | None) -> None:
    """Each rule changes only its own kind of word, and does not apply where there is none."""
    for seed in range(5):
        changed = apply(name, output, seed=seed)
        if pattern is None:
            assert changed is None, changed
        else:
            assert changed is not None
            assert re.fullmatch(pattern, str(changed)), changed
            assert changed != output


@given(st.one_of(st.text(max_size=80), st.just(ANSWER), st.lists(st.sampled_from(ANSWER.split())).map(" ".join)))
def test_a_mutant_differs_from_its_original(output: str) -> None:
    """No mutation returns the same text, and the same seed gives the same mutant."""
    for name, mutation in MUTATIONS.items():
        changed = apply(name, output)
        assert changed is None or changed != output
        assert changed == apply(name, output)
        if changed is not None and mutation.kind == "fault":
            assert " ".join(changed.casefold().split()) != " ".join(output.casefold().split())


def test_a_seed_chooses_the_change() -> None:
    """Other seeds give other mutants."""
    assert len({apply("changed_number", ANSWER, seed=seed) for seed in range(20)}) > 3


json_values = st.recursive(
    st.one_of(st.booleans(), st.integers(-999, 9999), st.floats(0, 99), st.sampled_from(ANSWER.split(". ")), st.text()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(json_values) | st.dictionaries(st.text(max_size=5), json_values), st.sampled_from([None, 2]))
def test_a_json_text_stays_json(value: Any, indent: int | None) -> None:
    """Only a truncation makes a JSON text invalid; other mutations change a value or the layout."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    for name, mutation in MUTATIONS.items():
        changed = apply(name, text) if mutation.part == "output" and name != "truncation" else None
        if changed is not None:
            document = json.loads(changed)
            assert (document == value) == (name == "whitespace")


@given(json_values)
def test_data_keeps_its_type_and_its_original(value: Any) -> None:
    """A mutant of data has the type of the original, which is not changed in place."""
    copy = json.loads(json.dumps(value))
    for name, mutation in MUTATIONS.items():
        if mutation.part == "output":
            changed = change_value(value, name, Random(0))
            assert changed is None or type(changed) is type(value)
    assert value == copy


def test_a_fault_never_turns_the_output_into_the_expected_one() -> None:
    """A changed answer that happens to be right is no fault."""
    outputs = {apply("negation", "no", expected="yes"), apply("negation", "no", expected="no")}
    assert outputs == {None, "yes"}


def test_a_leaked_secret_looks_like_one() -> None:
    """The finders of secrets recognize the planted key."""
    assert [finding.kind for finding in find_keys(apply("leaked_secret", "Done."))]


def calls() -> Session:
    search = ToolCall("search", {"city": "Rome", "days": 3}, call_id="a")
    return Session(
        [
            Message("assistant", "", tool_calls=(search,)),
            ToolCall("search", {"city": "Rome", "days": 3}, result="sunny", call_id="a"),
            Message("tool", "sunny", call_id="a"),
            Message("assistant", "It is sunny."),
        ]
    )


def test_a_changed_output_is_changed_in_the_session_too() -> None:
    """Evaluators that read the last message see the same answer as those that read the output."""
    mutant = mutate(trial("It is sunny.", session=calls()), MUTATIONS["negation"])
    assert mutant is not None
    assert mutant.trial.session is not None
    assert mutant.trial.session[Message][-1].content == mutant.trial.output == "It is not sunny."


def test_a_missing_tool_call_leaves_no_trace() -> None:
    """The request, the call and its result are removed together."""
    mutant = mutate(trial("It is sunny.", session=calls()), MUTATIONS["missing_tool_call"])
    assert mutant is not None
    assert mutant.trial.session == Session([Message("assistant", ""), Message("assistant", "It is sunny.")])
    assert mutant.after == "no tool call"


@pytest.mark.parametrize("name", ["wrong_tool_call", "wrong_tool_argument"])
def test_a_wrong_tool_call_is_wrong_everywhere(name: str) -> None:
    """The request in the message and the call agree on the wrong name or argument."""
    original = calls()
    mutant = mutate(trial("It is sunny.", session=original), MUTATIONS[name])
    assert mutant is not None
    session = mutant.trial.session
    assert session is not None
    [request], [call] = session[Message][0].tool_calls, session[ToolCall]
    assert (request.name, request.arguments) == (call.name, call.arguments)
    assert (call.name, call.arguments) != ("search", {"city": "Rome", "days": 3})
    assert original == calls()


def test_a_session_without_tool_calls_has_no_mutant() -> None:
    """Mutations of tool calls apply only where there is a call."""
    sessions = [None, Session(), Session([Message("assistant", "Hi")])]
    names = ["missing_tool_call", "wrong_tool_call", "wrong_tool_argument"]
    assert not any(mutate(trial("Hi", session=session), MUTATIONS[name]) for session in sessions for name in names)
    assert mutate(trial("x", session=Session([ToolCall("now")])), MUTATIONS["wrong_tool_argument"]) is None


def test_the_control_is_the_original() -> None:
    """The control of judges scores the same trial again."""
    original = trial("Paris")
    mutant = mutate(original, UNCHANGED)
    assert mutant is not None
    assert mutant.trial is original


def test_long_texts_are_shortened_around_the_change() -> None:
    """The marked text shows the changed words with some words around them."""
    words = " ".join(f"w{i}" for i in range(40))
    assert mark_changes(words, words.replace("w20", "x")) == (
        "w0 w1 w2 w3 w4 w5 … w14 w15 w16 w17 w18 w19 [-w20-] {+x+} w21 w22 w23 w24 w25 w26 … w34 w35 w36 w37 w38 w39"
    )
    assert mark_changes("a b", "a  b") == "'a b' → 'a  b'"


def test_lines_and_sentences_are_claims() -> None:
    """Line breaks end a sentence; abbreviations do not."""
    text = "- One line\n- Another line\nMr. Li met Dr. Wu. Fine."
    spans = split_sentences(text)
    assert [text[start:end] for start, end in spans] == ["- One line", "- Another line", "Mr. Li met Dr. Wu.", "Fine."]
