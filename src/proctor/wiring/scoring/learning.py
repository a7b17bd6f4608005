"""Rubrics learned from sessions with known scores, and held against sessions they have not seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import msgspec

from proctor.core.stats.ranks import FEWEST_WITH_TIES, kendall_interval, kendall_tau
from proctor.engine.start import Conduct
from proctor.errors import CallFailed, ConfigError, RunStopped
from proctor.evaluators.judges.proposing import Contrast, consolidate, propose
from proctor.evaluators.judges.transcript import transcript
from proctor.models.asking import Conditions, conditions
from proctor.models.connect import provider
from proctor.models.spending import Spending, budget_from
from proctor.ports import History
from proctor.records import codec
from proctor.records.report import EvalReport
from proctor.records.results import cluster_of, shared_clusters
from proctor.records.rubric import USUAL_SCALE, Rubric, RubricSet, columns_in, total_of
from proctor.records.run import Spent
from proctor.records.sample import CLUSTER, Sample
from proctor.records.session import Session
from proctor.reports.format import count
from proctor.reports.rubrics import Judging, judging_in, judging_of
from proctor.sessions import current as sessions
from proctor.wiring.evaluate import execute
from proctor.wiring.prepare import Evaluation
from proctor.wiring.scoring.manifest import Known, Scoring, scoring_of

HELD_OUT, FEWEST_TO_LEARN = 0.3, 4
SHOWN_PER_SIDE, SESSION_CHARS, CONTENT_CHARS = 3, 12_000, 1_000
TOO_FEW = FEWEST_WITH_TIES
NARROW = 30


class Agreement(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far scores by rubrics order held-out sessions as the known scores do.

    `verdict` says in words what that shows; without enough sessions it shows nothing. There is no
    `p` where sessions belong together, as it takes them for independent.
    """

    n: int
    verdict: str
    tau: float | None = None
    interval: tuple[float, float] | None = None
    p: float | None = None
    note: str = ""


class Learned(NamedTuple):
    """Rubrics that were learned, what the held-out sessions say of them, and what it took."""

    rubrics: RubricSet
    total: Agreement
    by_rubric: dict[str, Agreement]
    notes: tuple[str, ...]
    asked: Judging
    run_id: str | None = None


def split(known: Sequence[Known], held_out: float, seed: int) -> tuple[list[Known], list[Known]]:
    """Sessions to learn from and sessions to check with; those of one cluster stay together."""

    def share(one: Known) -> str:
        return codec.digest("held out", seed, one.sample.cluster or one.sample.id)

    groups = sorted({share(one) for one in known})
    chosen = set(groups[: round(len(groups) * held_out)])
    learn = [one for one in known if share(one) not in chosen]
    return learn, [one for one in known if share(one) in chosen]


def together(known: Sequence[Known]) -> list[Known]:
    """The same sessions, those that read alike in one cluster: who knows one knows the others.

    What a session belongs to otherwise is kept: clusters that have a text in common become one.
    """
    above: dict[str, str] = {}

    def top(name: str) -> str:
        while (higher := above.setdefault(name, name)) != name:
            above[name] = above[higher]
            name = higher
        return name

    texts = {one.sample.id: f"text {codec.digest(_shown(one.sample))}" for one in known}
    names = {one.sample.id: one.sample.cluster or one.sample.id for one in known}
    for own, text in texts.items():
        # Names come before texts, and the first of them is that of all.
        low, high = sorted((top(f"name {names[own]}"), top(text)))
        above[high] = low
    found = {own: top(text).removeprefix("name ") for own, text in texts.items()}
    return [one if names[one.sample.id] == found[one.sample.id] else _in_cluster(one, found) for one in known]


def _in_cluster(one: Known, clusters: dict[str, str]) -> Known:
    metadata = {**one.sample.metadata, CLUSTER: clusters[one.sample.id]}
    return Known(msgspec.structs.replace(one.sample, metadata=metadata), one.score)


def contrasts_of(learn: Sequence[Known], rounds: int) -> list[Contrast]:
    """The best of some sessions beside the worst of them, round by round, no text twice.

    Sessions that read alike count as one, with the mean of their scores.
    """
    scores: dict[str, list[float]] = {}
    for one in sorted(learn, key=lambda one: one.sample.id):
        scores.setdefault(_shown(one.sample), []).append(one.score)
    means = {text: fmean(given) for text, given in scores.items()}
    ranked = sorted(means, key=lambda text: -means[text])
    half = len(ranked) // 2
    # Equal scores tell nothing apart.
    pairs = [
        (better, worse)
        for better, worse in zip(ranked[:half], ranked[::-1], strict=False)
        if means[better] > means[worse]
    ]
    starts = range(0, len(pairs), SHOWN_PER_SIDE)[:rounds]
    sides = [pairs[start : start + SHOWN_PER_SIDE] for start in starts]
    return [Contrast(*map(list, zip(*side, strict=True))) for side in sides]


