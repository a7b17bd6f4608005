"""Check whether samples with the same id have the same content; samples are paired only if they do."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from proctor.comparison.sides import MEAN_SCORE, PASS_RATE, STRICT_PASS_RATE, Side
from proctor.metrics.estimates import FIELD_PREFIX
from proctor.metrics.warnings import list_partial_results
from proctor.records import codec
from proctor.records.comparison import list_aliases
from proctor.records.results import Results
from proctor.records.rubric import TOTAL_SCORE, read_run_columns
from proctor.records.sample import Sample
from proctor.records.score import SKIPPED_BY_DESIGN
from proctor.records.trial import EvalResult, Outcome

_FAILED: tuple[Outcome, ...] = ("error", "unscored")
_PERCENTILE = re.compile(r"\.p[0-9]+$")
# Longer contents are replaced by a digest of this many bytes.
_MAX_KEY_LENGTH = 32


def count_failed_trials(side: Side, metric: str) -> Counter[str]:
    """Count the trials of each sample that lack a metric, or a part of it, because of an error or a skip.

    A rubric without a score counts as missing from the total, even if the total can be computed without it. Skips
    do not count in a run that ignores them. Sides without results, and fields, have no count.
    """
    results = side.results
    if results is None:
        return Counter()
    names = list_aliases(metric)
    failed = _FAILED
    evaluators: list[str | None] = [None]
    if metric == STRICT_PASS_RATE:
        # Errors count as not passed there, so only skipped trials are missing.
        failed = ()
    elif TOTAL_SCORE in names:
        evaluators = [column.name for column in read_run_columns(side.run).columns]
    elif metric != PASS_RATE and MEAN_SCORE not in names:
        evaluator_names = {spec.name for spec in side.run.evaluators} if side.run else {*side.scores}
        stems = (name.rpartition(".")[0] for name in names if _PERCENTILE.search(name))
        evaluators = [name for name in (*names, *stems) if name in evaluator_names]
    ignores_skips = side.run is not None and side.run.options.skipped == "ignore"
    outcomes: tuple[Outcome, ...] = failed if ignores_skips else (*failed, "skipped")
    trials = {
        (result.sample_id, result.trial.epoch)
        for evaluator in evaluators
        for outcome in outcomes
        for result in results.page(outcome=outcome, evaluator=evaluator, limit=len(results))
        if outcome != "skipped" or not _is_skipped_by_design(result, evaluator)
    }
    # A comparison names the score of a field by the field alone.
    for name in (metric, f"{FIELD_PREFIX}.{metric}"):
        partial = list_partial_results(results, name, side.run)
        trials.update((result.sample_id, result.trial.epoch) for result in partial)
    return Counter(sample_id for sample_id, _ in trials)


def _is_skipped_by_design(result: EvalResult, evaluator: str | None) -> bool:
    score = result.score if evaluator is None else result.scores.get(evaluator)
    return score is not None and score.reason in SKIPPED_BY_DESIGN


def count_partial_totals(side: Side) -> int:
    """Count the samples whose total leaves out a rubric without a score."""
    totals = side.metrics.get(TOTAL_SCORE)
    return 0 if totals is None else sum(name in totals for name in count_failed_trials(side, TOTAL_SCORE))


def mark_different_samples(a: Side, b: Side, *, accept_changes: bool = False) -> tuple[Side, Side]:
    """Mark the samples that have different contents under the same id on both sides.

    Scores against different expected values, or of other evaluators of the sample, are not comparable, so such samples
    are marked too, unless `accept_changes`. Contents that cannot be compared count as equal.
    """
    if a.different_samples is not None or not can_compare_contents(a, b):
        return a, b
    shared = set(a.samples) & set(b.samples)
    a_keys, b_keys = (_read_contents(side.results, shared) for side in (a, b))
    different, changed = (
        frozenset(name for name, keys in a_keys.items() if _differs(keys[part], b_keys.get(name, keys)[part]))
        for part in (0, 1)
    )
    changed = frozenset() if accept_changes else changed - different
    return _mark_samples(a, b, different | changed, changed_expected=changed)


def unpair_sides(a: Side, b: Side) -> tuple[Side, Side]:
    """Make both sides two independent groups of samples without pairs."""
    return _mark_samples(a, b, frozenset(a.samples) & frozenset(b.samples), unpaired=True)


def _mark_samples(a: Side, b: Side, ids: frozenset[str], *, unpaired: bool = False, **marks: Any) -> tuple[Side, Side]:
    first, second = (
        msgspec.structs.replace(side, different_samples=ids, unpaired=unpaired or side.unpaired, **marks)
        for side in (a, b)
    )
    return first, second


def _differs(key: bytes | None, other: bytes | None) -> bool:
    return None not in (key, other) and key != other


def can_compare_contents(a: Side, b: Side) -> bool:
    """True if the datasets may differ, and both sides have contents that can be compared."""
    if a.run is None or b.run is None or a.results is None or b.results is None:
        return False
    fingerprints = a.run.dataset.fingerprint, b.run.dataset.fingerprint
    is_same_dataset = fingerprints[0] == fingerprints[1] and fingerprints[0] is not None
    if a.run.run_id == b.run.run_id or is_same_dataset:
        return False
    # Redaction makes equal texts look different, unless both runs redact in the same way.
    is_redacted = a.run.redacted or b.run.redacted
    return not is_redacted or a.run.options.redact == b.run.options.redact


def content_key(sample: Sample[Any, Any]) -> bytes | None:
    """Return a key of a sample's content; None if the content has no stable representation.

    The content is the input; for a recorded session it is the input and all user messages, because the answers are
    measured. Recordings of one task are the same sample. Tags and other metadata do not count.
    """
    session, task = sample.metadata.get("session"), sample.metadata.get("task_id")
    content = sample.input
    if session is not None and task is not None:
        content = {"task_id": task}
    elif session is not None:
        events = _read_part(session, "events")
        user_events = (e for e in events if _read_part(e, "role") == "user") if _is_list(events) else ()
        content = [sample.input, *(_read_part(event, "content") for event in user_events)]
    return _encode_key(content)


def _encode_key(content: Any) -> bytes | None:
    try:
        encoded = codec.encode_canonical(content)
    except codec.ENCODE_ERRORS:
        return None
    # The representation of an object may contain its address, which differs in each process.
    if b'"$repr"' in encoded:
        return None
    if len(encoded) <= _MAX_KEY_LENGTH:
        return encoded
    return blake2b(encoded, digest_size=_MAX_KEY_LENGTH).digest()


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _read_part(record: Any, name: str) -> Any:
    """Read a part of a record, or of a mapping that was read from JSON."""
    return record.get(name) if isinstance(record, Mapping) else getattr(record, name, None)


def _read_contents(results: Results | None, ids: Container[str]) -> dict[str, tuple[bytes | None, bytes | None]]:
    """Return two keys of each sample: of the content, and of the expected value and its own evaluators."""
    keys: dict[str, tuple[bytes | None, bytes | None]] = {}
    for sample in results.samples() if results is not None else ():
        if sample.id in ids and sample.id not in keys:
            checks = (sample.expected, sample.evaluators) if sample.evaluators else sample.expected
            keys[sample.id] = content_key(sample), _encode_key(checks)
    return keys
