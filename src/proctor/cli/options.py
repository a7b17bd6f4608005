"""Options that several commands share, how their values are parsed, and how results are printed."""

from __future__ import annotations

import contextlib
import gc
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import click
from click.core import ParameterSource

from proctor.core.yaml_text import InvalidYAML, load_yaml
from proctor.errors import ConfigError, Problem, ProctorError, suggest_name
from proctor.records.numbers import read_percent

FAILED, USAGE, ERROR, INCONCLUSIVE, INTERRUPTED = 1, 2, 3, 4, 130
UNPRINTABLE = "\N{REPLACEMENT CHARACTER}"
NAME_WIDTH = 200
BUDGET_FORMAT = "calls=N, tokens=N or cost=N"
# Values of the options that take a pair.
EXAMPLES = {
    "--tag": "branch=main",
    "--map": "question=input",
    "--budget": "cost=5",
    "--set": "contains.case_sensitive=false",
    "--better": "retries=lower",
    "--option": "model=openai/gpt-5",
    "--pass-at": "closeness=0.7",
}
# The value of --resume without a run id.
LATEST_UNFINISHED = "the latest unfinished run"
PATH = click.Path(path_type=Path)

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class CommandGroup(click.Group):
    """A group of commands that suggests the nearest name for a misspelled one.

    `elsewhere` has names that people expect in the group, with the command to type instead.
    """

    elsewhere: Mapping[str, str] = {}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if args and args[0] not in names and not args[0].startswith("-"):
            raise ConfigError(f"unknown command {args[0]!r}", fix=self._suggest(ctx, args[0], names))
        return super().resolve_command(ctx, args)

    def _suggest(self, ctx: click.Context, name: str, names: list[str]) -> str:
        root = ctx.find_root().command
        is_other = isinstance(root, click.Group) and root is not self and name in root.list_commands(ctx)
        other = self.elsewhere.get(name) or (f"proctor {name}" if is_other else "")
        return f"did you mean {other!r}?" if other else suggest_name(name, names)


