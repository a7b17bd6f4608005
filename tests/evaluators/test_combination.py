"""Combinations of evaluators: all, any, weighted, negated, by threshold, or by a function."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import evaluate
from proctor.errors import EvaluatorError, RunStopped
from proctor.evaluators.bound_evaluator import attach
from proctor.evaluators.combination import all_of, any_of, combine, negate, threshold, weighted
from proctor.evaluators.matching import contains, exact_match, within_tolerance
from proctor.records.sample import Sample
from proctor.records.score import Score, find_failures
from proctor.records.session import Session, ToolCall
from proctor.records.trial import Trial


def failing(output: Any, expected: Any) -> bool:
    """An evaluator that fails."""
    raise ValueError("no")


def silent(output: Any) -> None:
    """An evaluator that has nothing to say."""


def half(output: Any) -> Score:
    """An evaluator that is of two minds."""
    return Score(0.5, False, "half")


def searched(output: Any, expected: Any, session: Session) -> bool:
    """An evaluator that wants the session."""
    return any(call.name == "search" for call in session[ToolCall])


async def same_later(output: Any, expected: Any) -> bool:
    """An evaluator that is awaited."""
    await asyncio.sleep(0)
    return bool(output == expected)


def test_all_must_pass_and_the_value_is_the_mean() -> None:
    """Ruling 5: all_of."""
    score = all_of(exact_match, contains, half)("hello", "hello")
    assert (score.value, score.passed) == (2.5 / 3, False)
    assert score.reason == "half: half"
    assert list(score.details["parts"]) == ["exact_match", "contains", "half"]


def test_one_must_pass_and_the_value_is_the_greatest() -> None:
    """Ruling 5: any_of."""
    score = any_of(half, contains)("hello world", "hello")
    assert (score.value, score.passed) == (1.0, True)


def test_a_failing_part_fails_all_of() -> None:
    """Ruling 5: as an error; the details name the part."""
    score = all_of(contains, failing)("a", "a")
    assert (score.status, score.reason) == ("error", "failing: ValueError: no")
    assert score.details["errors"] == ["failing"]


def test_a_failing_part_does_not_pass_in_any_of() -> None:
    """Ruling 5: it counts as not passed, and the details say so."""
    score = any_of(failing, contains)("a", "a")
    assert score.passed is True
    assert score.details["errors"] == ["failing"]
    assert any_of(failing, half)("a", "a").passed is False
    assert any_of(failing)("a", "a").status == "error"


def test_a_part_that_skips_makes_the_combination_skipped_unless_another_decides() -> None:
    """No evidence, no verdict: a failure decides `all_of`, a pass decides `any_of`."""
    assert all_of(silent, exact_match)("a", "a").status == "skipped"
    assert all_of(silent, exact_match)("a", "b").passed is False
    assert all_of(silent, exact_match)("a").status == "skipped"
    assert any_of(silent, exact_match)("a", "a").passed is True
    assert any_of(silent, exact_match)("a", "b").status == "skipped"
    assert weighted((silent, 1), (exact_match, 1))("a", "b").status == "skipped"


def test_parts_that_skip_are_left_out_on_request() -> None:
    """`skipped="ignore"` is an option of every combination; anything else is refused."""
    assert all_of(silent, exact_match, skipped="ignore")("a", "a").value == 1.0
    assert any_of(silent, exact_match, skipped="ignore")("a", "b").passed is False
    assert all_of(silent, skipped="ignore")("a", "a").status == "skipped"
    with pytest.raises(EvaluatorError, match="skipped must be 'skip' or 'ignore', got 'ignored'") as refused:
        all_of(exact_match, skipped="ignored")  # type: ignore[arg-type]
    assert refused.value.fix == "did you mean 'ignore'?"


@pytest.mark.parametrize(
    ("combinator", "example"),
    [
        (all_of, "all_of(exact_match, contains)"),
        (any_of, "any_of(exact_match, contains)"),
        (weighted, "weighted((exact_match, 1), (contains, 3))"),
        (lambda: combine([], len), "combine([exact_match, contains], function)"),
    ],
)
def test_empty_combinations_are_refused_when_they_are_made(combinator: Any, example: str) -> None:
    """Ruling 5; the example that is given can be written."""
    with pytest.raises(EvaluatorError, match="no evaluator is given") as output:
        combinator()
    assert output.value.fix == f"pass at least one, as in {example}"


def test_combinations_work_with_and_without_a_session() -> None:
    """Ruling: the session reaches the parts that want it; without one these are skipped."""
    session = Session()
    session.append(ToolCall("search"))
    both = all_of(exact_match, searched)
    assert both("a", "a", session).passed is True
    assert both("b", "a").passed is False
    assert both("a", "a").details["parts"]["searched"].value is None


def test_parts_may_need_the_sample() -> None:
    """An attached combination passes on the complete trial."""

    def from_input(output: Any, sample: Sample[Any, Any]) -> bool:
        return bool(output == sample.input)

    both = attach(all_of(from_input, exact_match))
    assert both.score(Trial(Sample("1", "echo", "echo"), "echo")).passed is True


def test_parts_with_the_same_name_get_numbers() -> None:
    """The second gets a number, and a name that is taken is passed over."""
    score = all_of(contains, attach(half, name="contains_2"), contains, contains)("a", "a")
    assert list(score.details["parts"]) == ["contains", "contains_2", "contains_3", "contains_4"]


def test_a_combination_is_as_quick_as_its_slowest_part() -> None:
    """Pure parts make a pure whole, one that may block makes it block, one async makes it async."""
    assert all_of(exact_match, contains).mode == "inline"
    assert all_of(exact_match, half).mode == "thread"
    assert all_of(exact_match, half, same_later).mode == "async"
    assert negate(same_later).mode == "async"


def test_an_async_combination_gives_something_to_await() -> None:
    """Its parts run side by side: those that block in threads, the quick ones at once."""
    main = threading.get_ident()

    def in_a_thread(output: Any) -> bool:
        return threading.get_ident() != main

    both = all_of(same_later, exact_match, in_a_thread)
    score = both("a", "a")
    assert score.passed is True
    assert list(score.details["parts"]) == ["same_later", "exact_match", "in_a_thread"]


def test_async_parts_wait_together() -> None:
    """Each waits for the other, which only works side by side."""

    async def go() -> Score:
        first, second = asyncio.Event(), asyncio.Event()

        async def one(output: Any) -> bool:
            first.set()
            await second.wait()
            return True

        async def two(output: Any) -> bool:
            second.set()
            await first.wait()
            return True

        return await all_of(one, two)("a")  # type: ignore[no-any-return]

    assert asyncio.run(asyncio.wait_for(go(), 5)).passed is True


def test_combinations_can_be_combined() -> None:
    """And negated."""
    nested = any_of(all_of(exact_match, half), negate(exact_match))
    assert nested("a", "b").passed is True
    assert nested("a", "a").passed is False


def test_weights_make_the_mean() -> None:
    """(1 x 0 + 3 x 1) / 4 = 0.75, from pairs, from a mapping, and from an eval file's list."""
    ways = [
        weighted((exact_match, 1), (contains, 3)),
        weighted({exact_match: 1, contains: 3}),
        weighted({"evaluator": exact_match, "weight": 1}, {"evaluator": contains, "weight": 3}),
    ]
    for way in ways:
        score = way("hello world", "hello")
        assert (score.value, score.passed) == (0.75, True)
        assert score.details["weights"] == {"exact_match": 1.0, "contains": 3.0}
    assert ways[0].spec == ways[1].spec == ways[2].spec


