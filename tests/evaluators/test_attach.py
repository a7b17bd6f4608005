"""Attaching decides once how an evaluator is called."""

from __future__ import annotations

import asyncio
import functools
import inspect
import signal
import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from proctor.errors import EvaluatorError
from proctor.evaluators.bound_evaluator import BoundEvaluator, attach
from proctor.evaluators.decorator import evaluator, needs_session, tag_evaluator
from proctor.evaluators.matching import contains, exact_match, regex_match, within_tolerance
from proctor.ports import AttachedEvaluator
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import Message, Session, SessionView, Usage
from proctor.records.trial import Trial
from tests.tables import each_row

HERE = "tests.evaluators.test_attach"


def trial(output: Any, expected: Any = None, session: Session | None = None) -> Trial:
    """A trial that gave an output."""
    return Trial(Sample("1", "a question", expected), output, session=session)


def same(output: Any, expected: Any) -> bool:
    """A plain function."""
    return bool(output == expected)


async def same_later(output: Any, expected: Any) -> bool:
    """An async function."""
    await asyncio.sleep(0)
    return bool(output == expected)


class Same:
    """A callable object."""

    def __call__(self, output: Any, expected: Any) -> bool:
        """True if they are the same."""
        return bool(output == expected)

    def method(self, output: Any, expected: Any) -> bool:
        """The same as a method."""
        return bool(output == expected)


class SameLater:
    """A callable object that must be awaited."""

    async def __call__(self, output: Any, expected: Any) -> bool:
        """True if they are the same."""
        return bool(output == expected)


class EvaluateLater:
    """An object with an async `evaluate`."""

    name = "evaluate_later"

    async def evaluate(self, output: Any, sample: Sample[Any, Any], config: Any = None) -> bool:
        """True if they are the same."""
        return bool(output == sample.expected)


def same_as(output: Any, expected: Any, *, fold: bool) -> bool:
    """A plain function with an option that must be given."""
    return bool(output.lower() == expected.lower()) if fold else bool(output == expected)


@each_row(
    ("thing", "mode"),
    [
        (same, "thread"),
        (exact_match, "inline"),
        (same_later, "async"),
        (lambda output, expected: output == expected, "thread"),
        (functools.partial(same_as, fold=True), "thread"),
        (functools.partial(same_later), "async"),
        (functools.partial(exact_match, case_sensitive=False), "inline"),
        (Same(), "thread"),
        (Same().method, "thread"),
        (SameLater(), "async"),
        (functools.partial(SameLater()), "async"),
        (EvaluateLater(), "async"),
        (EvaluateLater, "async"),
        (attach(same), "thread"),
    ],
)
def test_every_kind_of_evaluator_is_accepted(thing: Any, mode: str) -> None:
    """All give the same scores, in the mode of their kind."""
    attached: AttachedEvaluator = attach(thing)
    assert attached.mode == mode
    found = [attached.score(trial("a", expected)) for expected in ("a", "b")]
    scores = [asyncio.run(one) if inspect.iscoroutine(one) else one for one in found]
    assert [one.passed for one in scores if isinstance(one, Score)] == [True, False]


def test_the_evidence_reaches_the_evaluator() -> None:
    """Output, expected value, sample and session, each from the trial."""
    session = Session([Message("user", "hello")])
    seen: list[Any] = []
    things: list[Any] = [
        lambda output: seen.append(output),
        lambda output, expected: seen.append(expected),
        lambda output, expected="a default": seen.append(expected),
        lambda output, sample: seen.append(sample.id),
        lambda output, expected, session: seen.append(session),
        lambda output, expected, config: seen.append(config),
        needs_session(lambda *evidence: seen.append(evidence)),
    ]
    for thing in things:
        attach(thing).score(trial("out", "exp", session))
    view = session.view()
    assert seen == ["out", "exp", "exp", "1", view, {}, ("out", "exp", view)]


def test_the_session_can_be_read_but_not_added_to() -> None:
    """An evaluator gets a view with any annotation, including the usage from the target."""
    session = Session([Message("user", "hello")])
    seen: list[Any] = []
    look = attach(lambda output, session: seen.append(session))
    look.score(Trial(Sample("1", None), "out", usage=Usage(3, 4), session=session))
    (view,) = seen
    assert not hasattr(view, "append")
    with pytest.raises(AttributeError):
        view.events = ()
    session.append(Message("assistant", "too late"))
    assert (len(view), view.usage) == (1, Usage(3, 4))
    look("out", None, view)
    assert seen == [view, view]


def test_a_missing_expected_value_has_a_default() -> None:
    """A missing session has none."""
    seen: list[Any] = []
    look = attach(lambda output, expected="none", session=None: seen.append((expected, session)))
    assert look.score(trial("out")).status == "skipped"
    look.score(Trial(Sample("1", None), "out", session=Session()))
    assert seen == [("none", SessionView())]


