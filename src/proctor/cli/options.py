"""Options that several commands share, how their values are parsed, and how results are printed."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from proctor.core.yaml_text import InvalidYAML, load_yaml
from proctor.errors import ConfigError, Problem, ProctorError, suggest_name
from proctor.records.numbers import read_percent

FAILED, USAGE, ERROR, INCONCLUSIVE, INTERRUPTED = 1, 2, 3, 4, 130
UNPRINTABLE = "\N{REPLACEMENT CHARACTER}"
NAME_WIDTH = 200
BUDGET_FORM = "calls=N, tokens=N or cost=N"
# The value of --resume without a run id.
LATEST_UNFINISHED = "the latest unfinished run"
PATH = click.Path(path_type=Path)
# The type of an option follows from the placeholder of its value.
TYPES: dict[str, Any] = {"N": int, "SECONDS": float, "FILE": PATH, "DIR": PATH}

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


class Choice(click.Choice[str]):
    """One of several words; the error for a misspelled word suggests the nearest one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices:
            self.fail(f"there is no choice {value!r}; {suggest_name(str(value), self.choices)}", param, ctx)
        return super().convert(value, param, ctx)


def option(declaration: str, help_text: str, **settings: Any) -> Decorator:
    """Declare an option as its help shows it: "--yes" is a flag, "--limit N" takes an integer.

    `into` is the name of the parameter, if it is not the option's. A default is shown in the help.
    """
    words = declaration.split()
    names = [word for word in words if word.startswith("-")]
    if metavar := " ".join(words[len(names) :]):
        settings = {"metavar": metavar, "type": TYPES.get(metavar), **settings}
    if "type" in settings:
        settings.setdefault("show_default", settings.get("default") not in (None, ""))
    else:
        settings["is_flag"] = True
    if "into" in settings:
        names.append(settings.pop("into"))
    return click.option(*names, help=help_text, **settings)


def combine(*options: Decorator) -> Decorator:
    """Return one decorator that adds several options, in their order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for each in reversed(options):
            command = each(command)
        return command

    return decorate


history_option = option(
    "--history FILE|URL",
    "Use this history: a file or postgresql://…. Default: $PROCTOR_HISTORY, else .proctor/history.db.",
)
json_option = option("--json", "Print JSON.", into="as_json")
format_option = option(
    "--format NAME",
    "Write the report to --output in this format: markdown, json, a plugin's name, or module:attribute; repeat for "
    "more. Default: markdown and json.",
    multiple=True,
    into="formats",
)
output_options = combine(option("--output DIR", "Write the report to this folder."), format_option)
common_options = combine(history_option, json_option)
quiet_option = option("--quiet -q", "Print neither progress nor the report.")
name_option = option("--name NAME", "Store the run under this name.")
tag_option = option(
    "--tag KEY=VALUE", "Store a tag with the run; repeat for more. Example: --tag branch=main.", multiple=True
)
fail_under_option = option(
    "--fail-under [METRIC=]VALUE",
    "Exit with 1 if a metric is lower; without METRIC, the strict pass rate. Example: --fail-under mean_score=0.8.",
    multiple=True,
)
# The options of a command that ends with a report.
report_options = combine(fail_under_option, output_options, quiet_option, common_options)
requests_option = option(
    "--requests ADDRESS", "Use this request mailbox: redis://host:6379/0/NAME or sqs://NAME.", required=True
)
budget_option = option(
    "--budget calls|tokens|cost=N",
    "Stop when the models have used N calls, tokens or US dollars. Example: --budget cost=5.",
    multiple=True,
)
canary_option = option(
    "--canary N",
    "Test the judges: on about 1 in N samples, show them a bad answer that asks for a high score; warn if a judge "
    "passes it. Default: off. Example: --canary 10.",
    type=click.IntRange(1),
)
skipped_option = option(
    "--skipped",
    "How a skipped check affects its result: skip the whole result, or ignore the check. Default: skip.",
    type=Choice(["skip", "ignore"]),
)
resume_options = combine(
    option(
        "--resume [ID]",
        "Continue a run: run only what is missing. Without ID, the latest unfinished run.",
        is_flag=False,
        flag_value=LATEST_UNFINISHED,
    ),
    option("--allow-changes", "With --resume: continue even if the evaluation has changed."),
    option("--retry-errors", "With --resume: run failed samples again."),
)


def redact_option(default: str | None = None) -> Decorator:
    """Return --redact; pass `default` where no eval file can set it."""
    return option(
        "--redact",
        "Remove secrets, or secrets and personal data, before anything is stored. Default: secrets.",
        type=Choice(["secrets", "personal", "nothing"]),
        default=default,
        show_default=False,
    )


def page_options(noun: str) -> Decorator:
    return combine(
        option("--limit N", f"Show at most N {noun}.", type=click.IntRange(min=0), default=20),
        option("--offset N", f"Skip the first N {noun}.", type=click.IntRange(min=0), default=0),
    )


def print_json(content: Any) -> None:
    from proctor.records import codec

    click.echo(codec.encode_pretty(content))


def progress(options: Mapping[str, Any], **settings: Any) -> Any:
    """Return the progress display of a run; None with --quiet and --json."""
    from proctor.reports.live import live_display

    return live_display(not (options.get("quiet") or options["as_json"]), **settings)


@contextlib.contextmanager
def redirect_prints(as_json: bool) -> Iterator[None]:
    """With --json, send what targets and evaluators print to standard error.

    Streams that they replace are restored afterwards.
    """
    streams = sys.stdout, sys.stderr
    try:
        if as_json:
            sys.stdout = sys.stderr
        yield
    finally:
        sys.stdout, sys.stderr = streams


@contextlib.contextmanager
def tolerate_closed_pipe() -> Iterator[None]:
    """Stop printing when the reader closes the pipe (`| head`); the exit code does not change."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        discard_stdout()


