"""A trial as its evaluators see it: a mapping, one field of it, and its neighbours."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import FieldMissing, Message, Sample, Session, Trial, Usage
from proctor.records.fields.view import (
    Field,
    field_values,
    focus_on_field,
    make_context,
    make_trial_view,
    view_as_mapping,
)
from proctor.records.numbers import higher_is_better
from proctor.records.trial import Failure
from tests.tables import each_row

SAMPLE = Sample("7", "2 + 2?", "4", {"topic": "sums", "baseline_output": "5", "output": "old"})


def trial(output: Any = "4", **held: Any) -> Trial:
    return Trial(SAMPLE, output, **held)


def test_a_trial_is_one_mapping() -> None:
    """Its results, the sample, the metadata, and the options of the configuration."""
    left = trial(
        usage=Usage(3, 4, cost=0.5),
        latency_ms=12.0,
        configuration="low",
        epoch=2,
        session=Session([Message("user", "hi")]),
    )
    whole = view_as_mapping(make_trial_view(left, options={"temperature": 0.3}))
    assert {key: whole[key] for key in ("id", "input", "expected", "output", "epoch")} == {
        "id": "7", "input": "2 + 2?", "expected": "4", "output": "4", "epoch": 2,
    }  # fmt: skip
    assert whole["usage"] == {
        "input_tokens": 3, "output_tokens": 4, "total_tokens": 7, "cost": 0.5,
    }  # fmt: skip
    assert whole["configuration"] == {"name": "low", "temperature": 0.3}
    assert (whole["latency_ms"], whole["topic"], whole["metadata"]) == (12.0, "sums", SAMPLE.metadata)
    assert len(whole["session"]) == 1


def test_unknown_values_are_missing() -> None:
    """Unknown usage, time and session are missing fields, not nulls that could be judged."""
    whole = view_as_mapping(trial(usage=Usage(3), latency_ms=None))
    assert whole["usage"] == {"input_tokens": 3, "total_tokens": 3}
    assert not {"latency_ms", "session"} & whole.keys()
    assert "usage" not in view_as_mapping(trial())


def test_values_of_a_configuration_override_the_metadata() -> None:
    """Fields that we have no record for are found where the configuration recorded them."""
    recorded = {"low": {"output": "x", "judge": 3, "usage": {"cached": 9, "input_tokens": 0}}}
    sample: Sample[str, str] = Sample("1", "", metadata={"recorded": recorded, "judge": 1})
    left = Trial(sample, "x", usage=Usage(5, 6), configuration="low")
    whole = view_as_mapping(left)
    assert whole["judge"] == 3
    assert whole["usage"] == {
        "cached": 9, "input_tokens": 0, "output_tokens": 6, "total_tokens": 11,
    }  # fmt: skip
    assert view_as_mapping(Trial(sample, "x", configuration="high"))["judge"] == 1


def test_looking_at_a_field_makes_it_the_output() -> None:
    """Its evaluators see the value as the output, and still the whole trial around it."""
    part = focus_on_field(trial({"text": "4"}), Field("text", "output.text"))
    assert part.output == "4"
    assert view_as_mapping(part)["output"] == {"text": "4"}
    again = focus_on_field(part, Field("topic", "topic"))
    assert (again.output, again.full_trial) == ("sums", trial({"text": "4"}))
    context = make_context(part, Field("other", "topic"))
    assert (context.field_name, context.value, context.output) == ("text", "4", {"text": "4"})
    with pytest.raises(FieldMissing, match=r"output\.words"):
        focus_on_field(trial({"text": "4"}), Field("words", "output.words"))


def test_without_a_field_a_trial_is_seen_through_the_default_field() -> None:
    """With the recorded baseline of the sample, and no other epochs."""
    context = make_context(trial(), Field())
    assert (context.value, context.baseline_value, context.epochs) == ("4", "5", ())


def test_a_baseline_configuration_replaces_the_recorded_baseline() -> None:
    """If its trial failed, there is no baseline."""
    other = trial("vier", configuration="base")
    compared = make_trial_view(trial(), is_compared=True, baseline=other)
    assert make_context(compared, Field()).baseline_value == "vier"
    failed = trial(None, error=Failure("ValueError", "no"))
    for baseline in (failed, None):
        compared = make_trial_view(trial(), is_compared=True, baseline=baseline)
        assert make_context(compared, Field()).baseline_value is None


def test_epochs_that_failed_have_no_value() -> None:
    """All epochs are listed in order; failed ones, or those without the field, are None."""
    failed = trial(None, error=Failure("ValueError", "no"))
    repeated = make_trial_view(trial("c"), epochs=(trial("a"), failed, trial("c")), baseline_epochs=(trial(1),))
    context = make_context(repeated, Field())
    assert (context.epochs, context.baseline_epochs) == (("a", None, "c"), (1,))
    assert make_context(repeated, Field("tokens", "usage.total_tokens")).epochs == (None,) * 3


def test_field_values_never_fail() -> None:
    """Missing or unreadable values are left out."""

    class Odd:
        @property
        def broken(self) -> int:
            raise RuntimeError("not today")

    left = trial(Odd(), usage=Usage(3, 4))
    repeated = make_trial_view(left, epochs=(trial(), left))
    fields = {"broken": "output.broken", "tokens": "usage.total_tokens", "topic": "topic", "no": "x"}
    assert field_values(repeated, fields) == ({"tokens": 7, "topic": "sums"}, {})
    values, deltas = field_values(trial(usage=Usage(3, 4)), {"tokens": "usage.total_tokens", "out": "output"})
    assert (values, deltas) == ({"tokens": 7, "out": "4"}, {})
    numbered = Trial(Sample("1", "", metadata={"baseline_output": 4}), 5)
    assert field_values(numbered, {"out": "output"})[1]["out"].percentage == 25.0


@each_row(
    ("name", "better"),
    [
        ("usage.total_tokens", False), ("latency_ms", False), ("totalCost", False),
        ("error_rate", False), ("latency_score", True), ("tokens_per_second", True),
        ("cost_per_request", False), ("output.coherence", True), ("f1", True),
        ("temperature", None), ("output", None), ("", None),
    ],
)  # fmt: skip
def test_the_better_direction_follows_from_the_name(name: str, better: bool | None) -> None:
    """From the last word that implies one, otherwise None."""
    assert higher_is_better(name) is better


CALLED = st.fixed_dictionaries(
    {},
    optional={
        "usage": st.just({"total_tokens": 999, "input_tokens": 998}),
        "latency_ms": st.just(999.0),
        "session": st.just({"turns": 999}),
        "configuration": st.just({"model": "recorded", "name": "recorded"}),
        "output": st.sampled_from(["x", "recorded"]),
        "recorded": st.just({"low": {"output": "recorded", "usage": {"total_tokens": 997}}}),
        "topic": st.just("sums"),
    },
)


@given(CALLED, st.sampled_from([None, Usage(5, 6)]), st.sampled_from(["default", "low"]))
def test_metadata_does_not_override_a_call(metadata: dict[str, Any], usage: Usage | None, configuration: str) -> None:
    """Usage, latency and configuration come from the trial."""
    sample: Sample[str, str] = Sample("1", "", metadata=metadata)
    trial = Trial(sample, "x", latency_ms=12.5, usage=usage, configuration=configuration)
    whole = view_as_mapping(trial)
    assert whole["latency_ms"] == 12.5
    assert whole["configuration"] == {"name": configuration}
    assert whole["output"] == "x"
    assert ("usage" in whole) is (usage is not None)
    if usage is not None:
        assert whole["usage"]["total_tokens"] == 11
    assert whole.get("topic") == metadata.get("topic")
    assert "session" not in whole
