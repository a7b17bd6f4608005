"""The `proctor` command: finds the command that is meant and loads only that one."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import click

from proctor.cli.options import complain
from proctor.core.process_exit import exit_with_code_of
from proctor.errors import ProctorError, RunInterrupted, UsageError
from proctor.version import VERSION

COMMANDS = {
    "run": "Evaluate a target on a dataset.",
    "runs": "List the runs in the history.",
    "show": "Show a run: its report, its failures, one sample.",
    "compare": "Say whether one run or configuration is better than another.",
    "rank": "Put runs or configurations in order, and say which places are decided.",
    "sessions": "Look at recorded sessions: logs of chats, and traces.",
    "worker": "Run samples for others: take requests out of a mailbox.",
    "submit": "Send a run's samples to workers, and do not wait.",
    "collect": "Collect the results of a submitted run.",
    "mailbox": "Show what lies in a mailbox, or empty it.",
    "rescore": "Score the outputs of a run again, with other evaluators.",
    "delete": "Delete runs from the history.",
    "baseline": "Name runs that others are compared with.",
    "gate": "Decide whether a run is as good as its baseline: pass, fail, inconclusive.",
    "history": "Tidy up, see trends, export and import runs.",
    "evaluators": "List the evaluators and their parameters.",
    "models": "List the models that can be reached; pull local ones.",
    "init": "Write a first project that runs.",
    "demo": "Evaluate a small question answerer in two configurations.",
}
USAGE, TROUBLE, INTERRUPTED = 2, 3, 130
DEBUG_VARIABLE = "PROCTOR_DEBUG"


class LazyCommands(click.Group):
    """Commands that are imported when they are used, so that help is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = importlib.import_module(f"proctor.cli.{cmd_name}").command
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from proctor.errors import nearest

            raise click.UsageError(f"there is no command {args[0]!r}; {nearest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="proctor")
def proctor() -> None:
    """Evaluate LLM programs and agents: run them on a dataset, score, keep and report."""


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    given = sys.argv[1:] if args is None else args
    # A worker that ends loses nothing: its samples go to other workers.
    if given[:1] == ["worker"]:
        sys.exit(outcome(args))
    # From the start, so that modules which import `os._exit` by name are covered too.
    exit_with_code_of(lambda: outcome(args))


def outcome(args: list[str] | None = None) -> int:
    """Run the command line; what goes wrong is told on one screen, never as a traceback."""
    try:
        code = _code(proctor.main(args=args, prog_name="proctor", standalone_mode=False))
        return _flushed(code)
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        error.show()
        return USAGE
    except click.Abort as abort:
        # click turns every KeyboardInterrupt into this, ours included.
        if isinstance(abort.__cause__, RunInterrupted):
            click.echo(
                "interrupted: what was finished is kept; "
                f"add --resume {abort.__cause__.run_id} to the same command to go on",
                err=True,
            )
        return INTERRUPTED
    except ProctorError as error:
        complain(str(error), "error: ")
        return USAGE if isinstance(error, UsageError) else TROUBLE
    except SystemExit as end:
        # click ends like this, with another stream in its place, when whoever read our output has
        # gone: nobody is left to tell.
        is_reader_gone = type(sys.stdout).__name__.endswith("PacifyFlushWrapper")
        return 0 if is_reader_gone else _ended_from_inside(end)
    except OSError as error:
        complain(str(error), "error: ")
        return TROUBLE
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        complain(
            f"{type(error).__name__}: {error}\nThis was not foreseen. {DEBUG_VARIABLE}=1 shows "
            "where it happened; what a run had finished is kept.",
            "error: ",
        )
        return TROUBLE


def _ended_from_inside(end: SystemExit) -> int:
    complain(
        f"the program was told to end from inside (SystemExit: {end}): an agent, a tool or a "
        "library called sys.exit. What was finished is kept",
        "error: ",
    )
    return TROUBLE


def _flushed(code: int) -> int:
    """Print what is left while it can still be noticed that the reader has gone (`| head`)."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    return code


def _code(returned: Any) -> int:
    return returned if isinstance(returned, int) else 0
