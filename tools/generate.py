"""Write what can be read off the code: the catalogue, the command line, the eval file's schema.

python tools/generate.py            write them
python tools/generate.py --check    exit with 1 and name those that are stale
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import EntryPoint
from itertools import groupby
from pathlib import Path
from typing import Any

import click
import conformance

from proctor.cli.main import COMMANDS, proctor
from proctor.core.imports import EVALUATORS, entry_points
from proctor.evaluators import rubric_files as rubrics
from proctor.evaluators.decorator import EvaluatorInfo
from proctor.evaluators.options import ParameterInfo
from proctor.records import codec
from proctor.wiring import eval_file
from proctor.wiring.registry import Registry

# Packages whose public names are loaded on first use.
NAMESPACES = (
    *("datasets", "evaluators", "mailboxes", "metrics"),
    *("models", "reports", "targets", "testing"),
)
ROOT = Path(__file__).resolve().parent.parent
# What click's help marks a paragraph with that must not be wrapped.
AS_WRITTEN = "\b"
NOTICE = "<!-- Written by tools/generate.py from the code; change the code, then run it. -->"

CATALOGUE_HEAD = """
The evaluators that come with Proctor, by category. `proctor evaluators` prints the same list with
your plugins in it. [Evaluators](evaluators.md) tells how to write your own and how to combine them.

Any of them can be turned round with `not-`, as in `not-contains`.
"""
COMMANDS_HEAD = """
`proctor --help` lists the commands, `proctor COMMAND --help` the options of one. With `--json` a
command prints JSON for programs; progress and errors always go to standard error. There are no
colours where the output is not a terminal, or where `NO_COLOR` is set.
"""
EXIT_CODES = """
## Exit codes

| code | meaning |
|---|---|
| 0 | good: the run came to its end, and no threshold was missed |
| 1 | a metric is below its threshold (`--fail-under`, or `fail_under` in the eval file), or \
`proctor gate` fails |
| 2 | something you can mend: an option, a file, a name, a dataset, a run that is not there |
| 3 | trouble: not one sample got a verdict, the history cannot be written, or the run \
was stopped by `--on-error`, `--max-errors` or a budget |
| 4 | inconclusive: the samples cannot tell (`proctor gate`), or a threshold is reached and more \
than a tenth of its numbers is missing |
| 130 | interrupted with Ctrl-C; what was finished is kept and can be resumed |

Failing samples do not change the exit code: they are results. Only a threshold makes them count.
"""


def catalogue() -> str:
    """The page of built-in evaluators; plugins that happen to be installed are not in it."""
    own = [point for point in entry_points(EVALUATORS) if _is_own(point)]
    homes = [point.load() for point in own]
    parts = ["# The catalogue of evaluators", NOTICE, CATALOGUE_HEAD.strip()]
    infos = Registry.from_entry_points(own).evaluators()
    for category, members in groupby(infos, key=lambda info: info.category):
        parts.append(f"## {category.capitalize()}")
        for info in members:
            home = next(home for home in homes if hasattr(home, info.name))
            parts += _evaluator(info, getattr(home, info.name))
    return "\n\n".join(parts) + "\n"


def _is_own(point: EntryPoint) -> bool:
    return point.value.startswith("proctor.")


def _evaluator(info: EvaluatorInfo, function: Any) -> Iterator[str]:
    yield f"### {info.name}"
    yield from _docstring(inspect.getdoc(function) or "")
    if "expected" in info.needs:
        yield "Says nothing on a sample without: expected."
    if "session" in info.needs:
        yield "Looks at the session of the trial."
    if info.parameters:
        yield _table(("parameter", "type", "default"), [_parameter(p) for p in info.parameters])


def _docstring(text: str) -> Iterator[str]:
    """The paragraphs of a docstring, its examples as blocks."""
    for paragraph in text.strip().split("\n\n"):
        if paragraph.startswith(">>>"):
            yield f"```pycon\n{paragraph}\n```"
        else:
            yield paragraph


def _parameter(parameter: ParameterInfo) -> tuple[str, str, str]:
    default = "required" if parameter.required else _code(repr(parameter.default))
    return _code(parameter.name), _code(parameter.type), default


def command_line() -> str:
    """The page of commands, read from click's own parameters: its help depends on the width."""
    parts = ["# The command line", NOTICE, COMMANDS_HEAD.strip()]
    context = click.Context(proctor, info_name="proctor")
    for name in COMMANDS:
        command = proctor.get_command(context, name)
        assert command is not None
        parts += _command(name, command)
    return "\n\n".join([*parts, EXIT_CODES.strip()]) + "\n"


