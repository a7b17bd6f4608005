"""Mutations: change the output or the session of a stored trial by rule, to see whether an evaluator notices.

A fault makes the answer wrong; a harmless change does not. A mutation that does not apply to a trial gives no mutant,
so that every mutant differs from its original.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from typing import Any, Literal, NamedTuple

import msgspec

from proctor.records.session import Message, Session, ToolCall
from proctor.records.session_events import call_key
from proctor.records.trial import Trial
from proctor.validity import text_mutations as texts

Kind = Literal["fault", "harmless", "control"]
Part = Literal["output", "session"]
SessionChange = Callable[[Session, Random], Session | None]
Path = tuple[str | int, ...]

MIN_PROSE_WORDS = 4
MAX_LEAVES = 1_000


class Mutation(NamedTuple):
    """A named change, and the part of a trial that it changes."""

    name: str
    kind: Kind
    part: Part
    description: str


class Mutant(NamedTuple):
    """A changed trial, and the changed part before and after."""

    mutation: Mutation
    trial: Trial
    before: str
    after: str


def mutate(trial: Trial, mutation: Mutation, seed: int = 0) -> Mutant | None:
    """Apply a mutation to a trial; None if it does not apply. The same seed gives the same mutant.

    >>> from proctor.records.sample import Sample
    >>> trial = Trial(Sample("1", "How long is it?", "5 km"), "It is 5 km long.")
    >>> mutate(trial, MUTATIONS["changed_number"]).after != trial.output
    True
    >>> mutate(trial, MUTATIONS["changed_date"]) is None
    True
    """
    rng = Random(f"{seed}/{trial.sample.id}/{trial.configuration}/{trial.epoch}/{mutation.name}")
    if mutation.kind == "control":
        return Mutant(mutation, trial, _describe(trial.output), _describe(trial.output))
    if mutation.part == "session":
        if trial.session is None or not trial.session.events:
            return None
        session = SESSION_CHANGES[mutation.name](trial.session, rng)
        if session is None or session.events == trial.session.events:
            return None
        changed = msgspec.structs.replace(trial, session=session)
        return Mutant(mutation, changed, _describe_calls(trial.session), _describe_calls(session))
    output = change_value(trial.output, mutation.name, rng)
    if output is None or type(output) is not type(trial.output) or output == trial.output:
        return None
    if mutation.kind == "fault" and _is_same_answer(output, trial):
        return None
    return Mutant(mutation, _replace_output(trial, output), _describe(trial.output), _describe(output))


def change_value(value: Any, name: str, rng: Random) -> Any:
    """Apply a mutation of the output to a text, a text that is JSON, or data; None if it does not apply."""
    change = TEXT_CHANGES[name]
    if isinstance(value, str):
        document = _parse_document(value)
        if document is None or name == "truncation":
            return change(value, rng)
        if name == "whitespace":
            is_compact = "\n" not in value.strip()
            return json.dumps(document, ensure_ascii=False, indent=2 if is_compact else None)
        return _change_json_text(value, document, name, rng)
    if name == "dropped_claim" and isinstance(value, dict | list):
        return _drop_member(value, rng)
    for path, leaf in _shuffled_leaves(value, rng):
        changed = _change_leaf(leaf, name, rng)
        if changed is not None and changed != leaf:
            return _replace_leaf(value, path, changed)
    return None


def _change_leaf(leaf: Any, name: str, rng: Random) -> Any:
    """Change one value of some data: numbers and booleans by faults of their kind, and texts."""
    if isinstance(leaf, bool):
        return not leaf if name == "negation" else None
    if isinstance(leaf, int | float):
        if name != "changed_number":
            return None
        # Python writes some numbers in a form that a text change does not know, such as 1e+20.
        changed = texts.change_number(repr(leaf), rng)
        return leaf + 1 if changed is None else type(leaf)(changed)
    is_prose = len(leaf.split()) >= MIN_PROSE_WORDS
    return TEXT_CHANGES[name](leaf, rng) if is_prose or name in FACT_CHANGES else None


def _change_json_text(text: str, document: Any, name: str, rng: Random) -> str | None:
    """Change one value in a JSON text, and leave the rest of the text as it is."""
    if name == "dropped_claim":
        dropped = _drop_member(document, rng)
        return None if dropped is None else json.dumps(dropped, ensure_ascii=False, indent=2 if "\n" in text else None)
    for _, leaf in _shuffled_leaves(document, rng):
        changed = _change_leaf(leaf, name, rng)
        if changed is None or changed == leaf:
            continue
        for is_ascii in (False, True):
            old, new = (json.dumps(value, ensure_ascii=is_ascii) for value in (leaf, changed))
            # A key may be equal to the value.
            places = list(re.finditer(rf"(?<![\w.\"-]){re.escape(old)}(?![\w.\"]|\s*:)", text))
            if len(places) == 1:
                return text[: places[0].start()] + new + text[places[0].end() :]
    return None


def _drop_member(value: Any, rng: Random) -> Any:
    if not isinstance(value, dict | list) or len(value) < 2:
        return None
    index = rng.randrange(len(value))
    if isinstance(value, list):
        return value[:index] + value[index + 1 :]
    return {key: member for place, (key, member) in enumerate(value.items()) if place != index}


def _parse_document(text: str) -> Any:
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return None
    return None


def _shuffled_leaves(value: Any, rng: Random) -> list[tuple[Path, Any]]:
    leaves = list(zip(_walk_leaves(value, ()), range(MAX_LEAVES), strict=False))
    rng.shuffle(leaves)
    return [leaf for leaf, _ in leaves]


def _walk_leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _walk_leaves(member, (*path, key))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _walk_leaves(member, (*path, index))
    elif isinstance(value, str | bool | int | float):
        yield path, value


def _replace_leaf(value: Any, path: Path, leaf: Any) -> Any:
    if not path:
        return leaf
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _replace_leaf(value[path[0]], path[1:], leaf)
    return copy


def _is_same_answer(output: Any, trial: Trial) -> bool:
    """True if a planted fault changed nothing but the form, or made the answer the expected one."""
    normal = _normalize(output)
    return bool(normal == _normalize(trial.output) or normal == _normalize(trial.sample.expected))


def _normalize(value: Any) -> Any:
    return " ".join(value.casefold().split()).rstrip(".") if isinstance(value, str) else value


def _replace_output(trial: Trial, output: Any) -> Trial:
    """Change the output, and the same text where the session repeats it."""
    old = trial.output
    session = trial.session
    if session is not None and isinstance(old, str) and old.strip():
        session = Session([_replace_content(event, old, output) for event in session.events])
    raw_output = _replace_text(trial.raw_output, old, output)
    return msgspec.structs.replace(trial, output=output, session=session, raw_output=raw_output)


def _replace_content(event: Any, old: str, new: str) -> Any:
    if not isinstance(event, Message) or event.role != "assistant":
        return event
    return msgspec.structs.replace(event, content=_replace_text(event.content, old, new))


def _replace_text(value: Any, old: Any, new: Any) -> Any:
    if isinstance(value, str):
        return new if isinstance(old, str) and value.strip() == old.strip() else value
    if isinstance(value, list):
        return [_replace_text(member, old, new) for member in value]
    if isinstance(value, dict):
        return {key: _replace_text(member, old, new) for key, member in value.items()}
    return value


def drop_tool_call(session: Session, rng: Random) -> Session | None:
    """Remove a tool call, and its result."""
    return _change_call(session, rng, lambda _call: None)


def rename_tool_call(session: Session, rng: Random) -> Session | None:
    """Call another tool: one of the same session if there is one, else an invented one."""
    names = sorted({call.name for call in _list_calls(session)})

    def rename(call: ToolCall) -> ToolCall:
        others = [name for name in names if name != call.name] or ["lookup_archive"]
        return msgspec.structs.replace(call, name=rng.choice(others))

    return _change_call(session, rng, rename)


def change_argument(session: Session, rng: Random) -> Session | None:
    """Change the value of an argument of a tool call."""

    def change(call: ToolCall) -> ToolCall:
        for path, leaf in _shuffled_leaves(call.arguments, rng):
            changed: Any = not leaf if isinstance(leaf, bool) else None
            if isinstance(leaf, str):
                invented = rng.choice(texts.load_words()["names"].split())
                changed = texts.change_number(leaf, rng) or texts.change_date(leaf, rng) or invented
            elif changed is None:
                changed = _change_leaf(leaf, "changed_number", rng)
            return msgspec.structs.replace(call, arguments=_replace_leaf(call.arguments, path, changed))
        return call

    return _change_call(session, rng, change, [call for call in _list_calls(session) if call.arguments])


def _list_calls(session: Session) -> list[ToolCall]:
    calls: dict[tuple[str, str], ToolCall] = {}
    for event in session.events:
        requested = event.tool_calls if isinstance(event, Message) else (event,) if isinstance(event, ToolCall) else ()
        calls.update((call_key(call), call) for call in requested)
    return list(calls.values())


def _change_call(
    session: Session,
    rng: Random,
    change: Callable[[ToolCall], ToolCall | None],
    candidates: Iterable[ToolCall] | None = None,
) -> Session | None:
    """Change or remove one tool call everywhere in the session: the request, the call and its result."""
    calls = list(_list_calls(session) if candidates is None else candidates)
    if not calls:
        return None
    key, call_id = call_key(call := rng.choice(calls)), call.call_id
    changed = change(call)
    events: list[Any] = []
    for event in session.events:
        if isinstance(event, ToolCall) and call_key(event) == key:
            events += [] if changed is None else [_copy_call(event, changed)]
        elif isinstance(event, Message) and event.tool_calls:
            requests = [_copy_call(c, changed) if call_key(c) == key else c for c in event.tool_calls]
            kept_calls = tuple(request for request in requests if request is not None)
            events.append(msgspec.structs.replace(event, tool_calls=kept_calls))
        elif not (changed is None and call_id and isinstance(event, Message) and event.call_id == call_id):
            events.append(event)
    return Session(events)


def _copy_call(call: ToolCall, changed: ToolCall | None) -> ToolCall | None:
    if changed is None:
        return None
    return msgspec.structs.replace(call, name=changed.name, arguments=changed.arguments)


def _describe(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=repr)


def _describe_calls(session: Session) -> str:
    calls = (
        f"{call.name}({json.dumps(call.arguments, ensure_ascii=False, default=repr)})" for call in _list_calls(session)
    )
    return " → ".join(calls) or "no tool call"


TEXT_CHANGES: Mapping[str, texts.TextChange] = {
    "changed_number": texts.change_number,
    "changed_date": texts.change_date,
    "changed_name": texts.change_name,
    "changed_unit": texts.change_unit,
    "negation": texts.negate,
    "dropped_claim": texts.drop_claim,
    "contradiction": texts.contradict,
    "leaked_secret": texts.leak_secret,
    "truncation": texts.truncate,
    "paraphrase": texts.paraphrase,
    "whitespace": texts.change_whitespace,
    "markdown": texts.add_markdown,
    "casing": texts.change_case,
    "unit_spelling": texts.write_out_unit,
    "number_format": texts.format_number,
}
SESSION_CHANGES: Mapping[str, SessionChange] = {
    "missing_tool_call": drop_tool_call,
    "wrong_tool_call": rename_tool_call,
    "wrong_tool_argument": change_argument,
}
# The changes that also apply to short values inside data; the others need a sentence.
FACT_CHANGES = frozenset(
    {"changed_number", "changed_date", "changed_name", "changed_unit", "negation", "leaked_secret"}
)
UNCHANGED = Mutation("unchanged", "control", "output", "the same output is scored again")
MUTATIONS: Mapping[str, Mutation] = {
    mutation.name: mutation
    for mutation in (
        Mutation("changed_number", "fault", "output", "another number"),
        Mutation("changed_date", "fault", "output", "another date, month, weekday or year"),
        Mutation("changed_name", "fault", "output", "an invented name in place of a name"),
        Mutation("changed_unit", "fault", "output", "another unit after a number"),
        Mutation("negation", "fault", "output", "a statement becomes its denial, or the reverse"),
        Mutation("dropped_claim", "fault", "output", "a sentence or a member of the data is missing"),
        Mutation("contradiction", "fault", "output", "a denial of the answer is appended"),
        Mutation("leaked_secret", "fault", "output", "an access key is appended"),
        Mutation("truncation", "fault", "output", "the answer is cut off"),
        Mutation("missing_tool_call", "fault", "session", "a tool call is missing"),
        Mutation("wrong_tool_call", "fault", "session", "another tool is called"),
        Mutation("wrong_tool_argument", "fault", "session", "an argument of a tool call has another value"),
        Mutation("paraphrase", "harmless", "output", "a phrase in other words"),
        Mutation("whitespace", "harmless", "output", "other spaces and line breaks"),
        Mutation("markdown", "harmless", "output", "a word in bold"),
        Mutation("casing", "harmless", "output", "another case where it has no meaning"),
        Mutation("unit_spelling", "harmless", "output", "km as kilometers, % as percent, or the reverse"),
        Mutation("number_format", "harmless", "output", "1000 as 1,000, or the reverse"),
    )
}
