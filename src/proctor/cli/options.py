"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from proctor.core.yaml_text import load_yaml
from proctor.errors import ConfigError, Problem, nearest
from proctor.records.numbers import read_percent


class Subcommands(click.Group):
    """A group of commands."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            told = nearest(args[0], self.commands)
            raise click.UsageError(f"there is no command {args[0]!r}; {told}", ctx)
        return super().resolve_command(ctx, args)


UNPRINTABLE = "\N{REPLACEMENT CHARACTER}"
NAME_LIMIT = 200
LIMITS = "calls=N, tokens=N or cost=N"

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def together(*options: Decorator) -> Decorator:
    """Several options as one, in their order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def history_option() -> Decorator:
    """Where the runs are kept."""
    return click.option(
        "--history",
        metavar="FILE|URL",
        help="The history: a file, or postgresql://…. Default: $PROCTOR_HISTORY, else .proctor/history.db.",
    )


def budget_option() -> Decorator:
    """What the models may use."""
    return click.option(
        "--budget",
        metavar="calls|tokens|cost=N",
        multiple=True,
        help="Stop when the models have used so much; cost is in US dollars.",
    )


def budget_from(given: Iterable[str], else_this: Any = None) -> Any:
    """What --budget says, or what an eval file says."""
    limits = {name: value(text) for name, text in pairs(given, "--budget", LIMITS).items()}
    wrong = [
        Problem("--budget", f"expected {LIMITS}, each a number above 0, found {name}={limit}")
        for name, limit in limits.items()
        if name not in ("calls", "tokens", "cost") or not _is_limit(limit)
    ]
    if wrong:
        raise ConfigError("an option cannot be read", problems=wrong)
    return limits or else_this


def _is_limit(given: Any) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and given > 0


def redact_option(usual: str | None = None) -> Decorator:
    """What is taken out of what is kept; `usual` where no eval file can say it."""
    return click.option(
        "--redact",
        type=click.Choice(["secrets", "personal", "nothing"]),
        default=usual,
        help="Taken out before it is stored. Default: secrets.",
    )


def skipped_option(default: str | None = None) -> Decorator:
    """What a skipped check means for its result; `default` where no eval file can set it."""
    return click.option(
        "--skipped",
        type=click.Choice(["skip", "ignore"]),
        default=default,
        help="Skip a result when one of its checks was skipped, or ignore that check. Default: skip.",
    )


def canary_option() -> Decorator:
    """Whether judges are tested along the way."""
    return click.option(
        "--canary",
        type=click.IntRange(1),
        metavar="N",
        help="Show judges a bad answer that asks for praise, on about one of N samples, and warn "
        "if one passes it. Example: --canary 10.",
    )


def json_option() -> Decorator:
    """Output for programs."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


def output_option() -> Decorator:
    """Where report.md and report.json go."""
    return click.option("--output", metavar="DIR", type=click.Path(path_type=Path), help="Write reports.")


def quiet_option(what: str = "No progress and no table.") -> Decorator:
    """Say less."""
    return click.option("--quiet", "-q", is_flag=True, help=what)


def complain(text: str, heading: str = "") -> None:
    """Say on standard error what is wrong: red where colours are wanted, never a control code."""
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    color = False if plain else None
    visible = "".join(c if c.isprintable() or c == "\n" else UNPRINTABLE for c in text)
    # Where nobody reads it any more, the exit code still tells.
    with contextlib.suppress(BrokenPipeError):
        if heading:
            click.secho(heading, fg="red", bold=True, nl=False, err=True, color=color)
        click.secho(visible, fg=None if heading else "red", err=True, color=color)


def shown(name: str) -> str:
    """A name that came from elsewhere, on one line and without control codes."""
    from proctor.reports.format import line

    return line(name, NAME_LIMIT)


def pairs(given: Iterable[str], option: str, expected: str = "key=value") -> dict[str, str]:
    """`key=value` options as a mapping; all faults at once."""
    found: dict[str, str] = {}
    problems = []
    fix = ""
    for text in given:
        key, equals, value = text.partition("=")
        is_json = text.lstrip().startswith(("{", "["))
        if is_json or not equals or not key.strip():
            problems.append(Problem(option, f"expected {expected}, found {text!r}"))
            if is_json:
                fix = f"write one pair after each {option}, not JSON: {option} {expected}"
        found[key.strip()] = value
    if problems:
        raise ConfigError("an option cannot be read", problems=problems, fix=fix)
    return found


def value(text: str) -> Any:
    """A value from the command line as YAML would read it: 3, true, [a, b], or text.

    >>> value("0.5"), value("false"), value("^A.*z$")
    (0.5, False, '^A.*z$')
    """
    import yaml

    try:
        return load_yaml(text)
    except (yaml.YAMLError, ValueError):
        return text


def number(text: str, option: str) -> float:
    """A share from the command line: 0.8 or 80%.

    >>> number("80%", "--fail-under")
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

    def convert(self, value: Any, param: Any, ctx: Any) -> float:  # noqa: ARG002 - click's form
        """The share that was written."""
        share = value if isinstance(value, float) else number(str(value), f"--{param.name}")
        if not self._low <= share <= self._high:
            self.fail(f"{value} is not in the range {self._low:g} to {self._high:g}", param)
        return share
