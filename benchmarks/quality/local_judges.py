"""Agreement of local models with people: as `llm_judge` on EVOUNA, and as preferences on LLMBar.

EVOUNA: one answer to each of n different questions of TriviaQA, from five systems in turn, the
first n/2 that people call right and the first n/2 that they call wrong. A constant verdict agrees
on half of them. The counts belong in `proctor.metrics.warnings.MEASUREMENTS`.

LLMBar: every pair is shown in both orders, and only a preference that is the same in both counts.
A coin agrees on a quarter of the pairs, a judge that always chooses the same position on none.

Settings: PROCTOR_JUDGE_MODELS (names, separated by commas), PROCTOR_JUDGE_ANSWERS (n of EVOUNA),
PROCTOR_JUDGE_PAIRS (pairs of each set of LLMBar); 0 leaves a part out. One request runs at a time,
because requests that run together change each other's last digits.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.quality.figure import Figure
from proctor import llm_judge
from proctor.core.stats.intervals import wilson_interval
from proctor.errors import CallFailed
from proctor.evaluators.bound_evaluator import attach
from proctor.evaluators.judges.pairwise import compare
from proctor.metrics.warnings import JudgeMeasurement
from proctor.models import weights
from proctor.models.connect import provider
from proctor.ports import ProviderAdapter
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import Trial

EVOUNA = "01_qa_reference/evouna_tq/TQ.json"
SYSTEMS = ("fid", "gpt35", "chatgpt", "gpt4", "newbing")
CRITERION = "The answer is factually right"
LLMBAR = "06_judge_llmbar"
SETS = ("Natural", "Adversarial_Neighbor")
MODELS = os.environ.get("PROCTOR_JUDGE_MODELS", "smollm2,qwen-judge").split(",")
ANSWERS = int(os.environ.get("PROCTOR_JUDGE_ANSWERS", "60"))
# A pair takes two requests, and a minute or two with qwen-judge on one core.
PAIRS = int(os.environ.get("PROCTOR_JUDGE_PAIRS", "20"))
# Long answers take minutes on a slow machine, and this benchmark does not measure speed.
REQUEST_SECONDS = 1200.0


class Answer(NamedTuple):
    """An answer to a question, a reference answer, and whether people call the answer right."""

    question: str
    reference: str
    text: str
    is_right: bool


class Pair(NamedTuple):
    """An instruction, two answers, and which of them people prefer: "a" or "b"."""

    instruction: str
    a: str
    b: str
    preferred: str


def measure(data: Path) -> Iterator[Figure]:
    """Return the agreement with people of every installed model, with its 95% interval."""
    available = [name for name in MODELS if weights.find(name) is not None]
    if not available:
        missing = weights.folder() / MODELS[0] / weights.CATALOGUE[MODELS[0]].files[0].name
        raise FileNotFoundError(2, "no weights", str(missing))
    for name in available:
        model = provider(f"local:{name}", concurrency=1, timeout=REQUEST_SECONDS)
        if ANSWERS:
            yield verdict_figure(name, asyncio.run(judge(model, read_answers(data, ANSWERS))))
        for part in SETS if PAIRS else ():
            pairs = read_pairs(data, part, PAIRS)
            yield preference_figure(name, part, asyncio.run(prefer(model, pairs)))


def verdict_figure(name: str, measurement: JudgeMeasurement) -> Figure:
    """Return the agreement of pass and fail with people; the note contains the counts."""
    low, high = measurement.interval
    note = f"n = {measurement.n}, {100 * low:.0f}–{100 * high:.0f}%; {measurement}"
    agreement = measurement.agreed / measurement.n
    return Figure(f"local:{name} agrees with people", measurement.data, agreement, "constant 0.500", note=note)


def preference_figure(name: str, part: str, outcomes: Sequence[str]) -> Figure:
    """Return the share of pairs on which a model prefers the same answer as people in both orders."""
    n, agreed = len(outcomes), outcomes.count("agreed")
    low, high = wilson_interval(agreed, n) or (0.0, 1.0)
    flips, unread = outcomes.count("flipped"), outcomes.count("unread")
    note = f"n = {n}, {100 * low:.0f}–{100 * high:.0f}%; flips: {flips}, unread: {unread}"
    what = f"local:{name} prefers what people prefer"
    return Figure(what, f"LLMBar {part}", agreed / n, "coin 0.250", note=note)


def read_answers(data: Path, n: int) -> list[Answer]:
    """Return n answers to different questions, alternately right and wrong."""
    rows = json.loads((data / EVOUNA).read_text(encoding="utf-8"))
    proper = [row for row in rows if not row["improper"]]
    answers = [
        Answer(
            row["question"],
            " or ".join(way.strip() for way in row["golden_answer"].split("/") if way.strip()),
            row[f"answer_{system}"],
            row[f"judge_{system}"],
        )
        for row, system in zip(proper, itertools.cycle(SYSTEMS), strict=False)
    ]
    right = [answer for answer in answers if answer.is_right]
    wrong = [answer for answer in answers if not answer.is_right]
    return [answer for both in zip(right, wrong, strict=False) for answer in both][: n // 2 * 2]


def read_pairs(data: Path, part: str, n: int) -> list[Pair]:
    """Return the first n pairs of one set of LLMBar."""
    rows = json.loads((data / LLMBAR / f"{part}.dataset.json").read_text(encoding="utf-8"))
    preferred = {1: "a", 2: "b"}
    return [Pair(row["input"], row["output_1"], row["output_2"], preferred[row["label"]]) for row in rows[:n]]


async def judge(model: Any, answers: Sequence[Answer]) -> JudgeMeasurement:
    """Count the verdicts of `llm_judge` with its default settings on answers that people labeled."""
    evaluator = attach(llm_judge(model, CRITERION))
    passed, unread = {True: 0, False: 0}, {True: 0, False: 0}
    for number, answer in enumerate(answers):
        sample = Sample(str(number), answer.question, answer.reference)
        score: Score = await evaluator.score(Trial(sample, answer.text))
        passed[answer.is_right] += score.passed is True
        unread[answer.is_right] += score.passed is None
        verdict = f"{score.status} {score.passed}"
        show_progress(f"{number + 1} right={answer.is_right} {verdict}: {score.reason[:200]}")
    right = sum(answer.is_right for answer in answers)
    counts = (right, passed[True], unread[True], len(answers) - right, passed[False], unread[False])
    return JudgeMeasurement("EVOUNA TQ", *counts)


async def prefer(model: ProviderAdapter, pairs: Sequence[Pair]) -> list[str]:
    """Return for each pair "agreed", "disagreed", "flipped" (no preference) or "unread"."""
    outcomes = []
    for number, pair in enumerate(pairs):
        try:
            preference = await compare(model, pair.a, pair.b, input=pair.instruction)
        except CallFailed as error:
            outcome, reason = "unread", str(error)
        else:
            agreed = "agreed" if preference.winner == pair.preferred else "disagreed"
            outcome, reason = "flipped" if preference.flipped else agreed, ""
        show_progress(f"pair {number + 1} {outcome}: {reason[:200]}")
        outcomes.append(outcome)
    return outcomes


def show_progress(line: str) -> None:
    print(" ".join(line.split()), file=sys.stderr, flush=True)
