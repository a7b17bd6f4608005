"""Options that several commands share, and how their values are parsed."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from proctor.core.yaml_text import InvalidYAML, load_yaml
from proctor.errors import ConfigError, Problem, suggest_name
from proctor.records.numbers import read_percent

FAILED, USAGE, TROUBLE, INCONCLUSIVE, INTERRUPTED = 1, 2, 3, 4, 130
UNPRINTABLE = "\N{REPLACEMENT CHARACTER}"
NAME_WIDTH = 200
BUDGET_FORM = "calls=N, tokens=N or cost=N"
# The value of --resume without a run id.
LATEST_UNFINISHED = "the latest unfinished run"
PATH = click.Path(path_type=Path)

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class CommandGroup(click.Group):
    """A group of commands that suggests the nearest name for a misspelled one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if args and args[0] not in names and not args[0].startswith("-"):
            raise click.UsageError(f"there is no command {args[0]!r}; {suggest_name(args[0], names)}", ctx)
        return super().resolve_command(ctx, args)


def combine(*options: Decorator) -> Decorator:
    """Return one decorator that adds several options, in their order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


history_option = click.option(
    "--history",
    metavar="FILE|URL",
    help="Use this history: a file or postgresql://…. Default: $PROCTOR_HISTORY, else .proctor/history.db.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
output_option = click.option(
    "--output", metavar="DIR", type=PATH, help="Write report.md and report.json to this folder."
)
quiet_option = click.option("--quiet", "-q", is_flag=True, help="Print neither progress nor the report.")
name_option = click.option("--name", help="Store the run under this name.")
tag_option = click.option(
    "--tag",
    metavar="KEY=VALUE",
    multiple=True,
    help="Store a tag with the run; repeat for more. Example: --tag branch=main.",
)
fail_under_option = click.option(
    "--fail-under",
    metavar="[METRIC=]VALUE",
    multiple=True,
    help="Exit with 1 if a metric is lower; without METRIC, the strict pass rate. "
    "Example: --fail-under mean_score=0.8.",
)
requests_option = click.option(
    "--requests",
    metavar="ADDRESS",
    required=True,
    help="Use this request mailbox: redis://host:6379/0/NAME or sqs://NAME.",
)
budget_option = click.option(
    "--budget",
    metavar="calls|tokens|cost=N",
    multiple=True,
    help="Stop when the models have used N calls, tokens or US dollars. Example: --budget cost=5.",
)
canary_option = click.option(
    "--canary",
    type=click.IntRange(1),
    metavar="N",
    help="On about one of N samples, show judges a bad answer that asks for praise, and warn if "
    "they pass it. Default: off. Example: --canary 10.",
)
skipped_option = click.option(
    "--skipped",
    type=click.Choice(["skip", "ignore"]),
    help="Skip a result when one of its checks was skipped, or ignore that check. Default: skip.",
)
resume_options = combine(
    click.option("--resume", metavar="[ID]", is_flag=False, flag_value=LATEST_UNFINISHED,
                 help="Continue a run: run only what is missing. Without ID, the latest unfinished run."),
    click.option("--allow-changes", is_flag=True,
                 help="With --resume: continue even if the evaluation has changed."),
    click.option("--retry-errors", is_flag=True, help="With --resume: run failed samples again."),
)  # fmt: skip


def redact_option(default: str | None = None) -> Decorator:
    """Return --redact; pass `default` where no eval file can set it."""
    return click.option(
        "--redact",
        type=click.Choice(["secrets", "personal", "nothing"]),
        default=default,
        help="Remove secrets, or secrets and personal data, before anything is stored. Default: secrets.",
    )


def page_options(noun: str) -> Decorator:
    """Return --limit and --offset of a list."""
    from_zero = click.IntRange(min=0)
    return combine(
        click.option("--limit", type=from_zero, metavar="N", default=20, show_default=True,
                     help=f"Show at most N {noun}."),
        click.option("--offset", type=from_zero, metavar="N", default=0, show_default=True,
                     help=f"Skip the first N {noun}."),
    )  # fmt: skip


def check_resume_options(options: dict[str, Any]) -> None:
    """Reject options that need --resume when it is missing."""
    if not options.get("resume") and (options.get("retry_errors") or options.get("allow_changes")):
        raise ConfigError("--retry-errors and --allow-changes need --resume", fix="add --resume RUN")


def parse_budget(values: Iterable[str], default: Any = None) -> Any:
    """Return the limits of --budget, or `default` (those of an eval file) without any."""
    limits = {name: parse_value(text) for name, text in parse_pairs(values, "--budget", BUDGET_FORM).items()}
    problems = [
        Problem("--budget", f"expected {BUDGET_FORM}, each a number above 0, found {name}={limit}")
        for name, limit in limits.items()
        if name not in ("calls", "tokens", "cost")
        or isinstance(limit, bool)
        or not isinstance(limit, int | float)
        or limit <= 0
    ]
    if problems:
        raise ConfigError("an option is invalid", problems=problems, fix="write --budget cost=5")
    return limits or default


def complain(text: str, heading: str = "") -> None:
    """Print to standard error, in red where colors are enabled and without control codes."""
    is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    color = False if is_plain else None
    visible = "".join(c if c.isprintable() or c == "\n" else UNPRINTABLE for c in text)
    # If standard error is closed, the exit code still reports the problem.
    with contextlib.suppress(BrokenPipeError):
        if heading:
            click.secho(heading, fg="red", bold=True, nl=False, err=True, color=color)
        click.secho(visible, fg=None if heading else "red", err=True, color=color)


def discard_stdout() -> None:
    """Send further output nowhere, after the reader of a pipe has closed it."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123


