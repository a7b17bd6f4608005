"""Judge cards: how far an evaluator agrees with people, and the pass rate corrected by their labels."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal, NamedTuple

import msgspec

from proctor.comparison.slices import slice_samples
from proctor.core.stats import judge_rates
from proctor.core.stats.intervals import Interval, clustered_rate_interval, clustered_standard_error, wilson_interval
from proctor.core.stats.judge_rates import Confusion, CorrectedRate, Correlation
from proctor.ports import History
from proctor.records.formatting import format_count
from proctor.records.label import HumanLabel, LabelledItem
from proctor.records.run import RunMetadata
from proctor.records.sample import Sample
from proctor.records.trial import EvalResult
from proctor.validity.drawing import JudgedOutput, Stratum, digest_evaluator, list_judged_outputs, stratify

CardState = Literal["none", "stale", "weak", "cannot tell", "ok"]
# With fewer labels the intervals have not been checked by simulation.
MIN_LABELS = 30
# With fewer labels kappa and its interval are of no use: two can only give -1, 0 or 1.
MIN_KAPPA_LABELS = 10
MIN_KAPPA = 0.6
# The share of disputed outputs above which people do not agree well enough to measure a judge.
MAX_DISPUTED = 0.1
# Labels that were drawn with a known probability; only these say how good the judge is.
KNOWN_DRAWS = ("random", "stratified")
# How many runs are searched for repeated verdicts.
RUNS_SEARCHED = 200


class Proportion(msgspec.Struct, frozen=True):
    """A share of n items with its 95% interval.

    `effective_n` is how many independent and equally weighted items they are worth; the interval uses it.
    """

    value: float
    interval: Interval
    n: int
    effective_n: float


class Agreement(msgspec.Struct, frozen=True):
    """How far two raters agree on n items: the share with equal verdicts, and kappa; `undefined` says why not."""

    n: int
    share: Proportion | None
    kappa: float | None
    kappa_interval: Interval | None
    name: str = ""
    undefined: str = ""


class CardRate(msgspec.Struct, frozen=True):
    """The pass rate of a run: by the judge alone (raw), by the labels alone, and corrected.

    `helps` is False if the judge adds nothing beyond the labels; the corrected rate is then that of the labels. `n` is
    the number of labels in this run, `total` the number of outputs with a verdict. `reason` says why it does not help.
    """

    raw: Proportion
    labels: Proportion
    value: float
    interval: Interval
    helps: bool
    effective_labels: float
    n: int
    total: int
    reason: str = ""


class JudgeCard(msgspec.Struct, frozen=True):
    """What is known about a judge from labels of its exact version (`digest`).

    `state` is "none" (no labels), "stale" (labels of another version only), "weak" (`reason` says why), "cannot tell"
    (people or the judge give one verdict to every labelled output, so kappa is undefined) or "ok". `n` counts the
    labels of outputs that were drawn with a known probability, in `runs` runs, and `n_in_run` those of this run;
    `labels` counts all by strategy.
    `disputed` outputs of these draws have as many labels for as against, and are left out of `n`. `annotators` compares
    each pair of people.
    """

    evaluator: str
    digest: str
    run_id: str
    state: CardState
    reason: str = ""
    fix: str = ""
    models: tuple[str, ...] = ()
    n: int = 0
    runs: int = 0
    labels: dict[str, int] = {}
    skipped: int = 0
    disputed: int = 0
    agreement: Agreement | None = None
    sensitivity: Proportion | None = None
    specificity: Proportion | None = None
    confusion: dict[str, int] = {}
    by: str = ""
    slices: tuple[Agreement, ...] = ()
    annotators: tuple[Agreement, ...] = ()
    length_bias: Correlation | None = None
    position_bias: Proportion | None = None
    stability: Proportion | None = None
    cost_per_verdict: float | None = None
    rate: CardRate | None = None
    n_in_run: int = 0


class LabelledOutput(NamedTuple):
    """An output with people's verdict, the judge's, and the weight of its draw."""

    output: JudgedOutput
    people: bool
    weight: float


def build_card(
    history: History,
    run: RunMetadata,
    evaluator: str,
    *,
    by: str | None = None,
    configuration: str | None = None,
    min_kappa: float | None = None,
) -> JudgeCard:
    """Build the card of an evaluator as it is in a run; `by` is a metadata key for slices.

    Agreement uses the labels of all runs with this version of the judge, the corrected rate those of this run (and
    `configuration`). Labels of disagreements enter neither. `min_kappa` is what a card needs to be "ok".
    """
    digest = digest_evaluator(run, evaluator)
    every = history.labels(evaluator=evaluator)
    evidence = _collect_evidence(history, run, evaluator, [x for x in every if x.evaluator_digest == digest])
    labels, items = evidence.labels, evidence.items
    own = [output for output in evidence.own if configuration in (None, output.item.configuration)]
    own_items = weigh_labels(own, evidence.gold, evidence.stratified)
    results = history.results(run.run_id)
    if configuration is not None:
        results = results.for_configuration(configuration)
    card = JudgeCard(
        evaluator,
        digest,
        run.run_id,
        "none",
        models=_list_models(run, evaluator),
        n=len(items),
        runs=len({item.output.item.run_id for item in items}),
        n_in_run=sum(item.output.item.run_id == run.run_id for item in items),
        labels=dict(Counter(label.strategy for label in labels if not label.skipped)),
        skipped=sum(label.skipped for label in labels),
        disputed=evidence.disputed,
        annotators=evidence.annotators,
        rate=correct_rate(own, own_items, any(item.output.item in evidence.stratified for item in own_items)),
        stability=_measure_stability(history, run, evaluator, digest, own),
        cost_per_verdict=_mean_cost(results, evaluator),
        position_bias=_measure_position_bias(results, evaluator),
        **_measure_agreement(items),
        **_slice_agreement(history, items, by),
    )
    other_versions = count_labelled(label for label in every if label.evaluator_digest != digest)
    verdicts = {output.passed for output in own}
    return _judge_state(card, other_versions, MIN_KAPPA if min_kappa is None else min_kappa, verdicts)


class _Evidence(NamedTuple):
    """The labels of one version of a judge, the outputs of the run, and the labelled outputs of all runs."""

    labels: list[HumanLabel]
    own: list[JudgedOutput]
    items: list[LabelledOutput]
    gold: dict[LabelledItem, bool]
    stratified: dict[LabelledItem, float | None]
    disputed: int
    annotators: tuple[Agreement, ...]


def _collect_evidence(history: History, run: RunMetadata, evaluator: str, labels: Sequence[HumanLabel]) -> _Evidence:
    outputs = {
        run_id: _read_outputs(history, run_id, evaluator) for run_id in {run.run_id, *(x.run_id for x in labels)}
    }
    by_item = {output.item: output for judged in outputs.values() for output in judged}
    current = _select_current(labels, by_item)
    drawn = {label.item for label in current if label.strategy in KNOWN_DRAWS and not label.skipped}
    counted = [label for label in current if label.item in drawn]
    gold, disputed = decide_labels(counted)
    stratified = {label.item: label.probability for label in current if label.strategy == "stratified"}
    items = [item for judged in outputs.values() for item in weigh_labels(judged, gold, stratified)]
    clusters = {item: output.cluster for item, output in by_item.items()}
    annotators = _compare_annotators(counted, clusters)
    return _Evidence(current, outputs[run.run_id], items, gold, stratified, disputed, annotators)


def list_mistakes(history: History, run: RunMetadata, evaluator: str) -> tuple[list[LabelledOutput], int]:
    """Return the outputs on which people and an evaluator of a run differ, and how many have a label, of any draw."""
    digest = digest_evaluator(run, evaluator)
    labels = [label for label in history.labels(evaluator=evaluator) if label.evaluator_digest == digest]
    outputs = {x.item: x for run_id in {x.run_id for x in labels} for x in _read_outputs(history, run_id, evaluator)}
    gold, _ = decide_labels(_select_current(labels, outputs))
    judged = [LabelledOutput(outputs[item], people, 1.0) for item, people in sorted(gold.items()) if item in outputs]
    return [each for each in judged if each.output.passed is not each.people], len(judged)


def _select_current(labels: Iterable[HumanLabel], outputs: Mapping[LabelledItem, JudgedOutput]) -> list[HumanLabel]:
    """Leave out labels of outputs that a resumed run has replaced since."""
    return [
        x
        for x in labels
        if not x.output_digest or (x.item in outputs and outputs[x.item].output_digest == x.output_digest)
    ]


def read_state(history: History, run: RunMetadata, evaluator: str, min_kappa: float | None = None) -> JudgeCard:
    """Return the card of an evaluator; without labels of this version, only its state, which is read quickly."""
    digest = digest_evaluator(run, evaluator)
    labels = history.labels(evaluator=evaluator)
    if any(label.evaluator_digest == digest for label in labels):
        return build_card(history, run, evaluator, min_kappa=min_kappa)
    return _judge_state(JudgeCard(evaluator, digest, run.run_id, "none"), count_labelled(labels), 0.0)


def count_labelled(labels: Iterable[HumanLabel]) -> int:
    """Count the labels of different annotators or outputs; an import into a rescored run repeats them."""
    return len({(*x.item[1:], x.output_digest or x.run_id, x.annotator) for x in labels if not x.skipped})


def decide_labels(labels: Iterable[HumanLabel]) -> tuple[dict[LabelledItem, bool], int]:
    """Return the majority of the annotators on each item, and the number of ties, which have no verdict."""
    votes: dict[LabelledItem, int] = {}
    for label in labels:
        if label.passed is not None:
            votes[label.item] = votes.get(label.item, 0) + (1 if label.passed else -1)
    return {item: vote > 0 for item, vote in votes.items() if vote}, sum(vote == 0 for vote in votes.values())


def weigh_labels(
    outputs: Sequence[JudgedOutput],
    gold: Mapping[LabelledItem, bool],
    stratified: Mapping[LabelledItem, float | None] | None = None,
) -> list[LabelledOutput]:
    """Return the labelled outputs of a run, with weights if some were drawn by stratum; their sum is their number.

    `stratified` has the inclusion probability of those. Each counts with its inverse, and the labels of a stratum count
    as its outputs do in the run. A label drawn at random is a random one of its stratum too. A verdict with a stratum
    that has no label is one stratum.
    """
    labelled = [output for output in outputs if output.item in gold]
    drawn = {output.item: (stratified or {})[output.item] for output in labelled if output.item in (stratified or {})}
    if not drawn:
        return [LabelledOutput(output, gold[output.item], 1.0) for output in labelled]
    sizes, samples = (stratify(group) for group in (outputs, labelled))
    split = {passed: all(key in samples for key in sizes if key[0] is passed) for passed in (True, False)}
    factor = len(labelled) / sum(len(group) for key, group in sizes.items() if (key[0] in {k[0] for k in samples}))
    weighted = []
    for passed, is_split in split.items():
        for size, group in _pair_strata(sizes, samples, passed, is_split=is_split):
            known = [1 / p for output in group if (p := drawn.get(output.item))]
            typical = math.fsum(known) / len(known) if known else 1.0
            bases = [1 / (drawn.get(output.item) or 1 / typical) for output in group]
            scale = factor * size / math.fsum(bases)
            weighted += [LabelledOutput(o, gold[o.item], scale * base) for o, base in zip(group, bases, strict=True)]
    return weighted


def _pair_strata(
    sizes: Mapping[Stratum, Sequence[JudgedOutput]],
    samples: Mapping[Stratum, Sequence[JudgedOutput]],
    passed: bool,
    *,
    is_split: bool,
) -> list[tuple[int, Sequence[JudgedOutput]]]:
    """Return the size and the labelled outputs of each stratum of a verdict, or of the verdict as one stratum."""
    pairs = [(len(outputs), samples.get(key, [])) for key, outputs in sizes.items() if key[0] is passed]
    if not is_split:
        pairs = [(sum(size for size, _ in pairs), [output for _, group in pairs for output in group])]
    return [(size, group) for size, group in pairs if group]


def measure_design_effect(values: Sequence[float], clusters: Sequence[Hashable]) -> float:
    """Return how many times the variance of a mean grows because values of one cluster are alike; at least 1."""
    n, groups = len(values), len(set(clusters))
    if groups == n or n < 2:
        return 1.0
    estimate, rate = clustered_standard_error(values, clusters), math.fsum(values) / n
    simple = rate * (1 - rate) / (n - 1)
    return n / groups if estimate is None or not simple else max(1.0, estimate[1] ** 2 / simple)


def _tabulate(items: Sequence[LabelledOutput]) -> Confusion:
    """Count verdicts, with the number of items reduced to the independent and equally weighted ones."""
    table = judge_rates.tabulate((item.people, item.output.passed, item.weight) for item in items)
    return table.scale(_count_effective(items, items) / table.n) if items else table


def _count_effective(group: Sequence[LabelledOutput], items: Sequence[LabelledOutput]) -> float:
    """Return how many independent and equally weighted labels a group of `items` is worth (Kish); never more."""
    effect = measure_design_effect([item.people for item in items], [item.output.cluster for item in items])
    weight = math.fsum(item.weight for item in group)
    return weight**2 / math.fsum(item.weight**2 for item in group) / effect if group else 0.0


def _measure_recall(items: Sequence[LabelledOutput], people: bool) -> Proportion | None:
    """Return how often the judge agrees with people where they pass an output, or fail it."""
    group = [item for item in items if item.people is people]
    weight = math.fsum(item.weight for item in group)
    agreed = math.fsum(item.weight for item in group if item.output.passed is people)
    effective = min(float(len(group)), _count_effective(group, items))
    return make_proportion(min(1.0, agreed / weight) * effective, effective, len(group)) if group else None


def _tabulate_verdicts(items: Sequence[LabelledOutput]) -> Confusion:
    """Count people's verdicts for each verdict of the judge, as many as equally weighted labels would give."""
    cells = []
    for passed in (True, False):
        group = [item for item in items if item.output.passed is passed]
        total = math.fsum(item.weight for item in group)
        effective = total**2 / math.fsum(item.weight**2 for item in group) if group else 0.0
        good = math.fsum(item.weight for item in group if item.people) / total if group else 0.0
        cells.append((good * effective, (1 - good) * effective))
    return Confusion(cells[0][0], cells[1][0], cells[0][1], cells[1][1])


