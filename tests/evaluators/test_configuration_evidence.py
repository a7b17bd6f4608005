"""The `config` of an evaluator is the configuration of the trial, for every kind of run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from proctor import Reply, Session, all_of, attach, evaluate, field, rescore
from proctor.evaluators.options import read_signature
from proctor.records.sample import Sample
from proctor.records.trial import Trial

DATA = [{"id": "a", "input": "x", "expected": "x"}]
CONFIGURATIONS = {"plain": {}, "loud": {"suffix": "!"}}


def target(text: str, *, suffix: str = "") -> Reply:
    """The input with an ending, and a session in which nothing happened."""
    return Reply(text + suffix, session=Session())


class Ending:
    """Passes if the output ends as the configuration says."""

    name = "ending"

    def evaluate(self, output: str, example: Sample[Any, Any], config: Any = None) -> bool:
        """Compare the output with the input and the suffix of the configuration."""
        assert isinstance(config, Mapping)
        return bool(output == example.input + config.get("suffix", ""))


def by_function(output: str, expected: str, config: Mapping[str, Any]) -> bool:
    """Passes if the output is the expected value with the configured ending."""
    return bool(output == expected + config.get("suffix", ""))


async def awaited(output: str, example: Sample[Any, Any], config: Mapping[str, Any]) -> bool:
    """The same, to be awaited."""
    return bool(output == example.input + config.get("suffix", ""))


def without_expected(output: str, config: Mapping[str, Any]) -> bool:
    """The configuration may be the second parameter."""
    return output.endswith(config.get("suffix", ""))


def with_session(output: str, expected: str, session: Any, config: Any = None) -> bool:
    """The configuration may come after the session."""
    assert session is not None
    return bool(output == expected + config.get("suffix", ""))


EVALUATORS = [Ending, Ending(), by_function, awaited, without_expected, with_session]


@pytest.mark.parametrize("evaluator", EVALUATORS, ids=lambda one: getattr(one, "__name__", type(one).__name__))
def test_each_trial_brings_its_own_configuration(evaluator: Any) -> None:
    """Every trial passes, because it is compared by the options that it was run with."""
    report = evaluate(target, DATA, [evaluator], configurations=CONFIGURATIONS, history=False)
    assert [(r.trial.configuration, r.score.status) for r in report.results] == [
        ("plain", "ok"), ("loud", "ok"),
    ]  # fmt: skip
    assert [result.passed for result in report.results] == [True, True]


@pytest.mark.parametrize("evaluator", EVALUATORS, ids=lambda one: getattr(one, "__name__", type(one).__name__))
def test_without_configurations_it_is_an_empty_mapping(evaluator: Any) -> None:
    """It is never None, also where the evaluator is called by hand."""
    report = evaluate(target, DATA, [evaluator], history=False)
    assert [result.passed for result in report.results] == [True]
    seen: list[Any] = []

    def keep(output: str, example: Any, config: Any = None) -> bool:
        seen.append(config)
        return True

    attach(keep)("x")
    attach(keep).score(Trial(Sample("1", "x"), "x"))
    assert seen == [{}, {}]


def test_combinations_and_fields_pass_it_on() -> None:
    """Inside `all_of`, and as an evaluator of a field, it is the same configuration."""
    evaluators = [all_of(Ending(), by_function), field("output", [Ending()], name="whole")]
    report = evaluate(target, DATA, evaluators, configurations=CONFIGURATIONS, history=False)
    assert [result.passed for result in report.results] == [True, True]


def test_scoring_again_uses_the_configurations_of_the_run(tmp_path: Path) -> None:
    """A stored run has the options of each configuration."""
    history = tmp_path / "history.db"
    evaluate(target, DATA, [lambda output: True], configurations=CONFIGURATIONS, history=history, name="r")
    again = rescore("r", [Ending()], history=history)
    assert [result.passed for result in again.results] == [True, True]


def test_an_evaluator_can_change_only_its_own_copy() -> None:
    def spoil(output: str, example: Any, config: Any = None) -> bool:
        config.clear()
        config["suffix"] = "?"
        return True

    report = evaluate(
        target, [*DATA, {"id": "b", "input": "y"}], [spoil, Ending()],
        configurations=CONFIGURATIONS, history=False, concurrency=1,
    )  # fmt: skip
    assert all(result.passed for result in report.results)


def test_an_option_called_config_stays_an_option() -> None:
    """A keyword-only parameter is always an option."""

    def check(output: str, *, config: str = "a") -> bool:
        return config == "b"

    assert attach(check, parameters={"config": "b"})("x").passed is True
    assert read_signature(check, "check").kinds == ("output",)


def test_the_example_has_the_names_of_the_runner_spec() -> None:
    """`query`, `response` and `expected_followups` are read from the sample's own fields."""
    sample: Sample[Any, Any] = Sample("1", {"query": "Q", "response": "R"}, ["F"], {"labels": {"quality": "good"}})
    assert (sample.query, sample.response, sample.expected_followups) == ("Q", "R", ["F"])
    assert (sample.labels, sample.context) == ({"quality": "good"}, None)
    plain: Sample[Any, Any] = Sample("1", "Q", metadata={"response": "R"})
    assert (plain.query, plain.response, plain.expected_followups) == ("Q", "R", None)
    with pytest.raises(AttributeError, match="neither the input nor the metadata"):
        _ = Sample("1", "Q").response
