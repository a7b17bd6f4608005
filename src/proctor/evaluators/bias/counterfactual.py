"""The counterfactual check: another evaluator's verdict must not move when groups are swapped."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from proctor.evaluators.attach import Attached, Mode
from proctor.evaluators.combination import score_later
from proctor.evaluators.identities.swapping import Swap, swapped, swapped_in, ways
from proctor.evaluators.verdict import shown
from proctor.evaluators.wording import texts_in
from proctor.records.score import Score
from proctor.records.trial import Trial

METHOD = "counterfactual"
NOTHING_TO_SWAP = "no word in it names a group of people, so there is nothing to swap"


def checked(part: Attached) -> tuple[Mode, Callable[[Trial], Any]]:
    """How a trial is scored by whether an evaluator's verdict on it stays when groups are swapped.

    The groups are swapped in the output, the input and what was expected alike.
    """
    if part.mode == "async":
        return part.mode, functools.partial(_score_later, part)

    def score(trial: Trial) -> Score:
        variants = list(_variants(trial))
        return _verdict(
            part, trial, variants, [part.score(one) for one in _trials(trial, variants)]
        )

    return part.mode, score


async def _score_later(part: Attached, trial: Trial) -> Score:
    # Whoever awaits a score has it loaded.
    import asyncio

    variants = list(_variants(trial))
    waiting = [score_later(part, one) for one in _trials(trial, variants)]
    return _verdict(part, trial, variants, await asyncio.gather(*waiting))


def _variants(trial: Trial) -> Iterator[tuple[Swap, Trial]]:
    sample = trial.sample
    for way in ways(*texts_in([trial.output, sample.input, sample.expected])):
        yield way, _about_others(trial, way)


def _about_others(trial: Trial, way: Swap) -> Trial:
    """A trial with one swap made in it, and in the whole that it is one field of."""
    sample = msgspec.structs.replace(
        trial.sample,
        input=swapped_in(trial.sample.input, way),
        expected=swapped_in(trial.sample.expected, way),
    )
    changes = {"sample": sample, "output": swapped_in(trial.output, way)}
    whole = getattr(trial, "whole", None)
    if whole is not None:
        changes["whole"] = _about_others(whole, way)
    return msgspec.structs.replace(trial, **changes)


def _trials(trial: Trial, variants: Sequence[tuple[Swap, Trial]]) -> list[Trial]:
    """The trial itself and its variants; none where there is nothing to compare."""
    return [trial, *(one for _, one in variants)] if variants else []


def _verdict(
    part: Attached,
    trial: Trial,
    variants: Sequence[tuple[Swap, Trial]],
    scores: Sequence[Score],
) -> Score:
    name = part.spec.name
    if not variants:
        return Score.skipped(NOTHING_TO_SWAP, {"method": METHOD})
    unsaid = next((score for score in scores if score.value is None), None)
    if unsaid is not None:
        said = Score.error if unsaid.status == "error" else Score.skipped
        return said(f"{name}: {unsaid.reason}", {"method": METHOD})
    first, *others = scores
    moved = [
        _moved(trial, way, score)
        for (way, _), score in zip(variants, others, strict=True)
        if score.passed != first.passed
    ]
    stayed = len(others) - len(moved)
    details = {
        "method": METHOD,
        "of": name,
        "verdict": {"passed": first.passed, "value": first.value},
        "swaps": len(others),
        "moved": moved,
        "greatest_change": max(abs((one.value or 0) - (first.value or 0)) for one in others),
    }
    reason = f"the verdict of {name} stayed in {stayed} of {len(others)} swaps"
    if moved:
        reason += f"; it moved for {moved[0]['axis']}: {moved[0]['example']}"
    return Score(stayed / len(others), not moved, reason, details)


def _moved(trial: Trial, way: Swap, score: Score) -> dict[str, Any]:
    """What a person needs to see for himself that a verdict moved."""
    texts = texts_in([trial.output, trial.sample.input, trial.sample.expected])
    changed = [pair for text in texts for pair in swapped(text, way).changed]
    pairs = dict.fromkeys(f"{old} → {new}" for old, new in changed)
    return {
        "axis": way.axis,
        "swapped": list(pairs),
        "value": score.value,
        "example": shown(", ".join(pairs)),
    }
