"""Whatever a result holds, it can be written, and what was written can be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proctor.evaluators.session import tool_called
from proctor.history.payload import decode_result, encode_result
from proctor.history.sqlite import SQLiteHistory
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import CustomEvent, Message, ModelCall, Session, ToolCall, Usage
from proctor.records.trial import EvalResult, Failure, Trial
from proctor.sessions.current import record
from proctor.wiring.evaluate import evaluate
from tests.records.examples import run_of, scored
from tests.tables import each_row


class Silent:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


def deep() -> Any:
    """A list within a list, deeper than any reader goes."""
    nested: Any = "core"
    for _ in range(20_000):
        nested = [nested]
    return nested


def endless() -> Any:
    table: dict[str, Any] = {}
    table["self"] = table
    return table


STRANGE: list[Any] = [
    deep(),
    endless(),
    10**5_000,
    2**100,
    "half a character: \ud800",
    {"\udfff": 1},
    {(1, 2): {None: 3}},
    float("nan"),
    b"\xff",
    {1, "a", None},
    Silent(),
    [Silent()],
    object(),
    lambda: None,
    (number for number in range(3)),
    ValueError("\ud800"),
]


@each_row("value", STRANGE, ids=range(len(STRANGE)))
def test_any_value_in_any_field_is_stored_in_some_form(value: Any) -> None:
    """As output, input, expected value, metadata, detail or event: the rest stays as it was."""
    whole = scored("s", 1.0)
    session = Session()
    session.append(value)
    for result in (
        msgspec.structs.replace(whole, trial=Trial(Sample("s", "?"), value)),
        EvalResult(Trial(Sample("s", value, value, {"cluster": "doc", "odd": value}), "!")),
        EvalResult(Trial(Sample("s", "?"), "!"), {"exact": Score(0.5, True, "", {"odd": value})}),
        EvalResult(Trial(Sample("s", "?"), "!", session=session), {"exact": Score(0.5, True)}),
    ):
        data, kept = encode_result(result)
        back = decode_result(data)
        assert back.sample_id == kept.sample_id == "s"
        assert back.trial.sample.cluster == result.trial.sample.cluster
        assert back.verdict() == kept.verdict() == result.verdict()


def test_values_that_cannot_be_stored_are_described() -> None:
    """The repr is stored, shortened if necessary, or at least the type."""
    outputs = [encode_result(EvalResult(Trial(Sample("s", "?"), value)))[1].output for value in STRANGE[:2]]
    assert [output["$type"] for output in outputs] == ["list", "dict"]
    assert "which cannot be shown" in outputs[0]["$repr"]
    assert outputs[1]["$repr"] == "{'self': {...}}"
    chain: Any = ["x" * 20_000]
    chain.append(chain)
    long = encode_result(EvalResult(Trial(Sample("s", "?"), chain)))[1].output
    assert len(long["$repr"]) == 10_000


KEPT: list[Any] = [10**5_000, 2**100, "\ud800" * 20_000, {"\udfff": 1}, b"\xff"]


@pytest.mark.parametrize("value", KEPT, ids=range(len(KEPT)))
def test_values_that_json_lacks_are_restored(value: Any) -> None:
    """Large numbers and single surrogates are restored."""
    assert decode_result(encode_result(EvalResult(Trial(Sample("s", "?"), value)))[0]).output == value


ODD_PARTS: list[dict[str, Any]] = [
    {"session": Session([Message("human", "hi")])},  # type: ignore[arg-type]
    {"session": Session([ToolCall("search", None)])},  # type: ignore[arg-type]
    {"session": Session([ModelCall("m", None)])},  # type: ignore[arg-type]
    {"session": Session([CustomEvent("deep", deep())])},
    {"usage": Usage("many")},  # type: ignore[arg-type]
    {"usage": Usage(1.5)},  # type: ignore[arg-type]
    {"latency_ms": float("nan")},
    {"latency_ms": float("inf")},
    {"latency_ms": "slow"},
    {"error": Failure("KeyError", "\ud800", "\udfff")},
]


@pytest.mark.parametrize("part", ODD_PARTS, ids=range(len(ODD_PARTS)))
def test_ruling_2_a_part_of_a_wrong_type_costs_only_itself(part: dict[str, Any], tmp_path: Path) -> None:
    """Ruling 2: a target that fills in nonsense does not make its run unreadable."""
    history = SQLiteHistory(tmp_path / "h.db")
    history.begin(run_of("r"))
    trial = msgspec.structs.replace(scored("a").trial, **part)
    with history.writer("r") as writer:
        writer.add(0, EvalResult(trial, {"exact": Score(1.0, True)}))
        writer.add(1, scored("b", 0.5))
    first, second = history.results("r")
    assert second == scored("b", 0.5)
    assert first.sample_id == "a"
    assert first.success == (trial.error is None)
    if first.success:
        assert first.output == "!"
        assert first.scores == {"exact": Score(1.0, True)}
    latencies = history.results("r").latencies()
    assert len(latencies.values) == (1 if "latency_ms" in part else 2)
    assert len(latencies.values) + latencies.skipped == 2
    history.close()


def test_details_that_cannot_be_stored_are_replaced() -> None:
    """Such a score keeps its value and verdict; one without a verdict stays without."""
    details = {"odd": deep(), "\udfff": 1}
    for made in (Score(0.5, True, "half: \ud800", details), Score.skipped("half: \ud800", details)):
        data, _ = encode_result(EvalResult(Trial(Sample("s", "\ud800"), "!"), {"exact": made}))
        back = decode_result(data).scores["exact"]
        assert (back.value, back.passed, back.status) == (made.value, made.passed, made.status)
        assert back.reason == "half: \\ud800"
        assert list(back.details) == ["odd", "\\udfff"]


def test_metadata_that_is_not_a_mapping_is_stored_as_a_value() -> None:
    """Even a sample that no dataset would have let pass is stored."""
    for metadata, kept in ((None, {}), ([1], {"value": [1]})):
        sample: Any = Sample("s", "\ud800", metadata=metadata)  # type: ignore[arg-type]
        assert decode_result(encode_result(EvalResult(Trial(sample, "!")))[0]).trial.sample.metadata == kept


def test_a_very_large_number_of_tokens_is_kept(tmp_path: Path) -> None:
    """The result keeps it to the last digit, the column of numbers as a float."""
    history = SQLiteHistory(tmp_path / "h.db")
    history.begin(run_of("r"))
    usage = Usage(input_tokens=2**64)
    with history.writer("r") as writer:
        writer.add(0, EvalResult(Trial(Sample("a", "?"), "!", usage=usage)))
    assert history.results("r")[0].trial.usage == usage
    assert list(history.results("r").tokens().values) == [2.0**64]
    history.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(), st.text())
def test_a_valid_result_is_stored_unchanged(name: str, output: str) -> None:
    """What can be written comes back equal, and the very same result is passed on."""
    result = EvalResult(Trial(Sample(name, output), output, usage=Usage(1), session=Session()))
    data, kept = encode_result(result)
    assert kept is result
    assert decode_result(data) == result


@pytest.mark.parametrize("part", ODD_PARTS[:4], ids=range(4))
def test_an_event_that_cannot_be_stored_costs_only_itself(part: dict[str, Any]) -> None:
    """Other events are unchanged, and the content of the invalid event is stored as far as possible."""
    (odd,) = part["session"]
    sound = ToolCall("open", {"page": 1}, result="ok")
    session = Session([sound, odd, Message("user", "hi")])
    data, kept = encode_result(EvalResult(Trial(Sample("s", "?"), "!", session=session)))
    back = decode_result(data).trial.session
    assert back is not None
    assert back == kept.trial.session
    assert (back.events[0], back.events[2]) == (sound, Message("user", "hi"))
    stored = back.events[1]
    assert isinstance(stored, CustomEvent)
    assert stored.kind == (odd.kind if isinstance(odd, CustomEvent) else type(odd).__name__)
    if isinstance(odd, ToolCall):
        assert stored.data["name"] == "search"


@pytest.mark.parametrize("length", [10, 200_000])
@pytest.mark.parametrize("secret", ["", "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"])
def test_a_session_that_cannot_be_stored_is_a_warning_of_the_run(length: int, secret: str, tmp_path: Path) -> None:
    """Neither silence nor a lost sample; also where the result is looked at in a thread."""

    def target(text: str) -> str:
        record(ToolCall("search", "not a mapping"))  # type: ignore[arg-type]
        record(ToolCall("open"))
        return "x" * length + " " + secret

    history = SQLiteHistory(tmp_path / "h.db")
    report = evaluate(target, [{"id": "1", "input": "?"}], tool_called("open"), history=history)
    assert report.metadata is not None
    (warning,) = [one for one in report.metadata.warnings if "cannot be stored" in one]
    assert "ToolCall" in warning
    assert report.results[0].scores["tool_called"].passed is True
    (stored,) = history.results(report.run_id)
    assert stored.trial.session is not None
    assert [call.name for call in stored.trial.session[ToolCall]] == ["open"]
    history.close()
