"""Learn rubrics from sessions with known scores, and check them on held-out sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import msgspec

from proctor.comparison.report import EvalReport
from proctor.core.stats.ranks import MIN_WITH_TIES, kendall_interval, kendall_tau
from proctor.engine.start import RunControls
from proctor.errors import CallFailed, ConfigError, RunStopped
from proctor.evaluators.judges.propose_rubrics import Contrast, merge_proposals, propose_rubrics
from proctor.evaluators.judges.transcript import render_transcript
from proctor.models.connect import provider
from proctor.models.model_calls import CallContext, call_context
from proctor.models.spending import Spending, parse_budget
from proctor.ports import History
from proctor.records import codec
from proctor.records.formatting import format_count
from proctor.records.results import find_cluster, list_shared_clusters
from proctor.records.rubric import DEFAULT_SCALE, Rubric, RubricSet, compute_total, read_run_columns
from proctor.records.run import Spent
from proctor.records.sample import CLUSTER, Sample
from proctor.records.session import Session
from proctor.reports.rubrics import JudgeUsage, judge_usage_of_result, judge_usage_of_session
from proctor.sessions import current as sessions
from proctor.wiring.evaluate import execute
from proctor.wiring.prepare import Evaluation
from proctor.wiring.scoring.manifest import ScoredSession, Scoring, build_scoring

HELD_OUT, MIN_TO_LEARN = 0.3, 4
SESSIONS_PER_SIDE, MAX_SESSION_CHARS, MAX_CONTENT_CHARS = 3, 12_000, 1_000
MIN_SESSIONS = MIN_WITH_TIES
MIN_FOR_EXACT_INTERVAL = 30


class Agreement(msgspec.Struct, frozen=True, omit_defaults=True):
    """How well the scores of rubrics agree with the known scores of held-out sessions.

    `verdict` describes the result in words. Clustered sessions have no `p`, which is valid only for independent
    sessions.
    """

    n: int
    verdict: str
    tau: float | None = None
    interval: tuple[float, float] | None = None
    p: float | None = None
    note: str = ""


class LearningResult(NamedTuple):
    """Learned rubrics, their agreement on held-out sessions, and the calls of models."""

    rubrics: RubricSet
    total: Agreement
    by_rubric: dict[str, Agreement]
    notes: tuple[str, ...]
    usage: JudgeUsage
    run_id: str | None = None


def split_sessions(
    scored_sessions: Sequence[ScoredSession], held_out: float, seed: int
) -> tuple[list[ScoredSession], list[ScoredSession]]:
    """Split sessions into a training part and a held-out part; clusters stay together."""

    def digest(session: ScoredSession) -> str:
        return codec.digest("held out", seed, session.sample.cluster or session.sample.id)

    groups = sorted({digest(session) for session in scored_sessions})
    held_out_groups = set(groups[: round(len(groups) * held_out)])
    training = [session for session in scored_sessions if digest(session) not in held_out_groups]
    return training, [session for session in scored_sessions if digest(session) in held_out_groups]


def cluster_duplicates(scored_sessions: Sequence[ScoredSession]) -> list[ScoredSession]:
    """Put sessions with identical text into one cluster; clusters that share a text are merged."""
    parents: dict[str, str] = {}

    def find_root(name: str) -> str:
        while (parent := parents.setdefault(name, name)) != name:
            parents[name] = parents[parent]
            name = parent
        return name

    texts = {scored.sample.id: f"text {codec.digest(_render(scored.sample))}" for scored in scored_sessions}
    names = {scored.sample.id: scored.sample.cluster or scored.sample.id for scored in scored_sessions}
    for sample_id, text in texts.items():
        # "name …" sorts before "text …", so that the root of a cluster is a name.
        low, high = sorted((find_root(f"name {names[sample_id]}"), find_root(text)))
        parents[high] = low

    def assign(session: ScoredSession) -> ScoredSession:
        sample = session.sample
        cluster = find_root(texts[sample.id]).removeprefix("name ")
        if names[sample.id] == cluster:
            return session
        metadata = {**sample.metadata, CLUSTER: cluster}
        return ScoredSession(msgspec.structs.replace(sample, metadata=metadata), session.score)

    return [assign(session) for session in scored_sessions]


def build_contrasts(training: Sequence[ScoredSession], rounds: int) -> list[Contrast]:
    """Contrast the best sessions with the worst, round by round; no text is used twice.

    Sessions with identical text count as one, with the mean of their scores.
    """
    scores: dict[str, list[float]] = {}
    for session in sorted(training, key=lambda each: each.sample.id):
        scores.setdefault(_render(session.sample), []).append(session.score)
    means = {text: fmean(values) for text, values in scores.items()}
    ranked = sorted(means, key=lambda text: -means[text])
    half = len(ranked) // 2
    # Equal scores are not a contrast.
    pairs = [
        (better, worse)
        for better, worse in zip(ranked[:half], ranked[::-1], strict=False)
        if means[better] > means[worse]
    ]
    starts = range(0, len(pairs), SESSIONS_PER_SIDE)[:rounds]
    sides = [pairs[start : start + SESSIONS_PER_SIDE] for start in starts]
    return [Contrast(*map(list, zip(*side, strict=True))) for side in sides]


def _render(sample: Sample[Any, Any]) -> str:
    return render_transcript(sample.metadata["session"], max_content=MAX_CONTENT_CHARS, max_session=MAX_SESSION_CHARS)


async def learn_rubrics(
    scored_sessions: Sequence[ScoredSession],
    model: Any,
    *,
    judge: Any = None,
    history: History,
    controls: RunControls,
    scoring: Scoring,
    max_rubrics: int = 6,
    rounds: int = 5,
    held_out_share: float = HELD_OUT,
    seed: int = 0,
    embedder: Any = None,
    scale: tuple[float, float] = DEFAULT_SCALE,
    name: str = "learned-rubrics",
    proposed: RubricSet | None = None,
    save: Callable[[RubricSet], object] = lambda _: None,
) -> LearningResult:
    """Propose rubrics from some sessions, and check whether their scores agree with the known order of the others.

    `save` receives the rubrics as soon as they are proposed; passed again as `proposed`, they are
    only checked. The budget covers proposals and check together.
    """
    scored_sessions = cluster_duplicates(scored_sessions)
    training, held_out_sessions = split_sessions(scored_sessions, held_out_share, seed)
    adapter = provider(model)
    facts = {"model": adapter.model, "learned_from": len(training), "held_out": len(held_out_sessions)}
    facts |= {"seed": seed, "sessions": _digest_sessions(training)}
    notes, usage, spent = _explain_no_check(held_out_sessions, scored_sessions, held_out_share), JudgeUsage(), Spent()
    if proposed is None:
        contrasts = _build_contrasts(training, rounds)
        session, spending = Session(), Spending(scoring.budget or {})
        proposing = _propose(adapter, contrasts, max_rubrics, embedder, scale)
        proposals = await _record_calls(proposing, notes, session, spending)
        rubrics = RubricSet("1.0", tuple(proposals), scale, {"learned": facts})
        usage, spent = judge_usage_of_session(session), spending.so_far
        save(rubrics)
        spending.check()
    else:
        rubrics = _check_proposed(proposed, facts, scale)
    if not held_out_sessions:
        return _summarize(rubrics, {}, None, notes, usage)
    samples = [scored.sample for scored in held_out_sessions]
    evaluation = build_scoring(samples, rubrics, judge or adapter, _subtract_spent(scoring, spent), name=name)
    report = await _run_check(evaluation, history, controls, spent)
    return _summarize(rubrics, {scored.sample.id: scored.score for scored in held_out_sessions}, report, notes, usage)


def _digest_sessions(scored_sessions: Sequence[ScoredSession]) -> str:
    """Return a digest of the sessions that rubrics are learned from."""
    return codec.digest(sorted([_render(scored.sample), scored.score] for scored in scored_sessions))


def _build_contrasts(training: Sequence[ScoredSession], rounds: int) -> list[Contrast]:
    if len(training) < MIN_TO_LEARN:
        raise ConfigError(
            f"{format_count(len(training), 'session')} to learn from; at least {MIN_TO_LEARN} are needed",
            fix="add sessions to the manifest; a useful check needs about thirty",
        )
    contrasts = build_contrasts(training, rounds)
    if not contrasts:
        raise ConfigError(
            "the sessions have no contrast: all scores or all texts are equal",
            fix="add sessions with other scores to the manifest",
        )
    return contrasts


async def _record_calls(proposing: Any, notes: list[str], session: Session, spending: Spending) -> Any:
    """Record warnings, calls and usage of calls outside a run."""
    warnings_token = sessions.warnings.set(notes)
    session_token = sessions.current.set(session)
    context_token = call_context.set(CallContext(spending))
    try:
        proposals, failures = await proposing
    finally:
        sessions.warnings.reset(warnings_token)
        sessions.current.reset(session_token)
        call_context.reset(context_token)
    notes += [f"a proposal failed: {failure}" for failure in failures]
    return proposals


async def _propose(
    adapter: Any, contrasts: Sequence[Contrast], max_rubrics: int, embedder: Any, scale: Any
) -> tuple[list[Rubric], list[CallFailed]]:
    proposals, failures = await propose_rubrics(adapter, contrasts, count=max_rubrics, scale=scale)
    if not proposals:
        raise CallFailed(f"no rubric was proposed: {failures[0]}")
    return await merge_proposals(proposals, max_count=max_rubrics, embedder=embedder), failures


def _check_proposed(proposed: RubricSet, facts: dict[str, Any], scale: tuple[float, float]) -> RubricSet:
    """Reject rubrics that were proposed from different sessions or settings."""
    stored = {k: v for k, v in proposed.metadata.get("learned", {}).items() if k != "validation"}
    if stored != facts:
        raise ConfigError(
            f"these rubrics were learned with other settings: {_describe_differences(stored, facts)}",
            fix="learn them again, without --resume",
        )
    if proposed.scale is not None and tuple(proposed.scale) != tuple(scale):
        raise ConfigError(
            "these rubrics were learned for a scale from {:g} to {:g}".format(*proposed.scale),
            fix="use the same --scale, or learn them again, without --resume",
        )
    return proposed


def _describe_differences(stored: dict[str, Any], facts: dict[str, Any]) -> str:
    changed = [key for key in facts if stored.get(key) != facts[key]]
    return "; ".join(f"{key} was {stored.get(key, 'unknown')}, is {facts[key]}" for key in changed)


def _explain_no_check(
    held_out_sessions: Sequence[ScoredSession], scored_sessions: Sequence[ScoredSession], held_out: float
) -> list[str]:
    if held_out_sessions or not held_out:
        return []
    groups = len({scored.sample.cluster or scored.sample.id for scored in scored_sessions})
    return [f"no session is held out: {groups} clusters or sessions are too few to hold out {held_out:.0%}"]


async def _run_check(evaluation: Evaluation, history: History, controls: RunControls, spent: Spent) -> EvalReport:
    """Score the held-out sessions; add the calls of the proposals to a budget error."""
    try:
        return await execute(evaluation, history, controls)
    except RunStopped as stopped:
        if spent.calls and evaluation.options["budget"] is not None:
            calls = format_count(spent.calls, "call")
            stopped.what += f", after {calls} for the proposals"
        raise


def _subtract_spent(scoring: Scoring, spent: Spent) -> Scoring:
    """Return the options with the rest of the budget."""
    if scoring.budget is None:
        return scoring
    limits = codec.to_plain(parse_budget(scoring.budget))
    remaining = {name: limit - getattr(spent, name) for name, limit in limits.items()}
    return msgspec.structs.replace(scoring, budget=remaining)


def _summarize(
    rubrics: RubricSet,
    known_scores: dict[str, float],
    report: EvalReport | None,
    notes: Sequence[str],
    usage: JudgeUsage,
) -> LearningResult:
    columns = read_run_columns(None if report is None else report.metadata)
    results = () if report is None else tuple(report.results)
    totals = [(result, compute_total(result.scores, columns)) for result in results]
    total = _agreement(
        [(known_scores[result.sample_id], t.score, find_cluster(result)) for result, t in totals if t is not None],
        len(known_scores),
    )
    by_rubric = {
        rubric.id: _agreement(
            [
                (known_scores[result.sample_id], value, find_cluster(result))
                for result in results
                if (value := getattr(result.scores.get(rubric.id), "value", None)) is not None
            ],
            len(known_scores),
        )
        for rubric in rubrics
    }
    validated = tuple(
        msgspec.structs.replace(
            rubric, metadata={**rubric.metadata, "validation": codec.to_plain(by_rubric[rubric.id])}
        )
        for rubric in rubrics
    )
    learned = {**rubrics.metadata["learned"], "validation": codec.to_plain(total)}
    rubric_set = msgspec.structs.replace(rubrics, rubrics=validated, metadata={"learned": learned})
    usage = sum((judge_usage_of_result(result) for result in results), usage)
    run_id = None if report is None else report.run_id
    return LearningResult(rubric_set, total, by_rubric, tuple(dict.fromkeys(notes)), usage, run_id)


def _agreement(pairs: Sequence[tuple[float, float, str]], held_out: int) -> Agreement:
    """Compare two orders, and describe the strength of the evidence."""
    n = len(pairs)
    if n < 2:
        scored = f"only {n} of {held_out} held-out sessions could be scored"
        if held_out < 2:
            scored = "no session was held out" if held_out == 0 else "only one session was held out"
        return Agreement(n, f"not checked: {scored}")
    first, second = [known_score for known_score, _, _ in pairs], [score for _, score, _ in pairs]
    correlation = kendall_tau(first, second)
    if correlation is None:
        return Agreement(n, "not checked: all scores of one side are equal")
    if n < MIN_SESSIONS:
        # The tau of only a few sessions would be misleading.
        return Agreement(n, f"too few sessions for a check: at least {MIN_SESSIONS} are needed")
    clusters = list_shared_clusters(cluster for _, _, cluster in pairs)
    interval = kendall_interval(first, second, clusters=clusters)
    note, p = _describe_evidence(n, clusters), correlation.p if clusters is None else None
    if interval is None:
        return Agreement(n, "too few clusters for a check", correlation.tau, note=note)
    verdict = "no significant agreement with the known scores"
    if interval[0] > 0:
        verdict = "agrees with the known scores"
    elif interval[1] < 0:
        verdict = "orders the sessions in reverse"
    return Agreement(n, verdict, correlation.tau, interval, p, note)


def _describe_evidence(n: int, clusters: Sequence[str] | None) -> str:
    groups, noun = (n, "sessions") if clusters is None else (len(set(clusters)), "clusters")
    notes = [] if clusters is None else [f"the sessions form {groups} clusters"]
    if groups < MIN_FOR_EXACT_INTERVAL:
        notes.append(f"fewer than {MIN_FOR_EXACT_INTERVAL} {noun}: the true interval is wider")
    return "; ".join(notes)
