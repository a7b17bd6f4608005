"""Recorded spans: their configuration, missing fields, and results by configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from proctor import FieldContext, ProgressEvent, Reply, Score, Usage, configuration, define, evaluate
from proctor.errors import ConfigError


def passes(output: Any) -> bool:
    return True


def by_model(field_context: FieldContext) -> dict[str, Any]:
    """The specification's example: the result depends on the model of the configuration."""
    model = field_context["configuration"]["model"]
    return {"passed": model == "gpt-4o", "message": model}


RECORDED = {"output": "hello", "configuration": {"model": "gpt-4o", "temperature": 0.2}}


# -- the configuration of a recorded span ------------------------------------------------------


def test_a_recorded_span_keeps_its_configuration() -> None:
    """Evaluators can read the model in it."""
    checks = define().evaluate_field("output", by_model)
    reports = [
        checks.evaluate(RECORDED),
        checks.evaluate([RECORDED]),
        checks.evaluate({"input": "q"}, recorded={"a": RECORDED}),
    ]
    for report in reports:
        assert report.field_results["output"].score == Score(
            1.0, True, "gpt-4o", report.field_results["output"].score.details
        )


def test_a_recorded_configuration_is_a_field_of_the_report() -> None:
    """It can be selected, ranked by and read from the rows."""
    checks = define().select("configuration.temperature", as_="warmth")
    checks.select("configuration.name", as_="named").evaluate_field("output", passes)
    report = checks.evaluate({**RECORDED, "configuration": {"name": "prod", "temperature": 0.2}})
    assert report.rows()[0] | {"warmth": 0.2, "named": "prod"} == report.rows()[0]
    assert report.metrics["field.warmth"].value == 0.2


def test_a_configuration_can_be_recorded_by_name() -> None:
    """As a text."""
    seen: list[Any] = []

    def look(field_context: FieldContext) -> bool:
        seen.append(dict(field_context.configuration))
        return True

    define().evaluate_field("output", look).evaluate({"output": 1, "configuration": "low_temp"})
    assert seen == [{"name": "low_temp"}]


def test_options_of_the_call_override_recorded_ones() -> None:
    """The configuration keeps its name."""
    seen: list[Any] = []

    def look(field_context: FieldContext) -> bool:
        seen.append({k: field_context.configuration[k] for k in ("name", "model", "temperature")})
        return True

    define().evaluate_field("output", look).evaluate(RECORDED, configurations=[configuration("cold", temperature=0.0)])
    assert seen == [{"name": "cold", "model": "gpt-4o", "temperature": 0.0}]


def test_a_rerun_span_has_its_new_configuration() -> None:
    """The recorded one, and its usage, belong to the baseline."""
    seen: list[Any] = []

    def look(field_context: FieldContext) -> bool:
        seen.append((dict(field_context.configuration), field_context["baseline"]))
        return True

    define().evaluate_field("output", look).evaluate(RECORDED | {"input": "q"}, target=str.upper)
    assert seen == [({"name": "default"}, RECORDED)]


@pytest.mark.parametrize("latency", [{}, {"latency_ms": 3.0}])
def test_metadata_does_not_replace_the_usage_of_the_target(latency: Any) -> None:
    """Nor its configuration."""
    seen: list[Any] = []

    def look(field_context: FieldContext) -> bool:
        seen.append((field_context["usage.total_tokens"], dict(field_context.configuration)))
        return True

    metadata = {"usage": {"total_tokens": 500}, "output": "HI", "configuration": {"model": "m"}}
    evaluate(
        lambda text: Reply(text.upper(), Usage(10, 5)),
        [{"id": "1", "input": "hi", "metadata": metadata | latency}],
        [look],
        history=False,
    )
    assert seen == [(15, {"name": "default"})]


# -- selected fields that are missing ----------------------------------------------------------


def test_a_selected_field_that_no_result_has_is_reported() -> None:
    """With a warning that names path and keys; the report does not pass."""
    checks = define().select("usage.totl_tokens", as_="tokens").evaluate_field("output", passes)
    spans = [{"output": "x", "usage": {"total_tokens": n}} for n in (1, 2)]
    report = checks.evaluate(spans)
    assert report.metadata is not None
    (warning,) = report.metadata.warnings
    assert warning == (
        "the selected field 'tokens' is missing in all 2 results: usage.totl_tokens: 'usage' has "
        "no field 'totl_tokens' (did you mean 'total_tokens'? Fields: total_tokens)"
    )
    assert not report.passed
    assert all(result.passed for result in report.results)