def test_a_weighted_mean_passes_from_its_threshold_on() -> None:
    """0.75 is enough for 0.75 and not for 0.8."""
    pairs = ((exact_match, 1), (contains, 3))
    assert weighted(*pairs, threshold=0.75)("hello world", "hello").passed is True
    assert weighted(*pairs, threshold=0.8)("hello world", "hello").passed is False


def test_weights_of_parts_that_skip_do_not_count() -> None:
    """Ruling 1: on request, parts without a value are left out; an error makes the result an error."""
    both = weighted((silent, 9), (exact_match, 1), skipped="ignore")
    assert both("a", "a").value == 1.0
    for expected in ("a", "b"):
        assert weighted((failing, 1), (exact_match, 1))("a", expected).status == "error"


@pytest.mark.parametrize("weight", [0, -1, math.inf, math.nan, True, "1"])
def test_weights_are_numbers_above_zero(weight: Any) -> None:
    """It is checked when the combination is made."""
    with pytest.raises(EvaluatorError, match="a weight must be a number greater than 0"):
        weighted((exact_match, weight))


def test_an_evaluator_without_a_weight_is_refused() -> None:
    """With how to write it."""
    with pytest.raises(EvaluatorError, match="an evaluator without a weight"):
        weighted(exact_match)  # type: ignore[arg-type]


