"""Judge cards in words: one line for reports, and the whole card."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from proctor.comparison.describe import describe_gate
from proctor.comparison.sides import LOWER_IS_BETTER
from proctor.core.stats.intervals import Interval
from proctor.errors import ConfigError
from proctor.metrics.estimates import FIELD_PREFIX
from proctor.metrics.warnings import find_evaluator
from proctor.ports import History
from proctor.records.formatting import format_cost, format_count
from proctor.records.gate import Check, GateResult
from proctor.records.run import RunMetadata
from proctor.reports.format import format_percent, single_line
from proctor.validity.cards import Agreement, CardRate, JudgeCard, LabelledOutput, Proportion, read_state
from proctor.validity.panels import Estimate, Panel

# Metrics with these prefixes do not depend on scores.
_WITHOUT_SCORES = (*LOWER_IS_BETTER, "success_rate")


def list_judges(history: History, run: RunMetadata) -> list[str]:
    """Return the evaluators of a run that need a card: those that ask a model, and those that people label.

    A label in a run of another name says nothing about an evaluator that only has the same name.
    """
    rules = {spec.name for spec in run.evaluators if not spec.judges_inside}
    labelled = {label.evaluator for label in history.labels(name=run.name)} if rules else set()
    return [spec.name for spec in run.evaluators if spec.judges_inside or spec.name in labelled]


def describe_states(history: History, run: RunMetadata) -> list[str]:
    """Return one line for each judge of a run: the state of its card."""
    return [describe_state(read_state(history, run, name)) for name in list_judges(history, run)]


def list_cards(history: History, run: RunMetadata) -> list[dict[str, Any]]:
    """Return the cards of a run's judges and of its labelled evaluators, as the viewer shows them."""
    names = list_judges(history, run)
    if any(not label.evaluator for label in history.labels(run_id=run.run_id)):
        names.append("")
    fields = ("evaluator", "state", "reason", "fix", "n", "agreement", "rate")
    return [
        {field: getattr(card, field) for field in fields}
        | {"worth": describe_worth(card), "labels": describe_draws(card) if card.labels else ""}
        for card in (read_state(history, run, name) for name in names)
    ]


def describe_state(card: JudgeCard) -> str:
    """Describe the state of a card in one line."""
    name = card.evaluator or "overall verdict"
    if card.state == "ok" and card.agreement is not None:
        return f"judge {name}: card ok, {_describe_kappa(card.agreement)}"
    return f"judge {name}: card {card.state}: {card.reason}. Fix: {card.fix}"


def list_evaluators_of(metrics: Iterable[str], run: RunMetadata) -> set[str]:
    """Return the evaluators of a run on which some metrics depend; a custom metric may depend on any of them."""
    names: set[str] = set()
    for metric in metrics:
        evaluators = {find_evaluator(name, run)[1] for name in (metric, f"{FIELD_PREFIX}.{metric}")} - {None}
        if not metric.startswith(_WITHOUT_SCORES):
            names |= {str(name) for name in evaluators} or {spec.name for spec in run.evaluators}
    return names


def require_cards(
    result: GateResult, history: History, run: RunMetadata, min_kappa: float, metrics: Iterable[str] | None = None
) -> GateResult:
    """Add a check of each judge's card to a gate; a gate that passed is inconclusive without a good card.

    With `metrics`, only the judges on which these metrics depend need a card.
    """
    judges = list_judges(history, run)
    names = judges if metrics is None else [n for n in judges if n in list_evaluators_of(metrics, run)]
    if not names:
        what = f"run {run.run_id} has no evaluator that asks a model, and none with human labels"
        fix = f"leave it out, or label outputs: proctor label {run.run_id} --evaluator NAME"
        if judges:
            what = f"no check of the gate depends on a judge; the judges of the run are {', '.join(judges)}"
            fix = f"leave it out, or check a judge: --fail-under {judges[0]}.pass_rate=0.8"
        raise ConfigError(what, where="--require-card", fix=fix)
    cards = [read_state(history, run, name, min_kappa) for name in names]
    checks = [
        Check(
            f"card.{card.evaluator}",
            "pass" if card.state == "ok" else "inconclusive",
            describe_state(card),
            value=None if card.agreement is None else card.agreement.kappa,
            n=card.n,
        )
        for card in cards
    ]
    is_undecided = result.verdict == "pass" and any(check.verdict != "pass" for check in checks)
    verdict = "inconclusive" if is_undecided else result.verdict
    checks = [*result.checks, *checks]
    answer = describe_gate(verdict, checks, result.early) if is_undecided else result.answer
    return msgspec.structs.replace(result, verdict=verdict, checks=tuple(checks), answer=answer)