def test_an_evaluated_field_that_no_result_has_is_an_error_of_every_sample() -> None:
    """Each result has an error score for it, and one warning says so."""
    report = define().evaluate_field("usage.total", passes).evaluate([{"output": 1}] * 2)
    assert [result.scores["usage.total"].status for result in report.results] == ["error"] * 2
    assert report.metadata is not None
    (warning,) = report.metadata.warnings
    assert "gave no verdict on any result" in warning
    assert "the result has no field 'usage'" in warning
    assert not report.passed


def test_a_field_of_some_results_causes_no_warning() -> None:
    """Null is a value."""
    checks = define().select("note").evaluate_field("output", passes)
    for spans in ([{"output": 1, "note": None}, {"output": 2}], [{"output": 1}, {"note": 1, "output": 2}]):
        report = checks.evaluate(spans)
        assert report.metadata is not None
        assert report.metadata.warnings == ()
        assert report.passed


def test_failed_results_cause_no_warning_about_fields() -> None:
    """They have none."""

    def broken(text: str) -> str:
        raise ValueError("down")

    checks = define().select("usage.total_tokens").evaluate_field("output", passes)
    report = checks.evaluate([{"input": "a"}, {"input": "b"}], target=broken)
    assert report.metadata is not None
    assert report.metadata.warnings == ()
    assert not report.passed


def test_a_stored_report_has_the_warning_about_fields(tmp_path: Path) -> None:
    """It does not pass either."""
    checks = define("exam").select("usage").evaluate_field("output", passes)
    checks.history(where=tmp_path / "h.db").evaluate([{"output": 1}, {"output": 2}])
    (stored,) = checks.history.last()
    assert not stored.passed
    assert stored.metadata is not None
    assert "missing in all 2 results" in stored.metadata.warnings[0]


# -- recorded results without configurations= --------------------------------------------------


RESULTS = {"a": {"output": "x"}, "b": {"output": "y"}}


@pytest.mark.parametrize("kind", ["span", "list", "file", "sample"])
def test_configurations_are_read_from_recorded_results(kind: str, tmp_path: Path) -> None:
    """Of one span, a list or a file."""
    span: Any = {"id": "1", "input": "q", "recorded": RESULTS}
    path = tmp_path / "spans.jsonl"
    path.write_bytes(msgspec.json.encode(span))
    given: Any = {"span": span, "list": [span], "file": path, "sample": str(path)}[kind]
    report = define().evaluate_field("output", passes).evaluate(given)
    assert report.configurations == ("a", "b")
    assert [result.output for result in report.results] == ["x", "y"]
    assert report.passed


def test_a_configuration_that_one_span_lacks_is_an_error_of_that_trial() -> None:
    """The configurations of all spans are evaluated, in order of appearance."""
    spans = [
        {"input": "q", "recorded": {"b": {"output": 1}}},
        {"input": "r", "recorded": {"a": {"output": 2}, "b": {"output": 3}}},
    ]
    report = define().evaluate_field("output", passes).evaluate(spans)
    assert report.configurations == ("b", "a")
    done = [result.trial for result in report.results if result.success]
    assert [(trial.sample.id, trial.configuration, trial.output) for trial in done] == [
        ("span-1", "b", 1), ("span-2", "b", 3), ("span-2", "a", 2),
    ]  # fmt: skip
    assert report.errors == 1
    assert not report.passed


def test_a_stream_of_recorded_results_needs_configurations() -> None:
    """It can be read only once; the error says what to pass."""
    stream = iter([{"id": "1", "input": "q", "metadata": {"recorded": RESULTS}}])
    report = define().evaluate_field("output", passes).evaluate(stream)
    assert 'configurations=["a", "b"]' in (report.results[0].error or "")
    stream = iter([{"id": "1", "input": "q", "metadata": {"recorded": RESULTS}}])
    report = define().evaluate_field("output", passes).evaluate(stream, configurations=["a", "b"])
    assert report.passed


def test_invalid_recorded_results_are_refused() -> None:
    """They must be a mapping with at least one configuration."""
    checks = define().evaluate_field("output", passes)
    refused: list[Any] = [{}, [], "x"]
    for wrong in refused:
        with pytest.raises(ConfigError, match="recorded"):
            checks.evaluate({"input": "q", "recorded": wrong})
        with pytest.raises(ConfigError, match="recorded"):
            checks.evaluate({"input": "q"}, recorded=wrong)


