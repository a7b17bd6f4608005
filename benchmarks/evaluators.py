"""W6: measure the CPU time of the local evaluators for answers of 20, 100 and 1,000 words.

    python -m benchmarks.evaluators [name …] [--rows 5]

Each row is a new text, which no cache holds: a report with names, years and numbers, a question, and a context that
states the same in other words. The first row of 20 words is the cold one, which also loads the models; the figure is the
least of the other rows, with the greatest behind it.
The limits, for 100 words, are 100 ms for evaluators with a local model and 2 ms for the others. Load on the machine
slows the processor's caches, so compare figures of one run.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import itertools
import json
import platform
import time
from typing import Any, NamedTuple

from proctor.evaluators import matching, rules, structural
from proctor.evaluators.bound_evaluator import attach
from proctor.evaluators.numeric import numbers
from proctor.evaluators.safety import detection as safety
from proctor.evaluators.text import quality
from proctor.records.sample import Sample
from proctor.records.trial import Trial

SIZES = (20, 100, 1000)
LIMIT_WORDS = 100
LIMIT_MODEL, LIMIT_PLAIN = 0.1, 0.002
WITH_MODEL = {"semantic_similarity", "relevance", "coherence", "hallucination_detection"}
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
# Each evaluator with its options.
EVALUATORS: dict[str, tuple[Any, dict[str, Any]]] = {
    "exact_match": (matching.exact_match, {}),
    "contains": (matching.contains, {}),
    "regex_match": (matching.regex_match, {"pattern": r"\b[A-Z]\w+ports?\b"}),
    "numeric_answer": (numbers.numeric_answer, {}),
    "keywords": (rules.keywords, {"include": ["harbor", "council"]}),
    "json_validity": (structural.json_validity, {}),
    "schema_match": (structural.schema_match, {"schema": SCHEMA}),
    "format_compliance": (structural.format_compliance, {"format": "date"}),
    "bias_detection": (safety.bias_detection, {}),
    "toxicity_detection": (safety.toxicity_detection, {}),
    "compliance": (safety.compliance, {"policies": ["pii", "secrets", "refusal"]}),
    "semantic_similarity": (quality.semantic_similarity, {}),
    "relevance": (quality.relevance, {}),
    "coherence": (quality.coherence, {}),
    "hallucination_detection": (quality.hallucination_detection, {}),
}
# Each fact in the words of the context, and in those of an answer.
FACTS = (
    ("The harbor of {place} was built between {year} and {later} by the engineer Paul {name}.",
     "The engineer Paul {name} built the harbor of {place} between {year} and {later}."),
    ("It has {count} piers, and the longest of them measures {size} meters.",
     "The longest of its {count} piers is {size} meters long."),
    ("The council decided in {later} to restore the northern wall after a storm had damaged it.",
     "After a storm had damaged the northern wall, the council decided in {later} to restore it."),
    ("The repair cost {size} thousand dollars and lasted {count} months.",
     "The work took {count} months and cost {size} thousand dollars."),
    ("During that time most ships used the smaller harbor near {place}.",
     "Meanwhile most ships went to the smaller harbor near {place}."),
    ("Residents protested against a plan of Mrs. {name} to close the market at the old pier.",
     "Mrs. {name} planned to close the market at the old pier, but residents protested."),
    ("Today about {size} people work there, most of them in small workshops.",
     "About {size} people have a job there today, mostly in small workshops."),
)  # fmt: skip


class Row(NamedTuple):
    """The texts of one sample."""

    input: str
    output: str
    context: str


def make_row(number: int, words: int) -> Row:
    """Write a row with an answer of about this many words; no two rows have a sentence in common."""
    context, output = "", ""
    for turn, (source, answer) in enumerate(itertools.cycle(FACTS)):
        if len(output.split()) >= words:
            break
        key = 31 * number + 7 * (turn // len(FACTS))
        names = {"place": f"Kor{_spell(key)}a", "name": f"Wel{_spell(key + 3)}", "year": 1800 + key % 90}
        facts = names | {"later": 1895 + key % 90, "count": 3 + key % 17, "size": 110 + key % 870}
        context += source.format(**facts) + " "
        output += answer.format(**facts) + " "
    return Row(f"Who built the harbor of Kor{_spell(31 * number)}a?", output.strip(), context.strip())


def _spell(number: int) -> str:
    """Write a number with consonants and vowels, as part of a name."""
    return "".join("bdfgklmnrt"[int(digit)] + "aeiou"[int(digit) % 5] for digit in str(number))


def make_trial(name: str, row: Row, number: int) -> Trial:
    """Make the trial that an evaluator scores: JSON evaluators get the answer as an object."""
    output = json.dumps({"text": row.output}) if name in ("json_validity", "schema_match") else row.output
    expected = "1906" if name == "numeric_answer" else row.context
    return Trial(Sample(str(number), row.input, expected=expected, metadata={"context": row.context}), output)


async def measure(name: str, rows: int) -> list[tuple[int, float, list[float]]]:
    """Return for each size the CPU time of the first row and of the others."""
    function, parameters = EVALUATORS[name]
    evaluator, figures = attach(function, parameters=parameters), []
    for words in SIZES:
        costs = []
        for number in range(rows + 1):
            trial = make_trial(name, make_row(number + 1000 * SIZES.index(words), words), number)
            began = time.process_time()
            score = evaluator.score(trial)
            if inspect.isawaitable(score):
                score = await score
            costs.append(time.process_time() - began)
            assert score.status in ("ok", "skipped"), score
        figures.append((words, costs[0], costs[1:]))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="name", help=f"an evaluator: {', '.join(EVALUATORS)}")
    parser.add_argument("--rows", type=int, default=5, help="measure N rows of each size after the cold one")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in EVALUATORS]
    if unknown or options.rows < 1:
        parser.error(f"unknown evaluator {unknown[0]!r}" if unknown else "--rows must be 1 or more")
    print(f"CPU ms per row, least–greatest of {options.rows} rows; Python {platform.python_version()}")
    print(f"{'':24}{'cold':>8}" + "".join(f"{f'{words:,} words':>18}" for words in SIZES) + f"{'limit at 100':>20}")
    for name in options.names or EVALUATORS:
        figures = asyncio.run(measure(name, options.rows))
        limit = LIMIT_MODEL if name in WITH_MODEL else LIMIT_PLAIN
        least = next(min(costs) for words, _, costs in figures if words == LIMIT_WORDS)
        cells = "".join(f"{f'{min(costs) * 1e3:.2f}–{max(costs) * 1e3:.2f}':>18}" for _, _, costs in figures)
        verdict = f"{limit * 1e3:.0f}: {'holds' if least <= limit else 'DOES NOT HOLD'}"
        print(f"{name:24}{figures[0][1] * 1e3:8.1f}{cells}{verdict:>20}", flush=True)


if __name__ == "__main__":
    main()