def make_proportion(count: float, effective_n: float, n: int | None = None) -> Proportion | None:
    """Return a share of n items, worth `effective_n` independent ones, with its interval; None without items."""
    interval = wilson_interval(count, effective_n) if effective_n else None
    if interval is None:
        return None
    return Proportion(count / effective_n, interval, round(effective_n) if n is None else n, effective_n)


def _agree(table: Confusion, n: int, name: str = "", sides: Sequence[str] = ("people", "the judge")) -> Agreement:
    share = make_proportion(table.both_passed + table.both_failed, table.n, n)
    constant = [
        f"{sides[side]} {'passed' if passed else 'failed'} all {format_count(n, 'labelled output')}"
        for side, passed in table.list_constant_sides()
    ]
    if n < MIN_KAPPA_LABELS:
        return Agreement(n, share, None, None, name, f"too few labels (n = {n}; kappa needs {MIN_KAPPA_LABELS})")
    return Agreement(n, share, table.kappa, judge_rates.kappa_interval(table), name, " and ".join(constant))


def _measure_agreement(items: Sequence[LabelledOutput]) -> dict[str, Any]:
    if not items:
        return {}
    table = _tabulate(items)
    counts = Counter((item.people, item.output.passed) for item in items)
    names = {"both_passed": (True, True), "only_people": (True, False), "only_judge": (False, True)}
    errors = [float(item.output.passed) - float(item.people) for item in items]
    lengths = [math.log1p(item.output.length) for item in items]
    return {
        "agreement": _agree(table, len(items)),
        "sensitivity": _measure_recall(items, people=True),
        "specificity": _measure_recall(items, people=False),
        "confusion": {name: counts[key] for name, key in {**names, "both_failed": (False, False)}.items()},
        "length_bias": judge_rates.correlate(errors, lengths),
    }


