"""The `proctor` command: finds the subcommand and imports only that one."""

from __future__ import annotations

import importlib
import os
import re
import sys

import click

from proctor.cli.options import ERROR, INTERRUPTED, USAGE, CommandGroup, discard_stdout, echo_stderr
from proctor.core.process_exit import run_and_exit
from proctor.errors import ConfigError, ProctorError, RunInterrupted, UsageError, suggest_name
from proctor.version import VERSION

COMMAND_GROUPS = {
    "Get started": {
        "init": "Create a small project that you can run and change.",
        "demo": "Evaluate a question-answering program in two configurations.",
    },
    "Evaluate": {
        "run": "Evaluate a target on a dataset.",
        "rescore": "Score the outputs of a stored run with other evaluators.",
        "sessions": "Show and score recorded sessions: chat logs and traces.",
    },
    "Look at results": {
        "view": "Look at runs, samples and comparisons in a browser.",
        "runs": "List the runs in the history.",
        "show": "Show a run, its failed samples, or one sample.",
        "report": "Write a run to a file: HTML, Markdown, JSON, CSV or JUnit.",
        "compare": "Compare two runs or two configurations.",
        "rank": "Rank runs or configurations by a metric.",
    },
    "Check in CI": {
        "gate": "Check that a run is as good as its baseline.",
        "baseline": "Name the runs to compare other runs with.",
    },
    "Trust the results": {
        "label": "Label outputs by hand, to check a judge.",
        "judge": "Show how far a judge can be trusted, and what to label next.",
        "noise": "Show what makes a run's numbers uncertain, and what to run next.",
        "plan": "Plan how many samples, epochs and verdicts a gate needs.",
        "mutate": "Test the evaluators of a run with planted faults.",
        "items": "Find the samples that are useless, broken or redundant.",
        "watch": "Raise an alarm when a metric changes from run to run, and find the cause.",
    },
    "Run on many machines": {
        "worker": "Run samples that other processes submit.",
        "submit": "Send the samples of a run to workers.",
        "collect": "Collect the results of a submitted run.",
        "mailbox": "Show or empty a mailbox.",
    },
    "Manage": {
        "import": "Import results and datasets of other tools: promptfoo, Inspect and others.",
        "history": "Prune, export and import runs; show trends.",
        "delete": "Delete runs from the history.",
        "evaluators": "List the evaluators and their parameters.",
        "models": "List the available models; download local ones.",
        "doctor": "Check what is installed, configured and reachable.",
        "completion": "Complete commands, runs and evaluators in bash, zsh or fish.",
        "mcp": "Let coding agents read results: an MCP server.",
    },
}
COMMANDS = {name: summary for group in COMMAND_GROUPS.values() for name, summary in group.items()}
# Commands whose name cannot be the name of a module.
MODULES = {"import": "import_files"}
DEBUG_VARIABLE = "PROCTOR_DEBUG"
# Set by the scripts of `proctor completion`.
COMPLETION_VARIABLE = "_PROCTOR_COMPLETE"


