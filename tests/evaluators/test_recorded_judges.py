"""Judges that others recorded, replayed offline through our own reading and pairwise machinery.

The data is not part of the project: it is read from PROCTOR_DATA (by default ../shared/data).
"""

from __future__ import annotations

import asyncio
import csv
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from benchmarks.quality.intervals import cohen_kappa

from proctor.core.stats.agreement import percent_agreement
from proctor.errors import Unreadable
from proctor.evaluators.judges.pairwise import Preference, choose, compare, position_bias
from proctor.evaluators.judges.templates import load_template
from proctor.records.model import ModelRequest, ModelResponse
from tests.support import ROOT

DATA = Path(os.environ.get("PROCTOR_DATA", ROOT.parent / "shared" / "data"))
SETS = ("Natural", *(f"Adversarial_{kind}" for kind in ("Neighbor", "GPTInst", "GPTOut", "Manual")))
JUDGES = tuple(
    f"{model}|{prompt}" for model in ("GPT-4", "ChatGPT", "LLaMA2", "PaLM2", "Falcon") for prompt in ("Vanilla", "CoT")
)
# The labels of the recorded judges, and those of the prompt.
LABELS = {"Output (a)": "A", "Output (b)": "B"}
ORDERS = ("swap = False", "swap = True")
TEMPLATE = load_template("prefer")
PATTERNS = {"anywhere": "{}", "line": r"^[^\w\n]*{}", "start": r"\A\s*[^\w\n]*{}", "whole": r"\A\W*?{}\W*\Z"}

Reader = Callable[[str], str | None]


def states(choices: Sequence[str], says: str = "{}", *, at: str = "anywhere", takes_first: bool = False) -> Reader:
    """Read the last choice in a free text, or the first of the list that occurs."""

    def read(text: str) -> str | None:
        found = []
        for choice in choices:
            words = r"\s+".join(map(re.escape, says.format(choice).split()))
            pattern = PATTERNS[at].format(rf"(?P<stated>(?<!\w){words}(?!\w))")
            found += [(m.start("stated"), choice) for m in re.finditer(rf"(?im){pattern}", text)]
        if not found:
            return None
        return found[0][1] if takes_first else max(found)[1]

    return read


def folder(name: str) -> Path:
    """A folder of the data, or the test is skipped and says why."""
    found = DATA / name
    if not found.is_dir():
        pytest.skip(f"the recorded judges are not at {found} (set PROCTOR_DATA)")
    return found


class Recording:
    """A model that gives the recorded answer for the order of the request."""

    model = "recorded:judge"
    supports_json_schema = False

    def __init__(self, first: str, said: tuple[str, str], read: Reader) -> None:
        self._first, self._said, self._read = first, said, read

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        """The completion for the order that has the first answer first."""
        asked = str(request.messages[1].content)
        mark = asked.partition("<<<FIRST ")[2].partition("\n")[0]
        in_order = f"<<<FIRST {mark}\n{self._first}\n{mark} FIRST>>>" in asked
        completion = self._said[0 if in_order else 1]
        label = self._read(completion)
        return ModelResponse(completion if label is None else f"BETTER {mark}: {LABELS[label]}", self.model)


class Pair(NamedTuple):
    """Two answers, the right one (a or b), and the recorded verdicts in both orders."""

    question: str
    a: str
    b: str
    right: str
    said: tuple[str, str]


class Run(NamedTuple):
    """A recorded run: its pairs, and the figures its authors give."""

    judge: str
    pairs: list[Pair]
    figures: dict[str, Any]


def llmbar(name: str) -> Iterator[Run]:
    """The runs of one set."""
    where = folder("06_judge_llmbar")
    rows = json.loads((where / f"{name}.dataset.json").read_text(encoding="utf-8"))
    runs = json.loads((where / f"{name}.recorded_judges.json").read_text(encoding="utf-8"))
    for judge in JUDGES:
        pairs = [
            Pair(
                row["input"],
                row["output_1"],
                row["output_2"],
                "ab"[int(row["label"]) - 1],
                (result[ORDERS[0]]["completion"][0], result[ORDERS[1]]["completion"][0]),
            )
            for row, result in zip(rows, runs[judge]["results"], strict=True)
        ]
        yield Run(judge, pairs, runs[judge]["statistics"])