def _slice_agreement(history: History, items: Sequence[LabelledOutput], by: str | None) -> dict[str, Any]:
    if by is None or not items:
        return {}
    samples: list[Sample[Any, Any]] = []
    for run_id in sorted({item.output.item.run_id for item in items}):
        samples += history.results(run_id).samples()
    groups = slice_samples(samples, by).groups
    slices = []
    for name, ids in groups.items():
        chosen = [item for item in items if item.output.item.sample_id in ids]
        if chosen:
            slices.append(_agree(_tabulate(chosen), len(chosen), name))
    return {"by": by, "slices": tuple(slices)}


def correct_rate(outputs: Sequence[JudgedOutput], items: Sequence[LabelledOutput], stratified: bool) -> CardRate | None:
    """Return the pass rate of outputs, corrected by the labels of some of them; None for fewer than two labels."""
    if len(items) < 2:
        return None
    effect = measure_design_effect([output.passed for output in outputs], [output.cluster for output in outputs])
    raw = make_proportion(sum(output.passed for output in outputs) / effect, len(outputs) / effect, len(outputs))
    groups = [output.cluster for output in outputs]
    if raw is not None and len(set(groups)) < len(groups):
        # The interval that reports and gates have for the same rate.
        interval = clustered_rate_interval([float(output.passed) for output in outputs], groups)
        raw = msgspec.structs.replace(raw, interval=interval or raw.interval)
    labelled = {item.output.item for item in items}
    others = [output.passed for output in outputs if output.item not in labelled]
    table, judged = _tabulate(items), sum(output.passed for output in outputs)
    if stratified:
        clusters = measure_design_effect([i.people for i in items], [i.output.cluster for i in items])
        estimate = judge_rates.stratified_rate(_tabulate_verdicts(items).scale(1 / clusters), judged, len(outputs))
        kappa = judge_rates.kappa_interval(table)
        estimate = estimate._replace(helps=kappa is not None and kappa[0] > 0)
    else:
        estimate = judge_rates.corrected_rate(table, sum(others) / effect, len(others) / effect)
    reason = "" if estimate.helps else _explain_no_help(table, len(items), len(others), effect)
    if not estimate.helps and not others:
        reason = f"all {len(items):,} outputs with a verdict are labelled, so no verdict without a label is left"
    return None if raw is None else _make_rate(raw, estimate, len(items), len(outputs), reason)