def _command(name: str, command: click.Command) -> Iterator[str]:
    arguments = [p for p in command.params if isinstance(p, click.Argument)]
    options = [p for p in command.params if isinstance(p, click.Option)]
    words = ["proctor", name, *(["[OPTIONS]"] if options else []), *map(_argument, arguments)]
    yield f"## proctor {name}"
    yield f"```sh\n{' '.join(words)}\n```"
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith(AS_WRITTEN):
            yield f"```sh\n{paragraph.removeprefix(AS_WRITTEN).strip()}\n```"
        else:
            yield " ".join(paragraph.split())
    if options:
        yield _table(("option", "meaning"), [_option(option) for option in options])
    if isinstance(command, click.Group):
        for inner, one in command.commands.items():
            yield from _command(f"{name} {inner}", one)


def _argument(argument: click.Argument) -> str:
    name = argument.metavar or (argument.name or "").upper()
    return name if argument.required else f"[{name}]"


def _option(option: click.Option) -> tuple[str, str]:
    names = ", ".join(sorted(option.opts, key=len))
    shown = "" if option.is_flag else f" {_value(option)}"
    meaning = option.help or ""
    if option.show_default:
        meaning += f" Default: {option.default}."
    if option.multiple:
        meaning += " Can be given several times."
    return _code(names + shown), meaning.strip()


def _value(option: click.Option) -> str:
    if option.metavar:
        return option.metavar
    if isinstance(option.type, click.Choice):
        return "|".join(map(str, option.type.choices))
    return option.type.name.upper()


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _code(text: str) -> str:
    """Code in a cell of a table, where a bar would end the cell."""
    return f"`{text}`".replace("|", "\\|")


def schema() -> str:
    """The JSON Schema of eval files."""
    return codec.encode_pretty(eval_file.build_schema()).decode() + "\n"


def rubric_schema() -> str:
    """The JSON Schema of rubric files."""
    return codec.encode_pretty(rubrics.rubric_schema()).decode() + "\n"


def stub_of(package: str) -> Callable[[], str]:
    """What type checkers read of a package whose names are loaded on first use."""

    def stub() -> str:
        module = importlib.import_module(package)
        lines = [f"# Written by tools/generate.py from EXPORTS in {package}."]
        for home, names in sorted(module.EXPORTS.items()):
            lines += [f"from proctor.{home} import {name} as {name}" for name in sorted(names)]
        lines += ["", "__all__: list[str]", "EXPORTS: dict[str, tuple[str, ...]]"]
        if package == "proctor":
            lines.append("__version__: str")
        return "\n".join(lines) + "\n"

    return stub


def conformance_page() -> str:
    """The page of specification clauses and their tests."""
    return conformance.page(NOTICE)


WRITTEN = {
    "docs/catalogue.md": catalogue,
    "docs/cli.md": command_line,
    "docs/conformance.md": conformance_page,
    f"src/proctor/schemas/{eval_file.SCHEMA_FILE}": schema,
    f"src/proctor/schemas/{rubrics.SCHEMA_FILE}": rubric_schema,
    "src/proctor/__init__.pyi": stub_of("proctor"),
    "src/proctor/judges.pyi": stub_of("proctor.judges"),
    **{f"src/proctor/{name}/__init__.pyi": stub_of(f"proctor.{name}") for name in NAMESPACES},
}


def main(args: Sequence[str] | None = None) -> int:
    """Write or check all files; 1 if one is stale."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, name what is stale")
    parser.add_argument("--into", type=Path, default=ROOT, help="the folder of the project")
    given = parser.parse_args(args)
    stale = 0
    for name, make in WRITTEN.items():
        path, text = given.into / name, make()
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale += 1
        if given.check:
            print(f"{name} is stale: run python tools/generate.py", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    return 1 if stale and given.check else 0


if __name__ == "__main__":
    sys.exit(main())
