"""A judged run, recorded and replayed: the same reports to the byte, without calls."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from proctor import EvalReport, Sample, SQLiteHistory
from proctor.engine.start import RunControls
from proctor.evaluators.llm import llm_judge
from proctor.models.connect import provider
from proctor.models.model_calls import aask
from proctor.reports.json import JSONReporter
from proctor.reports.markdown import MarkdownReporter
from proctor.testing import Fault, ModelServer, RecordedRequest, ScriptedReply
from proctor.wiring.evaluate import execute
from proctor.wiring.prepare import Evaluation
from tests.support import ManualClock, samples

MODELS: dict[str, Any] = {}


async def target(text: str) -> str:
    """Asks whatever model the test has put in place."""
    return (await aask(MODELS["target"], f"Shout {text}", temperature=0.0)).text


def _answer(asked: RecordedRequest) -> ScriptedReply:
    if asked.schema is None:
        return ScriptedReply(asked.text.removeprefix("Shout ").upper())
    rating = "poor" if "WORD 3" in asked.text else "excellent"
    return ScriptedReply(f'{{"reason": "as expected", "rating": "{rating}"}}')


def _misbehave(asked: RecordedRequest) -> Fault | None:
    # Sample 4 cannot be answered; sample 5 has no readable verdict.
    if asked.text == "Shout word 4":
        return Fault.status(400)
    if asked.schema is not None and "WORD 5" in str(asked.messages):
        return Fault.edit_json(lambda answer: _say(answer, "no verdict at all"))
    return None


def _say(answer: dict[str, Any], text: str) -> None:
    answer["choices"][0]["message"]["content"] = text


def run(folder: Path, target_model: Any, judge_model: Any) -> EvalReport:
    MODELS["target"] = provider(target_model)
    judge = llm_judge(provider(judge_model), "the words are the same")
    evaluation = Evaluation(target, samples(8), judge, name="exam", options={"concurrency": 3})
    history = SQLiteHistory(folder)
    return asyncio.run(execute(evaluation, history, RunControls(), clock=ManualClock()))


def written(report: EvalReport) -> tuple[str, str]:
    """Both reports in full, without what no two runs share: the id and the place of each run."""
    texts = JSONReporter().generate(report), MarkdownReporter().generate(report)
    item, two = (text.replace(report.run_id, "RUN") for text in texts)
    return item, two


@pytest.mark.parametrize("apart", [True, False])
def test_a_judged_run_replays_to_the_byte(tmp_path: Path, apart: bool) -> None:
    """Answers, a failed call and an unreadable verdict: recorded once, replayed twice, no call."""
    tapes = [tmp_path / "target.jsonl", tmp_path / "judge.jsonl"] if apart else [tmp_path / "all"] * 2
    with ModelServer(_answer, choose_fault=_misbehave) as server:
        live = [f"{server.url}/v1#{name}" for name in ("pupil", "judge")]
        models = [
            {"model": f"record:{tape}", "of": {"model": address, "retries": 0}}
            for tape, address in zip(tapes, live, strict=True)
        ]
        first = written(run(tmp_path / "1.db", *models))
        count = len(server.calls)
        replays = [{"model": f"replay:{tape}", "of": address} for tape, address in zip(tapes, live, strict=True)]
        again = [written(run(tmp_path / f"{n}.db", *replays)) for n in (2, 3)]
        assert len(server.calls) == count == 8 + 7 + 1
    assert again == [first, first]
    assert '"errors": 2' in first[0]
    assert re.search(r"400", first[0])


def test_a_changed_request_is_reported_with_its_difference(tmp_path: Path) -> None:
    """With another criterion, every judgement fails with the field that changed."""
    tape = tmp_path / "judge.jsonl"
    with ModelServer(_answer) as server:
        model = {"model": f"record:{tape}", "of": f"{server.url}/v1#judge"}
        run(tmp_path / "1.db", lambda messages: "WORD", model)
        count = len(server.calls)
        MODELS["target"] = provider(lambda messages: "WORD")
        judge = llm_judge(f"replay:{tape}", "the words rhyme")
        evaluation = Evaluation(target, samples(2), judge, name="exam")
        history = SQLiteHistory(tmp_path / "2.db")
        report = asyncio.run(execute(evaluation, history, RunControls()))
        assert len(server.calls) == count
    for result in report.results:
        (score,) = result.scores.values()
        assert score.value is None
        assert "differs in messages." in score.reason
        # Not the mark of the fence, which differs as well.
        assert "rhyme" in score.reason


def test_equal_concurrent_requests_replay_to_the_byte(tmp_path: Path) -> None:
    """Two epochs of equal inputs, answered differently and in the reverse order."""
    tape, numbers = tmp_path / "target.jsonl", iter(range(100))

    async def pupil(prompt: str) -> str:
        number = next(numbers)
        await asyncio.sleep(0.02 * (5 - number % 6))
        return f"{prompt} {number}"

    def exam(name: str, model: Any) -> tuple[str, str]:
        MODELS["target"] = provider(model)
        data = [Sample(f"s{i}", "word", f"Shout word {i}") for i in range(3)]
        options = {"concurrency": 6, "epochs": 2}
        evaluation = Evaluation(target, data, "exact_match", name="exam", options=options)
        history = SQLiteHistory(tmp_path / name)
        return written(asyncio.run(execute(evaluation, history, RunControls(), clock=ManualClock())))

    first = exam("1.db", {"model": f"record:{tape}", "of": pupil})
    assert len(set(re.findall(r"Shout word \d+", first[0]))) == 6
    assert [exam(f"{n}.db", f"replay:{tape}") for n in (2, 3)] == [first, first]
