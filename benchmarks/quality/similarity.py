"""Agreement of semantic_similarity with people on whether an answer is right.

EVOUNA: answers of five systems to questions of TriviaQA, each with several accepted spellings of
the right answer. The threshold is the evaluator's default; nothing was chosen on this data.
"""

from __future__ import annotations

import asyncio
import csv
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.quality.figure import Figure
from benchmarks.quality.intervals import bootstrap, cohen_kappa, pearson, rate
from proctor.evaluators.bound_evaluator import BoundEvaluator, attach
from proctor.evaluators.combination import any_of
from proctor.evaluators.matching import contains
from proctor.evaluators.text.quality import semantic_similarity
from proctor.evaluators.tokenizer import split_words
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import Trial

NQ = "01_qa_reference/openqa_nq301"
EVOUNA = "01_qa_reference/evouna_tq/TQ.json"
# Agreement and kappa of `contains` for these two systems.
REFERENCES = {"gpt4": (0.911, 0.631), "chatgpt": (0.922, 0.754)}
SYSTEMS = ("gpt4", "chatgpt")
EVALUATOR = "semantic_similarity"
EVERY = int(os.environ.get("PROCTOR_QUALITY_EVERY", "1"))


class Answer(NamedTuple):
    """An answer, the accepted spellings of the right answer, and whether people call it right."""

    text: str
    right: list[str]
    is_right: bool


def measure(data: Path) -> Iterator[Figure]:
    """Return agreement and kappa of the evaluator with its default settings, for each system."""
    evaluator = attach(semantic_similarity())
    yield from agree_with_annotators(evaluator, data)
    for system in SYSTEMS:
        answers = list(read(data, system))[::EVERY]
        passed = asyncio.run(verdicts(evaluator, answers))
        agreed, kappa = agreement(answers, passed)
        contained = [has_one(answer) for answer in answers]
        baseline = REFERENCES[system] if EVERY == 1 else agreement(answers, contained)
        people = [answer.is_right for answer in answers]
        _, interval = rate([left == right for left, right in zip(people, passed, strict=True)])
        name = f"EVOUNA TQ, {system}"
        reference = f"contains {baseline[0]:.3f}"
        holds = agreed > baseline[0]
        yield Figure("agreement with people", name, agreed, reference, "> contains", holds, "", EVALUATOR, interval)
        reference = f"contains {baseline[1]:.3f}"
        interval = bootstrap(_kappa, people, passed)
        holds = kappa > baseline[1]
        yield Figure("kappa with people", name, kappa, reference, "> contains", holds, "", EVALUATOR, interval)


def agree_with_annotators(evaluator: BoundEvaluator, data: Path) -> Iterator[Figure]:
    """Return the correlation with the share of annotators of NQ301 who accept an answer, for us and for token F1."""
    answers, shares = read_annotated(data)
    trials = [Trial(Sample(str(number), None, answer.right), answer.text) for number, answer in enumerate(answers)]
    values = [score.value or 0.0 for score in asyncio.run(_score_all(evaluator, trials))]
    overlap = [max(token_f1(answer.text, right) for right in answer.right) for answer in answers]
    reference = f"token F1 {pearson(overlap, shares):.3f}"
    interval = bootstrap(pearson, values, shares)
    value = pearson(values, shares)
    holds = value >= 0.55
    yield Figure("Pearson with people", "NQ301", value, reference, ">= 0.55", holds, "", EVALUATOR, interval)


def read_annotated(data: Path) -> tuple[list[Answer], list[float]]:
    """Return the answers of NQ301, and for each the share of its annotators who accept it."""
    with (data / NQ / "NQ301_BEM.tsv").open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t")
        right = {row["Question"]: [way.strip() for way in row["Gold answers"].split("|")] for row in rows}
    answers, shares = [], []
    with (data / NQ / "NQ301_human.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            votes = [row[name] == "Yes" for name in ("annotator1", "annotator2", "annotator3") if row[name]]
            if row["Question"] in right and votes:
                answers.append(Answer(row["Model answer"], right[row["Question"]], row["Acceptable?"] == "Yes"))
                shares.append(sum(votes) / len(votes))
    return answers, shares


def token_f1(left: str, right: str) -> float:
    """Return the harmonic mean of the shares of words that each text has in common with the other."""
    ours, theirs = (Counter(word.text for word in split_words(text)) for text in (left, right))
    shared = (ours & theirs).total()
    return 2 * shared / (ours.total() + theirs.total()) if shared else 0.0


async def _score_all(evaluator: BoundEvaluator, trials: Sequence[Trial]) -> list[Score]:
    return list(await asyncio.gather(*map(evaluator.score, trials)))


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


def _kappa(left: Sequence[float], right: Sequence[float]) -> float:
    return cohen_kappa(list(left), list(right)) or 0.0


def _with(way: str) -> BoundEvaluator:
    return attach(lambda output: contains(output, way, case_sensitive=False), name="contains")
