"""The noise budget, plans and alarms: planted components, gates of the planned size, false alarms, and blame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import msgspec

from benchmarks.simulations.claim import COVERED, Chance, Claim
from proctor.comparison.gates.decision import GateConfig, decide
from proctor.comparison.report import EvalReport
from proctor.comparison.sides import Side
from proctor.core.stats.variance import ComponentEstimate, estimate_components, share_intervals, summarize_samples
from proctor.records.metric import Trend, TrendPoint
from proctor.records.run import DatasetInfo, EvaluatorSpec, RunMetadata
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import EvalResult, Trial
from proctor.validity.alarms import find_cause, watch_runs
from proctor.validity.plan import assume_spread, find_samples

START = datetime(2026, 1, 1, tzinfo=UTC)
# Between samples, between epochs, between verdicts.
PLANTED = (0.09, 0.09, 0.04)
# Of intervals of shares with fewer than 100 samples.
APPROXIMATE = (0.9, 0.98)
HEALTHY_RUNS, SAMPLES, RATE = 20, 200, 0.8


def trusted() -> Iterator[Claim]:
    """Components, intervals of shares, planned gates, the false-alarm rate, and the blame of single changes."""
    for index, name in enumerate(("samples", "agent", "judge")):
        yield Claim(f"noise: planted variance of {name} within 10%", partial(is_near, index=index), (0.9, 1.0), 40)
    for index, name in enumerate(("samples", "agent", "judge")):
        for samples, band in ((100, COVERED), (20, APPROXIMATE)):
            size = f"{samples} x 3 x 2"
            trial = partial(covers_share, samples=samples, index=index)
            yield Claim(f"noise: share of the {name} covered, {size}", trial, band, 4)
            trial = partial(covers_share_of_flips, samples=samples, index=index)
            yield Claim(f"noise: share of the {name} covered, flips, {size}", trial, band, 4)
    for epochs in (1, 3):
        name = f"plan: an equal run passes 80% of gates, {epochs} epochs"
        yield Claim(name, partial(passes_planned_gate, epochs=epochs), (0.76, 0.84), 8)
    # With one false alarm in 200 runs, 1 - 1 / e of charts raise one within the first 200.
    yield Claim("watch: a false alarm within 200 runs, one in 200", partial(raises_alarm, runs=200), (0.58, 0.68), 10)
    for cause in ("judge", "data", "agent"):
        yield Claim(f"watch: blame of the {cause} is right", partial(blames, cause=cause), (0.9, 1.0), 20)
    yield Claim("watch: wrong blame, every second sample replaced", misblames, (0.0, 0.1), 20)


def draw_verdicts(chance: Chance, samples: int, epochs: int, verdicts: int) -> list[list[list[float]]]:
    between, within, judge = (variance**0.5 for variance in PLANTED)
    rows = []
    for _ in range(samples):
        center = chance.gauss(0.5, between)
        answers = [chance.gauss(center, within) for _ in range(epochs)]
        rows.append([[chance.gauss(answer, judge) for _ in range(verdicts)] for answer in answers])
    return rows


def is_near(chance: Chance, index: int) -> float:
    """Return 1 if a planted component is estimated within 10%."""
    estimate = estimate_components(summarize_samples(draw_verdicts(chance, 2000, 3, 2)))
    component = estimate and estimate[index]
    assert component is not None
    return float(abs(component / PLANTED[index] - 1) < 0.1)


def covers_share(chance: Chance, samples: int, index: int) -> float:
    """Return 1 if the interval of a share contains the true share; `index` is the place of its component."""
    parts = [variance / count for variance, count in zip(PLANTED, (1, 3, 6), strict=True)]
    return _is_covered(draw_verdicts(chance, samples, 3, 2), parts, index)


def covers_share_of_flips(chance: Chance, samples: int, index: int) -> float:
    """Return 1 if the interval covers with passes and failures: rates from Beta(4, 1), 5% of the verdicts wrong."""
    rows = []
    for _ in range(samples):
        rate = chance.betavariate(4, 1)
        answers = [chance.random() < rate for _ in range(3)]
        rows.append([[float(answer != (chance.random() < 0.05)) for _ in range(2)] for answer in answers])
    # The variances of a rate, of an answer and of a verdict; a wrong verdict shrinks differences by 1 - 2 * .05.
    return _is_covered(rows, [0.81 * 2 / 75, 0.81 * 2 / 15 / 3, 0.05 * 0.95 / 6], index)


def _is_covered(rows: list[list[list[float]]], parts: Sequence[float], index: int) -> float:
    def split(estimate: ComponentEstimate) -> list[float]:
        return [estimate.between, (estimate.within or 0.0) / 3, (estimate.judge or 0.0) / 6]

    low, high = share_intervals(summarize_samples(rows), split)[index]
    return float(low <= parts[index] / sum(parts) <= high)


def passes_planned_gate(chance: Chance, epochs: int) -> float:
    """Return 1 if the gate passes two equal runs of the planned size."""
    margin = 0.1
    samples = find_samples(assume_spread(RATE), margin, 0.8, epochs)
    ids = [str(index) for index in range(samples)]
    new, old = (
        Side(
            name,
            scores={"it": {i: sum(chance.random() < RATE for _ in range(epochs)) / epochs for i in ids}},
            samples=tuple(ids),
        )
        for name in ("new", "old")
    )
    return float(decide([(new, old)], GateConfig({"it": margin})).verdict == "pass")


def make_trend(rates: Sequence[float]) -> Trend:
    points = (
        TrendPoint(START + timedelta(days=day), f"run{day}", "default", rate, SAMPLES) for day, rate in enumerate(rates)
    )
    return Trend("pass_rate", tuple(points), "rate")


def raises_alarm(chance: Chance, runs: int) -> float:
    """Return 1 if the chart of equal runs raises an alarm."""
    rates = [sum(chance.random() < RATE for _ in range(SAMPLES)) / SAMPLES for _ in range(runs)]
    return float(watch_runs(make_trend(rates), "it", "default").status == "alarm")


class Scene(msgspec.Struct, frozen=True):
    """An agent, a judge and a dataset; a change replaces one of them."""

    loss: float = 0.0
    harshness: float = 0.0
    dataset: str = "old"


# "half" replaces every second sample, so that the change can be hard to tell.
CHANGES = {
    "agent": Scene(loss=0.15),
    "judge": Scene(harshness=0.2),
    "data": Scene(dataset="new"),
    "half": Scene(dataset="half"),
}


def blames(chance: Chance, cause: str) -> float:
    """Return 1 if the cause of a planted single change is named after the alarm."""
    return float(find_planted_cause(chance, cause) == cause)


def misblames(chance: Chance) -> float:
    """Return 1 if another cause than the data is named; "cannot tell" is not wrong."""
    return float(find_planted_cause(chance, "half") not in ("data", "cannot tell"))


def find_planted_cause(chance: Chance, cause: str) -> str:
    """Plant a single change after healthy runs, wait for the alarm, and return the cause that is named."""
    chances = {"old": [chance.betavariate(4, 1) for _ in range(SAMPLES)]}
    chances["new"] = [chance.betavariate(3, 2) for _ in range(SAMPLES)]
    chances["half"] = [chances["new"][i] if i % 2 else p for i, p in enumerate(chances["old"])]
    answers, verdicts = _draw_healthy_runs(chance, chances)
    scene = CHANGES[cause]
    for _ in range(40):
        answers.append(_answer(chance, scene, chances))
        verdicts.append(_judge(chance, scene, answers[-1]))
        alarm = watch_runs(make_trend([sum(each) / SAMPLES for each in verdicts]), "it", "default")
        if alarm.status == "alarm":
            break
    else:
        return "cannot tell"
    if alarm.healthy_run is None:
        return "cannot tell"
    place = int(alarm.healthy_run.removeprefix("run"))
    is_changed = place >= HEALTHY_RUNS
    healthy = make_report(verdicts[place], scene.dataset if is_changed else "old")
    rescored = make_report(_judge(chance, scene, answers[place]), scene.dataset if is_changed else "old")
    latest = make_report(verdicts[-1], scene.dataset)
    return find_cause(alarm, healthy, latest, rescored).cause


def _draw_healthy_runs(chance: Chance, chances: dict[str, list[float]]) -> tuple[list[list[bool]], list[list[bool]]]:
    """Draw runs before the change, without a false alarm."""
    while True:
        answers = [_answer(chance, Scene(), chances) for _ in range(HEALTHY_RUNS)]
        verdicts = [_judge(chance, Scene(), each) for each in answers]
        trend = make_trend([sum(each) / SAMPLES for each in verdicts])
        if watch_runs(trend, "it", "default").status == "healthy":
            return answers, verdicts


def _answer(chance: Chance, scene: Scene, chances: dict[str, list[float]]) -> list[bool]:
    return [chance.random() < p * (1 - scene.loss) for p in chances[scene.dataset]]


def _judge(chance: Chance, scene: Scene, answers: Sequence[bool]) -> list[bool]:
    return [chance.random() < (0.95 - scene.harshness if is_right else 0.05) for is_right in answers]


def name_sample(dataset: str, index: int) -> str:
    """Return the id of a sample; "half" shares every second one with "old"."""
    return f"{('old', 'new')[index % 2] if dataset == 'half' else dataset}{index}"


def make_report(verdicts: Sequence[bool], dataset: str) -> EvalReport:
    """Make a report of verdicts on the samples of a dataset."""
    results = [
        EvalResult(Trial(Sample(name_sample(dataset, index), str(index)), ""), {"judge": Score(float(passed), passed)})
        for index, passed in enumerate(verdicts)
    ]
    judge = EvaluatorSpec("judge", "llm_judge", {"model": "test:judge"}, "digest")
    info = DatasetInfo("data", length=SAMPLES, fingerprint=dataset)
    return EvalReport(results, RunMetadata("run", "it", START, "completed", dataset=info, evaluators=(judge,)))
