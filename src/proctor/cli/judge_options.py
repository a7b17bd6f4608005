"""Options that `sessions evaluate`, `evaluate-batch` and `learn` share: the judge and its settings."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.options import Decorator, combine
from proctor.errors import ConfigError, Problem, ProctorError

if TYPE_CHECKING:
    from proctor.records.rubric import RubricSet

JUDGE_VARIABLE = "PROCTOR_JUDGE"
JUDGE_HELP = f"Score with this model, written provider:model. Default: ${JUDGE_VARIABLE}."
RESUME = "resume the run"


def judge_options(judge_help: str = JUDGE_HELP) -> Decorator:
    """Return the options that choose the judge and its settings."""
    return combine(
        click.option("--judge", metavar="MODEL", help=judge_help),
        click.option("--scale", type=float, nargs=2, metavar="LOW HIGH", callback=_check_scale,
                     help="Score on this scale if the rubrics name none. Default: 1 5."),
        click.option("--llm-temperature", type=float, metavar="T", default=0.1, show_default=True,
                     help="Call the judge with this temperature."),
        click.option("--llm-max-tokens", type=int, metavar="N", default=1024, show_default=True,
                     help="Limit each answer of the judge to N tokens."),
        click.option("--timeout", type=float, metavar="SECONDS", default=60.0, show_default=True,
                     help="Stop scoring a rubric after this time."),
        click.option("--max-concurrent", type=click.IntRange(1), metavar="N", default=10, show_default=True,
                     help="Run up to N judge calls concurrently, over all sessions and rubrics."),
    )  # fmt: skip


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
    for option, least, expected in (
        ("--llm-temperature", 0.0, "a number from 0 up"),
        ("--llm-max-tokens", 1.0, "a whole number from 1 up"),
        ("--timeout", math.ulp(0.0), "seconds, more than 0"),
    ):
        value = options[option.strip("-").replace("-", "_")]
        if not least <= value < math.inf:
            yield Problem(option, f"expected {expected}, found {value:g}")


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


def is_silent(options: Mapping[str, Any]) -> bool:
    """True if only output for programs is printed."""
    return bool(options["quiet"] or options["as_json"])