@contextlib.contextmanager
def name_options_as_typed() -> Iterator[None]:
    """In errors of the library, write the options of this command as they are typed: --max-flips."""
    options = (each for each in click.get_current_context().command.params if isinstance(each, click.Option))
    typed = {str(each.name): each.opts[0] for each in options}
    try:
        yield
    except ProctorError as error:
        error.where = typed.get(error.where, error.where)
        error.what, error.fix = (
            re.sub(r"`(\w+)`", lambda match: typed.get(match[1], match[0]), text) for text in (error.what, error.fix)
        )
        raise


def check_resume_options(options: dict[str, Any]) -> None:
    """Reject options that need --resume when it is missing."""
    given = [name for name in ("--retry-errors", "--allow-changes") if options.get(name.strip("-").replace("-", "_"))]
    if given and not options.get("resume"):
        need = "needs" if len(given) == 1 else "need"
        raise ConfigError(f"{' and '.join(given)} {need} --resume", fix="add --resume, or --resume RUN")


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
    raise_problems(problems, "write --budget cost=5")
    return limits or default


def raise_problems(problems: Sequence[Problem], fix: str) -> None:
    """Raise one error for all problems of an option; none if there are no problems."""
    if len(problems) == 1:
        raise ConfigError(problems[0].what, where=problems[0].where, fix=problems[0].fix or fix)
    if problems:
        raise ConfigError("some options are invalid", problems=problems, fix=fix)


def echo_stderr(text: str, heading: str = "") -> None:
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


def parse_pairs(values: Iterable[str], option_name: str, expected: str = "key=value") -> dict[str, str]:
    """Parse `key=value` options into a mapping; report all errors at once."""
    parsed: dict[str, str] = {}
    problems = []
    fix = f"write {option_name} {expected.partition(',')[0]}"
    for text in values:
        key, equals, value = text.partition("=")
        is_json = text.lstrip().startswith(("{", "["))
        if is_json or not equals or not key.strip():
            problems.append(Problem(option_name, f"expected {expected}, found {text!r}"))
            if is_json:
                fix = f"write one pair after each {option_name}, not JSON: {option_name} {expected}"
        parsed[key.strip()] = value
    raise_problems(problems, fix)
    return parsed


def parse_value(text: str) -> Any:
    """Parse a value as YAML does: 3, true, [a, b], or text."""
    try:
        return load_yaml(text)
    except InvalidYAML:
        return text


def parse_share(text: str, where: str, example: str = "80% or 0.8") -> float:
    percent = read_percent(text)
    if percent is not None:
        return percent
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"{text!r} is not a number or percentage", where=where, fix=f"write {example}") from None


class Share(click.ParamType[float]):
    """A share within bounds: 0.3 or 30%."""

    name = "share"

    def __init__(self, low: float, high: float) -> None:
        self._low, self._high = low, high

    def convert(self, value: Any, param: Any, ctx: Any) -> float:  # noqa: ARG002 - click's signature
        share = value if isinstance(value, float) else parse_share(str(value), param.opts[0])
        if not self._low <= share <= self._high:
            self.fail(f"{value} is not in the range {100 * self._low:g}% to {100 * self._high:g}%", param)
        return share
