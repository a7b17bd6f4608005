"""Item analysis of a dataset: which samples separate configurations, and which are probably wrong or useless."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from proctor.core.stats.distributions import normal_quantile
from proctor.core.stats.effects import benjamini_hochberg
from proctor.core.stats.items import (
    CoreError,
    Reliability,
    cross_validate_core,
    fit_2pl,
    item_rest_association,
    reliability,
    select_core,
)
from proctor.errors import ConfigError, list_names
from proctor.records.formatting import format_count
from proctor.records.results import Results
from proctor.records.run import RunMetadata
from proctor.records.trial import OUTCOMES

MIN_CONFIGURATIONS = 8
# The two-parameter model has two free numbers per sample: fewer configurations say nothing about them.
MIN_MODEL_CONFIGURATIONS = 200
LEVEL = 0.05
# A sample that is not shown to be broken is listed up to this p, which is not adjusted for the number of samples.
SUSPICION = 0.5
MIN_CORE = 10
MAX_CORE_SAMPLES = 2_000


class Verdicts(msgspec.Struct):
    """The pass rates of samples by configuration: `shares[c][sample_id]`, averaged over epochs and repeated runs.

    A sample without a verdict in a configuration has no entry there. `left_out` says which runs were not used, and why.
    """

    configurations: list[str]
    shares: list[dict[str, float]]
    trials: int = 0
    runs: int = 0
    left_out: list[str] = []


class ItemFacts(msgspec.Struct, frozen=True):
    """One sample: its pass rate over `n` configurations, and its correlation with the other samples."""

    sample_id: str
    pass_rate: float
    n: int
    correlation: float | None = None
    p: float | None = None
    adjusted_p: float | None = None
    discrimination: float | None = None
    difficulty: float | None = None


class RedundantSamples(msgspec.Struct, frozen=True):
    """Samples that all `n` configurations passed and failed alike; `p` is the chance of one such pair by luck."""

    sample_ids: list[str]
    n: int
    p: float


class CoreSet(msgspec.Struct, frozen=True):
    """Samples for quick runs, and the error of their pass rate on configurations that did not choose them.

    `is_better_than_random` is set if the error is smaller than that of random samples at the 5% level.
    """

    sample_ids: list[str]
    of: int
    error: CoreError
    is_better_than_random: bool


class ItemAnalysis(msgspec.Struct, frozen=True):
    """The item analysis of a dataset. `decided` is False below eight configurations: then nothing is claimed."""

    configurations: list[str]
    samples: int
    runs: int
    trials: int
    decided: bool
    answer: str
    always_passed: list[str]
    never_passed: list[str]
    broken: list[ItemFacts]
    suspicious: list[ItemFacts]
    redundant: list[RedundantSamples]
    informative: list[ItemFacts]
    reliability: Reliability | None
    core: CoreSet | None
    items: list[ItemFacts]
    left_out: list[str]
    notes: list[str]


def collect_verdicts(runs: Iterable[tuple[RunMetadata, Results]], evaluator: str | None = None) -> Verdicts:
    """Collect the verdicts of runs on the dataset of the first run, scored by the same evaluators.

    Runs of the same target with the same options are repeats of one configuration. A rescored run whose source is among
    the runs is left out, because its outputs are those of the source.
    """
    runs = list(runs)
    _require_evaluator(evaluator, [spec.name for run, _ in runs for spec in run.evaluators])
    ids = {run.run_id for run, _ in runs}
    rescored = [run for run, _ in runs if run.rescored_from in ids]
    reasons = [f"{run.run_id}: rescored from run {run.rescored_from}, which counts already" for run in rescored]
    runs = [(run, results) for run, results in runs if run not in rescored]
    collected = Verdicts([], [], left_out=reasons)
    sums: dict[object, defaultdict[str, list[float]]] = {}
    labels: dict[object, str] = {}
    reference: RunMetadata | None = None
    for run, results in runs:
        if evaluator is None or evaluator in (spec.name for spec in run.evaluators):
            reference = reference or run
        if reason := _find_difference(reference, run, evaluator):
            collected.left_out.append(f"{run.run_id}: {reason}")
            continue
        collected.runs += 1
        for configuration in run.configurations:
            figures = results.for_configuration(configuration.name).figures()
            outcomes = figures.outcomes if evaluator is None else figures.marks.get(evaluator, b"")
            key = msgspec.json.encode(
                [run.target.essentials, configuration.options], enc_hook=repr, order="deterministic"
            )
            labels.setdefault(key, f"{run.run_id}@{configuration.name}")
            cells = sums.setdefault(key, defaultdict(list))
            for sample_id, outcome in zip(figures.sample_ids, outcomes, strict=bool(outcomes)):
                if OUTCOMES[outcome] in ("passed", "failed"):
                    cells[sample_id].append(float(OUTCOMES[outcome] == "passed"))
                    collected.trials += 1
    for identity, rates in sums.items():
        if rates:
            collected.configurations.append(labels[identity])
            collected.shares.append({sample_id: math.fsum(v) / len(v) for sample_id, v in rates.items()})
    return collected


def _require_evaluator(evaluator: str | None, known: Sequence[str]) -> None:
    if evaluator is not None and evaluator not in known:
        raise ConfigError(
            f"no run has an evaluator {evaluator!r}", where="--evaluator", fix=list_names(evaluator, known)
        )


def _find_difference(reference: RunMetadata | None, run: RunMetadata, evaluator: str | None) -> str:
    if reference is None:
        return f"no evaluator {evaluator!r}"
    if run.dataset.fingerprint is None or run.dataset.fingerprint != reference.dataset.fingerprint:
        return "another dataset, or one that cannot be identified"
    first, second = (
        [spec for spec in metadata.evaluators if evaluator in (None, spec.name)] for metadata in (reference, run)
    )
    return "" if first == second and first else "other evaluators"


def analyze_items(verdicts: Verdicts, *, core_size: int | None = None, seed: int = 0) -> ItemAnalysis:
    """Analyze the samples; below eight configurations, only count them.

    The same verdicts and seed give the same numbers in whatever order samples, results and runs arrived: samples are
    sorted by id (q2 before q10) and configurations by their verdicts before anything is drawn.
    """
    n = len(verdicts.shares)
    sample_ids = sorted({s for shares in verdicts.shares for s in shares}, key=lambda s: (len(s), s))
    rows = sorted(verdicts.shares, key=lambda shares: [shares.get(s, -1.0) for s in sample_ids])
    columns = {s: {c: shares[s] for c, shares in enumerate(rows) if s in shares} for s in sample_ids}
    decided = n >= MIN_CONFIGURATIONS
    complete = [s for s in sample_ids if len(columns[s]) == n]
    matrix = [[shares[s] for s in complete] for shares in rows]
    items = _measure_items(columns, seed) if decided else []
    means = {s: math.fsum(column.values()) / len(column) for s, column in columns.items()}
    passed, failed = ([s for s in complete if means[s] == end] if decided else [] for end in (1.0, 0.0))
    known = sorted((i for i in items if i.correlation is not None), key=lambda i: i.correlation or 0.0)
    broken = [item for item in known if item.adjusted_p is not None and item.adjusted_p <= LEVEL]
    suspicious = [i for i in known if i.p is not None and i.p <= SUSPICION and i not in broken][:10]
    score = reliability(matrix) if decided and complete else None
    core = _choose_core(matrix, complete, core_size, seed) if decided and len(complete) > MIN_CORE else None
    if decided and n >= MIN_MODEL_CONFIGURATIONS:
        items = _add_model(items, matrix, complete)
    missing_core = _explain_no_core(decided, core, core_size, len(complete))
    analysis = ItemAnalysis(
        verdicts.configurations, len(sample_ids), verdicts.runs, verdicts.trials, decided, "", passed, failed, broken,
        suspicious, _find_redundant(columns, n) if decided else [],
        [item for item in reversed(known) if (item.correlation or 0.0) > 0][:10],
        score, core, items, verdicts.left_out,
        _list_notes(items, n, len(complete), len(sample_ids)) + missing_core,
    )  # fmt: skip
    return msgspec.structs.replace(analysis, answer=_describe(analysis))


def _measure_items(columns: Mapping[str, Mapping[int, float]], seed: int) -> list[ItemFacts]:
    """Correlate every sample with the mean of the others; test those with a negative correlation."""
    sums: dict[int, list[float]] = defaultdict(list)
    for column in columns.values():
        for c, share in column.items():
            sums[c].append(share)
    totals = {c: (math.fsum(values), len(values)) for c, values in sums.items()}
    facts, tested = [], []
    for sample_id, column in columns.items():
        places = [c for c in column if totals[c][1] > 1]
        values = [column[c] for c in places]
        rest = [(totals[c][0] - column[c]) / (totals[c][1] - 1) for c in places]
        found = item_rest_association(values, rest, seed) if len(places) >= MIN_CONFIGURATIONS else None
        mean = math.fsum(column.values()) / len(column)
        facts.append(ItemFacts(sample_id, mean, len(column)))
        if found is not None:
            facts[-1] = msgspec.structs.replace(facts[-1], correlation=found.correlation, p=found.p)
            tested += [len(facts) - 1] if found.p is not None else []
    adjusted = benjamini_hochberg([facts[i].p or 0.0 for i in tested], LEVEL)
    for i, probability in zip(tested, adjusted, strict=True):
        facts[i] = msgspec.structs.replace(facts[i], adjusted_p=probability.p)
    return facts


def _add_model(
    items: Sequence[ItemFacts], matrix: Sequence[Sequence[float]], complete: Sequence[str]
) -> list[ItemFacts]:
    """Add discrimination and difficulty, from verdicts without epochs."""
    if any(value not in (0.0, 1.0) for row in matrix for value in row) or len(complete) < 3:
        return list(items)
    model = fit_2pl([[int(value) for value in row] for row in matrix])
    numbers = dict(zip(complete, zip(model.discriminations, model.difficulties, strict=True), strict=True))
    return [
        msgspec.structs.replace(item, discrimination=numbers[item.sample_id][0], difficulty=numbers[item.sample_id][1])
        if item.sample_id in numbers
        else item
        for item in items
    ]


def _find_redundant(columns: Mapping[str, Mapping[int, float]], n: int) -> list[RedundantSamples]:
    """Group the samples with the same verdict everywhere, if luck would rarely make one such pair among all pairs."""
    patterns: dict[tuple[float, ...], list[str]] = defaultdict(list)
    for sample_id, column in columns.items():
        if len(column) == n:
            patterns[tuple(column[c] for c in range(n))].append(sample_id)
    pairs = math.comb(sum(map(len, patterns.values())), 2)
    groups = []
    for pattern, sample_ids in patterns.items():
        levels = set(pattern)
        if len(sample_ids) > 1 and len(levels) > 1:
            arrangements = math.factorial(n) // math.prod(math.factorial(pattern.count(level)) for level in levels)
            chance = min(1.0, pairs / arrangements)
            groups += [RedundantSamples(sample_ids, n, chance)] if chance <= LEVEL else []
    return sorted(groups, key=lambda group: -len(group.sample_ids))


def _choose_core(
    matrix: Sequence[Sequence[float]], complete: Sequence[str], size: int | None, seed: int
) -> CoreSet | None:
    size = size or max(MIN_CORE, len(complete) // 10)
    if size >= len(complete) or len(complete) > MAX_CORE_SAMPLES:
        return None
    chosen = [complete[i] for i in select_core(matrix, size)]
    error = cross_validate_core(matrix, size, seed)
    # The 5% quantile of a mean of n squared errors, by Wilson and Hilferty.
    spread = 2 / (9 * len(matrix))
    bound = error.random_rmse * (1 - spread + normal_quantile(LEVEL) * math.sqrt(spread)) ** 1.5
    return CoreSet(chosen, len(complete), error, error.rmse < bound)


def _explain_no_core(decided: bool, core: CoreSet | None, size: int | None, complete: int) -> list[str]:
    if not decided or core is not None or (size is None and complete <= MIN_CORE):
        return []
    if complete > MAX_CORE_SAMPLES:
        return [f"no core set: it is selected from at most {MAX_CORE_SAMPLES:,} samples, and there are {complete:,}"]
    limit = f"{complete} samples have a verdict in every configuration"
    if complete <= MIN_CORE:
        return [f"no core set: only {limit}, and at least {MIN_CORE + 1} are needed"]
    return [f"no core set of {size} samples: only {limit}. Fix: --core {max(1, complete // 2)}"]


def _list_notes(items: Sequence[ItemFacts], n: int, complete: int, samples: int) -> list[str]:
    notes = []
    if complete < samples:
        notes.append(f"{samples - complete} of {samples} samples lack a verdict in some configuration")
    tested = sum(item.p is not None for item in items)
    if tested and 2 * tested / math.comb(n, n // 2) > LEVEL:
        notes.append(f"{n} configurations are too few to show that a single sample is broken")
    if items and n < MIN_MODEL_CONFIGURATIONS:
        notes.append(f"discrimination and difficulty (2PL) need {MIN_MODEL_CONFIGURATIONS} configurations")
    return notes


def _describe(analysis: ItemAnalysis) -> str:
    n = len(analysis.configurations)
    if not analysis.decided:
        return (
            f"Cannot tell: {format_count(n, 'configuration')} of {analysis.samples} samples, and item analysis "
            f"needs at least {MIN_CONFIGURATIONS}. Run more configurations (models, prompts, temperatures) on this "
            "dataset."
        )
    dead = len(analysis.always_passed) + len(analysis.never_passed)
    bound = 1 - LEVEL ** (1 / n)
    parts = [
        f"{n} configurations, {analysis.samples} samples, {analysis.trials:,} verdicts.",
        (
            f"{format_count(len(analysis.broken), 'sample')} probably broken: stronger configurations fail more often "
            f"(expected share of false finds: {LEVEL:.0%})."
        ),
    ]
    if dead:
        parts.append(
            f"{format_count(dead, 'sample')} without effect: {len(analysis.always_passed)} always passed, "
            f"{len(analysis.never_passed)} never (in {n} of {n}, so another configuration differs with a probability "
            f"of at most {bound:.0%}, with {1 - LEVEL:.0%} confidence)."
        )
    if analysis.reliability is not None:
        low, high = analysis.reliability.interval
        parts.append(
            f"Reliability {analysis.reliability.alpha:.2f} (95% interval {max(low, -1):.2f} to {high:.2f}): pass rates "
            f"that differ by less than {100 * analysis.reliability.smallest_difference:.1f} points may be equal."
        )
    return " ".join(parts)
