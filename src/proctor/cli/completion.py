"""`proctor completion`: complete commands, options, runs, evaluators and eval files in a shell."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class, shell_complete

from proctor.cli.options import Choice

VARIABLE = "_PROCTOR_COMPLETE"
SHELLS = ("bash", "zsh", "fish")
INSTALL = {
    "bash": 'add to ~/.bashrc:  eval "$(proctor completion bash)"',
    "zsh": 'add to ~/.zshrc:  eval "$(proctor completion zsh)"',
    "fish": "proctor completion fish > ~/.config/fish/completions/proctor.fish",
}
RUNS_SHOWN = 50


@click.command("completion")
@click.argument("shell", type=Choice(SHELLS))
def command(shell: str) -> None:
    """Print a shell script that completes commands, options, runs, evaluators and eval files.

    The shell is bash, zsh or fish.

    \b
    eval "$(proctor completion bash)"    # in ~/.bashrc
    eval "$(proctor completion zsh)"     # in ~/.zshrc
    proctor completion fish > ~/.config/fish/completions/proctor.fish
    """
    root = click.get_current_context().find_root().command
    completion = get_completion_class(shell)
    assert completion is not None
    click.echo(f"# To use it, {INSTALL[shell]}")
    click.echo(completion(root, {}, "proctor", VARIABLE).source())


def complete(group: click.Command) -> int:
    """Answer the shell, which asks through an environment variable."""
    return shell_complete(group, {}, "proctor", VARIABLE, os.environ[VARIABLE])


def add_completions(command: click.Command) -> None:
    """Let the parameters of a command complete runs, evaluators and eval files."""
    for parameter in command.params:
        if values := _find_values(parameter):
            setattr(parameter, "shell_complete", _make_completer(values))  # noqa: B010 - a method of the instance


def _find_values(parameter: click.Parameter) -> Callable[[click.Context, str], Iterable[str]] | None:
    metavar = parameter.metavar or ""
    is_argument = isinstance(parameter, click.Argument)
    names = {parameter.name, *metavar.lower().strip("[].").split("|")}
    if "evaluator" in names:
        return _list_evaluators
    if is_argument and "file" in names and "run" not in names:
        return _list_eval_files
    if names & {"run", "new", "reference", "runs"} or parameter.name in ("a", "b", "resume"):
        return _list_runs
    return None


def _make_completer(values: Callable[[click.Context, str], Iterable[str]]) -> Callable[..., list[CompletionItem]]:
    def shell_complete(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        # A broken history or plugin must not print a traceback into the command line.
        with contextlib.suppress(Exception):
            return [CompletionItem(value) for value in values(ctx, incomplete) if value.startswith(incomplete)]
        return []

    return shell_complete


def _list_runs(ctx: click.Context, incomplete: str) -> Iterable[str]:  # noqa: ARG001 - the signature of all lists
    from proctor.wiring.open_history import history_file, open_history

    address: Any = ctx.params.get("history")
    file = history_file(address)
    if file is not None and not file.is_file():
        return ()
    history = open_history(address)
    runs = history.runs(limit=RUNS_SHOWN)
    return dict.fromkeys(["latest", *history.baselines(), *(run.name for run in runs), *(run.run_id for run in runs)])


def _list_evaluators(ctx: click.Context, incomplete: str) -> Iterable[str]:  # noqa: ARG001
    from proctor.wiring.registry import Registry

    names = sorted(info.name for info in Registry.standard().evaluators())
    return [f"not-{name}" for name in names] if incomplete.startswith("not-") else names


def _list_eval_files(ctx: click.Context, incomplete: str) -> Iterable[str]:  # noqa: ARG001
    folder = Path(f"{incomplete}…").parent
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir():
            yield f"{path}/"
        elif path.suffix in (".yaml", ".yml", ".py", ".json"):
            yield str(path)