def display_name(name: str) -> str:
    """Return a stored name on one line, without control codes."""
    from proctor.reports.format import single_line

    return single_line(name, NAME_WIDTH)


def parse_pairs(values: Iterable[str], option: str, expected: str = "key=value") -> dict[str, str]:
    """Parse `key=value` options into a mapping; report all faults at once."""
    parsed: dict[str, str] = {}
    problems = []
    fix = f"write {option} {expected.partition(',')[0]}"
    for text in values:
        key, equals, value = text.partition("=")
        is_json = text.lstrip().startswith(("{", "["))
        if is_json or not equals or not key.strip():
            problems.append(Problem(option, f"expected {expected}, found {text!r}"))
            if is_json:
                fix = f"write one pair after each {option}, not JSON: {option} {expected}"
        parsed[key.strip()] = value
    if problems:
        raise ConfigError("an option is invalid", problems=problems, fix=fix)
    return parsed


def parse_value(text: str) -> Any:
    """Parse a value as YAML does: 3, true, [a, b], or text.

    >>> parse_value("0.5"), parse_value("false"), parse_value("^A.*z$")
    (0.5, False, '^A.*z$')
    """
    try:
        return load_yaml(text)
    except InvalidYAML:
        return text


def parse_share(text: str, option: str) -> float:
    """Parse a share: 0.8 or 80%.

    >>> parse_share("80%", "--fail-under")
    0.8
    """
    percent = read_percent(text)
    if percent is not None:
        return percent
    try:
        return float(text)
    except ValueError:
        raise ConfigError(
            f"expected a number such as 0.8 or 80%, found {text!r}", where=option, fix="write 0.8 or 80%"
        ) from None


class Share(click.ParamType[float]):
    """A share within bounds: 0.3 or 30%."""

    name = "share"

    def __init__(self, low: float, high: float) -> None:
        self._low = low
        self._high = high

    def convert(self, value: Any, param: Any, ctx: Any) -> float:  # noqa: ARG002 - click's signature
        """Parse the share and check its bounds."""
        share = value if isinstance(value, float) else parse_share(str(value), f"--{param.name}")
        if not self._low <= share <= self._high:
            self.fail(f"{value} is not in the range {self._low:g} to {self._high:g}", param)
        return share