def _shown(sample: Sample[Any, Any]) -> str:
    return transcript(
        sample.metadata["session"], longest_content=CONTENT_CHARS, longest_session=SESSION_CHARS
    )


async def learn_rubrics(
    known: Sequence[Known],
    model: Any,
    *,
    judge: Any = None,
    history: History,
    how: Conduct,
    scoring: Scoring,
    most: int = 6,
    rounds: int = 5,
    held_out: float = HELD_OUT,
    seed: int = 0,
    embedder: Any = None,
    scale: tuple[float, float] = USUAL_SCALE,
    name: str = "learned-rubrics",
    proposed: RubricSet | None = None,
    keep: Callable[[RubricSet], object] = lambda _: None,
) -> Learned:
    """Propose rubrics from some sessions, and see on the others whether they order them alike.

    `keep` is given the rubrics as soon as they are proposed; handed in again as `proposed`, they
    are only checked. The budget is that of both together.
    """
    known = together(known)
    learn, check = split(known, held_out, seed)
    adapter = provider(model)
    facts = {"model": adapter.model, "learned_from": len(learn), "held_out": len(check)}
    facts |= {"seed": seed, "sessions": _which_sessions(learn)}
    notes, asked, spent = _few_groups(check, known, held_out), Judging(), Spent()
    if proposed is None:
        contrasts = _contrasts(learn, rounds)
        session, spending = Session(), Spending(scoring.budget or {})
        found = await _heard(_proposed(adapter, contrasts, most, embedder, scale), notes, session, spending)
        rubrics = RubricSet("1.0", tuple(found), scale, {"learned": facts})
        asked, spent = judging_in(session), spending.so_far
        keep(rubrics)
        spending.check()
    else:
        rubrics = _same(proposed, facts, scale)
    if not check:
        return _learned(rubrics, {}, None, notes, asked)
    told = scoring_of(
        [one.sample for one in check], rubrics, judge or adapter, _left(scoring, spent), name=name
    )
    report = await _carried_out(told, history, how, spent)
    return _learned(rubrics, {one.sample.id: one.score for one in check}, report, notes, asked)


def _which_sessions(known: Sequence[Known]) -> str:
    """By what rubrics are known to be learned from these sessions and no others."""
    return codec.digest(sorted([_shown(one.sample), one.score] for one in known))


def _contrasts(learn: Sequence[Known], rounds: int) -> list[Contrast]:
    if len(learn) < FEWEST_TO_LEARN:
        raise ConfigError(
            f"there are {len(learn)} sessions to learn from, {FEWEST_TO_LEARN} are the least",
            fix="add sessions to the manifest; some thirty are needed to show anything",
        )
    contrasts = contrasts_of(learn, rounds)
    if not contrasts:
        raise ConfigError("nothing tells the sessions apart: their scores are all alike, or the sessions are")
    return contrasts


async def _heard(asking: Any, notes: list[str], session: Session, spending: Spending) -> Any:
    """What is asked outside a run: warnings, calls and what they use are noted all the same."""
    warned = sessions.warnings.set(notes)
    noted = sessions.current.set(session)
    counted = conditions.set(Conditions(spending))
    try:
        found, failures = await asking
    finally:
        sessions.warnings.reset(warned)
        sessions.current.reset(noted)
        conditions.reset(counted)
    notes += [f"a proposal failed: {failure}" for failure in failures]
    return found


async def _proposed(
    adapter: Any, contrasts: Sequence[Contrast], most: int, embedder: Any, scale: Any
) -> tuple[list[Rubric], list[CallFailed]]:
    proposals, failures = await propose(adapter, contrasts, count=most, scale=scale)
    if not proposals:
        raise CallFailed(f"no rubric was proposed: {failures[0]}")
    return await consolidate(proposals, most=most, embedder=embedder), failures


def _same(proposed: RubricSet, facts: dict[str, Any], scale: tuple[float, float]) -> RubricSet:
    """Rubrics that were proposed before, from the same sessions: the others are still unseen."""
    before = {k: v for k, v in proposed.metadata.get("learned", {}).items() if k != "validation"}
    if before != facts:
        raise ConfigError(
            f"these rubrics were not learned like this: {before or 'nothing is said'}, now {facts}",
            fix="learn them anew, without --resume",
        )
    if proposed.scale is not None and tuple(proposed.scale) != tuple(scale):
        raise ConfigError(
            "these rubrics were learned for a scale from {:g} to {:g}".format(*proposed.scale),
            fix="leave --scale as it was, or learn them anew, without --resume",
        )
    return proposed