@pytest.mark.parametrize("thing", [same, same_later, lambda output, expected, session: 1 / 0])
def test_without_an_expected_value_the_evaluator_is_not_called(thing: Any) -> None:
    """Ruling: no expected value is a skip, not 0."""
    found = attach(thing).score(trial("a"))
    score = asyncio.run(found) if inspect.iscoroutine(found) else found
    assert score == Score.skipped("the sample has no expected value")


def test_an_expected_value_that_is_false_is_still_one() -> None:
    """Only None is missing."""
    assert attach(same).score(trial(0, 0)).passed is True
    assert attach(same).score(trial("", "")).passed is True


def failing(output: Any) -> bool:
    """A plain function that fails."""
    raise ValueError("no such city")


async def failing_later(output: Any) -> bool:
    """An async function that fails."""
    raise ValueError("no such city")


def leaving(output: Any, expected: Any) -> bool:
    """A plain function that wants to end the program."""
    raise SystemExit(1)


@pytest.mark.parametrize("thing", [failing, failing_later, leaving])
def test_an_exception_of_an_evaluator_becomes_an_error_score(thing: Any) -> None:
    """Ruling 2: a bad trial is data. The reason has the exception and its location."""
    found = attach(thing).score(trial("a", "b"))
    score = asyncio.run(found) if inspect.iscoroutine(found) else found
    assert score.status == "error"
    assert score.reason in ("ValueError: no such city", "SystemExit: 1")
    assert thing.__name__ in score.details["traceback"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, asyncio.CancelledError])
def test_interruptions_pass_through(error: type[BaseException], request: pytest.FixtureRequest) -> None:
    """Ctrl-C, and the cancellation of a call that waits, are not the evaluator's to answer."""
    # Under another handler, a KeyboardInterrupt comes from user code.
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, previous))

    def interrupted(output: Any) -> bool:
        raise error

    async def interrupted_later(output: Any) -> bool:
        raise error

    if error is KeyboardInterrupt:
        with pytest.raises(error):
            attach(interrupted).score(trial("a"))
    else:
        # Nobody cancels a function that does not wait: it raised this itself.
        assert attach(interrupted).score(trial("a")).status == "error"
    with pytest.raises(error):
        attach(interrupted_later).score(trial("a")).send(None)


def test_a_number_passes_from_the_threshold_of_the_evaluator() -> None:
    """The threshold is an argument, part of the mark, or 0.5."""

    @evaluator(threshold=0.9)
    def marked(output: float) -> float:
        return output

    def bare(output: float) -> float:
        return output

    assert [attach(bare)(0.6).passed, attach(marked)(0.6).passed] == [True, False]
    strict = attach(bare, threshold=0.7)
    assert strict(0.6).passed is False
    assert strict.spec.parameters == {"threshold": 0.7}
    assert attach(marked, threshold=0.3)(0.6).passed is True


def test_parameters_are_bound_and_stored() -> None:
    """The spec has name, use and parameters as data."""
    attached = attach(contains, name="has_answer", parameters={"case_sensitive": False})
    assert attached("PARIS", "paris").passed is True
    assert (attached.spec.name, attached.spec.uses) == ("has_answer", "contains")
    assert attached.spec.parameters == {"case_sensitive": False}


def test_partials_and_factories_are_stored_alike() -> None:
    """Positional arguments are stored by name."""
    bound = attach(functools.partial(functools.partial(within_tolerance, 0.5), relative=True))
    direct = attach(within_tolerance(0.5, relative=True))
    named = attach(within_tolerance, parameters={"tolerance": 0.5, "relative": True})
    assert bound.spec.parameters == {"tolerance": 0.5, "relative": True}
    assert bound.spec == direct.spec == named.spec
    assert attach(functools.partial(same_as, fold=True)).spec.parameters == {"fold": True}


def test_unmarked_functions_are_stored_by_address() -> None:
    """So that they can be found again."""
    assert attach(same).spec.uses == f"{HERE}:same"
    assert attach(Same()).spec.uses == f"{HERE}:Same"
    assert attach(same, uses="my_same").spec.uses == "my_same"


@evaluator(category="length", factory=True, pure=True, threshold=0.9)
def at_most(limit: int) -> Any:
    """A factory that does not mark its evaluators."""

    def evaluate(output: str) -> float:
        return min(1.0, limit / len(output))

    return evaluate


def test_a_product_has_the_name_and_threshold_of_its_factory() -> None:
    """It is also as pure as the factory."""
    attached = attach(at_most, parameters={"limit": 8})
    assert (attached.spec.name, attached.spec.uses, attached.mode) == ("at_most", "at_most", "inline")
    assert attached.spec.parameters == {"limit": 8}
    assert attached("0123456789").passed is False
    with pytest.raises(EvaluatorError, match=r"limit is missing \(int\)"):
        attach(at_most)