def describe_worth(card: JudgeCard) -> str:
    """Say in one or two sentences what the judge is worth."""
    rate, agreement = card.rate, card.agreement
    if agreement is None:
        return f"Nothing is known about this judge: {card.reason}."
    if agreement.kappa is None:
        by_labels = "" if rate is None else f" {_describe_labels_rate(rate)}"
        return f"Cannot tell how far this judge agrees with people: {agreement.undefined}.{by_labels}"
    first = f"Agreement of this judge with people: {_describe_kappa(agreement)}."
    if rate is None:
        return f"{first} No output of this run is labelled, so its pass rate is not corrected."
    if not rate.helps:
        return f"{first} In this run it adds nothing beyond the labels: {rate.reason}. {_describe_labels_rate(rate)}"
    worth = (
        f"without the judge you would need about {rate.effective_labels:.0f} labels for the same precision"
        if round(rate.effective_labels) > rate.n
        else "the labels alone would be as precise"
    )
    return (
        f"{first} Corrected pass rate {format_percent(rate.value)} ({_percents(rate.interval)}, n = "
        f"{format_count(rate.n, 'label')} and {format_count(rate.total - rate.n, 'verdict')}); {worth}."
    )


def _describe_labels_rate(rate: CardRate) -> str:
    return f"Pass rate by the labels {format_percent(rate.value)} ({_percents(rate.interval)}, n = {rate.n})."


def describe_card(card: JudgeCard) -> Iterator[str]:
    """Yield the lines of a card."""
    models = f" ({', '.join(card.models)})" if card.models else ""
    yield f"Judge {card.evaluator or 'overall verdict'}{models}, version {card.digest}: card {card.state}"
    if card.reason:
        yield f"  {card.reason}"
        yield f"  Fix: {card.fix}"
    if card.n:
        yield ""
        yield describe_worth(card)
        yield ""
        yield from _describe_numbers(card)
    elif card.labels:
        yield f"  {describe_draws(card)}"


def describe_mistakes(mistakes: Sequence[LabelledOutput], labelled: int) -> Iterator[str]:
    """Yield the lines of the labelled outputs on which a judge and people differ, each with how to see it."""
    if not labelled:
        yield "Its mistakes are unknown: no output has a label for this version. Label some with the command above."
        return
    count = f"{len(mistakes):,} of {format_count(labelled, 'labelled output')}"
    yield f"People and the judge differ on {count}{':' if mistakes else '.'}"
    for mistake in mistakes:
        item = mistake.output.item
        verdicts = "people pass, the judge fails" if mistake.people else "people fail, the judge passes"
        place = f"{single_line(item.sample_id, 60)} ({item.configuration}, epoch {item.epoch + 1})"
        yield f"  {verdicts}: {place}: proctor show {item.run_id} --sample {shlex.quote(item.sample_id)}"


def _describe_numbers(card: JudgeCard) -> Iterator[str]:
    yield _row("labels", describe_draws(card))
    if card.agreement is not None:
        yield _row("agreement", _describe_share(card.agreement.share))
        yield _row("kappa", _describe_kappa(card.agreement).removeprefix("kappa "))
    for name, share, verb in (("sensitivity", card.sensitivity, "pass"), ("specificity", card.specificity, "fail")):
        text = _describe_share(share, f"output{'' if share and share.n == 1 else 's'} that people {verb}")
        yield _row(name, text if share else f"cannot tell: people {verb} none of the {card.n:,} labelled outputs")
    cells = card.confusion
    yield _row("people pass", f"judge passes {cells['both_passed']}, fails {cells['only_people']}")
    yield _row("people fail", f"judge passes {cells['only_judge']}, fails {cells['both_failed']}")
    if card.labels.get("stratified"):
        yield _row("weights", "rates and kappa are weighted by inclusion probability; n and the counts above are not")
    if card.rate is not None:
        yield from _describe_rates(card.rate)
    bias = card.length_bias
    text = "not measured: all errors, or all lengths, are equal" if bias is None else _describe_bias(bias)
    yield _row("length bias", text)
    if card.position_bias is not None:
        yield _row("position bias", f"same place chosen in both orders: {_describe_share(card.position_bias, 'pairs')}")
    text = "not measured: no other run judged the same outputs" if card.stability is None else ""
    yield _row("asked again", text or f"same verdict {_describe_share(card.stability)}")
    if card.cost_per_verdict is not None:
        yield _row("cost", f"{format_cost(card.cost_per_verdict)} per verdict")
    for pair in card.annotators:
        yield _row("annotators", f"{pair.name}: agreement {_describe_share(pair.share)}; {_describe_kappa(pair)}")
    for part in card.slices:
        yield _row(f"{card.by} {part.name}", f"agreement {_describe_share(part.share)}; {_describe_kappa(part)}")


def _describe_rates(rate: CardRate) -> Iterator[str]:
    yield _row("raw pass rate", _describe_share(rate.raw))
    labels = rate.labels
    # Labels drawn by verdict are the corrected rate themselves.
    if not rate.helps or labels.interval != rate.interval:
        yield _row("labels alone", f"{format_percent(labels.value)} ({_percents(labels.interval)}, n = {rate.n})")
    if rate.helps:
        text = f"{format_percent(rate.value)} ({_percents(rate.interval)}, n = {rate.n} of {rate.total})"
        yield _row("corrected", text)