def _explain_no_help(table: Confusion, n: int, others: int, effect: float) -> str:
    """Say why a judge adds nothing beyond its labels; `others` outputs have a verdict without a label."""
    if constant := table.list_constant_sides():
        sides = [
            f"{('people', 'the judge')[side]} {'passed' if passed else 'failed'} all {n:,} of them"
            for side, passed in constant
        ]
        return f"the labelled outputs are all alike: {' and '.join(sides)}"
    kappa = judge_rates.kappa_interval(table)
    if kappa is None:
        return f"its {n:,} labels are worth fewer than two independent ones"
    if kappa[0] <= 0:
        place = "includes 0" if kappa[1] >= 0 else "is below 0: it agrees with people less often than chance would"
        return f"the interval of kappa on its labels, {kappa[0]:.2f} to {kappa[1]:.2f}, {place}"
    worth = "" if effect == 1 else f", worth {others / effect:.1f} independent ones"
    return f"only {format_count(others, 'verdict')} without a label {'is' if others == 1 else 'are'} left{worth}"


def _make_rate(raw: Proportion, estimate: CorrectedRate, n: int, total: int, reason: str) -> CardRate:
    labels = Proportion(estimate.labels_value, estimate.labels_interval, n, estimate.n)
    effective = estimate.effective_labels * n / estimate.n
    return CardRate(raw, labels, estimate.value, estimate.interval, estimate.helps, effective, n, total, reason)


