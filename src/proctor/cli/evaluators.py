"""`proctor evaluators`: the catalogue."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

import click

from proctor.cli.options import json_option

if TYPE_CHECKING:
    from proctor.evaluators.marking import EvaluatorInfo


@click.command("evaluators")
@click.argument("name", required=False)
@click.option("--plugin", metavar="MODULE:OBJECT", multiple=True, help="Register an evaluator.")
@json_option()
def command(name: str | None, plugin: tuple[str, ...], as_json: bool) -> None:
    """List the evaluators with their parameters; with NAME, only that one."""
    from proctor.errors import EvaluatorError, nearest
    from proctor.records import codec
    from proctor.wiring.registry import Registry

    registry = Registry.standard()
    registry.load_plugins(plugin)
    catalogue = registry.evaluators()
    if name is not None:
        found = [info for info in catalogue if info.name == name]
        if not found:
            fix = nearest(name, [info.name for info in catalogue])
            raise EvaluatorError(f"there is no evaluator {name!r}", fix=fix)
        catalogue = tuple(found)
    click.echo(codec.encode_pretty(catalogue) if as_json else listing(catalogue))
    for warning in registry.warnings:
        click.secho(f"warning: {warning}", fg="yellow", err=True)


def listing(catalogue: Iterable[EvaluatorInfo]) -> str:
    """The catalogue by category, each evaluator with its parameters."""
    lines = []
    ordered = sorted(catalogue, key=lambda info: (info.category, info.name))
    for category, members in groupby(ordered, key=lambda info: info.category):
        lines.append(click.style(category, bold=True))
        for info in members:
            needs = f" (needs {', '.join(info.needs)})" if info.needs else ""
            lines.append(f"  {info.name}{needs}")
            lines.append(f"      {info.summary}")
            for parameter in info.parameters:
                default = "required" if parameter.required else f"default {parameter.default!r}"
                lines.append(f"      {parameter.name}: {parameter.type}, {default}")
        lines.append("")
    lines.append("Any of them can be turned round with not-, as in not-contains.")
    return "\n".join(lines)