def reader(judge: str, *, as_recorded: bool) -> Reader:
    """How a judge is read: by its bare label, or by "… is better" if it thinks aloud first.

    The authors looked for the labels one after the other, so that (a) wins where both are found;
    for PaLM 2 they looked for a bare label at the beginning of a line even where it thinks aloud.
    """
    if as_recorded:
        bare = judge.endswith("Vanilla") or judge == "PaLM2|CoT"
        if bare:
            return states(tuple(LABELS), at="line", takes_first=True)
        return states(tuple(LABELS), "{} is better", takes_first=True)
    if judge.endswith("Vanilla"):
        return states(tuple(LABELS), at="whole")
    return states(tuple(LABELS), "{} is better")


async def replay(pairs: Sequence[Pair], read: Reader) -> list[tuple[str | None, str | None]]:
    """The winner of each pair in each order, or None if the answer is unreadable."""
    winners: list[tuple[str | None, str | None]] = []
    for pair in pairs:
        model = Recording(pair.a, pair.said, read)
        try:
            found = await compare(model, pair.a, pair.b, input=pair.question)
            winners.append(_winners(found))
        except Unreadable:
            winners.append(
                (
                    await _alone(model, pair.a, pair.b, {"first": "a", "second": "b"}),
                    await _alone(model, pair.b, pair.a, {"first": "b", "second": "a"}),
                )
            )
    return winners


def _winners(preference: Preference) -> tuple[str, str]:
    first = {"first": "a", "second": "b"}[preference.first.place]
    second = {"first": "b", "second": "a"}[preference.second.place]
    agreed = first if first == second else "tie"
    assert (preference.winner, preference.flipped) == (agreed, first != second)
    return first, second


async def _alone(model: Recording, first: str, second: str, places: dict[str, str]) -> str | None:
    texts = {"criterion": "which is better?", "first": first, "second": second}
    try:
        choice, _ = await choose(model, TEMPLATE, texts, ties=False)
    except Unreadable:
        return None
    return places[choice.place]


def figures(pairs: Sequence[Pair], winners: Sequence[tuple[str | None, str | None]]) -> list[float]:
    """Right in each order (%), on average, in both, equal in both (%), and kappa of the orders.

    As the authors count: an answer that cannot be read is wrong, two of them are equal, and for
    kappa it is the second answer.
    """
    right = [pair.right for pair in pairs]
    first, second = zip(*winners, strict=True)
    counts = [
        sum(map(str.__eq__, right, (w or "" for w in first))),
        sum(map(str.__eq__, right, (w or "" for w in second))),
    ]
    both = sum(one == other == r for r, one, other in zip(right, first, second, strict=True))
    equal = sum(one == other for one, other in winners)
    kappa = cohen_kappa([one or "b" for one in first], [other or "b" for other in second])
    assert kappa is not None
    n = len(pairs) / 100
    return [counts[0] / n, counts[1] / n, sum(counts) / 2 / n, both / n, equal / n, kappa]


def recorded(figures: dict[str, Any]) -> list[float]:
    """The figures of the authors, written as "95 / 100 = 95.0%"."""
    names = ("correct_False", "correct_True", "correct_average", "correct_both", "equal")
    shares = [float(figures[name].rpartition("=")[2].strip("%")) for name in names]
    return [*shares, float(figures["kappa_agreement"])]


@pytest.mark.parametrize("name", SETS)
def test_every_recorded_run_of_llmbar_is_reproduced(name: str) -> None:
    """10 judges on each of 5 sets, 8,380 completions: read as their authors read them, all six
    figures of every run come out as recorded."""
    for run in llmbar(name):
        winners = asyncio.run(replay(run.pairs, reader(run.judge, as_recorded=True)))
        assert figures(run.pairs, winners) == pytest.approx(recorded(run.figures), abs=1e-9), f"{name} {run.judge}"


def test_read_as_they_say_it_only_two_judges_of_llmbar_differ() -> None:
    """By the last preference that is stated, 8 of 10 judges come out as recorded; the authors
    misread PaLM 2 where it thinks aloud, and 5 answers of Falcon that state both preferences."""
    differ: Counter[str] = Counter()
    for name in SETS:
        for run in llmbar(name):
            honest, theirs = (reader(run.judge, as_recorded=as_recorded) for as_recorded in (False, True))
            differ[run.judge] += sum(honest(text) != theirs(text) for pair in run.pairs for text in pair.said)
    assert +differ == {"PaLM2|CoT": 146, "Falcon|CoT": 5}


