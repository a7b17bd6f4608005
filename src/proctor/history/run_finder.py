"""Find runs by reference, by baseline, or by their properties; the SQL works on both databases."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from proctor.errors import HistoryError, RunNotFound, UsageError, suggest_name
from proctor.history.database import Database
from proctor.records.run import Retention, RunMetadata
from proctor.records.sample import check_tags

BASELINE_QUERY = "SELECT metadata FROM baselines JOIN runs ON runs.id = baselines.run WHERE baselines.name = ?"
LATEST = "latest"
PREFIX = "baseline:"
NEWEST_FIRST = "ORDER BY began DESC, id DESC"
# PostgreSQL indexes this many characters of a tag's value.
INDEXED_CHARACTERS = 200
# The number of recent runs searched for a suggestion.
SEARCHED_RUNS = 500
RUN_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")
# The similarity of two ids that differ by one character of 22.
SAME_ID = 0.95
# Ids sort by their bytes, so ids with a prefix lie between the prefix and the prefix plus this character.
LAST_CHARACTER = "\U0010ffff"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_decode = msgspec.json.Decoder(RunMetadata).decode


def write_history_option(where: str) -> str:
    """Write the option that selects a history, for a command; the displayed address of a server has no password."""
    is_default = where == str(Path(".proctor") / "history.db") or "://" in where
    return "" if is_default else f" --history {shlex.quote(where)}"


def decode_run(data: bytes) -> RunMetadata:
    """Decode a stored run."""
    try:
        return _decode(data)
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise HistoryError(
            f"the history is damaged: the record of a run cannot be read ({error})",
            fix="restore the history from a backup, or use another file: --history FILE",
        ) from None


def _condition(
    name: str | None = None,
    configuration: str | None = None,
    evaluator: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    tags: Mapping[str, str] | None = None,
) -> tuple[str, list[Any]]:
    """Return an SQL condition on the table of runs, and its values; all filters that are set must match."""
    parts: list[tuple[str, tuple[Any, ...]]] = []
    if name is not None:
        parts.append(("name = ?", (name,)))
    if since is not None:
        parts.append(("began >= ?", (to_microseconds(since),)))
    if until is not None:
        parts.append(("began <= ?", (to_microseconds(until),)))
    for table, value in (("configurations", configuration), ("evaluators", evaluator)):
        if value is not None:
            parts.append((f"id IN (SELECT run FROM {table} WHERE name = ?)", (value,)))
    prefix = f"substr(value, 1, {INDEXED_CHARACTERS})"
    has_tag = f"id IN (SELECT run FROM tags WHERE key = ? AND value = ? AND {prefix} = ?)"
    for key, value in check_tags(tags or {}).items():
        parts.append((has_tag, (key, value, value[:INDEXED_CHARACTERS])))
    if not parts:
        return "", []
    conditions = " AND ".join(condition for condition, _ in parts)
    return f" WHERE {conditions}", [value for _, values in parts for value in values]


class RunFinder:
    """Finds runs in a database; the base of `StoredRuns`, which runs the queries."""

    _database: Database

    def _query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        raise NotImplementedError

    def runs(
        self,
        *,
        limit: int = 20,
        tags: Mapping[str, str] | None = None,
        name: str | None = None,
        configuration: str | None = None,
        evaluator: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        offset: int = 0,
    ) -> Sequence[RunMetadata]:
        """Return stored runs that match all filters, newest first; both dates are inclusive.

        `evaluator` is the name of a score, or of the evaluator that computed it.
        """
        condition, values = _condition(name, configuration, evaluator, since, until, tags)
        rows = self._query(
            f"SELECT metadata FROM runs{condition} {NEWEST_FIRST} LIMIT ? OFFSET ?",
            (*values, max(0, limit), max(0, offset)),
        )
        return [decode_run(row[0]) for row in rows]

    def _expired_runs(self, retention: Retention, now: datetime, name: str | None) -> list[RunMetadata]:
        condition, values = _condition(name)
        rows = self._query(f"SELECT run_id, name, began FROM runs{condition} {NEWEST_FIRST}", values)
        newer: Counter[str] = Counter()
        expired = []
        for run_id, run_name, start_time in rows:
            started_at = EPOCH + timedelta(microseconds=start_time)
            if not retention.keeps(newer[run_name], started_at, now):
                # Another process may have deleted the run in the meantime.
                expired += self._query("SELECT metadata FROM runs WHERE run_id = ?", (run_id,))
            newer[run_name] += 1
        return [decode_run(row[0]) for row in expired]

    def find(self, reference: str) -> RunMetadata:
        """Find a run by its id, a prefix of its id, its name (the newest run), a baseline, or "latest"."""
        rows = self._query("SELECT metadata FROM runs WHERE run_id = ?", (reference,))
        if not rows and reference == LATEST:
            rows = self._query(f"SELECT metadata FROM runs {NEWEST_FIRST} LIMIT 1")
        if not rows and reference.startswith(PREFIX):
            return self.baseline(reference.removeprefix(PREFIX))
        if not rows:
            query = f"SELECT metadata FROM runs WHERE name = ? {NEWEST_FIRST} LIMIT 1"
            rows = self._query(query, (reference,)) or self._query(BASELINE_QUERY, (reference,))
        return decode_run(rows[0][0]) if rows else self._find_by_prefix(reference)

    def _find_by_prefix(self, reference: str) -> RunMetadata:
        rows = self._query(
            f"SELECT run_id, metadata FROM runs WHERE run_id BETWEEN ? AND ? {NEWEST_FIRST} LIMIT 50",
            (reference, reference + LAST_CHARACTER),
        )
        if reference and len(rows) == 1:
            return decode_run(rows[0][1])
        if reference and rows:
            raise RunNotFound(
                f"{reference!r} matches {len(rows)} runs",
                fix="use a longer prefix: " + ", ".join(row[0] for row in rows[:5]),
            )
        recent = self._query(f"SELECT name, run_id FROM runs {NEWEST_FIRST} LIMIT {SEARCHED_RUNS}")
        if not recent:
            where = self._database.where
            fix = f"proctor run eval.yaml{write_history_option(where)}"
            raise RunNotFound(f"unknown run {reference!r}: the history is empty", where=where, fix=fix)
        # People remember names; an id is suggested only if it is very similar.
        names = {LATEST, *(name for name, _ in recent)}
        names |= {row[0] for row in self._query("SELECT name FROM baselines")}
        run, at, _ = reference.rpartition("@")
        if run and at and (run in names or any(run_id.startswith(run) for _, run_id in recent)):
            what = f"{reference!r} is a configuration of a run, and a whole run is required here"
            raise RunNotFound(what, fix=f"write {run}; `proctor compare` and `proctor show` accept {reference}")
        generated = [run_id for _, run_id in recent if RUN_ID.fullmatch(run_id)]
        own = [run_id for _, run_id in recent if not RUN_ID.fullmatch(run_id)]
        likely = get_close_matches(reference, [*sorted(names), *own], n=1)
        # Generated ids of one day are similar, whatever the runs are.
        likely = likely or get_close_matches(reference, generated, n=1, cutoff=SAME_ID)
        has_form_of_id = not likely and RUN_ID.fullmatch(reference)
        reason = ": it may be mistyped, deleted, or in another history" if has_form_of_id else ""
        raise RunNotFound(f"unknown run {reference!r}{reason}", fix=suggest_name(reference, likely or names))

    def baseline(self, name: str) -> RunMetadata:
        """Return the run of a baseline."""
        rows = self._query(BASELINE_QUERY, (name,))
        if not rows:
            baseline_names = [row[0] for row in self._query("SELECT name FROM baselines")]
            history = write_history_option(self._database.where)
            command = f"set it to the latest run: proctor baseline set {shlex.quote(name)} latest{history}"
            fix = suggest_name(name, baseline_names) if baseline_names else command
            raise RunNotFound(f"unknown baseline {name!r}", fix=fix)
        return decode_run(rows[0][0])

    def baselines(self) -> dict[str, RunMetadata]:
        """Return the runs of all baselines by name."""
        query = "SELECT baselines.name, metadata FROM baselines JOIN runs ON runs.id = baselines.run"
        return {name: decode_run(metadata) for name, metadata in sorted(self._query(query))}


def check_baseline_name(name: str) -> None:
    """Raise an error if a baseline's name could be confused with another reference."""
    if not name.strip() or name == LATEST or name.startswith(PREFIX) or "@" in name:
        raise UsageError(
            f"{name!r} cannot be the name of a baseline",
            fix='use a word such as "main"; "latest" and names with @ are reserved',
        )


def to_microseconds(time: datetime) -> int:
    """Return a time in microseconds since 1970; runs are sorted by this number."""
    if time.tzinfo is None:
        raise UsageError(
            f"the date {time.isoformat()} has no time zone", fix="add the time zone: datetime(…, tzinfo=UTC)"
        )
    return (time - EPOCH) // timedelta(microseconds=1)
