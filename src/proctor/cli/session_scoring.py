"""What the commands that score sessions share: how judges are asked, and checks beforehand."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.options import Decorator, together
from proctor.errors import ConfigError, Problem, ProctorError

if TYPE_CHECKING:
    from proctor.records.rubric import RubricSet

JUDGE_VARIABLE = "PROCTOR_JUDGE"
RESUME = "resume the run"


def judging_options(judge: str = f"provider:model. Default: ${JUDGE_VARIABLE}.") -> Decorator:
    """Who judges, on which scale, and how it is asked."""
    return together(
        click.option("--judge", metavar="MODEL", help=judge),
        click.option("--scale", type=float, nargs=2, metavar="LOW HIGH", callback=_scale,
                     help="Where the rubrics have none. Default: 1 5."),
        click.option("--llm-temperature", type=float, default=0.1, show_default=True),
        click.option("--llm-max-tokens", type=int, default=1024, show_default=True),
        click.option("--timeout", type=float, default=60.0, show_default=True,
                     help="Seconds for each rubric."),
        click.option("--max-concurrent", type=click.IntRange(1), default=10, show_default=True,
                     help="Calls under way at a time, over all sessions and rubrics."),
    )  # fmt: skip


def _scale(_context: Any, _option: Any, given: tuple[float, float] | None) -> Any:
    if given and not given[0] < given[1]:
        low, high = sorted(given)
        fix = f"--scale {low:g} {high:g}" if low < high else "--scale 1 5"
        raise ConfigError("the least score comes first", where="--scale", fix=fix)
    return given


def judged_by(options: Mapping[str, Any]) -> dict[str, Any]:
    """What the options say of how a judge is asked; all that is wrong with them at once."""
    problems = list(_wrong(options))
    if problems:
        raise ConfigError("options cannot be used", problems=problems)
    judged = {
        "temperature": options["llm_temperature"],
        "max_tokens": options["llm_max_tokens"],
        "timeout": options["timeout"],
    }
    return {**judged, "scale": options["scale"]} if options["scale"] else judged


def _wrong(options: Mapping[str, Any]) -> Iterator[Problem]:
    for option, least, expected in (
        ("--llm-temperature", 0.0, "a number from 0 up"),
        ("--llm-max-tokens", 1.0, "a whole number from 1 up"),
        ("--timeout", math.ulp(0.0), "seconds, more than 0"),
    ):
        given = options[option.strip("-").replace("-", "_")]
        if not least <= given < math.inf:
            yield Problem(option, f"expected {expected}, found {given:g}")


@contextlib.contextmanager
def to_go_on(how: Callable[[], str]) -> Iterator[None]:
    """Say how to go on with what was stopped, where a run is not resumed by its id."""
    try:
        yield
    except ProctorError as stopped:
        stopped.fix = stopped.fix.replace(RESUME, how())
        raise


def refuse_other_scale(rubrics: RubricSet, scale: tuple[float, float] | None) -> None:
    """Criteria are written for a scale: a file that names its own is scored on that one."""
    if scale and rubrics.scale is not None and tuple(rubrics.scale) != tuple(scale):
        low, high = rubrics.scale
        raise ConfigError(
            f"the rubrics are written for a scale from {low:g} to {high:g}",
            where="--scale",
            fix="leave it out, or change `scale` and the criteria in a file of your own",
        )


def judge_of(given: str | None) -> str:
    """The model that is asked."""
    found = given or os.environ.get(JUDGE_VARIABLE)
    if not found:
        raise ConfigError(
            "no judge is named",
            fix=f"--judge provider:model, or set {JUDGE_VARIABLE}; `proctor models` lists them",
        )
    return found


def silent(options: Mapping[str, Any]) -> bool:
    """Whether nothing is to be told but what a program reads."""
    return bool(options["quiet"] or options["as_json"])
