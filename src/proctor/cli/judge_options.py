"""Options that `sessions evaluate`, `evaluate-batch` and `learn` share: the judge and its settings."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.options import Decorator, combine, option
from proctor.errors import ConfigError, Problem, ProctorError

if TYPE_CHECKING:
    from proctor.records.rubric import RubricSet

JUDGE_VARIABLE = "PROCTOR_JUDGE"
JUDGE_HELP = f"Score with this model, written provider:model. Default: ${JUDGE_VARIABLE}."
RESUME = "resume the run"


def judge_options(judge_help: str = JUDGE_HELP) -> Decorator:
    """Return the options that choose the judge and its settings."""
    return combine(
        option("--judge MODEL", judge_help),
        option(
            "--scale LOW HIGH",
            "Score on this scale if the rubrics name none. Default: 1 5.",
            type=float,
            nargs=2,
            callback=_check_scale,
        ),
        option("--llm-temperature T", "Call the judge with this temperature.", default=0.1),
        option("--llm-max-tokens N", "Limit each answer of the judge to N tokens.", default=1024),
        option("--timeout SECONDS", "Stop scoring a rubric after this time.", default=60.0),
        option(
            "--max-concurrent N",
            "Run up to N judge calls concurrently, over all sessions and rubrics.",
            type=click.IntRange(1),
            default=10,
        ),
    )


def _check_scale(_context: Any, _option: Any, scale: tuple[float, float] | None) -> Any:
    if scale and not scale[0] < scale[1]:
        low, high = sorted(scale)
        fix = f"--scale {low:g} {high:g}" if low < high else "--scale 1 5"
        raise ConfigError("the lowest score comes first", where="--scale", fix=fix)
    return scale


def judge_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings for calls of the judge; report all faults at once."""
    problems = list(_find_problems(options))
    if problems:
        raise ConfigError("some options are invalid", problems=problems)
    settings = {
        "temperature": options["llm_temperature"],
        "max_tokens": options["llm_max_tokens"],
        "timeout": options["timeout"],
    }
    return {**settings, "scale": options["scale"]} if options["scale"] else settings


def _find_problems(options: Mapping[str, Any]) -> Iterator[Problem]:
    for name, least, expected in (
        ("--llm-temperature", 0.0, "a number from 0 up"),
        ("--llm-max-tokens", 1.0, "a whole number from 1 up"),
        ("--timeout", math.ulp(0.0), "seconds, more than 0"),
    ):
        value = options[name.strip("-").replace("-", "_")]
        if not least <= value < math.inf:
            yield Problem(name, f"expected {expected}, found {value:g}")


@contextlib.contextmanager
def replace_resume_fix(describe: Callable[[], str]) -> Iterator[None]:
    """Replace "resume the run" in the fix of an error, for commands that resume in another way."""
    try:
        yield
    except ProctorError as stopped:
        stopped.fix = stopped.fix.replace(RESUME, describe())
        raise


def refuse_other_scale(rubrics: RubricSet, scale: tuple[float, float] | None) -> None:
    """Reject --scale when the rubric file names another scale: its criteria are written for that."""
    if scale and rubrics.scale is not None and tuple(rubrics.scale) != tuple(scale):
        low, high = rubrics.scale
        raise ConfigError(
            f"the rubrics are written for a scale from {low:g} to {high:g}",
            where="--scale",
            fix="leave it out, or change `scale` and the criteria in a copy of the file",
        )


def choose_judge(option: str | None) -> str:
    """Return the model of --judge or of the environment."""
    model = option or os.environ.get(JUDGE_VARIABLE)
    if not model:
        raise ConfigError(
            "no judge is named",
            fix=f"add --judge provider:model, or set {JUDGE_VARIABLE}; `proctor models` lists models",
        )
    return model
