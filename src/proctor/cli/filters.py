"""Options that select runs by name, tag and date."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from proctor.cli.options import combine, display_name, option, parse_pairs
from proctor.errors import ConfigError, UsageError, suggest_name

if TYPE_CHECKING:
    from proctor.ports import History
    from proctor.records.run import RunMetadata

ALL = 2**31
LATEST = "latest"
# How many recent runs are searched for a similar name.
RECENT_RUNS = 500
AGO = re.compile(r"(\d+)([dhm])")
UNITS = {"d": "days", "h": "hours", "m": "minutes"}
DATE_FORMS = "write a date such as 2026-01-31 or 2026-01-31T14:30, or a duration such as 7d, 24h or 30m"

time_options = combine(
    option(
        "--since DATE",
        "Select runs that started at DATE or later. DATE is a date such as 2026-01-31 or 2026-01-31T14:30, or a "
        "duration such as 7d, 24h or 30m. Local time, unless DATE has a time zone (Z, +02:00).",
    ),
    option("--until DATE", "Select runs that started at DATE or earlier; a date without a time includes that day."),
    option("--tag KEY=VALUE", "Select runs with this tag. Example: branch=main.", multiple=True),
)
filter_options = combine(
    option("--name NAME", "Select runs with this name."),
    option("--evaluator NAME", "Select runs with this evaluator or score."),
    option("--configuration NAME", "Select runs with this configuration."),
    time_options,
)

where_option = option(
    "--where KEY=VALUE",
    "Select samples by metadata: topic=billing, user.plan!=free; an empty VALUE selects samples without KEY. Repeat "
    "for more: values of the same KEY are alternatives.",
    multiple=True,
)
sample_tag_option = option("--sample-tag TAG", "Select samples with this tag; repeat for alternatives.", multiple=True)
text_option = option(
    "--text WORDS", "Select samples with these words in the input, output, expected value, reasons or error."
)
by_option = option(
    "--by KEY", "Add a table by the values of a metadata key. Example: topic, user.plan, or tags for each tag."
)


def read_selection(options: Mapping[str, Any]) -> Any:
    """Return the samples that the options of a command select."""
    from proctor.records.selection import Selection, parse_conditions

    parse_conditions(options["where"], "--where")
    return Selection(
        tuple(options.get("samples", ())),
        tuple(options["where"]),
        tuple(options["sample_tag"]),
        options.get("failed_of"),
    )


def build_select(options: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the samples to run as an option of the run; None for all."""
    import msgspec

    return msgspec.to_builtins(read_selection(options)) or None


def find_in_time(history: History, reference: str, options: Mapping[str, Any], now: datetime) -> str:
    """Return the newest run of a name, or of all runs for "latest", that matches --since, --until and --tag.

    The id of a run, or the name of a baseline, is returned unchanged.
    """
    query = parse_filters({name: options[name] for name in ("since", "until", "tag")}, now)
    if not any(query.values()):
        return reference
    name, at, configuration = reference.rpartition("@") if "@" in reference else (reference, "", "")
    if name != LATEST and not history.runs(limit=1, name=name):
        return reference
    runs = history.runs(limit=1, name=None if name == LATEST else name, **query)
    if not runs:
        raise UsageError(
            f"no run {'' if name == LATEST else f'of {name!r} '}matches --since, --until and --tag",
            fix=f"list its runs: proctor runs{'' if name == LATEST else f' --name {name}'}",
        )
    return f"{runs[0].run_id}{at}{configuration}"


def parse_filters(options: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Turn the options of a command into the arguments of a history query."""
    since, until = options["since"], options["until"]
    start = None if since is None else parse_date(since, now, "--since")
    end = None if until is None else parse_date(until, now, "--until", is_end=True)
    if start and end and start > end:
        raise ConfigError(f"--since {since} is after --until {until}", fix="swap the two dates")
    query: dict[str, Any] = {"since": start, "until": end, "tags": parse_pairs(options["tag"], "--tag")}
    for name in ("name", "evaluator", "configuration"):
        if isinstance(options.get(name), str):
            query[name] = options[name]
    return query


def parse_date(text: str, now: datetime, where: str, *, is_end: bool = False) -> datetime:
    """Parse a date, a date with a time, or an age; with `is_end`, a day means its last moment."""
    try:
        if ago := AGO.fullmatch(text):
            return now - timedelta(**{UNITS[ago[2]]: int(ago[1])})
        with contextlib.suppress(ValueError):
            day = datetime.combine(date.fromisoformat(text), time())
            if not is_end:
                return day.astimezone()
            return (day + timedelta(days=1)).astimezone() - timedelta(microseconds=1)
        parsed = datetime.fromisoformat(text)
        return parsed if parsed.tzinfo is not None else parsed.astimezone()
    except (ValueError, OverflowError):
        raise ConfigError(f"{text!r} is not a date", where=where, fix=DATE_FORMS) from None


def explain_no_match(history: History, query: Mapping[str, Any]) -> str:
    """Return why no run matches: the history is empty, a name is misspelled, or no run matches the filters."""
    recent = history.runs(limit=RECENT_RUNS)
    if not recent:
        from proctor.history.run_finder import write_history_option

        where = history.describe().where
        command = display_name(f"proctor run eval.yaml{write_history_option(where)}")
        return f"no runs in {display_name(where)}; `{command}` stores one, `proctor init` writes an eval file"
    known_names = {
        "name": {run.name for run in recent},
        "evaluator": {spec.name for run in recent for spec in run.evaluators},
        "configuration": {configuration.name for run in recent for configuration in run.configurations},
    }
    for key, names in known_names.items():
        name = query.get(key)
        if name is not None and not history.runs(limit=1, **{key: name}):
            verb = "is named" if key == "name" else f"has the {key}"
            return f"no run {verb} {name!r}; {display_name(suggest_name(name, names))}"
    return "no run matches; `proctor runs` lists all runs"


def select_runs(
    history: History, names: tuple[str, ...], options: Mapping[str, Any], now: datetime
) -> list[RunMetadata]:
    """Return the named runs, oldest first; without names, all runs that match the filters."""
    query = parse_filters(options, now)
    if not names:
        runs = history.runs(limit=ALL, **query)
        if not runs:
            raise UsageError(explain_no_match(history, query))
        return list(reversed(runs))
    if any(query.values()):
        raise ConfigError("run names and filters cannot be combined", fix="name the runs, or select them with filters")
    return list({run.run_id: run for run in map(history.find, names)}.values())
