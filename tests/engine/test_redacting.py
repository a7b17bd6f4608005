"""Redaction: evaluators see secrets, but no secret is stored."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from proctor import (
    EvalReport,
    EvalRequest,
    InMemoryMailbox,
    JSONReporter,
    MarkdownReporter,
    Score,
    SQLiteHistory,
    evaluate,
    evaluator,
    rescore,
)
from proctor.core.redaction.redact import Redaction
from proctor.engine.redaction import (
    MAX_QUEUED_CHARACTERS,
    BackgroundQueue,
    RedactingWriter,
    create_redaction,
    redact_metadata,
    redacting_writer,
)
from proctor.errors import ConfigError, RunStopped
from proctor.records import codec
from proctor.records.run import RunMetadata, RunOptions
from proctor.records.session import ToolCall
from proctor.records.trial import Configuration, Delivery, EvalResult, PositionedResult, Reply, Trial, Verdict
from proctor.sessions.current import record
from proctor.wiring.dispatch import collect, submit
from proctor.wiring.prepare import Evaluation

KEY = "AKIA" + "Z7QW2MKX5RTB6PLN"
MARK = "[secret: aws access key]"
MAIL = "ann.lee@example.com"
OWN = "hunter2hunter"
# What targets were called with; not bound into them, for that would make each another target.
CALLS: list[Any] = []


@pytest.fixture(autouse=True)
def no_calls_yet() -> None:
    CALLS.clear()


def saved(folder: Path) -> bytes:
    """Everything that lies in a folder."""
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


def told(report: EvalReport) -> str:
    """A report as a program and as a person reads it."""
    return JSONReporter().generate(report) + MarkdownReporter().generate(report)


@evaluator(pure=True)
def leaks(output: Any) -> Score:
    """Passes if it sees the key, and quotes it."""
    seen = KEY in str(output)
    return Score(float(seen), seen, f"found {output}", {"quote": [f"it is {output}"]})


def test_evaluators_see_secrets_that_are_not_stored(tmp_path: Path) -> None:
    """In input, expected, metadata, output, session, error, traceback, reason, details and tags."""

    def target(question: str) -> str:
        record(ToolCall("look_up", {"with": [KEY]}, result=f"got {KEY}"))
        if question == "fail":
            raise RuntimeError(f"refused: {KEY}")
        return f"the key is {KEY}"

    samples = [
        {"id": "a", "input": f"say {KEY}", "expected": KEY, "metadata": {"more": {KEY: [KEY]}}},
        {"id": "b", "input": "fail"},
    ]
    report = evaluate(
        target, samples, leaks, tags={"why": f"with {KEY}"}, history=tmp_path / "history.db", progress=False
    )
    assert report.counts.passed == 1
    assert report.metadata is not None
    assert report.metadata.redacted["aws access key"] >= 7
    (warning,) = report.metadata.warnings
    assert warning.startswith("redacted before storing: ")
    first, second = report.results
    assert first.output == f"the key is {MARK}"
    assert first.trial.sample.expected == MARK
    assert first.scores["leaks"].details == {"quote": [f"it is the key is {MARK}"]}
    assert second.error == f"RuntimeError: refused: {MARK}"
    assert MARK in told(report)
    assert KEY not in told(report)
    assert KEY.encode() not in saved(tmp_path)


def test_a_run_without_secrets_says_nothing_of_it(tmp_path: Path) -> None:
    """No count and no warning where nothing was taken out."""
    report = evaluate(str.upper, [{"id": "1", "input": "a"}], leaks, history=tmp_path / "h.db", progress=False)
    assert report.metadata is not None
    assert report.metadata.redacted == {}
    assert report.metadata.warnings == ()


@pytest.mark.parametrize(
    ("redact", "output"),
    [("secrets", f"{MAIL} {MARK}"), ("personal", f"[personal: email] {MARK}"), ("nothing", f"{MAIL} {KEY}")],
)
def test_redaction_can_be_chosen(redact: Any, output: str) -> None:
    """Secrets by default, personal data too, or nothing; the choice is stored with the run."""
    report = evaluate(
        lambda _: f"{MAIL} {KEY}", [{"id": "1", "input": 1}], leaks, redact=redact, history=False, progress=False
    )
    assert report.results[0].output == output
    assert report.metadata is not None
    assert report.metadata.options.redact == redact


def test_an_unknown_redaction_is_refused() -> None:
    """The error lists the choices."""
    with pytest.raises(ConfigError, match="redact must be 'secrets', 'personal' or 'nothing', got 'all'"):
        evaluate(str, [{"id": "1", "input": 1}], leaks, redact="all", history=False)  # type: ignore[arg-type]


def test_options_reach_the_target_but_not_the_history(tmp_path: Path) -> None:
    """By name, whatever they look like; and the run can be resumed as the same one."""

    def target(question: str, api_key: str = "", max_tokens: int = 0) -> str:
        CALLS.append((api_key, max_tokens))
        if question == "b" and len(CALLS) < 3:
            raise RuntimeError("not yet")
        return KEY

    def run(**more: Any) -> EvalReport:
        return evaluate(
            target,
            [{"id": "a", "input": "a"}, {"id": "b", "input": "b"}],
            leaks,
            configurations={"one": {"api_key": OWN, "max_tokens": 7}},
            history=tmp_path / "h.db",
            concurrency=1,
            name="r",
            progress=False,
            **more,
        )

    with pytest.raises(RunStopped):
        run(on_error="raise")
    report = run(resume=True, retry_errors=True)
    assert CALLS == [(OWN, 7)] * 3
    assert report.metadata is not None
    (configuration,) = report.metadata.configurations
    hidden = "[secret: assigned secret]"
    assert configuration.options == {"api_key": hidden, "max_tokens": 7}
    # Output, reason and quote of two results; the option is counted once.
    assert report.metadata.redacted == {"aws access key": 6, "assigned secret": 1}
    assert [text for text in report.metadata.warnings if "redacted" in text] == [
        "redacted before storing: 1 assigned secret, 6 aws access key"
    ]
    assert OWN.encode() not in saved(tmp_path)


def test_ids_and_names_are_not_redacted() -> None:
    """They identify results."""
    report = evaluate(
        lambda _: KEY, [{"id": KEY, "input": "x"}], leaks, configurations={KEY: {}}, history=False, progress=False
    )
    (result,) = report.results
    assert (result.sample_id, result.trial.configuration, result.output) == (KEY, KEY, MARK)


def test_an_output_with_a_secret_is_not_cached(tmp_path: Path) -> None:
    """It would be scored without it the next time."""

    def target(question: str) -> str:
        CALLS.append(question)
        return KEY if question == "key" else "nothing"

    for _ in range(2):
        report = evaluate(
            target,
            [{"id": name, "input": name} for name in ("key", "other")],
            leaks,
            cache=True,
            history=tmp_path / "h.db",
            progress=False,
        )
        assert [result.passed for result in report.results] == [True, False]
    assert sorted(CALLS) == ["key", "key", "other"]
    assert KEY.encode() not in saved(tmp_path)


def test_rescoring_sees_redacted_outputs_and_says_so(tmp_path: Path) -> None:
    """The secrets are not stored."""
    where = tmp_path / "h.db"
    first = evaluate(lambda _: KEY, [{"id": "1", "input": "x"}], leaks, history=where, progress=False)
    again = rescore(first.run_id, leaks, history=where, progress=False)
    assert (first.pass_rate, again.pass_rate) == (1.0, 0.0)
    assert again.metadata is not None
    assert again.metadata.redacted == {}
    (warning,) = again.metadata.warnings
    assert warning == (
        f"run {first.run_id} was stored without 3 values (secrets or personal data); "
        "evaluators see placeholders instead"
    )


def test_an_output_that_json_cannot_hold_is_redacted_as_it_is_kept() -> None:
    """What an object says of itself is a text like any other."""

    class Odd:
        def __repr__(self) -> str:
            return f"Odd({KEY})"

    report = evaluate(
        lambda question: Reply({"it": Odd(), "no": float("nan")} if question else Odd()),
        [{"id": "a", "input": 1}, {"id": "b", "input": 0}],
        leaks,
        history=False,
        progress=False,
    )
    assert KEY not in told(report)
    assert report.results[1].output["$repr"] == f"Odd({MARK})"


def test_a_warning_that_quotes_an_error_is_redacted(tmp_path: Path) -> None:
    """Warnings are stored too."""

    def listen(_: object) -> None:
        raise RuntimeError(KEY)

    report = evaluate(
        str.upper, [{"id": "1", "input": "x"}], leaks, history=tmp_path / "h.db", on_progress=listen, progress=False
    )
    assert report.metadata is not None
    assert any(MARK in text for text in report.metadata.warnings)
    assert KEY.encode() not in saved(tmp_path)


def test_results_of_workers_are_redacted_where_they_are_collected(tmp_path: Path) -> None:
    """The message still holds the key; what is stored of it does not."""
    history = SQLiteHistory(tmp_path / "h.db")
    requests: InMemoryMailbox[EvalRequest[Any, Any]] = InMemoryMailbox("r", EvalRequest)
    run = submit(Evaluation(str.upper, [{"id": "1", "input": "x"}], [leaks]), requests, history)
    (request,) = requests.receive(max_messages=1)
    delivery = Delivery(run.run_id, request.body.request_id)
    request.reply(EvalResult(Trial(request.body.sample, KEY), {"leaks": Score(1.0, True)}, {}, delivery))
    request.acknowledge()
    report = collect(run.run_id, requests, history, timeout=5)
    assert [result.output for result in report.results] == [MARK]
    assert report.metadata is not None
    assert report.metadata.redacted == {"aws access key": 1}
    assert "redacted before storing: 1 aws access key" in report.metadata.warnings
    history.close()
    assert KEY.encode() not in saved(tmp_path)


def test_of_many_results_at_once_each_loses_its_own_secret(tmp_path: Path) -> None:
    """Results are checked together and separated again; none is lost."""
    samples = [{"id": str(number), "input": number} for number in range(300)]

    async def target(number: int) -> str:
        return KEY if number % 100 == 7 else f"number {number}"

    report = evaluate(target, samples, "contains", history=tmp_path / "h.db", progress=False)
    outputs = [MARK if n % 100 == 7 else f"number {n}" for n in range(300)]
    assert [result.output for result in report.results] == outputs
    assert report.metadata is not None
    assert report.metadata.redacted == {"aws access key": 3}


# Many names that say secret, and nothing under them: what takes longest to look through.
LONG = "\n".join(f'{{"time": {n}, "max_tokens": 100, "token": "abc", "id": "req_{n:020d}"}}' for n in range(4_000))


def test_redacting_a_large_output_does_not_block_the_loop(tmp_path: Path) -> None:
    """Each output is stored without its secret."""
    begun = time.perf_counter()
    Redaction(personal=True).text(LONG)
    whole = time.perf_counter() - begun
    gaps = [0.0]

    async def target(number: int) -> Any:
        if number:
            return f"{LONG}{KEY}" if number % 2 else {"log": [LONG, KEY]}
        end = before = time.perf_counter()
        while before < end + 2 * whole:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            gaps.append(now - before)
            before = now
        return "watched"

    report = evaluate(
        target,
        [{"id": str(number), "input": number} for number in range(3)],
        "contains",
        redact="personal",
        concurrency=3,
        cache=True,
        history=tmp_path / "h.db",
        progress=False,
    )
    assert [result.output for result in report.results] == [*("watched", f"{LONG}{MARK}"), {"log": [LONG, MARK]}]
    assert report.metadata is not None
    assert report.metadata.redacted == {"aws access key": 2}
    # Held up for each large output, it would come round three or four times.
    assert len(gaps) > 10
    assert KEY.encode() not in saved(tmp_path)


def test_redacting_large_outputs_causes_no_timeouts() -> None:
    """Although redacting all of them takes longer than a timeout."""

    async def target(_: str) -> str:
        await asyncio.sleep(0.05)
        return LONG

    samples = [{"id": str(number), "input": "x"} for number in range(30)]
    report = evaluate(target, samples, "contains", timeout=0.6, history=False, concurrency=10, progress=False)
    assert report.counts.error == 0


def test_more_than_can_be_looked_at_is_waited_for() -> None:
    """The queue is bounded, because it is in memory; errors are raised, not lost."""

    async def work() -> None:
        done: list[int] = []
        go = threading.Event()
        aside = BackgroundQueue()

        def first() -> Any:
            go.wait()
            return lambda: done.append(1)

        def failing() -> Any:
            return 1 // 0

        aside.submit(MAX_QUEUED_CHARACTERS, first)
        assert not aside.is_full()
        aside.submit(1, lambda: lambda: done.append(2))
        assert aside.is_full()
        go.set()
        while len(done) < 2:
            await asyncio.sleep(0.001)
        assert done == [1, 2]
        aside.submit(1, failing)
        await asyncio.sleep(0.05)
        with pytest.raises(ZeroDivisionError):
            aside.is_full()
        aside.submit(1, lambda: lambda: done.append(3))
        aside.close()
        assert done == [1, 2, 3]

    asyncio.run(work())


def test_clusters_stay_apart_when_their_names_are_taken_out() -> None:
    """Twenty people are twenty clusters, the same in every run, without their addresses."""
    samples = [
        {"id": str(n), "input": "x", "metadata": {"cluster": f"user{n % 20}@example.com", "m": MAIL}} for n in range(60)
    ] + [{"id": "plain", "input": "x", "metadata": {"cluster": "sums"}}]
    runs = [
        evaluate(str.upper, samples, leaks, redact=redact, history=False, progress=False)
        for redact in ("secrets", "personal", "personal")
    ]
    plain, first, second = ([result.trial.sample.cluster for result in run.results] for run in runs)
    assert first == second
    assert first[-1] == plain[-1] == "sums"
    assert len(set(first)) == len(set(plain)) == 21
    assert [first.index(name) for name in first] == [plain.index(name) for name in plain]
    assert re.fullmatch(r"\[personal: email\] [a-p]{12}", str(first[0]))
    assert runs[1].results[0].trial.sample.metadata["m"] == "[personal: email]"
    rates = [run.metrics["pass_rate"] for run in runs]
    assert rates[0] == rates[1]
    again = Redaction(personal=True)
    assert [again.text(str(name)) for name in first] == first


def test_without_a_redaction_the_writer_is_the_historys_own() -> None:
    """Without a redaction, results go directly to the history's writer."""

    class Writer:
        def add(self, position: int, result: EvalResult, verdict: Verdict | None = None) -> None:
            """Take it."""

        def add_batch(self, batch: Sequence[PositionedResult]) -> None:
            """Take them."""

        def cache_output(self, key: str, created_at: str, reply: bytes) -> None:
            """Take it."""

        def is_lagging(self) -> bool:
            return False

    writer = Writer()
    assert create_redaction(RunOptions(redact="nothing")) is None
    with redacting_writer(writer, None) as kept:
        assert kept is writer
    with redacting_writer(writer, Redaction()) as kept:
        assert isinstance(kept, RedactingWriter)


def test_a_value_that_cannot_be_stored_is_refused_by_the_history() -> None:
    """With its own error."""
    options = {"n": "\ud800"}
    run = RunMetadata("1", "n", datetime.now(UTC), configurations=(Configuration("c", options),))
    assert redact_metadata(run) is run


def test_a_run_of_an_older_proctor_can_be_shown(tmp_path: Path) -> None:
    """Runs from before have no counts and no provenance, and are read all the same."""
    old = b'{"run_id":"1","name":"n","started_at":"2026-01-01T00:00:00Z","options":{"epochs":2}}'
    run = codec.decode(old, RunMetadata)
    assert (run.redacted, run.provenance.code, run.options.redact) == ({}, "", "secrets")
    assert SQLiteHistory(tmp_path / "none.db").runs() == []