def _compare_annotators(
    labels: Sequence[HumanLabel], clusters: Mapping[LabelledItem, Hashable]
) -> tuple[Agreement, ...]:
    """Compare each two annotators on the items that both labelled."""
    votes: dict[str, dict[LabelledItem, bool]] = {}
    for label in labels:
        if label.passed is not None:
            votes.setdefault(label.annotator, {})[label.item] = label.passed
    agreements = []
    for first, second in combinations(sorted(votes), 2):
        shared = sorted(votes[first].keys() & votes[second].keys())
        if shared:
            pairs = [(votes[first][item], votes[second][item]) for item in shared]
            effect = measure_design_effect([float(a is b) for a, b in pairs], [clusters.get(i, i) for i in shared])
            table = judge_rates.tabulate((a, b, 1 / effect) for a, b in pairs)
            agreements.append(_agree(table, len(shared), f"{first} and {second}", (first, second)))
    return tuple(agreements)


def _find_disputes(card: JudgeCard, min_kappa: float) -> str:
    """Say why people agree too little to measure a judge; empty if they do not."""
    labelled = card.n + card.disputed
    if card.disputed > MAX_DISPUTED * labelled:
        share = f"{card.disputed} of {format_count(labelled, 'labelled output')}"
        return f"people disagree on {share}, more than a tenth; these are left out, and are not left out at random"
    for pair in card.annotators:
        if pair.kappa is not None and pair.kappa_interval is not None and pair.kappa_interval[1] < min_kappa:
            low, high = pair.kappa_interval
            figures = f"kappa {pair.kappa:.2f}, {low:.2f} to {high:.2f}, n = {pair.n}"
            return f"the annotators {pair.name} agree too little ({figures}) to show a kappa of {min_kappa:g}"
    return ""