class Choice(click.Choice[str]):
    """One of several words; the error for a misspelled word suggests the nearest one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices:
            fix = suggest_name(str(value), self.choices)
            if not isinstance(param, click.Option):
                raise ConfigError(f"unknown {param.name if param else self.name} {value!r}", fix=fix)
            expected = f"{', '.join(self.choices[:-1])} or {self.choices[-1]}"
            fix = fix if fix.startswith("did you mean") else f"write {param.opts[0]} {self.choices[0]}"
            raise ConfigError(f"must be {expected}, got {value!r}", where=param.opts[0], fix=fix)
        return super().convert(value, param, ctx)


class Number(click.ParamType[float]):
    """A number of a type, from `low` to `high`; `low` itself is too small if it is `exclusive`."""

    name = "number"

    def __init__(
        self, type_: type[int] | type[float], low: float = -math.inf, high: float = math.inf, *, exclusive: bool = False
    ) -> None:
        self._type, self._low, self._high, self._exclusive = type_, low, high, exclusive

    def convert(self, value: Any, param: Any, ctx: Any) -> float:  # noqa: ARG002 - click's signature
        try:
            number, shown = self._type(value), str(value)
        except ValueError:
            number, shown = math.nan, repr(value)
        if (
            self._low <= number <= self._high
            and math.isfinite(number)
            and not (self._exclusive and number == self._low)
        ):
            return number
        fallback = 30 if self._exclusive else 10 if self._low else 0
        values = [str(value) for value in (param.default, getattr(param, "flag_value", None), fallback)]
        example = next(float(value) for value in values if value.replace(".", "").isdecimal())
        fix = f"write {param.opts[0]} {example:g}"
        raise ConfigError(f"must be {self._describe()}, got {shown}", where=param.opts[0], fix=fix)

    def _describe(self) -> str:
        noun = "an integer" if self._type is int else "a number"
        if self._high < math.inf:
            return f"{noun} from {self._low:g} to {self._high:g}"
        if self._exclusive:
            return f"{noun} greater than {self._low:g}"
        return noun if self._low == -math.inf else f"{noun}, {self._low:g} or more"


POSITIVE_INTEGER = Number(int, 1)
NATURAL_NUMBER = Number(int, 0)
# The type of an option follows from the placeholder of its value.
TYPES: dict[str, Any] = {
    "N": Number(int),
    "T": Number(float, 0),
    "SECONDS": Number(float, 0, exclusive=True),
    "FILE": PATH,
    "DIR": PATH,
}


class Option(click.Option):
    """An option that may have older names, which the help does not show.

    One error lists the invalid values of all options.
    """

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        try:
            return super().handle_parse_result(ctx, opts, args)
        except ConfigError as error:
            others = [other for param in ctx.command.params if (other := self._check_other(param, ctx, opts))]
            if not others:
                raise
            errors = [error, *others]
            problems = [Problem(error.where, error.what, error.fix) for error in errors]
            fix = "; ".join(error.fix for error in errors if error.fix)
            raise ConfigError("some options are invalid", problems=problems, fix=fix) from None

    def _check_other(self, param: click.Parameter, ctx: click.Context, opts: Mapping[str, Any]) -> ConfigError | None:
        """Return the error for the value of another option."""
        if param is not self and isinstance(param, Option) and param.name in opts:
            try:
                param.type_cast_value(ctx, opts[param.name])
            except ConfigError as error:
                return error
            except click.ClickException:
                pass
        return None

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        names = self.opts
        first = next(name for name in names if name.startswith("--"))
        self.opts = [name for name in names if name == first or not name.startswith("--")]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = names


def option(declaration: str, help_text: str, **settings: Any) -> Decorator:
    """Declare an option as its help shows it: "--yes" is a flag, "--limit N" takes an integer.

    `into` is the name of the parameter, if it differs from the option's name. A default is shown in the help.
    """
    words = declaration.split()
    names = [word for word in words if word.startswith("-")]
    if metavar := " ".join(words[len(names) :]):
        settings = {"metavar": metavar, "type": TYPES.get(metavar), **settings}
    if "type" not in settings:
        settings["is_flag"] = True
    elif settings.get("default") not in (None, "") and "Default: " not in help_text:
        default = settings["default"]
        help_text += f" Default: {format(default, 'g') if isinstance(default, float) else default}."
    if "into" in settings:
        names.append(settings.pop("into"))
    return click.option(*names, cls=Option, help=help_text, **settings)


def combine(*options: Decorator) -> Decorator:
    """Return one decorator that adds several options in order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(options):
            command = decorator(command)
        return command

    return decorate


history_option = option(
    "--history FILE|URL",
    "Use this history: a file or a postgresql:// URL. Default: $PROCTOR_HISTORY, else .proctor/history.db.",
)
json_option = option("--json", "Print JSON.", into="as_json")
format_option = option(
    "--format NAME",
    "Write the report to --output in this format: markdown, json, html, csv, junit, text, a plugin's name, or "
    "module:attribute; repeat for more. Default: markdown and json.",
    multiple=True,
    into="formats",
)
output_options = combine(option("--output DIR", "Write the report to this folder."), format_option)
common_options = combine(history_option, json_option)
quiet_option = option("--quiet -q", "Print neither progress nor the report; warnings go to stderr.")
name_option = option("--name NAME", "Store the run under this name.")
seed_option = option("--seed N", "Set the seed of all random choices.", type=NATURAL_NUMBER, default=0)
tag_option = option(
    "--tag KEY=VALUE", "Store a tag with the run; repeat for more. Example: --tag branch=main.", multiple=True
)
fail_under_option = option(
    "--fail-under [METRIC=]VALUE",
    "Exit with status 1 if METRIC is below VALUE. Default metric: strict_pass_rate. "
    "Example: --fail-under mean_score=0.8.",
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
    type=POSITIVE_INTEGER,
)
skipped_option = option(
    "--skipped",
    "When an evaluator skips a sample: skip the whole result, or ignore that evaluator. Default: skip.",
    type=Choice(["skip", "ignore"]),
)
resume_options = combine(
    option(
        "--resume [ID]",
        "Resume the run ID: run only its missing samples. Default: the latest unfinished run.",
        is_flag=False,
        flag_value=LATEST_UNFINISHED,
    ),
    option("--allow-changes", "With --resume: resume even if the evaluation has changed."),
    option("--retry-errors", "With --resume: run failed samples again."),
)