def test_negation_flips_the_verdict_and_nothing_else() -> None:
    """Ruling 1: errors and skips stay; not knowing is not a pass."""
    several = negate(attach(contains, parameters={"match": "all"}))
    assert several("red", ["red", "blue"]).value == 0.5
    assert several("red", ["red", "blue"]).passed is True
    assert negate(exact_match)("a", "b").reason == "negated: expected 'b', got 'a'"
    assert negate(exact_match)("a", "a").reason == ""
    assert negate(failing)("a", "a").status == "error"
    assert negate(silent)("a").status == "skipped"
    assert negate(contains).spec.name == "not-contains"


def test_a_threshold_changes_what_passes_and_nothing_else() -> None:
    """The value stays."""
    strict = threshold(within_tolerance(1.0), 0.75)
    assert [strict(2.25, 2).passed, strict(2.5, 2).passed] == [True, False]
    assert strict(2.5, 2).value == 0.5
    assert strict("x", 2).status == "error"
    assert strict.spec.name == "within_tolerance"


@pytest.mark.parametrize("at_least", [-0.1, 1.1, "0.5", True])
def test_thresholds_are_from_zero_to_one(at_least: Any) -> None:
    """It is checked when the combination is made."""
    with pytest.raises(EvaluatorError, match="threshold must be between 0 and 1"):
        threshold(contains, at_least)
    with pytest.raises(EvaluatorError, match="threshold must be between 0 and 1"):
        weighted((contains, 1), threshold=at_least)


def test_a_combination_of_your_own_gets_the_scores_by_name() -> None:
    """Ruling 5: it returns a score, or what makes one."""

    def judge(scores: Mapping[str, Score]) -> Any:
        assert list(scores) == ["first", "second"]
        return {"passed": scores["first"].passed, "score": 0.25, "message": "as I like it"}

    score = combine({"first": contains, "second": half}, judge)("hello", "hell")
    assert score == Score(0.25, True, "as I like it")


def test_a_users_combination_is_validated() -> None:
    """Ruling 5: other return values and exceptions become errors."""
    assert combine([contains], lambda scores: 7)("a", "a").status == "error"
    assert combine([contains], lambda scores: scores["x"])("a", "a").reason == "KeyError: 'x'"
    with pytest.raises(EvaluatorError, match="function must take the scores by name"):
        combine([contains], "mean")  # type: ignore[arg-type]


