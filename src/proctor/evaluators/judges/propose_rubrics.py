"""Ask a model to propose rubrics from sessions with known scores, and merge near-duplicates."""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from proctor.core.names import UniqueNames
from proctor.errors import CallFailed
from proctor.evaluators.embeddings import UNRELATED_TEXTS, TextEmbedder, VectorSimilarity
from proctor.evaluators.judges.fence import MarkedForm
from proctor.evaluators.judges.judge import JudgeOptions, Question, ask_judge, run_concurrently
from proctor.evaluators.judges.templates import load_template
from proctor.ports import ProviderAdapter
from proctor.records.rubric import RUN_METRICS, Rubric

PROPOSE = "rubrics-propose"
# Descriptions with at least this similarity are about the same subject; unrelated texts have 0.
MIN_SIMILARITY = 0.7
OPTIONS = JudgeOptions(0.3, 4096)
# A proposal has several thousand tokens, so it takes longer than a verdict.
TIMEOUT = 300.0


class Proposal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rubric that a model proposes."""

    name: str
    description: str
    scoring_criteria: str

    @property
    def text(self) -> str:
        """The text that is compared with other proposals."""
        return f"{self.name}. {self.description}"


class ProposedRubrics(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    # The schema that a model sees contains the name of this class.
    rubrics: list[Proposal]


class Contrast(NamedTuple):
    """Transcripts of sessions with high scores, and of sessions with low scores."""

    better: Sequence[str]
    worse: Sequence[str]


async def propose_rubrics(
    model: ProviderAdapter, contrasts: Sequence[Contrast], *, count: int, scale: tuple[float, float]
) -> tuple[list[Proposal], list[CallFailed]]:
    """Return the proposals of a model for each contrast, and the failed calls."""
    values = {"count": str(count), "low": f"{scale[0]:g}", "high": f"{scale[1]:g}"}

    async def ask(contrast: Contrast) -> list[Proposal]:
        texts = {"better": _join(contrast.better), "worse": _join(contrast.worse)}
        question = Question(load_template(PROPOSE), texts, values)
        try:
            async with asyncio.timeout(TIMEOUT):
                response = await ask_judge(
                    model, question, lambda fence: MarkedForm(ProposedRubrics, fence, _check), OPTIONS
                )
        except TimeoutError:
            raise CallFailed(f"{model.model}: no proposal within {TIMEOUT:g} s") from None
        return list(response.output.rubrics[:count])

    results = await run_concurrently([functools.partial(ask, contrast) for contrast in contrasts])
    proposals = [proposal for result in results if isinstance(result, list) for proposal in result]
    return proposals, [result for result in results if isinstance(result, CallFailed)]


def _join(transcripts: Sequence[str]) -> str:
    return "\n\n".join(f"=== session {n} ===\n{t}" for n, t in enumerate(transcripts, start=1))


def _check(proposed_rubrics: ProposedRubrics) -> None:
    if not proposed_rubrics.rubrics:
        raise ValueError("the list of rubrics is empty")
    for rubric in proposed_rubrics.rubrics:
        if not (rubric.name.strip() and rubric.description.strip() and rubric.scoring_criteria.strip()):
            raise ValueError("a rubric lacks its name, its description or its criteria")


async def merge_proposals(
    proposals: Sequence[Proposal], *, max_count: int, embedder: Any = None, min_similarity: float = MIN_SIMILARITY
) -> list[Rubric]:
    """Merge near-duplicates, and return the most frequent proposals first.

    The text is the first proposal of a group; `metadata` has the number and the names of the merged proposals.
    """
    meanings = TextEmbedder(embedder, "rubrics")
    vectors = await meanings.vectors([proposal.text for proposal in proposals])
    similarity = VectorSimilarity(vectors, await meanings.floor(UNRELATED_TEXTS))
    groups: list[list[Proposal]] = []
    for proposal in proposals:
        similarities = [similarity(group[0].text, proposal.text) for group in groups]
        best = max(similarities, default=-1.0)
        if best >= min_similarity:
            groups[similarities.index(best)].append(proposal)
        else:
            groups.append([proposal])
    ranked = sorted(groups, key=len, reverse=True)[:max_count]
    names = UniqueNames("_")
    for reserved in RUN_METRICS:
        names.make_unique(reserved)
    return [_create_rubric(group, names) for group in ranked]


def _create_rubric(group: Sequence[Proposal], names: UniqueNames) -> Rubric:
    first = group[0]
    slug = re.sub(r"[^a-z0-9]+", "_", first.name.casefold()).strip("_")[:60]
    merged = sorted({proposal.name.strip() for proposal in group} - {first.name.strip()})
    metadata: dict[str, Any] = {"proposed": len(group), **({"merged": merged} if merged else {})}
    return Rubric(
        names.make_unique(slug or "rubric"),
        " ".join(first.name.split()),
        first.description.strip(),
        first.scoring_criteria.strip(),
        metadata=metadata,
    )
