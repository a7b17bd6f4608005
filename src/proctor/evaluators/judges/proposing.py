"""Rubrics proposed by a model from sessions with known scores, near-duplicates made one."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from proctor.core.names import NamesApart
from proctor.errors import CallFailed
from proctor.evaluators.judges.fence import MarkedForm
from proctor.evaluators.judges.opinion import Asking, Question, side_by_side, tell
from proctor.evaluators.judges.templates import shipped
from proctor.evaluators.meanings import UNRELATED_TEXTS, Meanings, Nearness
from proctor.ports import ProviderAdapter
from proctor.records.rubric import NUMBERS_OF_RUNS, Rubric

PROPOSE = "rubrics-propose"
# From here on two descriptions are about the same thing; unrelated texts are at 0.
NEAR = 0.7
HOW = Asking(0.3, 4096)
# Some thousand tokens are written, so it takes longer than a verdict.
SECONDS = 300.0


class Proposal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rubric as a model proposes it."""

    name: str
    description: str
    scoring_criteria: str

    @property
    def text(self) -> str:
        """What it is compared by."""
        return f"{self.name}. {self.description}"


class Proposed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    # A model sees the name of this class, in the schema of its answer.
    rubrics: list[Proposal]


class Contrast(NamedTuple):
    """Transcripts of sessions with high scores beside some with low ones."""

    better: Sequence[str]
    worse: Sequence[str]


async def propose(
    model: ProviderAdapter, contrasts: Sequence[Contrast], *, count: int, scale: tuple[float, float]
) -> tuple[list[Proposal], list[CallFailed]]:
    """What a model proposes for each contrast, and the calls that came to nothing."""
    words = {"count": str(count), "low": f"{scale[0]:g}", "high": f"{scale[1]:g}"}

    async def one(contrast: Contrast) -> list[Proposal]:
        texts = {"better": _joined(contrast.better), "worse": _joined(contrast.worse)}
        question = Question(shipped(PROPOSE), texts, words)
        try:
            async with asyncio.timeout(SECONDS):
                told, _, _ = await tell(
                    model, question, lambda fence: MarkedForm(Proposed, fence, _check), HOW
                )
        except TimeoutError:
            raise CallFailed(f"{model.model}: no proposal within {SECONDS:g} s") from None
        return list(told.rubrics[:count])

    answers = await side_by_side([_asking(one, contrast) for contrast in contrasts])
    found = [proposal for told in answers if isinstance(told, list) for proposal in told]
    return found, [told for told in answers if isinstance(told, CallFailed)]


def _asking(one: Any, contrast: Contrast) -> Any:
    return lambda: one(contrast)


def _joined(transcripts: Sequence[str]) -> str:
    return "\n\n".join(f"=== session {n} ===\n{t}" for n, t in enumerate(transcripts, start=1))


def _check(proposed: Proposed) -> None:
    if not proposed.rubrics:
        raise ValueError("it proposes no rubric")
    for one in proposed.rubrics:
        if not (one.name.strip() and one.description.strip() and one.scoring_criteria.strip()):
            raise ValueError("a rubric has no name, no description or no criteria")


async def consolidate(
    proposals: Sequence[Proposal], *, most: int, embedder: Any = None, near: float = NEAR
) -> list[Rubric]:
    """The proposals with near-duplicates made one, those that came up most often first.

    Each stands for the proposals nearest to it; the one that came first gives the words, and
    `metadata` tells how many were merged and what they were called.
    """
    meanings = Meanings(embedder, "rubrics")
    vectors = await meanings.vectors([one.text for one in proposals])
    nearness = Nearness(vectors, await meanings.floor(UNRELATED_TEXTS))
    groups: list[list[Proposal]] = []
    for one in proposals:
        close = [group for group in groups if nearness(group[0].text, one.text) >= near]
        if close:
            max(close, key=lambda group: nearness(group[0].text, one.text)).append(one)
        else:
            groups.append([one])
    ranked = sorted(groups, key=len, reverse=True)[:most]
    apart = NamesApart("_")
    for taken in NUMBERS_OF_RUNS:
        apart.of(taken)
    return [_rubric(group, apart) for group in ranked]


def _rubric(group: Sequence[Proposal], apart: NamesApart) -> Rubric:
    first = group[0]
    plain = re.sub(r"[^a-z0-9]+", "_", first.name.casefold()).strip("_")[:60]
    merged = sorted({one.name.strip() for one in group} - {first.name.strip()})
    metadata: dict[str, Any] = {"proposed": len(group), **({"merged": merged} if merged else {})}
    return Rubric(
        apart.of(plain or "rubric"),
        " ".join(first.name.split()),
        first.description.strip(),
        first.scoring_criteria.strip(),
        metadata=metadata,
    )