def test_a_combination_is_written_down_with_its_parts() -> None:
    """Name and parameters as data, the parts as specs; other parts make another identity."""
    spec = all_of(contains, within_tolerance(0.5)).spec
    assert (spec.name, spec.uses) == ("all_of", "all_of")
    parts = spec.parameters["evaluators"]
    assert [part["uses"] for part in parts] == ["contains", "within_tolerance"]
    assert parts[1]["parameters"] == {"tolerance": 0.5, "relative": False}
    others = [
        all_of(contains, within_tolerance(0.6)),
        any_of(contains, within_tolerance(0.5)),
        combine([contains, within_tolerance(0.5)], lambda scores: True, name="all_of"),
        combine([contains, within_tolerance(0.5)], lambda scores: False, name="all_of"),
    ]
    assert len({spec.identity, *(other.spec.identity for other in others)}) == 5
    assert all_of(contains, within_tolerance(0.5)).spec == spec


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5), st.data())
def test_combined_values_lie_between_their_parts(values: list[float], data: st.DataObject) -> None:
    """Property: a mean, weighted or not, lies between the lowest and the highest part."""
    weights = data.draw(st.lists(st.floats(0.01, 100), min_size=len(values), max_size=len(values)))
    parts = [_fixed(value) for value in values]
    for mean in (all_of(*parts), weighted(*zip(parts, weights, strict=True))):
        found = mean("x").value
        assert min(values) - 1e-9 <= found <= max(values) + 1e-9
    assert any_of(*parts)("x").value == max(values)


def _fixed(value: float) -> Any:
    return lambda output: value


TREES = st.recursive(
    st.sampled_from(["pass", "fail", "error", "skip"]),
    lambda inner: (
        st.tuples(st.sampled_from(["all", "any"]), st.lists(inner, min_size=1, max_size=3))
        | st.tuples(st.just("not"), inner.map(lambda one: [one]))
    ),
    max_leaves=6,
)


def _leaf(kind: str) -> Any:
    def evaluate(output: Any) -> Score:
        if kind == "error":
            raise RuntimeError("no answer")
        if kind == "skip":
            return Score.skipped("cannot read it")
        return Score(float(kind == "pass"), kind == "pass")

    return evaluate


def _built(tree: Any) -> Any:
    if isinstance(tree, str):
        return _leaf(tree)
    rule, inner = tree
    parts = [_built(one) for one in inner]
    combine: Any = {"all": all_of, "any": any_of, "not": negate}[rule]
    return combine(*parts)


def _worlds(tree: Any) -> set[bool]:
    """Every verdict that is possible if the parts without a verdict had one."""
    if isinstance(tree, str):
        return {"pass": {True}, "fail": {False}}.get(tree, {True, False})
    rule, inner = tree
    choices = product(*map(_worlds, inner))
    if rule == "not":
        return {not verdicts[0] for verdicts in choices}
    return {all(verdicts) if rule == "all" else any(verdicts) for verdicts in choices}


@given(TREES)
def test_a_combination_passes_only_if_nothing_unknown_could_fail_it(tree: Any) -> None:
    """A pass does not depend on parts that failed or were skipped."""
    score = _built(tree)("output") if not isinstance(tree, str) else None
    if score is not None and score.passed is True:
        assert _worlds(tree) == {True}


def test_a_value_that_lacks_a_part_reaches_no_threshold() -> None:
    """`threshold` and `weighted` look at the value, which a dead judge makes meaningless."""
    half = _leaf("fail")
    assert threshold(all_of(half, _leaf("pass"), _leaf("error")), 0.5)("x").status == "error"
    assert weighted((all_of(half, _leaf("skip")), 1))("x").status == "skipped"


def test_a_part_that_fails_everywhere_gets_a_warning_and_counts_as_an_error() -> None:
    """`any_of` has a verdict without it, but a dead judge must not go unnoticed."""
    data = [{"id": str(n), "input": f"a{n}", "expected": "b"} for n in range(12)]
    check = any_of(exact_match, failing)
    report = evaluate(str.upper, data, check, history=False)
    assert report.metadata is not None
    [warning] = report.metadata.warnings
    assert warning == (
        "any_of has verdicts without its part failing, which failed on 12 of 12 results; most frequent reason: "
        "ValueError: no"
    )
    with pytest.raises(RunStopped, match="the part 'failing' of 'any_of' failed: ValueError: no"):
        evaluate(str.upper, data, check, history=False, max_errors=3)


def test_a_failure_inside_a_combination_is_found_at_any_depth() -> None:
    score = any_of(half, all_of(contains, negate(failing)))("a", "a")
    assert list(find_failures(score)) == ["not-failing"]
    assert find_failures(half("a")) == {}
