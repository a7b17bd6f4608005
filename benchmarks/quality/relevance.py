"""How well relevance distinguishes answers to a question from answers to another question.

Each question is paired with its own answer, with the answer to a question half the set away, and with the answer to the
question that shares the most words with it. The cross-encoder is used at its own threshold, 0; nothing was chosen here.
"""

from __future__ import annotations

import asyncio
import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.quality.figure import Figure
from benchmarks.quality.intervals import auroc, rate
from proctor.evaluators.bound_evaluator import BoundEvaluator, attach
from proctor.evaluators.text.quality import relevance
from proctor.evaluators.tokenizer import split_words
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import Trial

MOST = 200
EVOUNA = "01_qa_reference/evouna_tq/TQ.json"
NQ = "01_qa_reference/openqa_nq301/NQ301_human.tsv"
IFEVAL = "02_ifeval/input_response_data_gpt4_20231107_145030.jsonl"

Pairs = list[tuple[str, str]]


def measure(data: Path) -> Iterator[Figure]:
    """Return AUROC, and the mean share of right verdicts at the default threshold."""
    evaluator = attach(relevance())
    for name, pairs in sets(data):
        own, other = asyncio.run(told(evaluator, pairs))
        skipped = len(pairs) - len(own)
        note = f"{len(own)} answers, {skipped} skipped"
        values = [score.value or 0.0 for score in (*own, *other)]
        labels = [True] * len(own) + [False] * len(other)
        yield Figure("relevance AUROC", name, auroc(values, labels), note=note)
        right = sum(score.passed is True for score in own) / len(own)
        refused = sum(not score.passed for score in other) / len(other)
        note = f"own {right:.3f}, of others {refused:.3f}"
        yield Figure("relevance right at 0.7", name, (right + refused) / 2, note=note)
        similar = asyncio.run(score_all(evaluator, pair_similar(pairs)))
        share, interval = rate([score.passed is True for score in similar])
        note = f"{sum(not score.ok for score in similar)} skipped"
        what = "answers to a similar question that pass"
        yield Figure(what, name, share, "", "<= 0.1", share <= 0.1, note, "relevance", interval)
        # A skipped answer is no pass.
        share, interval = rate([score.passed is True for score in own] + [False] * skipped)
        note = f"{skipped} skipped, of the others {right:.3f}"
        yield Figure("answers to the question that pass", name, share, "", "", None, note, "relevance", interval)
        share, interval = rate([score.passed is True for score in own])
        note = f"{skipped} skipped"
        what = "answers to the question that pass, of those not skipped"
        yield Figure(what, name, share, "", ">= 0.98", share >= 0.98, note, "relevance", interval)


def sets(data: Path) -> Iterator[tuple[str, Pairs]]:
    """Return questions with their answers."""
    rows = [r for r in json.loads((data / EVOUNA).read_text(encoding="utf-8")) if not r["improper"]]
    for system in ("gpt4", "gpt35", "newbing"):
        yield f"EVOUNA TQ, {system}", [(r["question"], r[f"answer_{system}"]) for r in rows[:MOST]]
    yield "NQ301", nq_pairs(data)
    lines = (data / IFEVAL).read_text(encoding="utf-8").splitlines()
    read = [json.loads(line) for line in lines[:MOST]]
    yield "IFEval, GPT-4", [(row["prompt"], row["response"]) for row in read]


def nq_pairs(data: Path) -> Pairs:
    """Return each question with its longest answer."""
    longest: dict[str, str] = {}
    with (data / NQ).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            answer = row["Model answer"]
            if len(answer) > len(longest.get(row["Question"], "")):
                longest[row["Question"]] = answer
    return list(longest.items())[:MOST]


def pair_similar(pairs: Pairs) -> Pairs:
    """Return each question with the answer to the other question that shares the most words with it."""
    words = [frozenset(word.text for word in split_words(question) if word.kind != "function") for question, _ in pairs]
    similar = []
    for place, (question, answer) in enumerate(pairs):
        others = [other for other in range(len(pairs)) if pairs[other][1] != answer]
        nearest = max(others, key=lambda other: len(words[place] & words[other]) / len(words[place] | words[other]))
        similar.append((question, pairs[nearest][1]))
    return similar


async def score_all(evaluator: BoundEvaluator, pairs: Sequence[tuple[str, str]]) -> list[Score]:
    """Return the scores of the pairs, skipped ones included."""
    trials = [Trial(Sample("", question), answer) for question, answer in pairs]
    return list(await asyncio.gather(*map(evaluator.score, trials)))


async def told(evaluator: BoundEvaluator, pairs: Sequence[tuple[str, str]]) -> tuple[list[Score], list[Score]]:
    """Return the scores of the answers for their own question and for another question."""
    half = len(pairs) // 2
    shifted = [answer for _, answer in (*pairs[half:], *pairs[:half])]
    own = [Trial(Sample("", question), answer) for question, answer in pairs]
    other = [Trial(Sample("", q), answer) for (q, _), answer in zip(pairs, shifted, strict=True)]
    first = await asyncio.gather(*map(evaluator.score, own))
    second = await asyncio.gather(*map(evaluator.score, other))
    return [score for score in first if score.ok], [score for score in second if score.ok]