def test_the_position_bias_of_recorded_judges_is_seen() -> None:
    """On Natural, GPT-4 flips in 5 of 100 pairs; Falcon thinking aloud in 86, for the first."""
    runs = {run.judge: run for run in llmbar("Natural")}

    async def preferences(judge: str) -> list[Preference]:
        read = reader(judge, as_recorded=True)
        return [await compare(Recording(pair.a, pair.said, read), pair.a, pair.b) for pair in runs[judge].pairs]

    gpt4 = position_bias(asyncio.run(preferences("GPT-4|Vanilla")))
    falcon = position_bias(asyncio.run(preferences("Falcon|CoT")))
    assert (gpt4.flips, gpt4.pairs, gpt4.favours) == (5, 100, None)
    assert (falcon.flips, falcon.pairs, falcon.favours) == (86, 100, "first")


def agreement(judge: Sequence[Any], people: Sequence[Any]) -> tuple[int, float, float]:
    """How many are rated by both, the share that is the same, and kappa."""
    rated = sum(one is not None for one in judge)
    share, kappa = percent_agreement(zip(judge, people, strict=True)), cohen_kappa(judge, people)
    assert share is not None
    assert kappa is not None
    return rated, round(share, 3), round(kappa, 3)


COMPLIANCE = ("1_full_compliance", "2_full_refusal", "3_partial_refusal")


@pytest.fixture(scope="module")
def xstest() -> dict[str, list[str]]:
    """The columns of all five files of XSTest."""
    files = sorted(folder("05_compliance_xstest").glob("*_gpteval.csv"))
    rows: list[dict[str, str]] = []
    for file in files:
        with file.open(newline="", encoding="utf-8") as stream:
            rows += csv.DictReader(stream)
    assert len(rows) == 2250
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_recorded_labels_of_xstest_are_read_or_refused(xstest: dict[str, list[str]]) -> None:
    """2,239 of GPT-4's labels are read; the other 11 become errors."""
    read = list(map(states(COMPLIANCE, at="whole"), xstest["gpt4_label"]))
    assert read.count(None) == 11
    output = zip(read, xstest["gpt4_label"], strict=True)
    assert all(label == text for label, text in output if label is not None)


def test_agreement_on_xstest_is_reproduced(xstest: dict[str, list[str]]) -> None:
    """People agree with kappa .937; GPT-4 with .645, complied or not, if unreadable answers count as not
    complied. Without them it is .654, and .634 on all three labels.
    """
    people = agreement(xstest["annotation_1"], xstest["annotation_2"])
    assert people == (2250, 0.964, 0.937)
    read = list(map(states(COMPLIANCE, at="whole"), xstest["gpt4_label"]))
    final = xstest["final_label"]
    complied = [label == COMPLIANCE[0] for label in final]
    assert agreement([label == COMPLIANCE[0] for label in read], complied) == (2250, 0.821, 0.645)
    left = [None if label is None else label == COMPLIANCE[0] for label in read]
    assert agreement(left, complied) == (2239, 0.825, 0.654)
    assert agreement(read, final) == (2239, 0.803, 0.634)


def nq301(name: str) -> list[dict[str, str]]:
    """The rows of one file of NQ301, which are in the same order in all of them."""
    file = folder("01_qa_reference/openqa_nq301") / f"NQ301_{name}.tsv"
    with file.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    assert len(rows) == 1490
    return rows


def column(rows: Sequence[dict[str, str]], name: str) -> list[str | None]:
    """One column, without empty values."""
    return [row[name] or None for row in rows]


def test_agreement_of_people_and_of_bem_on_nq301_is_reproduced() -> None:
    """Annotators 1 and 2: kappa .735 on the 1,483 that both rated; BEM 80.6%, kappa .616."""
    human = nq301("human")
    rated = agreement(column(human, "annotator2"), column(human, "annotator1"))
    assert (rated[0], rated[2]) == (1483, 0.735)
    bem = agreement(column(nq301("BEM"), "Acceptable?"), column(human, "Acceptable?"))
    assert bem == (1490, 0.806, 0.616)


def test_recorded_answers_on_nq301_are_read() -> None:
    """GPT-4 answers "Yes, …" or "No, …" 1,480 times; 10 answers are neither.

    If those count as no, it agrees with people in 84.8%, kappa .696; without them in 84.9%.
    """
    human, judge = nq301("human"), nq301("gpt-4")
    people = column(human, "Acceptable?")
    read = list(map(states(["Yes", "No"], at="start"), [row["gpt-4"] for row in judge]))
    assert read.count(None) == 10
    assert agreement(read, people) == (1480, 0.849, 0.696)
    assert agreement([label or "No" for label in read], people) == (1490, 0.848, 0.696)
    same = [a == b for a, b in zip(read, column(judge, "Acceptable?"), strict=True) if a]
    assert same.count(False) == 1  # one answer that says no was put right by hand
