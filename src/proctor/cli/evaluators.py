"""`proctor evaluators`: list the evaluators and their parameters."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
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
    """List the evaluators with their parameters; with NAME, also show its card: method, limits, measured figures.

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
            raise EvaluatorError(f"unknown evaluator {name!r}", fix=suggest_name(name, known_names))
        evaluators = tuple(info for info in evaluators if info.name == name)
    if as_json:
        print_json(evaluators)
    else:
        click.echo(_render(evaluators, with_card=name is not None))
    for warning in registry.warnings:
        click.secho(f"warning: {warning}", fg="yellow", err=True)


def _render(evaluators: Iterable[EvaluatorInfo], *, with_card: bool) -> str:
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
            if with_card:
                lines += _render_card(info.name)
        lines.append("")
    lines.append("Write not- before a name to invert an evaluator, as in not-contains.")
    return "\n".join(lines)


def _render_card(name: str) -> Iterator[str]:
    from proctor.evaluators.cards import load_cards

    card = load_cards().get(name)
    if card is None:
        return
    yield ""
    for label, text in card.list_entries():
        first, *rest = textwrap.wrap(text, 80)
        yield f"      {label + ':':<11}{first}"
        yield from (f"{'':<17}{line}" for line in rest)
