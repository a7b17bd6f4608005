"""Runs found again: by reference, by baseline, by what they are. The SQL is for both databases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Any, NamedTuple

import msgspec

from proctor.errors import HistoryError, RunNotFound, UsageError, nearest
from proctor.history.database import Ask
from proctor.records.run import Retention, RunMetadata
from proctor.records.sample import check_tags

LATEST = "latest"
PREFIX = "baseline:"
NEWEST_FIRST = "ORDER BY began DESC, id DESC"
# As much of a tag's value as PostgreSQL has in its index.
INDEXED = 200
# So many of the last runs are looked at for a name that may have been meant.
LOOKED_AT = 500
# Ids are in the order of their bytes, so what begins alike lies between a text and this after it.
LAST_CHARACTER = "\U0010ffff"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_decode = msgspec.json.Decoder(RunMetadata).decode


def read(data: bytes) -> RunMetadata:
    """A stored run, or what is wrong with it."""
    try:
        return _decode(data)
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise HistoryError(
            f"the history is damaged: the record of a run cannot be read ({error})",
            fix="restore the history from a backup, or use another file: --history FILE",
        ) from None


class Wanted(NamedTuple):
    """Which runs are asked for; what is None or empty does not matter, the rest must all hold."""

    name: str | None = None
    configuration: str | None = None
    evaluator: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    tags: Mapping[str, str] | None = None

    def condition(self) -> tuple[str, list[Any]]:
        """A condition on the table of runs, and its values.

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
    """The runs that are wanted, newest first."""
    condition, values = wanted.condition()
    rows = ask(
        f"SELECT metadata FROM runs{condition} {NEWEST_FIRST} LIMIT ? OFFSET ?",
        (*values, max(0, limit), max(0, offset)),
    )
    return [read(row[0]) for row in rows]


def over(ask: Ask, retention: Retention, now: datetime, name: str | None = None) -> list[RunMetadata]:
    """The runs that no limit keeps, of one name or of all; the newest first."""
    condition, values = Wanted(name).condition()
    rows = ask(f"SELECT run_id, name, began FROM runs{condition} {NEWEST_FIRST}", values)
    places: Counter[str] = Counter()
    found = []
    for run_id, run_name, began in rows:
        if not retention.keeps(places[run_name], date_of(began), now):
            # Another process may have tidied up in the same moment.
            found += ask("SELECT metadata FROM runs WHERE run_id = ?", (run_id,))
        places[run_name] += 1
    return [read(row[0]) for row in found]


def find(ask: Ask, reference: str, where: str = "") -> RunMetadata:
    """A run by id, "latest", baseline, name (the newest), or the only beginning of an id.

    An id goes before a name, a name before a baseline's, and that before the beginning of an id.
    """
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
    """The one run whose id begins so; patterns are not understood, so that none fits by chance."""
    found = ask(
        f"SELECT run_id, metadata FROM runs WHERE run_id BETWEEN ? AND ? {NEWEST_FIRST} LIMIT 50",
        (reference, reference + LAST_CHARACTER),
    )
    if reference and len(found) == 1:
        return read(found[0][1])
    if reference and found:
        raise RunNotFound(
            f"{reference!r} could be any of {len(found)} runs",
            fix="give more of the id: " + ", ".join(row[0] for row in found[:5]),
        )
    recent = ask(f"SELECT name, run_id FROM runs {NEWEST_FIRST} LIMIT {LOOKED_AT}", ())
    if not recent:
        raise RunNotFound(f"there is no run {reference!r}: the history is empty", where=where)
    # Names are what one remembers; an id is meant only where it is nearly there.
    names = {LATEST, *(name for name, _ in recent)}
    names |= {row[0] for row in ask("SELECT name FROM baselines", ())}
    likely = get_close_matches(reference, [*sorted(names), *(row[1] for row in recent)], n=1)
    raise RunNotFound(f"there is no run {reference!r}", fix=nearest(reference, likely or names))


def baseline(ask: Ask, name: str) -> RunMetadata:
    """The run that is a baseline, by the baseline's name."""
    found = _baseline(ask, name)
    if not found:
        known = [row[0] for row in ask("SELECT name FROM baselines", ())]
        fix = nearest(name, known) if known else "set one: proctor baseline set NAME RUN"
        raise RunNotFound(f"there is no baseline {name!r}", fix=fix)
    return read(found[0][0])


def baselines(ask: Ask) -> dict[str, RunMetadata]:
    """Every baseline's run, by name."""
    rows = ask("SELECT baselines.name, metadata FROM baselines JOIN runs ON runs.id = baselines.run", ())
    return {name: read(metadata) for name, metadata in sorted(rows)}


def _baseline(ask: Ask, name: str) -> list[tuple[Any, ...]]:
    return ask(
        "SELECT metadata FROM baselines JOIN runs ON runs.id = baselines.run WHERE baselines.name = ?",
        (name,),
    )


def refuse_name(name: str) -> None:
    """A baseline needs a name that can be told from what else a reference may say."""
    if not name.strip() or name == LATEST or name.startswith(PREFIX) or "@" in name:
        raise UsageError(
            f"{name!r} cannot be the name of a baseline",
            fix='take a word such as "main"; "latest" and @ mean something else',
        )


def moment(when: datetime) -> int:
    """A moment in microseconds since 1970, in which runs are put in order.

    >>> moment(datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=UTC))
    1000005
    """
    if when.tzinfo is None:
        raise UsageError(
            f"a date without a time zone: {when.isoformat()}",
            fix="say which zone is meant: datetime(…, tzinfo=UTC)",
        )
    return (when - EPOCH) // timedelta(microseconds=1)


def date_of(began: int) -> datetime:
    """The moment that was stored."""
    return EPOCH + timedelta(microseconds=began)
