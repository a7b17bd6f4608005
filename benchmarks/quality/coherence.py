"""Whether `coherence` distinguishes original texts from damaged ones.

The texts are answers of GPT-4 to the prompts of IFEval, with at least four sentences and a proper end. They are damaged
by shuffling sentences or words, by mixing two texts sentence by sentence, by truncation, and by repeating the last
sentence.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.quality.figure import Figure
from benchmarks.quality.intervals import auroc, bootstrap, rate
from proctor.evaluators.bound_evaluator import BoundEvaluator, attach
from proctor.evaluators.text.quality import coherence
from proctor.evaluators.tokenizer import is_complete_sentence, split_sentences
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import Trial

IFEVAL = "02_ifeval/input_response_data_gpt4_20231107_145030.jsonl"
MOST = 60
FEWEST_SENTENCES, MOST_SENTENCES = 4, 12
LOOPS = 8
SEED = 2


def measure(data: Path) -> Iterator[Figure]:
    """Return the share of original texts that pass, and the AUROC for each kind of damage."""
    evaluator = attach(coherence())
    texts = list(read(data))
    whole = asyncio.run(scored(evaluator, ["\n\n".join(text) for text in texts]))
    # Skipped texts (code, other languages) have no value.
    whole = [score for score in whole if score.ok]
    passed, interval = rate([score.passed is True for score in whole])
    note = f"{len(texts) - len(whole)} skipped"
    yield Figure("texts that pass", "IFEval, GPT-4", passed, note=note, evaluator="coherence", interval=interval)
    others = texts[len(texts) // 2 :] + texts[: len(texts) // 2]
    chance = random.Random(SEED)
    bad = [spoiled(text, other, chance) for text, other in zip(texts, others, strict=True)]
    for name in bad[0]:
        scores = [score for score in asyncio.run(scored(evaluator, [ways[name] for ways in bad])) if score.ok]
        values = [score.value or 0.0 for score in (*whole, *scores)]
        labels = [True] * len(whole) + [False] * len(scores)
        result = sum(not score.passed for score in scores) / len(scores)
        interval = bootstrap(_separate, values, [float(label) for label in labels])
        yield Figure(
            "AUROC",
            f"IFEval, GPT-4, {name}",
            auroc(values, labels),
            note=f"{result:.3f} do not pass, {len(bad) - len(scores)} skipped",
            evaluator="coherence",
            interval=interval,
        )


def _separate(values: Sequence[float], labels: Sequence[float]) -> float:
    return auroc(values, [label > 0 for label in labels])


def read(data: Path) -> Iterator[list[str]]:
    """Return the texts as lists of sentences."""
    result = 0
    for line in (data / IFEVAL).read_text(encoding="utf-8").splitlines():
        text = split_sentences(json.loads(line)["response"])
        if FEWEST_SENTENCES <= len(text) <= MOST_SENTENCES and is_complete_sentence(text[-1]):
            yield text
            result += 1
        if result == MOST:
            return


async def scored(evaluator: BoundEvaluator, texts: Sequence[str]) -> list[Score]:
    """Return the score of each text."""
    trials = [Trial(Sample("", None), text) for text in texts]
    return list(await asyncio.gather(*map(evaluator.score, trials)))


def spoiled(text: list[str], other: list[str], chance: random.Random) -> dict[str, str]:
    """Return a text damaged in every way; it is mixed with `other`."""
    words = " ".join(text).split()
    last = text[-1].split()
    turns = [item for pair in zip(text, other, strict=False) for item in pair]
    ways = {
        "mixed": turns,
        "words shuffled": [" ".join(chance.sample(words, len(words)))],
        "stuck": [*text, *[text[-1]] * LOOPS],
        "cut off": [*text[:-1], " ".join(last[: max(1, len(last) // 2)])],
        "sentences shuffled": chance.sample(text, len(text)),
    }
    return {name: "\n\n".join(parts) for name, parts in ways.items()}