class LazyCommands(CommandGroup):
    """Imports each command on first use, which keeps `--help` fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = MODULES.get(cmd_name, cmd_name)
        subcommand: click.Command = importlib.import_module(f"proctor.cli.{module}").command
        if COMPLETION_VARIABLE in os.environ:
            from proctor.cli.completion import add_completions

            add_completions(subcommand)
        return subcommand

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for title, commands in COMMAND_GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), summary) for name, summary in commands.items()])


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.version_option(VERSION, prog_name="proctor")
@click.pass_context
def proctor(context: click.Context) -> None:
    """Evaluate LLM programs and agents: run them on a dataset, score the outputs, compare runs."""
    if context.invoked_subcommand is None:
        from proctor.cli.welcome import show_next_steps

        show_next_steps()


# Commands without --json, and what prints JSON instead.
JSON_COMMANDS = {
    "view": "proctor show RUN --json prints a run, proctor runs --json lists all",
    "report": "write --format json, and --output - to print it",
    "completion": "proctor --help lists the commands",
    "mcp": "the protocol is JSON; proctor show RUN --json prints a run",
}


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    if COMPLETION_VARIABLE in os.environ:
        from proctor.cli.completion import complete

        sys.exit(complete(proctor))
    command_line = sys.argv[1:] if args is None else args
    # A worker that exits loses nothing: its samples go to other workers.
    if command_line[:1] == ["worker"]:
        sys.exit(run_cli(args))
    # Patch os._exit before other imports, so that `from os import _exit` gets the patched version.
    run_and_exit(lambda: run_cli(args))


def run_cli(args: list[str] | None = None) -> int:
    """Run the command line and return the exit code; errors print a message, never a traceback."""
    try:
        result = proctor.main(args=args, prog_name="proctor", standalone_mode=False)
        _flush_stdout()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        _show_click_error(error)
        return USAGE
    except click.Abort as abort:
        # click turns every KeyboardInterrupt into Abort, RunInterrupted included.
        if isinstance(abort.__cause__, RunInterrupted):
            click.echo(
                "interrupted: finished results are stored; "
                f"to continue, add --resume {abort.__cause__.run_id} to the same command",
                err=True,
            )
        return INTERRUPTED
    except (ProctorError, OSError) as error:
        echo_stderr(str(error), "error: ")
        return USAGE if isinstance(error, UsageError) else ERROR
    except SystemExit as end:
        # click replaces stdout and exits like this when the reader of a pipe has closed it.
        if type(sys.stdout).__name__.endswith("PacifyFlushWrapper"):
            return 0
        echo_stderr(
            f"an agent, a tool or a library called sys.exit (SystemExit: {end}). Finished results are stored", "error: "
        )
        return ERROR
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        echo_stderr(
            f"{type(error).__name__}: {error}\nThis is an unexpected error. Finished results are stored.\n"
            f"Fix: set {DEBUG_VARIABLE}=1 and run the command again to see the traceback",
            "error: ",
        )
        return ERROR


def _show_click_error(error: click.ClickException) -> None:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
    else:
        echo_stderr(str(describe_click_error(error)), "error: ")


def describe_click_error(error: click.ClickException) -> ConfigError:
    """Return an error of the option parser in Proctor's words."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "proctor"
    fix = f"{path} --help lists the arguments and options"
    if isinstance(error, click.NoSuchOption):
        if error.option_name == "--json" and context and context.command.name in JSON_COMMANDS:
            return ConfigError(f"unknown option --json of {path}", fix=JSON_COMMANDS[context.command.name])
        return ConfigError(
            f"unknown option {error.option_name}", fix=_explain_option(error.option_name, context) or fix
        )
    if isinstance(error, click.MissingParameter) and error.param and context:
        value = error.param.make_metavar(context)
        if isinstance(error.param, click.Option):
            return ConfigError(f"{error.param.opts[0]} is missing", fix=f"add {error.param.opts[0]} {value}")
        usage = [piece for piece in context.command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
        return ConfigError(f"{value.rstrip('.')} is missing", fix=f"write {' '.join([path, *usage])}")
    if isinstance(error, click.BadOptionUsage):
        if "requires" not in error.message:
            return ConfigError(f"{error.option_name} takes no value", fix=f"write {error.option_name}")
        return ConfigError(f"{error.option_name} needs a value", fix=f"write {error.option_name} VALUE")
    if isinstance(error, click.BadParameter) and error.param:
        return ConfigError(error.message, where=error.param.opts[0])
    if extra := re.search(r"unexpected extra arguments? \((.*)\)", error.message):
        return ConfigError(f"unexpected argument {extra[1].split()[0]!r}", fix=fix)
    return ConfigError(error.message[:1].lower() + error.message[1:].rstrip("."), fix=fix)


def _explain_option(name: str, context: click.Context | None) -> str:
    """Say which command has the option, or which similar option this command has; "" if there is neither."""
    if context is None:
        return ""
    # The option of another command is a better explanation than a name that only looks similar.
    for command in ("run", *COMMANDS):
        subcommand = proctor.get_command(context, command)
        if subcommand and any(name in param.opts for param in subcommand.params):
            return f"{name} is an option of `proctor {command}`; {context.command_path} --help lists the options here"
    similar = suggest_name(name, [param.opts[0] for param in context.command.params])
    return similar if "did you mean" in similar else ""


def _flush_stdout() -> None:
    """Flush now, while a closed pipe (`| head`) can still be handled."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard_stdout()