def _few_groups(check: Sequence[Known], known: Sequence[Known], held_out: float) -> list[str]:
    """Why no session is held out although some were to be."""
    groups = len({one.sample.cluster or one.sample.id for one in known})
    if check or not held_out:
        return []
    few = f"{groups} clusters or sessions are too few to hold {held_out:g} of them out"
    return [f"no session is held out: those of one cluster stay together, and {few}"]


async def _carried_out(check: Evaluation, history: History, how: Conduct, spent: Spent) -> EvalReport:
    """The check; where its budget ends it, what the proposals had taken of that is told too."""
    try:
        return await execute(check, history, how)
    except RunStopped as stopped:
        if spent.calls and check.options["budget"] is not None:
            proposals = count(spent.calls, "call")
            stopped.what += f", which is what the proposals ({proposals}) had left of it"
        raise


def _left(scoring: Scoring, spent: Spent) -> Scoring:
    """The same with what is left of its budget."""
    if scoring.budget is None:
        return scoring
    limits = codec.plain(budget_from(scoring.budget))
    left = {name: limit - getattr(spent, name) for name, limit in limits.items()}
    return msgspec.structs.replace(scoring, budget=left)


def _learned(
    rubrics: RubricSet,
    known: dict[str, float],
    report: EvalReport | None,
    notes: Sequence[str],
    asked: Judging,
) -> Learned:
    columns = columns_in(None if report is None else report.metadata)
    results = () if report is None else tuple(report.results)
    totals = [(result, total_of(result.scores, columns)) for result in results]
    total = _agreement(
        [(known[r.sample_id], t.score, cluster_of(r)) for r, t in totals if t is not None], len(known)
    )
    by_rubric = {
        one.id: _agreement(
            [
                (known[result.sample_id], value, cluster_of(result))
                for result in results
                if (value := getattr(result.scores.get(one.id), "value", None)) is not None
            ],
            len(known),
        )
        for one in rubrics
    }
    kept = [
        msgspec.structs.replace(one, metadata={**one.metadata, "validation": codec.plain(by_rubric[one.id])})
        for one in rubrics
    ]
    told = {**rubrics.metadata["learned"], "validation": codec.plain(total)}
    whole = msgspec.structs.replace(rubrics, rubrics=tuple(kept), metadata={"learned": told})
    asked = sum((judging_of(result) for result in results), asked)
    run_id = None if report is None else report.run_id
    return Learned(whole, total, by_rubric, tuple(dict.fromkeys(notes)), asked, run_id)


def _agreement(pairs: Sequence[tuple[float, float, str]], held_out: int) -> Agreement:
    """How far two orders agree, and what that is worth."""
    n = len(pairs)
    if n < 2:
        return Agreement(n, _nothing(n, held_out))
    first, second = [one for one, _, _ in pairs], [two for _, two, _ in pairs]
    found = kendall_tau(first, second)
    if found is None:
        return Agreement(n, "nothing can be said: the scores of one side are all alike")
    if n < TOO_FEW:
        # A tau of so few would be read as if it meant something.
        return Agreement(n, f"too few sessions to say anything: {TOO_FEW} are the least")
    clusters = shared_clusters(cluster for _, _, cluster in pairs)
    span = kendall_interval(first, second, clusters=clusters)
    note, p = _told_apart(n, clusters), found.p if clusters is None else None
    if span is None:
        return Agreement(n, "too few clusters to say anything", found.tau, note=note)
    verdict = (
        "they order sessions as the known scores do"
        if span[0] > 0
        else ("they order sessions the other way round" if span[1] < 0 else "no agreement is shown")
    )
    return Agreement(n, verdict, found.tau, span, p, note)


def _nothing(scored: int, held_out: int) -> str:
    if held_out < 2:
        many = "no session was" if held_out == 0 else "one session alone was"
        return f"{many} held out, so nothing is known of them"
    return f"{scored} of {held_out} held-out sessions could be scored, so nothing is known of them"


def _told_apart(n: int, clusters: Sequence[str] | None) -> str:
    """What is to be said of an interval: that it rests on little, and on what."""
    groups, what = (n, "sessions") if clusters is None else (len(set(clusters)), "clusters")
    notes = [] if clusters is None else [f"the sessions make {groups} clusters"]
    if groups < NARROW:
        notes.append(f"fewer than {NARROW} {what}: the interval is too narrow")
    return "; ".join(notes)