def _describe_bias(bias: tuple[float, Interval, int]) -> str:
    value, (low, high), n = bias
    verdict = (
        "no evidence of a bias"
        if low <= 0 <= high
        else "longer outputs pass more"
        if low > 0
        else "shorter outputs pass more"
    )
    return f"correlation of error and length {value:+.2f} ({low:+.2f} to {high:+.2f}, n = {n}): {verdict}"


def describe_draws(card: JudgeCard) -> str:
    """Describe the labels of a card: how many outputs, how they were drawn, and which labels are left out."""
    draws = ", ".join(f"{count} {name}" for name, count in sorted(card.labels.items()))
    facts = [f"{format_count(card.n, 'output')}{_describe_runs(card)} ({draws})"]
    if card.labels.get("disagreement"):
        facts.append("labels of disagreements are not counted in the figures")
    if card.skipped:
        facts.append(f"{card.skipped} skipped")
    if card.disputed:
        facts.append(
            f"{card.disputed} disputed by the annotators and left out: hard ones, so the figures may flatter the judge"
        )
    return "; ".join(facts)


def _describe_runs(card: JudgeCard) -> str:
    """Say in which runs the labelled outputs of a card are, because only those of its own run correct its pass rate."""
    if not card.n:
        return ""
    if card.n_in_run == card.n:
        return " of this run"
    if not card.n_in_run:
        return " of another run" if card.runs == 1 else f" of {card.runs} other runs"
    return f" of {format_count(card.runs, 'run')}, {card.n_in_run:,} of them of this run"


def _describe_kappa(agreement: Agreement) -> str:
    if agreement.kappa is None or agreement.kappa_interval is None:
        reason = agreement.undefined or f"n = {agreement.n}"
        return f"kappa cannot tell: {reason}"
    low, high = agreement.kappa_interval
    return f"kappa {agreement.kappa:.2f} (95% interval {low:.2f} to {high:.2f}, n = {agreement.n})"


def _describe_share(share: Proportion | None, noun: str = "") -> str:
    if share is None:
        return f"not measured: no {noun or 'outputs'}"
    worth = "" if round(share.effective_n) == share.n else f", worth {share.effective_n:.0f} independent ones"
    count = f"n = {share.n}{f' {noun}' if noun else ''}{worth}"
    return f"{format_percent(share.value)} ({_percents(share.interval)}, {count})"


def _percents(interval: Interval) -> str:
    return f"{format_percent(interval[0])} to {format_percent(interval[1])}"


def _row(name: str, text: str) -> str:
    return f"  {name:<14} {text}"


def describe_panel(panel: Panel) -> Iterator[str]:
    """Yield the lines of a panel."""
    worth = "" if round(panel.effective_n) == panel.n else f", worth {panel.effective_n:.0f} equally weighted ones"
    count = f"n = {panel.n} labels{worth}"
    if panel.effective is None or panel.error_correlation is None:
        yield f"Cannot tell how far these judges share their errors: at most one of them makes any ({count})."
    else:
        silent = [judge.name for judge in panel.judges if judge.errors in (0, panel.n)]
        limit = f", without {', '.join(silent)}, whose errors do not vary" if silent else ""
        yield (
            f"{len(panel.judges)} judges are worth about {_describe_estimate(panel.effective)} independent ones: the "
            f"mean correlation of their errors is {_describe_estimate(panel.error_correlation)}{limit} ({count})."
        )
    for judge in panel.judges:
        yield _row(judge.name, f"wrong on {judge.errors}: {_describe_share(judge.error_rate)}")
    tie = "" if len(panel.judges) % 2 else "; a tie counts as fail"
    yield _row("majority", f"wrong on {panel.majority_errors}: {_describe_share(panel.majority_rate)}{tie}")
    if panel.drop is not None and panel.drop_gain is not None:
        gain = _describe_estimate(panel.drop_gain, 100)
        yield (
            f"Without {panel.drop} the majority is wrong on {panel.drop_errors} of {panel.n}: {gain} points fewer "
            f"errors{'; a tie counts as fail' if len(panel.judges) % 2 else ''}."
        )
    elif len(panel.judges) > 2:
        yield f"No judge can be shown to make the majority worse ({count})."
    if panel.accuracy_gap is None:
        yield (
            "Accuracies cannot be estimated from the verdicts alone (Dawid and Skene): that takes three judges, "
            "because the verdicts of two fit many accuracies equally well."
        )
        return
    yield (
        "Accuracies estimated from the verdicts alone (Dawid and Skene) differ from those by the labels by up to "
        f"{_describe_estimate(panel.accuracy_gap, 100)} points ({count})."
    )


def _describe_estimate(estimate: Estimate, scale: float = 1.0) -> str:
    digits = 2 if scale == 1 else 1
    if estimate.interval is None:
        return f"{scale * estimate.value:.{digits}f} (too few errors for an interval)"
    low, high = (f"{scale * end:.{digits}f}" for end in estimate.interval)
    return f"{scale * estimate.value:.{digits}f} (95% interval {low} to {high})"