def redact_option(default: str | None = None) -> Decorator:
    """Return --redact; pass `default` where no eval file can set it."""
    return option(
        "--redact",
        "Remove secrets, or secrets and personal data (personal), before results are stored. Default: secrets.",
        type=Choice(["secrets", "personal", "nothing"]),
        default=default,
    )


def page_options(noun: str) -> Decorator:
    return combine(
        option("--limit N", f"Show at most N {noun}.", type=NATURAL_NUMBER, default=20),
        option("--offset N", f"Skip the first N {noun}.", type=NATURAL_NUMBER, default=0),
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
    """With --json, redirect the prints of targets and evaluators to standard error.

    Streams that they replace are restored afterwards, and streams that they close are opened again.
    """
    streams = [(stream, _copy_descriptor(stream)) for stream in (sys.stdout, sys.stderr)]
    try:
        if as_json:
            sys.stdout = sys.stderr
        yield
    finally:
        sys.stdout, sys.stderr = (_reopen(*stream) for stream in streams)


def _copy_descriptor(stream: TextIO) -> int | None:
    try:
        return os.dup(stream.fileno())
    except (OSError, ValueError, AttributeError):
        return None


def _reopen(stream: TextIO, descriptor: int | None) -> TextIO:
    if descriptor is None:
        return stream
    if stream.closed:
        return open(descriptor, "w", encoding=stream.encoding, errors=stream.errors)  # noqa: PTH123
    # The target may have closed all descriptors.
    with contextlib.suppress(OSError):
        os.close(descriptor)
    return stream


@contextlib.contextmanager
def tolerate_closed_pipe() -> Iterator[None]:
    """Stop printing when the reader closes the pipe (`| head`); the exit code does not change."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        discard_stdout()


@contextlib.contextmanager
def show_cli_option_names() -> Iterator[None]:
    """Show options in the library's errors as they are typed on the command line: --max-flips."""
    options = (option for option in click.get_current_context().command.params if isinstance(option, click.Option))
    cli_names = {str(option.name): option.opts[0] for option in options}
    try:
        yield
    except ProctorError as error:
        context = click.get_current_context()
        if context.get_parameter_source(error.where) == ParameterSource.COMMANDLINE:
            error.where = cli_names[error.where]
        error.what, error.fix = (
            re.sub(r"`(\w+)`", lambda match: cli_names.get(match[1], match[0]), text)
            for text in (error.what, error.fix)
        )
        if error.fix.startswith(f"write {error.where.lstrip('-')}="):
            error.fix = f"write {error.where} {error.fix.partition('=')[2]}"
        raise


def check_resume_options(options: dict[str, Any]) -> None:
    """Reject options that need --resume when it is missing."""
    dependent_options = [
        name for name in ("--retry-errors", "--allow-changes") if options.get(name.strip("-").replace("-", "_"))
    ]
    if dependent_options and not options.get("resume"):
        need = "needs" if len(dependent_options) == 1 else "need"
        raise ConfigError(f"{' and '.join(dependent_options)} {need} --resume", fix="add --resume, or --resume RUN")


def parse_budget(values: Iterable[str], default: Any = None) -> Any:
    """Return the limits of --budget; without --budget, return `default` (the limits of an eval file)."""
    limits = {name: parse_value(text) for name, text in parse_pairs(values, "--budget", BUDGET_FORMAT).items()}
    problems = [
        Problem("--budget", f"must be {BUDGET_FORMAT}, where N is a number greater than 0, got {name}={limit}")
        for name, limit in limits.items()
        if name not in ("calls", "tokens", "cost")
        or isinstance(limit, bool)
        or not isinstance(limit, int | float)
        or limit <= 0
    ]
    raise_problems(problems, "write --budget cost=5")
    return limits or default


def raise_problems(problems: Sequence[Problem], fix: str) -> None:
    """Raise one error for all problems of an option, if there are any."""
    if len(problems) == 1:
        raise ConfigError(problems[0].what, where=problems[0].where, fix=problems[0].fix or fix)
    if problems:
        raise ConfigError("some options are invalid", problems=problems, fix=fix)


@contextlib.contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Collect no garbage while modules are imported, and skip them later: this saves a short command 7% of its time."""
    gc.disable()
    try:
        yield
    finally:
        # Only once in a process, because frozen objects are never collected.
        if not gc.get_freeze_count():
            gc.freeze()
        gc.enable()


def echo_stderr(text: str, heading: str = "", *, is_problem: bool = True) -> None:
    """Print to standard error without control codes; a problem is red where colors are enabled."""
    is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    color = False if is_plain else None
    visible = "".join(c if c.isprintable() or c == "\n" else UNPRINTABLE for c in text)
    # If standard error is closed, the exit code still reports the problem.
    with contextlib.suppress(BrokenPipeError):
        if heading:
            click.secho(heading, fg="red", bold=True, nl=False, err=True, color=color)
        click.secho(visible, fg="red" if is_problem and not heading else None, err=True, color=color)


def discard_stdout() -> None:
    """Discard further output after the reader of a pipe has closed it."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123


def display_name(name: str) -> str:
    """Return a stored name on one line, without control codes."""
    from proctor.reports.format import single_line

    return single_line(name, NAME_WIDTH)


def parse_pairs(values: Iterable[str], option_name: str, expected: str = "KEY=VALUE") -> dict[str, str]:
    """Parse `key=value` options into a mapping; one error reports all problems."""
    parsed: dict[str, str] = {}
    problems = []
    fix = f"write {option_name} {EXAMPLES[option_name]}"
    for text in values:
        key, equals, value = text.partition("=")
        is_json = text.lstrip().startswith(("{", "["))
        if is_json or not equals or not key.strip():
            problems.append(Problem(option_name, f"must be {expected}, got {text!r}"))
            if is_json:
                fix = f"write one pair after each {option_name}, not JSON: {option_name} {EXAMPLES[option_name]}"
        parsed[key.strip()] = value
    raise_problems(problems, fix)
    return parsed


def parse_value(text: str) -> Any:
    """Parse a value as YAML does: 3, true, [a, b], or a string."""
    try:
        return load_yaml(text)
    except InvalidYAML:
        return text


def parse_max_missing(text: str) -> int | float:
    """Read `--max-missing`: a number of samples, or a share of them.

    >>> parse_max_missing("3"), parse_max_missing("10%")
    (3, 0.1)
    """
    example = "10%, 0.1 or a number of samples"
    limit = int(text) if text.isdecimal() else parse_share(text, "--max-missing", example)
    if not isinstance(limit, int) and not 0 <= limit <= 1:
        raise ConfigError(f"must be from 0% to 100%, got {text}", where="--max-missing", fix=f"write {example}")
    return limit


def parse_share(text: str, where: str, example: str = "80% or 0.8") -> float:
    percent = read_percent(text)
    if percent is not None:
        return percent
    try:
        return float(text)
    except ValueError:
        raise ConfigError(
            f"must be a number or a percentage, got {text!r}", where=where, fix=f"write {example}"
        ) from None


class Share(click.ParamType[float]):
    """A fraction within bounds: 0.3 or 30%."""

    name = "percent"

    def __init__(self, low: float, high: float) -> None:
        self._low, self._high = low, high

    def convert(self, value: Any, param: Any, ctx: Any) -> float:  # noqa: ARG002 - click's signature
        share = value if isinstance(value, float) else parse_share(str(value), param.opts[0])
        if not self._low <= share <= self._high:
            expected = f"from {100 * self._low:g}% to {100 * self._high:g}%"
            raise ConfigError(f"must be {expected}, got {value}", where=param.opts[0], fix=f"write {param.opts[0]} 30%")
        return share
