"""Runs and configurations side by side: which are meant, and what they are beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from proctor.comparison.compare import COMBINED, changes_between, compare_all, standing
from proctor.comparison.coverage import coverage_of
from proctor.comparison.ranking import Ranked
from proctor.comparison.ranking import rank as put_in_order
from proctor.comparison.report import FieldReport
from proctor.comparison.sides import LOWER_IS_BETTER, Side
from proctor.comparison.totals import scale_in, unlike_scales
from proctor.comparison.verdicts import WORTH
from proctor.errors import ConfigError, RunNotFound, UsageError, nearest
from proctor.ports import History
from proctor.records.comparison import Comparison, Ranking, also_known_as
from proctor.records.fields.numbers import higher_is_better
from proctor.records.report import EvalReport
from proctor.records.rubric import TOTAL_SCORE
from proctor.wiring.open_history import look_up, open_history

Where = History | str | Path | bool | None
AT = "@"


class Meant(NamedTuple):
    """A report that somebody meant, how it is called, and which of its configurations."""

    called: str
    report: FieldReport
    configuration: str | None = None

    @property
    def configurations(self) -> tuple[str, ...]:
        """Those that are meant."""
        return self.report.configurations if self.configuration is None else (self.configuration,)


def compare(
    a: EvalReport | str,
    b: EvalReport | str,
    *,
    history: Where = None,
    configuration: str | None = None,
    metrics: Sequence[str] | None = None,
    better: Mapping[str, bool | None] | None = None,
    worth: float = WORTH,
    accept_changes: bool = False,
) -> Comparison:
    """Say what run `a` is beside run `b`: a minus b, in percent of b, and whether that is real.

    Each is a report, or a run in the history: its id, its name, a baseline, "latest", any of them
    followed by `@` and a configuration. `configuration` is the one that is meant in both, where
    there are several. `metrics` narrows it to some; `better` says of a field whether higher is
    better, where its name does not tell; a rate or score that differs by less than `worth` does
    not differ by anything worth the name. Where the runs have not the same evaluators, what all of
    them say together is not comparable, unless `accept_changes`.
    """
    one, other = meant(a, b, history=history, configuration=configuration)
    for side in (one, other):
        if len(side.configurations) != 1:
            side.report.side()  # says which there are
    told = compare_all(
        [sides(one, other)], metrics=metrics, better=better, worth=worth, accept_changes=accept_changes
    )
    return told[0]


def compare_every(
    one: Meant,
    other: Meant,
    *,
    metrics: Sequence[str] | None = None,
    worth: float = WORTH,
    accept_changes: bool = False,
) -> tuple[list[Comparison], tuple[str, ...]]:
    """Every configuration that both have, corrected for all of them; and those only one has."""
    pairs, alone = paired(one, other)
    compared = [sides(*pair) for pair in pairs]
    found = compare_all(compared, metrics=metrics, worth=worth, accept_changes=accept_changes)
    return found, alone


def paired(one: Meant, other: Meant) -> tuple[list[tuple[Meant, Meant]], tuple[str, ...]]:
    """Each configuration with its partner, and those that have none.

    Two single ones belong together whatever their names; of several, those of one name do.
    """
    if len(one.configurations) == len(other.configurations) == 1:
        return [(one, other)], ()
    shared = [name for name in one.configurations if name in other.configurations]
    if not shared:
        raise ConfigError(
            f"{one.called} and {other.called} have no configuration in common: "
            f"{', '.join(one.configurations)}; {', '.join(other.configurations)}",
            fix=f"say which is meant: {one.called}{AT}{one.configurations[0]}",
        )
    alone = [
        f"{side.called}{AT}{name}"
        for side in (one, other)
        for name in side.configurations
        if name not in shared
    ]
    return [(one._replace(configuration=name), other._replace(configuration=name)) for name in shared], tuple(
        alone
    )


def meant(
    a: EvalReport | str,
    b: EvalReport | str,
    *,
    history: Where = None,
    configuration: str | None = None,
    run: str | None = None,
) -> tuple[Meant, Meant]:
    """The two that are to be compared; with `run`, they are configurations of it."""
    if run is not None:
        report = look_up(open_history(history), run)
        one, other = (Meant(str(name), report, str(name)) for name in (a, b))
    else:
        one, other = (opened(which, history, configuration) for which in (a, b))
    return beside(one, other)


def beside(one: Meant, other: Meant) -> tuple[Meant, Meant]:
    """The same two, told apart by what they are called; refused if they are one and the same."""
    for side in (one, other):
        for name in side.configurations:
            _refuse_unknown(side, name)
    if _is_one_run(one, other) and set(one.configurations) & set(other.configurations):
        raise ConfigError(
            f"{one.called} and {other.called} are the same run",
            fix="name two runs, or two configurations of one: RUN@CONFIGURATION",
        )
    return _told_apart(one, other)


def rank(
    metric: str, runs: Sequence[EvalReport | str], *, history: Where = None, order: str | None = None
) -> Ranking:
    """Put runs in order of a metric, score or field; of a single run, its configurations.

    `order` is "asc" (the lowest first) or "desc"; without it, what is better comes first.
    """
    found = [opened(run, history) for run in runs]
    if TOTAL_SCORE in also_known_as(metric):
        _refuse_other_scales(found)
    ranked: dict[str, Ranked] = {}
    for one in found:
        of_one = one.report.ranked(metric)
        for name in one.configurations:
            _refuse_unknown(one, name)
            if name in of_one:
                ranked[_place_name(one, name, alone=len(found) == 1)] = of_one[name]
    if len(ranked) < 2:
        raise ConfigError(
            f"there is nothing to put in order: {', '.join(ranked) or 'nothing'}",
            where="rank",
            fix="name several runs, or one that has several configurations",
        )
    ranking = put_in_order(metric, order or best_first(metric), ranked)
    uneven = _uneven(found) if metric in COMBINED else ()
    remarks = "; ".join((*_remarks(found), *uneven))
    told = [ranking.note, f"Note: {remarks}." if remarks else ""]
    return msgspec.structs.replace(ranking, note=" ".join(one for one in told if one))


def _refuse_other_scales(found: Sequence[Meant]) -> None:
    unlike = unlike_scales({one.called: scale_in(one.report.metadata) for one in found})
    if unlike:
        raise ConfigError(unlike, where="rank", fix="rank by mean_score, which is from 0 to 1")


def _remarks(found: Sequence[Meant]) -> Iterator[str]:
    """Which of those that are ranked have not all their results, or other evaluators."""
    runs = {one.called: one.report.metadata for one in found}
    known = [(name, run) for name, run in runs.items() if run is not None]
    for name, run in known:
        yield from standing(name, run)
    for name, run in known[1:]:
        first, reference = known[0]
        if run.run_id != reference.run_id:
            yield from changes_between(run, reference).told(name, first)


def _uneven(found: Sequence[Meant]) -> Iterator[str]:
    """Which evaluators judged far fewer samples of one that is ranked than of the first."""
    alone = len(found) == 1
    each = [
        one.report.side(name, _place_name(one, name, alone=alone))
        for one in found
        for name in one.configurations
    ]
    for side in each[1:]:
        coverage = coverage_of(side, each[0])
        if len(coverage) > 1:
            yield from (one.describe(side.name, each[0].name) for one in coverage if one.is_uneven)


def best_first(metric: str) -> str:
    """The order that has the best first, as far as the metric's name tells which that is.

    >>> best_first("pass_rate"), best_first("latency_ms.mean"), best_first("exact_match")
    ('desc', 'asc', 'desc')
    """
    if any(name in LOWER_IS_BETTER for name in also_known_as(metric)):
        return "asc"
    return "asc" if higher_is_better(metric) is False else "desc"


def _place_name(one: Meant, configuration: str, *, alone: bool) -> str:
    several = len(one.report.configurations) > 1
    if alone and several and one.configuration is None:
        return configuration
    return f"{one.called}{AT}{configuration}" if several else one.called


def sides(one: Meant, other: Meant) -> tuple[Side, Side]:
    """What is compared of two that are meant, one configuration each."""
    together = _is_one_run(one, other)
    first, second = (_side(side, together=together) for side in (one, other))
    return first, second


def _side(one: Meant, *, together: bool) -> Side:
    [configuration] = one.configurations
    name = configuration if together else _place_name(one, configuration, alone=False)
    return one.report.side(configuration, name)


def opened(which: EvalReport | str, history: Where = None, configuration: str | None = None) -> Meant:
    """A report, or a run of the history by any reference, RUN@CONFIGURATION among them."""
    if isinstance(which, EvalReport):
        run = which.metadata
        return Meant(run.name if run else "the report", FieldReport.of(which), configuration)
    kept = open_history(history)
    try:
        return Meant(which, look_up(kept, which), configuration)
    except RunNotFound:
        run_part, at, own = which.rpartition(AT)
        if not at or not run_part:
            raise
    if configuration is not None and own != configuration:
        raise UsageError(f"{which!r} names another configuration than {configuration!r}")
    return Meant(run_part, look_up(kept, run_part), own)


def _told_apart(one: Meant, other: Meant) -> tuple[Meant, Meant]:
    """The same two, called by their runs' ids where they would be called the same."""
    if one.called != other.called or _is_one_run(one, other):
        return one, other
    if one.report.run_id and other.report.run_id:
        return one._replace(called=one.report.run_id), other._replace(called=other.report.run_id)
    return one._replace(called=f"{one.called} (a)"), other._replace(called=f"{other.called} (b)")


def _is_one_run(one: Meant, other: Meant) -> bool:
    same_id = bool(one.report.run_id) and one.report.run_id == other.report.run_id
    return same_id or one.report is other.report


def _refuse_unknown(one: Meant, configuration: str) -> None:
    if configuration not in one.report.configurations:
        raise ConfigError(
            f"run {one.report.run_id or one.called} has no configuration {configuration!r}",
            fix=nearest(configuration, one.report.configurations),
        )
