"""One option has one name everywhere, and the spellings of the specifications are accepted."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import click
import pytest
from msgspec import structs, to_builtins

from proctor import (
    Budgeted,
    EvalResult,
    EvalRunner,
    InMemoryMailbox,
    MainLoop,
    attach,
    coherence,
    collect_results,
    define,
    evaluators,
    exact_match,
    llm_judge,
    quality_score,
    rubric_evaluators,
    toxicity_detection,
)
from proctor.cli.main import COMMANDS, proctor
from proctor.comparison.compare import diff_evaluators
from proctor.core.aliases import COMMON_NAMES
from proctor.errors import EvaluatorError
from proctor.records.run import EvaluatorSpec
from proctor.wiring.registry import Registry

NAMESPACES = (
    *("datasets", "evaluators", "judges", "mailboxes", "metrics"),
    *("models", "reports", "targets", "testing"),
)
# An evaluator, not a model; a count, not a pass mark; the text of one section; the template of a prompt.
OTHER_MEANINGS = {
    ("with_canary", "judge"),
    ("occurrences", "at_least"),
    ("text_count", "at_least"),
    ("MarkdownSection", "template"),
    ("Prompt", "template"),
    ("sessions learn", "judge"),  # a second model, besides the one that proposes rubrics
}


def model(messages: Any) -> str:
    """A judge that rates everything 4, on whatever scale it is asked."""
    *_, line = messages[-1].content.splitlines()
    return f"Fine.\n{line.partition('<')[0]}4"


def public_parameters() -> Iterator[tuple[str, str]]:
    for package in ("proctor", *(f"proctor.{name}" for name in NAMESPACES)):
        module = importlib.import_module(package)
        for name in {name for names in module.EXPORTS.values() for name in names}:
            value = getattr(module, name)
            if inspect.isfunction(value) or inspect.isclass(value):
                yield from ((name, parameter) for parameter in inspect.signature(value).parameters)


def command_options(name: str, command: click.Command) -> Iterator[tuple[str, str]]:
    yield from ((name, str(parameter.name)) for parameter in command.params)
    if isinstance(command, click.Group):
        for inner, each in command.commands.items():
            yield from command_options(f"{name} {inner}", each)


def test_public_callables_use_the_common_names() -> None:
    """No function, class or command spells an option otherwise."""
    context = click.Context(proctor)
    options = {*public_parameters()}
    for name in COMMANDS:
        command = proctor.get_command(context, name)
        assert command is not None
        options |= {*command_options(name, command)}
    assert {option for option in options if option[1] in COMMON_NAMES} == OTHER_MEANINGS


def test_an_evaluator_is_called_with_other_spellings() -> None:
    """Directly, by `functools.partial`, and as parameters."""
    call: Any = quality_score
    assert call(adapter=model, min_score=0.75)("Hello").passed is True
    assert call(judge=model, threshold=0.8)("Hello").passed is False
    assert attach(functools.partial(call, adapter=model), parameters={"min_score": 0.8})("Hello").passed is False
    at_least: Any = evaluators.threshold
    assert at_least(evaluators.contains, at_least=0.5)("red", ["red", "green"]).passed is True


def test_an_eval_file_may_use_other_spellings() -> None:
    """Also with a percentage; the stored parameters have the common names."""
    built = Registry.standard().build({"coherence": {"min_score": "90%", "embedder": "lexical"}})
    assert built.spec.parameters["threshold"] == 0.9
    assert "min_score" not in built.spec.parameters


def test_a_stored_evaluator_with_other_spellings_is_built_again() -> None:
    """And its model is found."""
    stored = EvaluatorSpec("tone", "llm_judge", {"adapter": "local:smollm2", "criterion": "polite"})
    assert stored.judges == ("local:smollm2",)
    assert EvaluatorSpec("tone", "llm_judge", {"model": "local:smollm2"}).judges == ("local:smollm2",)
    named = EvaluatorSpec("tone", "llm_judge", {"adapter": f"{__name__}:model", "criterion": "polite"})
    assert Registry.standard().build(named).spec.parameters["criterion"] == "polite"


def test_a_run_of_an_earlier_version_has_the_same_evaluators() -> None:
    """Its options are compared by their common names, also inside of combinations."""
    old = EvaluatorSpec("tone", "quality_score", {"adapter": "openai:gpt-4o", "min_score": 0.8}, "4:0123456789abcdef")
    new = EvaluatorSpec("tone", "quality_score", {"model": "openai:gpt-4o", "threshold": 0.8}, "5:0123456789abcdef")
    assert diff_evaluators(old, new) == ()
    stricter = structs.replace(new, parameters={"model": "openai:gpt-4o", "threshold": 0.9})
    assert diff_evaluators(old, stricter) == (("threshold", "0.8", "0.9"),)
    before, after = (
        EvaluatorSpec("all_of", "all_of", {"evaluators": [to_builtins(part)]}, part.identity) for part in (old, new)
    )
    assert diff_evaluators(before, after) == ()


def test_a_definition_is_configured_with_other_spellings() -> None:
    """As keyword arguments, and by a function that sets attributes."""

    def configure(config: Any) -> None:
        config.min_score = 0.8
        assert config.min_score == config.threshold == 0.8

    define().evaluate_field("output").evaluate_with("coherence", configure)
    define().evaluate_field("output").evaluate_with("coherence", min_score=0.8)


def test_loops_runners_and_models_accept_other_spellings() -> None:
    """Where the specifications call them so."""
    assert MainLoop(adapter=model).adapter.model == MainLoop(model=model).adapter.model
    assert EvalRunner(str.upper, exact_match, timeout_seconds=2.5).options["timeout"] == 2.5
    assert EvalRunner(str.upper, exact_match, timeout=2.5).options["timeout"] == 2.5
    results: InMemoryMailbox[EvalResult] = InMemoryMailbox("results")
    assert collect_results(results, 0, timeout_seconds=0.0).total == 0
    budgeted: Any = Budgeted
    assert budgeted(adapter=model, budget={"calls": 1}).model == Budgeted(model, {"calls": 1}).model
    several: Any = rubric_evaluators
    assert len(several(adapter=model, template=None)) == len(rubric_evaluators(model))


@pytest.mark.parametrize(
    ("call", "options"),
    [
        (llm_judge, {"model": model, "adapter": model}),
        (coherence, {"threshold": 0.5, "min_score": 0.5}),
        (toxicity_detection, {"model": model, "judge": model}),
        (MainLoop, {"model": model, "adapter": model}),
        (MainLoop, {"model": model, "prompts": 1}),
        (collect_results, {"results": None, "expected_count": 0, "time": 1}),
    ],
)
def test_an_option_given_twice_or_unknown_is_an_error(call: Any, options: dict[str, Any]) -> None:
    """Neither spelling wins silently, and a function that accepts aliases still rejects other names."""
    with pytest.raises(TypeError):
        call(**options)


def test_an_eval_file_that_gives_an_option_twice_is_refused() -> None:
    """The error names the second spelling."""
    with pytest.raises(EvaluatorError, match="unknown parameter 'min_score'"):
        Registry.standard().build({"coherence": {"min_score": 0.5, "threshold": 0.5}})
