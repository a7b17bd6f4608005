"""Evaluators of one field: their arguments, their combination, and named classes."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

import pytest
from inline_snapshot import snapshot

from proctor import FieldContext, Sample, Score, Trial, attach, contains, evaluator, field
from proctor.errors import EvaluatorError, StopRun
from proctor.evaluators.decorator import describe_evaluator, get_info, get_name
from proctor.evaluators.options import read_signature
from proctor.records.fields.view import Field, focus_on_field, make_trial_view
from proctor.records.session import Session
from proctor.wiring.registry import Registry
from tests.tables import each_row

SAMPLE = Sample("1", "capital of France?", "Paris", {"context": "Paris is the capital.", "n": 3})


def trial(output: Any = "Paris", **held: Any) -> Trial:
    return Trial(SAMPLE, output, **held)


def scored(thing: Any, given: Trial | None = None) -> Score:
    found = thing.score(given or trial())
    return asyncio.run(found) if thing.mode == "async" else found  # type: ignore[no-any-return]


class Grounded:
    """Passes if the field's value is in the context."""

    evaluator_name = "grounded"

    def evaluate(self, field_context: Any, **options: Any) -> dict[str, Any]:
        found = field_context.value in field_context["context"]
        return {"passed": found, "details": options, "message": field_context.field_name}


def first(field_context, *, least=1):  # type: ignore[no-untyped-def]
    return bool(len(str(field_context.value)) >= least)


def annotated(context: FieldContext) -> bool:
    return bool(context.output == "Paris")


def optional(output: Any, expected: Any = None, context: FieldContext | None = None) -> bool:
    assert context is not None
    return bool(output == expected == context.value)


async def later(output: Any, field_context: FieldContext) -> bool:
    return bool(output == field_context.value)


class Called:
    def __call__(self, output: Any, expected: Any, field_context: Any) -> bool:
        return bool(output == field_context.value)


@each_row("thing", [first, annotated, optional, later, Called(), Grounded, Grounded(), functools.partial(first)])
def test_the_context_goes_to_evaluators_that_take_it(thing: Any) -> None:
    """By name or annotation, at any of the three places, in functions, objects and classes."""
    attached = attach(thing)
    assert attached.needs == {"context"}
    assert scored(attached).passed
    inside = field("n", [thing])
    assert inside.needs == {"context"}


def test_the_kinds_are_read_from_the_parameters() -> None:
    """The context is evidence; other parameters are options."""
    assert read_signature(first, "first").kinds == ("context",)
    assert list(read_signature(first, "first").options) == ["least"]
    assert read_signature(optional, "optional").kinds == ("output", "expected", "context")
    assert not read_signature(contains, "contains").takes_context
    assert attach(contains).needs == frozenset()


def test_a_required_expected_value_is_needed() -> None:
    """An evaluator that requires it is skipped without it; one with a default is called."""
    without = Trial(Sample("1", "x"), "Paris")
    required = attach(lambda output, expected, field_context: True)
    assert required.score(without).status == "skipped"
    assert scored(attach(annotated), without).passed


def test_outside_a_field_an_evaluator_looks_at_its_own() -> None:
    """The field it is marked with, else the output; inside a field, that."""

    @evaluator(field="latency_ms")
    def quick(field_context: FieldContext) -> bool:
        assert field_context.field_name == field_context.path
        return bool(field_context.value < 100)

    assert scored(attach(quick), trial(latency_ms=50.0)).passed
    assert not scored(attach(quick), trial(latency_ms=500.0)).passed
    assert scored(field("n", [lambda field_context: field_context.value == 3])).passed
    output_text = get_info(quick)
    assert output_text is not None
    assert output_text.field == "latency_ms"


def test_an_evaluator_of_repeats_is_called_once_per_sample() -> None:
    """In the last epoch it sees all values; in the others it is skipped, with the reason."""

    @evaluator(needs=("epochs",))
    def steady(field_context: FieldContext) -> Score:
        return Score(1.0, len(set(field_context.epochs)) == 1, repr(field_context.epochs))

    attached = attach(steady)
    assert attached.needs == {"context", "epochs"}
    assert field("output", [steady]).needs == {"context", "epochs"}
    early = scored(attached, make_trial_view(trial(), epochs=None))
    assert (early.status, early.reason) == snapshot(("skipped", "scored once per sample, in its last epoch"))
    last = make_trial_view(trial("a"), epochs=(trial("b"), trial("a")))
    assert scored(attached, last).reason == "('b', 'a')"
    assert scored(field("output", [steady]), last).reason == "('b', 'a')"


def test_a_class_with_a_name_is_an_evaluator() -> None:
    """With its name, options and scores; `evaluator_name` may be a method."""

    class Told(Grounded):
        @classmethod
        def evaluator_name(cls) -> str:  # type: ignore[override]
            return "told"

    assert get_name(Grounded) == get_name(Grounded()) == "grounded"
    assert get_name(Told) == "told"
    attached = attach(Grounded, parameters={"anything": 3})
    assert attached.spec.name == "grounded"
    assert attached.spec.parameters == {"anything": 3}
    assert scored(attached) == Score(1.0, True, "output", {"anything": 3})