def _measure_stability(
    history: History, run: RunMetadata, evaluator: str, digest: str, outputs: Sequence[JudgedOutput]
) -> Proportion | None:
    """Return how often the judge gave the same verdict again, in the latest run that scored the same outputs."""
    if not evaluator or run.options.cache:
        return None
    root = run.rescored_from or run.run_id
    for other in history.runs(evaluator=evaluator, limit=RUNS_SEARCHED):
        is_related = root in (other.run_id, other.rescored_from) and other.run_id != run.run_id
        has_judge = evaluator in {spec.name for spec in other.evaluators}
        if not is_related or not has_judge or other.options.cache or digest_evaluator(other, evaluator) != digest:
            continue
        verdicts = {o.item[1:]: (o.output_digest, o.passed) for o in _read_outputs(history, other.run_id, evaluator)}
        repeated = [
            verdicts[output.item[1:]][1] is output.passed
            for output in outputs
            if verdicts.get(output.item[1:], ("",))[0] == output.output_digest
        ]
        if repeated:
            return make_proportion(sum(repeated), len(repeated))
    return None


def _measure_position_bias(results: Iterable[EvalResult], evaluator: str) -> Proportion | None:
    """Return how often a comparing judge chose the same position in both orders."""
    from proctor.evaluators.judges.pairwise import position_bias, preferences_in

    bias = position_bias(preferences_in(results, evaluator))
    return make_proportion(bias.flips, bias.pairs)


