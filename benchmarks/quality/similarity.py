"""Agreement of semantic_similarity with people on whether an answer is right.

EVOUNA: answers of five systems to questions of TriviaQA, each with several accepted spellings of
the right answer. The threshold is the evaluator's default; nothing was chosen on this data.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.quality.figure import Figure
from proctor.core.stats.agreement import cohen_kappa
from proctor.evaluators.bound_evaluator import BoundEvaluator, attach
from proctor.evaluators.combination import any_of
from proctor.evaluators.matching import contains
from proctor.evaluators.text.quality import semantic_similarity
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import Trial

EVOUNA = "01_qa_reference/evouna_tq/TQ.json"
# Agreement and kappa of `contains` for these two systems.
REFERENCES = {"gpt4": (0.911, 0.631), "chatgpt": (0.922, 0.754)}
SYSTEMS = ("gpt4", "chatgpt")


class Answer(NamedTuple):
    """An answer, the accepted spellings of the right answer, and whether people call it right."""

    text: str
    right: list[str]
    is_right: bool


def measure(data: Path) -> Iterator[Figure]:
    """Return agreement and kappa of the evaluator with its default settings, for each system."""
    evaluator = attach(semantic_similarity())
    for system in SYSTEMS:
        answers = list(read(data, system))
        passed = asyncio.run(verdicts(evaluator, answers))
        agreed, kappa = agreement(answers, passed)
        result, its_kappa = agreement(answers, [has_one(answer) for answer in answers])
        output = REFERENCES.get(system, (result, its_kappa))
        data_name = f"EVOUNA TQ, {system}"
        reference = f"contains {output[0]:.3f}"
        yield Figure("similarity agreement", data_name, agreed, reference, "> contains", agreed > output[0])
        reference = f"contains {output[1]:.3f}"
        yield Figure("similarity kappa", data_name, kappa, reference, "> contains", kappa > output[1])


def read(data: Path, system: str) -> Iterator[Answer]:
    """Return the answers of one system to valid questions."""
    for row in json.loads((data / EVOUNA).read_text(encoding="utf-8")):
        if not row["improper"]:
            right = [way for way in row["golden_answer"].split("/") if way.strip()]
            yield Answer(row[f"answer_{system}"], right, bool(row[f"judge_{system}"]))


async def verdicts(evaluator: BoundEvaluator, answers: Sequence[Answer]) -> list[bool]:
    """Return the verdict on each answer, as in a run."""
    trials = [Trial(Sample(str(number), None, answer.right), answer.text) for number, answer in enumerate(answers)]
    scores: list[Score] = list(await asyncio.gather(*map(evaluator.score, trials)))
    return [score.passed is True for score in scores]


def has_one(answer: Answer) -> bool:
    """Return the verdict of `contains` on each answer; one accepted spelling is enough."""
    ways = any_of(*(_with(way) for way in answer.right))
    return bool(ways(answer.text, answer.right).passed)


def agreement(answers: Sequence[Answer], passed: Sequence[bool]) -> tuple[float, float]:
    """Return the agreement with people, and kappa."""
    people = [answer.is_right for answer in answers]
    same = sum(item == other for item, other in zip(people, passed, strict=True))
    return same / len(people), cohen_kappa(people, list(passed)) or 0.0


def _with(way: str) -> BoundEvaluator:
    return attach(lambda output: contains(output, way, case_sensitive=False), name="contains")
