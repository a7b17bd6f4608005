"""`proctor evaluators`: list the evaluators and their parameters."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

import click

from proctor.cli.options import json_option, option, print_json
from proctor.errors import EvaluatorError, suggest_name

if TYPE_CHECKING:
    from proctor.evaluators.decorator import EvaluatorInfo


@click.command("evaluators")
@click.argument("name", required=False)
@option("--plugin MODULE:OBJECT", "Also list the evaluators of this plugin.", multiple=True)
@json_option
def command(name: str | None, plugin: tuple[str, ...], as_json: bool) -> None:
    """List the evaluators with their parameters; with NAME, show only that one.

    \b
    proctor evaluators
    proctor evaluators contains
    """
    from proctor.wiring.registry import Registry

    registry = Registry.standard()
    registry.load_plugins(plugin)
    evaluators = registry.evaluators()
    if name is not None:
        known_names = [info.name for info in evaluators]
        if name not in known_names:
            raise EvaluatorError(f"there is no evaluator {name!r}", fix=suggest_name(name, known_names))
        evaluators = tuple(info for info in evaluators if info.name == name)
    if as_json:
        print_json(evaluators)
    else:
        click.echo(_render(evaluators))
    for warning in registry.warnings:
        click.secho(f"warning: {warning}", fg="yellow", err=True)


def _render(evaluators: Iterable[EvaluatorInfo]) -> str:
    lines = []
    ordered = sorted(evaluators, key=lambda info: (info.category, info.name))
    for category, members in groupby(ordered, key=lambda info: info.category):
        lines.append(click.style(category, bold=True))
        for info in members:
            needs = f" (needs {', '.join(info.needs)})" if info.needs else ""
            lines += [f"  {info.name}{needs}", f"      {info.summary}"]
            for parameter in info.parameters:
                default = "required" if parameter.required else f"default {parameter.default!r}"
                lines.append(f"      {parameter.name}: {parameter.type}, {default}")
        lines.append("")
    lines.append("Write not- before a name to invert an evaluator, as in not-contains.")
    return "\n".join(lines)