def _mean_cost(results: Iterable[EvalResult], evaluator: str) -> float | None:
    sessions = (result.sessions.get(evaluator) for result in results)
    costs = [session.usage.cost for session in sessions if session is not None and session.usage.cost is not None]
    return math.fsum(costs) / len(costs) if costs else None


def _list_models(run: RunMetadata, evaluator: str) -> tuple[str, ...]:
    specs = [spec for spec in run.evaluators if evaluator in ("", spec.name)]
    return tuple(dict.fromkeys(model for spec in specs for model in spec.judges_inside))


def _read_outputs(history: History, run_id: str, evaluator: str) -> list[JudgedOutput]:
    return list(list_judged_outputs(run_id, history.results(run_id), evaluator))


def _settle_disputes(ask: str, size: int) -> str:
    """Say how a third person decides disputes: the same draw asks about the same outputs."""
    return (
        "write down together what passes, then let a third person label the same outputs: "
        f"{ask} --sample-size {size} --annotator NAME"
    )


def _judge_state(card: JudgeCard, other_versions: int, min_kappa: float, verdicts: Collection[bool] = ()) -> JudgeCard:
    """Set the state of a card, its reason, and what to do; `verdicts` are those of the judge in the run."""
    ask = f"proctor label {card.run_id}" + (f" --evaluator {shlex.quote(card.evaluator)}" if card.evaluator else "")
    state: CardState = "weak"
    kappa, interval = (None, None) if card.agreement is None else (card.agreement.kappa, card.agreement.kappa_interval)
    reason, fix = "", f"{ask} --sample-size {max(2 * card.n, MIN_LABELS)}"
    if not card.n and other_versions:
        state, reason = "stale", f"its {format_count(other_versions, 'label')} belong to another version of the judge"
    elif not card.n and not card.disputed:
        state, reason = "none", "no randomly drawn output is labelled yet"
    elif card.n < MIN_LABELS and card.disputed:
        labelled = card.n + card.disputed
        reason = (
            f"people disagree on {card.disputed} of {format_count(labelled, 'labelled output')}; "
            f"{format_count(card.n, 'label')} without a dispute remain, and a card needs {MIN_LABELS}"
        )
        fix = _settle_disputes(ask, max(labelled, MIN_LABELS))
    elif card.n < MIN_LABELS:
        reason = f"{format_count(card.n, 'label')}, and a card needs {MIN_LABELS}"
    elif card.agreement is None or kappa is None or interval is None:
        state = "cannot tell"
        reason = f"{card.agreement.undefined if card.agreement else 'too few labels'}, so kappa is undefined"
        is_exhausted = card.rate is not None and card.rate.n == card.rate.total
        if len(verdicts) > 1 and not is_exhausted:
            fix = f"{ask} --strategy stratified --sample-size {2 * card.n}"
        else:
            fix = "add samples whose outputs deserve the other verdict, run them, and label that run"
    elif interval[0] <= 0:
        reason = (
            f"kappa {kappa:.2f} may be chance: its interval is {interval[0]:.2f} to {interval[1]:.2f} (n = {card.n})"
        )
    elif kappa < min_kappa:
        reason = f"kappa {kappa:.2f} ({interval[0]:.2f} to {interval[1]:.2f}, n = {card.n}) is below {min_kappa:g}"
        shown = f"proctor judge card {shlex.quote(card.evaluator)} --run {card.run_id} --mistakes"
        fix = f"improve the judge: {shown} lists the labelled outputs on which it differs from people"
    elif disputes := _find_disputes(card, min_kappa):
        reason = disputes
        fix = _settle_disputes(ask, card.n + card.disputed)
    else:
        state, fix = "ok", ""
    return msgspec.structs.replace(card, state=state, reason=reason, fix=fix)