def test_options_go_to_the_constructor_or_to_evaluate() -> None:
    """Those of the constructor make the object, the others reach `evaluate`; faults are named."""

    class Limit:
        evaluator_name = "limit"

        def __init__(self, at_most: int = 10) -> None:
            self.at_most = at_most

        def evaluate(self, field_context: FieldContext, *, factor: int = 1) -> bool:
            return bool(field_context.value * factor <= self.at_most)

    inside = field("n", [attach(Limit, parameters={"at_most": 6, "factor": 2})])
    assert scored(inside).passed
    assert not scored(field("n", [attach(Limit, parameters={"at_most": 5, "factor": 2})])).passed
    assert [one.name for one in describe_evaluator(Limit).parameters] == ["at_most", "factor"]
    with pytest.raises(EvaluatorError, match="facto"):
        attach(Limit, parameters={"facto": 2})
    with pytest.raises(EvaluatorError, match="factor must be of type int, got 'two'"):
        attach(Limit, parameters={"factor": "two"})


def test_a_threshold_reaches_a_class_that_takes_any_option() -> None:
    """By name as by itself: it is the class's own to read, not a mark of ours."""
    registry = Registry()
    registry.register(Grounded)
    for built in (registry.build({"grounded": {"threshold": 0.9}}), attach(Grounded, parameters={"threshold": 0.9})):
        assert scored(built).details == {"threshold": 0.9}


def test_registering_a_class_that_cannot_evaluate_raises() -> None:
    """The error comes when the class is registered, not when it runs."""

    class Silent:
        evaluator_name = "silent"

    with pytest.raises(EvaluatorError, match="not callable and have no `evaluate` method"):
        Registry().register(Silent)


def test_a_fields_value_is_the_output_of_its_evaluators() -> None:
    """Sample, expected value and the complete result do not change."""
    seen_by: list[Any] = []

    def look(output: Any, sample: Any) -> bool:
        seen_by.append((output, sample.expected))
        return True

    def around(output: Any, field_context: FieldContext) -> bool:
        seen_by.append((output, field_context.output, field_context.field_name))
        return True

    assert scored(field("n", [look, around], name="count")).passed
    assert seen_by == [(3, "Paris"), (3, "Paris", "count")]


@pytest.mark.parametrize(("combine", "passed", "value"), [("and", False, 0.5), ("or", True, 1.0)])
def test_the_two_rules(combine: str, passed: bool, value: float) -> None:
    """All must pass, with the mean; or any, with the greatest; the parts are in the details."""
    both = field("output", [lambda output: True, contains], combine)
    score = scored(both, Trial(Sample("1", "", "London"), "Paris"))
    assert (score.passed, score.value) == (passed, value)
    assert list(score.details["parts"]) == ["lambda", "contains"]


def broken(output: Any) -> bool:
    raise ValueError("no idea")


def fine(output: Any) -> bool:
    return True


@pytest.mark.parametrize(("combine", "status", "passed"), [("and", "error", None), ("or", "ok", True)])
def test_a_failing_evaluator_fails_an_and_but_not_an_or(combine: str, status: str, passed: bool | None) -> None:
    """The others are still called, and the details name the failed one."""
    score = scored(field("output", [broken, fine], combine))
    assert (score.status, score.passed) == (status, passed)
    assert score.details["errors"] == ["broken"]
    assert score.details["parts"]["fine"].passed
    assert "ValueError: no idea" in score.reason


def test_a_function_combines_scores_by_name() -> None:
    """It gets all scores, including errors, and the details contain the parts."""

    def required(scores: Any) -> dict[str, Any]:
        assert scores["broken"].status == "error"
        return {"passed": scores["fine"].passed, "score": 0.9, "message": "fine is enough"}

    score = scored(field("output", [broken, fine], required))
    assert (score.passed, score.value, score.reason) == (True, 0.9, "fine is enough")
    assert set(score.details["parts"]) == {"broken", "fine"}


@each_row(
    ("combine", "words"),
    [
        (lambda scores: scores["nobody"], "KeyError"),
        (lambda scores: 7, "not from 0 to 1"),
        (lambda scores: {"score": -1}, "the score -1"),
        (lambda scores: {"passed": "yes"}, "not a boolean"),
        (lambda scores: {"verdict": True}, "the key 'verdict'"),
        (lambda scores: "good", "returned 'good'"),
        (lambda scores: exit("bye"), "SystemExit"),
        (lambda scores: Score(0.5, True, details=None), "details"),  # type: ignore[arg-type]
    ],
)
def test_a_combination_that_fails_is_an_error(combine: Any, words: str) -> None:
    """An exception, a value out of range or of another type: an error score with the parts, never a
    number.
    """
    score = scored(field("output", [fine], combine))
    assert (score.status, score.value, score.passed) == ("error", None, None)
    assert words in score.reason
    assert score.details["parts"]["fine"].passed