def test_the_identity_depends_on_options_and_code() -> None:
    """The same evaluator has the same identity; other code or options have another."""

    def shorter(limit: int) -> Any:
        def evaluate(output: str) -> bool:
            return len(output) < limit

        return tag_evaluator(evaluate, factory=shorter, limit=limit)

    things: list[Any] = [same, exact_match, shorter(3), shorter(4), at_most(3), Same(), failing]
    identities = [attach(thing).spec.identity for thing in things]
    assert len(set(identities)) == len(things)
    assert identities == [attach(thing).spec.identity for thing in things]
    options = [{"case_sensitive": False}, {"case_sensitive": True}, {}]
    assert len({attach(contains, parameters=one).spec.identity for one in options}) == 3


def test_an_attached_evaluator_can_be_renamed_and_nothing_else() -> None:
    """Its threshold and parameters are settled."""
    attached = attach(exact_match)
    assert attach(attached, name="em").spec.name == "em"
    assert attach(attached).spec == attached.spec
    assert repr(attached) == "<evaluator 'exact_match', inline>"
    with pytest.raises(EvaluatorError, match="of an attached evaluator cannot change"):
        attach(attached, threshold=0.7)
    with pytest.raises(EvaluatorError, match="of an attached evaluator cannot change"):
        attach(attached, parameters={"case_sensitive": False})


def test_faults_are_found_when_it_is_attached() -> None:
    """Before anything runs, with what to do about it."""

    def four(output: Any, expected: Any, session: Any, more: Any) -> None: ...

    faults: list[Any] = [
        lambda: attach(same_as),
        lambda: attach(contains, parameters={"case_sensitve": False}),
        lambda: attach(contains, parameters={"case_sensitive": "no"}),
        lambda: attach(regex_match, parameters={"pattern": "*a"}),
        lambda: attach(regex_match, parameters={"flags": "q"}),
        lambda: attach(four),
        lambda: attach(same, threshold=7),
        lambda: attach(same, name=" "),
        lambda: attach("exact_match"),  # type: ignore[arg-type]
        lambda: attach(3),  # type: ignore[arg-type]
        lambda: attach(within_tolerance),
        lambda: attach(str),
    ]
    messages = []
    for fault in faults:
        with pytest.raises(EvaluatorError) as caught:
            fault()
        messages.append(str(caught.value).splitlines()[: 1 + len(caught.value.problems)])
    assert messages == snapshot(
        [
            ["same_as: its parameters are invalid", "  - fold is missing (bool)"],
            [
                "contains: its parameters are invalid",
                "  - unknown parameter 'case_sensitve'; did you mean 'case_sensitive'?",
            ],
            ["contains: its parameters are invalid", "  - case_sensitive must be of type bool, got 'no'"],
            ["regex_match: '*a' is not a regular expression: nothing to repeat at position 0"],
            ["regex_match: unknown flag 'q'"],
            ["four: there is no evidence for its parameters after the first 3: 'more'"],
            ["same: threshold must be between 0 and 1, got 7"],
            ["an evaluator's name must be a non-empty string, got ' '"],
            ["'exact_match' is the name of an evaluator, not an evaluator"],
            ["int: 3 is not callable and has no `evaluate` method"],
            ["within_tolerance: its parameters are invalid", "  - tolerance is missing (float)"],
            ["str: its parameters cannot be read"],
        ]
    )


@given(st.one_of(st.none(), st.booleans(), st.floats(), st.text(), st.lists(st.integers())))
def test_an_attached_evaluator_always_gives_a_score(returned: Any) -> None:
    """Contract: any return value becomes a score, and nothing is raised."""
    for function in (lambda output: returned, lambda output, expected: returned):
        score = attach(function).score(trial("a", "b"))
        assert isinstance(score, Score)


def test_the_usual_call_makes_few_other_calls() -> None:
    """An evaluator of two texts: the scorer, the evaluator itself, and the conversion of its score."""
    fixed = Score(1.0, True)

    @evaluator(pure=True)
    def constant(output: Any, expected: Any) -> Score:
        return fixed

    attached, sample_trial = attach(constant), trial("a", "b")
    called: list[str] = []

    def note_call(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            called.append(frame.f_code.co_name)

    sys.setprofile(note_call)
    try:
        attached.score(sample_trial)
    finally:
        sys.setprofile(None)
    assert called == ["score", "constant"]


def test_an_attached_evaluator_satisfies_the_port() -> None:
    """It satisfies the port."""
    port: AttachedEvaluator = attach(same)
    assert isinstance(port, BoundEvaluator)