def test_the_baseline_may_be_a_recorded_configuration() -> None:
    """An unknown name is refused."""
    seen: dict[str, Any] = {}

    def look(field_context: FieldContext) -> bool:
        seen[field_context.configuration["name"]] = field_context.baseline_value
        return True

    checks = define().evaluate_field("output", look).baseline("a")
    checks.evaluate({"input": "q", "recorded": RESULTS})
    assert seen == {"a": None, "b": "x"}
    with pytest.raises(ConfigError, match="no configuration is named 'c'"):
        define().evaluate_field("output", look).baseline("c").evaluate({"recorded": RESULTS})


# -- several configurations in one field result ------------------------------------------------


def long_enough(output: str) -> Score:
    return Score(len(output) / 10, len(output) >= 5, f"{len(output)} letters")


def test_a_field_result_of_several_configurations_has_its_evaluators() -> None:
    """An evaluator passes if it passes everywhere; its value is the mean."""
    report = (
        define()
        .evaluate_field("output", passes, long_enough)
        .evaluate({"input": "q"}, recorded={"a": {"output": "x" * 4}, "b": {"output": "x" * 8}})
    )
    output = report.field_results["output"]
    assert list(output.evaluators) == ["passes", "long_enough"]
    assert output.evaluators["passes"].passed is True
    length = output.evaluators["long_enough"]
    assert length.value == pytest.approx(0.6)
    assert (length.passed, length.reason) == (False, "a: 4 letters")
    assert {name: part.value for name, part in length.details["parts"].items()} == {
        "a": 0.4, "b": 0.8,
    }  # fmt: skip
    assert output.score.passed is False
    assert output.score.value == pytest.approx((0.7 + 0.9) / 2)
    assert list(output.by_configuration) == ["a", "b"]
    assert output.by_configuration["b"].evaluators["long_enough"].value == 0.8


def test_a_field_result_names_few_trials() -> None:
    """Parts are named by configuration, sample and epoch; the reason names five."""
    spans = [{"id": str(n), "output": "x"} for n in range(8)]
    score = define().evaluate_field("output", long_enough).evaluate(spans).field_results["output"]
    assert list(score.score.details["parts"])[:2] == ["default, sample 0", "default, sample 1"]
    assert score.score.reason.count("1 letters") == 5
    assert score.score.reason.endswith("; … and 3 more")


# -- progress of a target that fails -----------------------------------------------------------


def statuses(target: Any, spans: Any, **how: Any) -> list[tuple[str, str, int]]:
    heard: list[ProgressEvent] = []
    checks = define().evaluate_field("output", passes)
    checks.on_progress(heard.append, kinds=["config_end", "end"])
    checks.evaluate(spans, target=target, **how)
    return [(event.kind, event.status, event.errors) for event in heard]


def fails_on_b(text: str, *, broken: bool = False) -> str:
    if text == "b" or broken:
        raise ValueError("down")
    return text


def test_a_configuration_with_a_failed_trial_ends_as_failed() -> None:
    """The run fails if nothing succeeded."""
    both = {"fine": {}, "broken": {"broken": True}}
    assert statuses(fails_on_b, {"input": "a"}) == [("config_end", "completed", 0), ("end", "completed", 0)]
    assert statuses(fails_on_b, {"input": "b"}) == [("config_end", "failed", 1), ("end", "failed", 1)]
    assert [(kind, status) for kind, status, _ in statuses(fails_on_b, {"input": "a"}, configurations=both)] == [
        ("config_end", "completed"),
        ("config_end", "failed"),
        ("end", "completed"),
    ]
    assert statuses(fails_on_b, [{"input": "a"}, {"input": "b"}]) == [
        ("config_end", "failed", 1), ("end", "completed", 1),
    ]  # fmt: skip


# -- the spec's form of a custom combination ---------------------------------------------------


def test_a_combination_reads_scores_by_key() -> None:
    """`results[name]["passed"]`, "score", "details" and "message"."""
    seen: list[Any] = []

    def combined(results: Any) -> dict[str, Any]:
        one = results["long_enough"]
        seen.append([one[name] for name in ("passed", "score", "details", "message")])
        return {"passed": one["passed"], "score": one["score"], "details": {"each": results}}

    checks = define().evaluate_field("output", long_enough, combine_with=combined)
    score = checks.evaluate({"output": "x" * 6}).field_results["output"].score
    assert seen == [[True, 0.6, {}, "6 letters"]]
    assert (score.passed, score.value) == (True, 0.6)


def test_a_score_has_no_other_keys() -> None:
    """A misspelled key is a KeyError that lists the keys."""
    score = Score(0.5, True, "why")
    assert (score["value"], score["reason"], score["status"]) == (0.5, "why", "ok")
    for wrong in ("pased", 0, None):
        with pytest.raises(KeyError, match="passed"):
            score[wrong]  # type: ignore[index]
