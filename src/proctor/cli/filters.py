"""Which runs are meant, from the command line: filters and dates that several commands share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.options import Decorator, pairs, shown, together
from proctor.errors import ConfigError, UsageError, nearest

if TYPE_CHECKING:
    from proctor.ports import History
    from proctor.records.run import RunMetadata

ALL = 2**31
LOOKED_AT = 500
AGO = re.compile(r"(\d+)([dhm])")
UNITS = {"d": "days", "h": "hours", "m": "minutes"}
A_MOMENT = timedelta(microseconds=1)
HOW_DATES_ARE_WRITTEN = "write 2026-01-31, 2026-01-31T14:30, 7d, 24h or 30m (ago)"


def time_options() -> Decorator:
    """From when to when, and with which tags."""
    return together(
        click.option(
            "--since",
            metavar="DATE",
            help="Begun then or later: 2026-01-31, 2026-01-31T14:30, or 7d, 24h, 30m ago. Without "
            "a zone (Z, +02:00) it is local time.",
        ),
        click.option(
            "--until",
            metavar="DATE",
            help="Begun then or earlier; a date without a time means the whole day.",
        ),
        click.option("--tag", metavar="KEY=VALUE", multiple=True, help="Only runs with this tag."),
    )


def filter_options() -> Decorator:
    """All that runs are asked for by."""
    return together(
        click.option("--name", help="Only runs of this name."),
        click.option("--evaluator", metavar="NAME", help="Only runs with this evaluator or score."),
        click.option("--configuration", metavar="NAME", help="Only runs with this configuration."),
        time_options(),
    )


def asked(given: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """What a history is asked for, from the options of a command."""
    since, until = given["since"], given["until"]
    first = None if since is None else moment(since, now, "--since")
    last = None if until is None else moment(until, now, "--until", last=True)
    if first and last and first > last:
        raise ConfigError(f"--since {since} is after --until {until}")
    found: dict[str, Any] = {"since": first, "until": last, "tags": pairs(given["tag"], "--tag")}
    for name in ("name", "evaluator", "configuration"):
        if isinstance(given.get(name), str):
            found[name] = given[name]
    return found


def moment(text: str, now: datetime, option: str, *, last: bool = False) -> datetime:
    """A date, a date with a time, or how long ago; of a day, its beginning or its `last` moment.

    >>> from datetime import UTC
    >>> noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    >>> moment("24h", noon, "--since").isoformat()
    '2026-01-30T12:00:00+00:00'
    >>> moment("2026-01-30T12:00Z", noon, "--until").isoformat()
    '2026-01-30T12:00:00+00:00'
    """
    try:
        if ago := AGO.fullmatch(text):
            return now - timedelta(**{UNITS[ago[2]]: int(ago[1])})
        if (day := _day(text)) is None:
            found = datetime.fromisoformat(text)
            return found if found.tzinfo is not None else found.astimezone()
        if not last:
            return datetime.combine(day, time()).astimezone()
        return datetime.combine(day + timedelta(days=1), time()).astimezone() - A_MOMENT
    except (ValueError, OverflowError):
        raise ConfigError(f"{text!r} is no date", where=option, fix=HOW_DATES_ARE_WRITTEN) from None


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def nothing_fits(history: History, wanted: Mapping[str, Any]) -> str:
    """Why no run was found: there is none at all, a name is misspelt, or none fits."""
    recent = history.runs(limit=LOOKED_AT)
    if not recent:
        return f"no runs yet in {shown(history.holdings().where)}; `proctor demo` makes one"
    for key, names in _names(recent).items():
        given = wanted.get(key)
        if given is not None and not history.runs(limit=1, **{key: given}):
            said = "is called" if key == "name" else f"has the {key}"
            return f"no run {said} {given!r}; {shown(nearest(given, names))}"
    return "no run fits; `proctor runs` lists all"


def _names(runs: Any) -> dict[str, set[str]]:
    return {
        "name": {run.name for run in runs},
        "evaluator": {spec.name for run in runs for spec in run.evaluators},
        "configuration": {each.name for run in runs for each in run.configurations},
    }


def chosen(
    history: History, named: tuple[str, ...], given: Mapping[str, Any], now: datetime
) -> list[RunMetadata]:
    """The runs that are named, else all that the filters let through; the oldest first."""
    wanted = asked(given, now)
    if not named:
        found = history.runs(limit=ALL, **wanted)
        if not found:
            raise UsageError(nothing_fits(history, wanted))
        return list(reversed(found))
    if any(value for value in wanted.values()):
        raise ConfigError("name runs, or choose them by filters, not both")
    return list({run.run_id: run for run in map(history.find, named)}.values())