def test_a_missing_field_is_an_error_of_each_evaluator() -> None:
    """Each score names the missing key and the existing ones."""
    for mode in (fine, later):
        score = scored(field("output.text", [mode, contains]), trial({"txt": "Paris"}))
        assert score.status == "error"
        assert "FieldMissing: output.text: 'output' has no field 'text'" in score.reason
        assert "did you mean 'txt'?" in score.reason
        assert len(score.details["parts"]) == 2


def test_an_async_evaluator_makes_the_field_async() -> None:
    """The order of the parts does not change."""

    async def slow(output: Any) -> bool:
        await asyncio.sleep(0.01)
        return True

    both = field("n", [slow, later, fine])
    assert both.mode == "async"
    assert list(scored(both).details["parts"]) == ["slow", "later", "fine"]


def test_an_error_that_stops_the_run_is_not_a_score() -> None:
    """A spent budget inside a field ends the run, waiting or not."""

    def spent(output: Any) -> bool:
        raise StopRun("the budget is spent")

    async def spent_later(output: Any) -> bool:
        raise StopRun("the budget is spent")

    for thing in (spent, spent_later):
        with pytest.raises(StopRun):
            scored(field("output", [thing]))


def test_specs_of_fields_differ() -> None:
    """Path, evaluators and combination are in it, and in its identity."""
    one = field("output", [fine])
    assert one.spec.uses == "field"
    assert one.spec.parameters["path"] == "output"
    assert one.spec.parameters["evaluators"][0]["name"] == "fine"
    others = [
        field("output", [fine, broken]),
        field("output", [fine], "or"),
        field("n", [fine]),
        field("output", [fine], lambda scores: True),
        field("output", [fine], lambda scores: False),
    ]
    assert len({one.spec.identity, *(other.spec.identity for other in others)}) == 6
    assert field("output", [fine]).spec == one.spec


def test_in_an_eval_file_a_field_is_an_evaluator_like_any_other() -> None:
    """With parts by name, a combination by address, and all faults of the parts at once."""
    registry = Registry.standard()
    built = registry.build(
        {"uses": "field", "name": "n", "path": "n", "evaluators": [f"{__name__}:fine"],
         "combine": f"{__name__}:half"}
    )  # fmt: skip
    assert (scored(built).value, built.spec.name) == (0.5, "n")
    with pytest.raises(EvaluatorError) as caught:
        registry.build({"field": {"path": "n", "evaluators": ["containz", {"contains": {"x": 1}}]}})
    message = str(caught.value)
    assert "did you mean 'contains'?" in message
    assert "unknown parameter 'x'; choose one of: case_sensitive, match" in message


def half(scores: Any) -> float:
    return 0.5


def test_a_wrong_field_is_refused_on_creation() -> None:
    """Its path, its combination, and that it has no evaluators."""
    faults: list[tuple[Any, ...]] = [
        ("output.", [fine]),
        ("output", []),
        ("output", [fine], "nad"),
        ("output", [fine], ["and"]),
        ("output", [fine], f"{__name__}:halve"),
        ("output", ["contains"]),
    ]
    messages = []
    for given in faults:
        with pytest.raises(EvaluatorError) as caught:
            field(*given)
        messages.append(str(caught.value))
    assert messages == snapshot(
        [
            """\
output.: 'output.' is not a path to a field: it has an extra dot; write output
Fix: write keys with dots between them, such as usage.total_tokens or items.*.name\
""",
            """\
output: no evaluator is given
Fix: pass at least one, as in field("output", evaluators=[contains, exact_match])\
""",
            """\
output: evaluators cannot be combined with 'nad'
Fix: choose "and" (all pass), "or" (one passes), or a function of the scores\
""",
            """\
output: evaluators cannot be combined with ['and']
Fix: choose "and" (all pass), "or" (one passes), or a function of the scores\
""",
            """\
output, tests.evaluators.test_field:halve: 'tests.evaluators.test_field' has no attribute 'halve'
Fix: did you mean 'half'?\
""",
            """\
'contains' is the name of an evaluator, not an evaluator
Fix: pass the function itself, or Registry.standard().build('contains')\
""",
        ]
    )


def test_a_field_within_a_field_starts_from_the_result() -> None:
    """Paths are always seen from the whole result."""
    nested = field("output", [field("n", [lambda output: output == 3])])
    assert scored(nested).passed
    part = focus_on_field(trial(), Field("n", "n"))
    assert nested.score(part).passed


def test_a_direct_call_takes_output_expected_value_and_session() -> None:
    assert attach(optional)("Paris", "Paris", Session()).passed
    assert field("output.city", [contains])({"city": "Paris"}, "Paris").passed
