"""Whether samples of one id are the same sample: only then are their numbers a pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from proctor.comparison.sides import MEAN_SCORE, PASS_RATE, STRICT_PASS_RATE, Side
from proctor.records import codec
from proctor.records.comparison import also_known_as
from proctor.records.results import Results
from proctor.records.rubric import TOTAL_SCORE, columns_in
from proctor.records.sample import Sample
from proctor.records.score import NOT_ASKED
from proctor.records.trial import EvalResult, Outcome

FAILED: tuple[Outcome, ...] = ("error", "unscored")


def failed_trials(side: Side, metric: str) -> Counter[str]:
    """How many trials of each sample lack a metric because something failed or was skipped.

    A total of rubrics lacks those without a score, also where the others make up a number. Skipped
    trials are left out in a run that ignores them. Nothing is known of sides without results, and
    of fields.
    """
    results = side.results
    if results is None:
        return Counter()
    names = also_known_as(metric)
    failed = FAILED
    if metric == PASS_RATE or MEAN_SCORE in names:
        evaluators: list[str | None] = [None]
    elif metric == STRICT_PASS_RATE:
        # Errors count as not passed there: only what was skipped is missing.
        evaluators, failed = [None], ()
    elif TOTAL_SCORE in names:
        evaluators = [column.name for column in columns_in(side.run).columns]
    else:
        known = {spec.name for spec in side.run.evaluators} if side.run else {*side.scores}
        evaluators = [name for name in names if name in known]
    ignored = side.run is not None and side.run.options.skipped == "ignore"
    outcomes: tuple[Outcome, ...] = failed if ignored else (*failed, "skipped")
    found = {
        (result.sample_id, result.trial.epoch)
        for evaluator in evaluators
        for outcome in outcomes
        for result in results.page(outcome=outcome, evaluator=evaluator, limit=len(results))
        if outcome != "skipped" or not _was_not_asked(result, evaluator)
    }
    return Counter(sample_id for sample_id, _ in found)


def _was_not_asked(result: EvalResult, evaluator: str | None) -> bool:
    """True if the score was left out by design, such as in all epochs but the last."""
    score = result.score if evaluator is None else result.scores.get(evaluator)
    return score is not None and score.reason in NOT_ASKED


def partial_totals(side: Side) -> int:
    """How many samples have a total that lacks a rubric without a score."""
    totals = side.metrics.get(TOTAL_SCORE, {})
    return sum(name in totals for name in failed_trials(side, TOTAL_SCORE))


SESSION, TASK = "session", "task_id"
# Contents are kept as they are up to so many bytes; of longer ones a digest of that length is.
SHORT = 32


def told_apart(a: Side, b: Side) -> tuple[Side, Side]:
    """Both sides, with the samples that ask something else under the same id.

    It is looked at where the datasets are not known to be the same. What cannot be told counts as
    the same.
    """
    if a.apart is not None or not can_tell(a, b):
        return a, b
    shared = set(a.samples) & set(b.samples)
    mine, theirs = (_contents(side.results, shared) for side in (a, b))
    other = [name for name, content in mine.items() if _differ(content, theirs.get(name))]
    return _marked(a, b, frozenset(other))


def as_groups(a: Side, b: Side) -> tuple[Side, Side]:
    """Both sides as two groups of samples, none of which is a pair."""
    one, other = _marked(a, b, frozenset(a.samples) & frozenset(b.samples))
    return msgspec.structs.replace(one, unpaired=True), msgspec.structs.replace(other, unpaired=True)


def can_tell(a: Side, b: Side) -> bool:
    """True if the datasets may differ, and what the samples ask is there to be compared."""
    if a.run is None or b.run is None or a.results is None or b.results is None:
        return False
    prints = a.run.dataset.fingerprint, b.run.dataset.fingerprint
    if a.run.run_id == b.run.run_id or (prints[0] == prints[1] and prints[0] is not None):
        return False
    # What was taken out of one and not of the other makes the same text look different.
    redacted = a.run.redacted or b.run.redacted
    return not redacted or a.run.options.redact == b.run.options.redact


def content_of(sample: Sample[Any, Any]) -> bytes | None:
    """What tells a sample from another of its id; None where nothing does.

    That is its input, and of a recorded session all that was said to the system: its answers are
    what is measured. Recordings of one task are the same sample, however they went. The expected
    value and other metadata may be mended without making it another.

    >>> content_of(Sample("1", "What?", "a")) == content_of(Sample("1", "What?", "b"))
    True
    """
    session = sample.metadata.get(SESSION)
    content = sample.input
    if session is not None:
        task = sample.metadata.get(TASK)
        content = [sample.input, *_said(session)] if task is None else {TASK: task}
    try:
        written = codec.canonical(content)
    except codec.UNWRITABLE:
        return None
    # An object that is known by its address only is written otherwise in each process.
    if b'"$repr"' in written:
        return None
    return written if len(written) <= SHORT else blake2b(written, digest_size=SHORT).digest()


def _said(session: Any) -> Iterator[Any]:
    """What the user said in a session: a record, or as it was read from JSON."""
    events = _part(session, "events")
    for event in events if isinstance(events, list | tuple) else ():
        if _part(event, "role") == "user":
            yield _part(event, "content")


def _part(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def _contents(results: Results | None, wanted: Container[str]) -> dict[str, bytes | None]:
    found: dict[str, bytes | None] = {}
    for sample in results.samples() if results is not None else ():
        if sample.id in wanted and sample.id not in found:
            found[sample.id] = content_of(sample)
    return found


def _differ(one: bytes | None, other: bytes | None) -> bool:
    return one is not None and other is not None and one != other


def _marked(a: Side, b: Side, apart: frozenset[str]) -> tuple[Side, Side]:
    return msgspec.structs.replace(a, apart=apart), msgspec.structs.replace(b, apart=apart)
