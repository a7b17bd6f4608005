"""Find runs by reference, by baseline, or by their properties; the SQL works on both databases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Any, NamedTuple

import msgspec

from proctor.errors import HistoryError, RunNotFound, UsageError, suggest_name
from proctor.history.database import Ask
from proctor.records.run import Retention, RunMetadata
from proctor.records.sample import check_tags

LATEST = "latest"
PREFIX = "baseline:"
NEWEST_FIRST = "ORDER BY began DESC, id DESC"
# PostgreSQL indexes this many characters of a tag's value.
INDEXED = 200
# The number of recent runs searched for a suggestion.
LOOKED_AT = 500
# Ids sort by their bytes, so ids with a prefix lie between the prefix and the prefix plus this.
LAST_CHARACTER = "\U0010ffff"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_decode = msgspec.json.Decoder(RunMetadata).decode


def read(data: bytes) -> RunMetadata:
    """Decode a stored run."""
    try:
        return _decode(data)
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise HistoryError(
            f"the history is damaged: the record of a run cannot be read ({error})",
            fix="restore the history from a backup, or use another file: --history FILE",
        ) from None


class Wanted(NamedTuple):
    """A filter for runs; all conditions that are set must hold."""

    name: str | None = None
    configuration: str | None = None
    evaluator: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    tags: Mapping[str, str] | None = None

    def condition(self) -> tuple[str, list[Any]]:
        """Return an SQL condition on the table of runs, and its values.

        >>> Wanted(name="exam").condition()
        (' WHERE name = ?', ['exam'])
        """
        parts: list[tuple[str, tuple[Any, ...]]] = []
        if self.name is not None:
            parts.append(("name = ?", (self.name,)))
        if self.since is not None:
            parts.append(("began >= ?", (moment(self.since),)))
        if self.until is not None:
            parts.append(("began <= ?", (moment(self.until),)))
        for table, wanted in (("configurations", self.configuration), ("evaluators", self.evaluator)):
            if wanted is not None:
                parts.append((f"id IN (SELECT run FROM {table} WHERE name = ?)", (wanted,)))
        tagged = (
            f"id IN (SELECT run FROM tags WHERE key = ? AND value = ? AND substr(value, 1, {INDEXED}) = ?)"
        )
        for key, value in check_tags(self.tags or {}).items():
            parts.append((tagged, (key, value, value[:INDEXED])))
        if not parts:
            return "", []
        conditions = " AND ".join(condition for condition, _ in parts)
        return f" WHERE {conditions}", [value for _, values in parts for value in values]


def listed(ask: Ask, wanted: Wanted, limit: int, offset: int) -> list[RunMetadata]:
    """Return the runs that match a filter, newest first."""
    condition, values = wanted.condition()
    rows = ask(
        f"SELECT metadata FROM runs{condition} {NEWEST_FIRST} LIMIT ? OFFSET ?",
        (*values, max(0, limit), max(0, offset)),
    )
    return [read(row[0]) for row in rows]


def over(ask: Ask, retention: Retention, now: datetime, name: str | None = None) -> list[RunMetadata]:
    """Return the runs beyond the retention limits, with one name or all, newest first."""
    condition, values = Wanted(name).condition()
    rows = ask(f"SELECT run_id, name, began FROM runs{condition} {NEWEST_FIRST}", values)
    places: Counter[str] = Counter()
    found = []
    for run_id, run_name, began in rows:
        if not retention.keeps(places[run_name], date_of(began), now):
            # Another process may have deleted the run meanwhile.
            found += ask("SELECT metadata FROM runs WHERE run_id = ?", (run_id,))
        places[run_name] += 1
    return [read(row[0]) for row in found]


def find(ask: Ask, reference: str, where: str = "") -> RunMetadata:
    """Find a run by id, "latest", name (the newest), baseline, or a unique prefix of an id, in this order."""
    found = ask("SELECT metadata FROM runs WHERE run_id = ?", (reference,))
    if not found and reference == LATEST:
        found = ask(f"SELECT metadata FROM runs {NEWEST_FIRST} LIMIT 1", ())
    if not found and reference.startswith(PREFIX):
        return baseline(ask, reference.removeprefix(PREFIX))
    if not found:
        found = ask(f"SELECT metadata FROM runs WHERE name = ? {NEWEST_FIRST} LIMIT 1", (reference,))
    if not found:
        found = _baseline(ask, reference)
    return read(found[0][0]) if found else _begun_with(ask, reference, where)


def _begun_with(ask: Ask, reference: str, where: str) -> RunMetadata:
    found = ask(
        f"SELECT run_id, metadata FROM runs WHERE run_id BETWEEN ? AND ? {NEWEST_FIRST} LIMIT 50",
        (reference, reference + LAST_CHARACTER),
    )
    if reference and len(found) == 1:
        return read(found[0][1])
    if reference and found:
        raise RunNotFound(
            f"{reference!r} matches {len(found)} runs",
            fix="use a longer prefix: " + ", ".join(row[0] for row in found[:5]),
        )
    recent = ask(f"SELECT name, run_id FROM runs {NEWEST_FIRST} LIMIT {LOOKED_AT}", ())
    if not recent:
        raise RunNotFound(f"there is no run {reference!r}: the history is empty", where=where)
    # People remember names; an id is suggested only if it is very similar.
    names = {LATEST, *(name for name, _ in recent)}
    names |= {row[0] for row in ask("SELECT name FROM baselines", ())}
    likely = get_close_matches(reference, [*sorted(names), *(row[1] for row in recent)], n=1)
    raise RunNotFound(f"there is no run {reference!r}", fix=suggest_name(reference, likely or names))


def baseline(ask: Ask, name: str) -> RunMetadata:
    """Return the run of a baseline."""
    found = _baseline(ask, name)
    if not found:
        known = [row[0] for row in ask("SELECT name FROM baselines", ())]
        fix = suggest_name(name, known) if known else "set one: proctor baseline set NAME RUN"
        raise RunNotFound(f"there is no baseline {name!r}", fix=fix)
    return read(found[0][0])


def baselines(ask: Ask) -> dict[str, RunMetadata]:
    """Return the runs of all baselines by name."""
    rows = ask("SELECT baselines.name, metadata FROM baselines JOIN runs ON runs.id = baselines.run", ())
    return {name: read(metadata) for name, metadata in sorted(rows)}


def _baseline(ask: Ask, name: str) -> list[tuple[Any, ...]]:
    return ask(
        "SELECT metadata FROM baselines JOIN runs ON runs.id = baselines.run WHERE baselines.name = ?",
        (name,),
    )


def refuse_name(name: str) -> None:
    """Raise an error if a baseline's name could be confused with another reference."""
    if not name.strip() or name == LATEST or name.startswith(PREFIX) or "@" in name:
        raise UsageError(
            f"{name!r} cannot be the name of a baseline",
            fix='use a word such as "main"; "latest" and names with @ are reserved',
        )


def moment(when: datetime) -> int:
    """Return a time in microseconds since 1970, by which runs are sorted.

    >>> moment(datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=UTC))
    1000005
    """
    if when.tzinfo is None:
        raise UsageError(
            f"the date {when.isoformat()} has no time zone", fix="add the time zone: datetime(…, tzinfo=UTC)"
        )
    return (when - EPOCH) // timedelta(microseconds=1)


def date_of(began: int) -> datetime:
    """Return the time for stored microseconds."""
    return EPOCH + timedelta(microseconds=began)
