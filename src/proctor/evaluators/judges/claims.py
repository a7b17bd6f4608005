"""Extract the claims of a text, and check each against a context.

A model reads the text, but its quotes are verified: the words of a claim must be in the text, and its
evidence must be in the context. A claim with misquoted evidence is not supported.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any, Literal, get_args

import msgspec

from proctor.errors import CallFailed
from proctor.evaluators.judges.fence import MarkedForm
from proctor.evaluators.judges.judge import (
    DEFAULT_OPTIONS,
    JudgeOptions,
    Question,
    ask_judge,
    create_judge_options,
    failed_score,
    run_with_usage,
    sum_failed_usage,
    to_text,
    usage_to_data,
)
from proctor.evaluators.judges.templates import load_template
from proctor.evaluators.measurements import check_fraction
from proctor.evaluators.tokenizer import split_words
from proctor.models.connect import provider
from proctor.ports import ProviderAdapter
from proctor.records import codec
from proctor.records.score import Score
from proctor.records.session import Usage

Support = Literal["supported", "contradicted", "not_stated"]
ClaimStatus = Literal["supported", "contradicted", "not_stated", "unverified"]

# With more claims in one call, a model skips some.
BATCH = 10
EXTRACT, CHECK = "claims-extract", "claims-check"
NOT_IN_CONTEXT = "the quoted evidence is not in the context"
_QUOTATION_MARKS = "\"'`“”„‘’«»"


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One statement of a text, and the words it is taken from; `is_quoted` is True if they occur in the text."""

    text: str
    quote: str = ""
    is_quoted: bool = True


class ClaimVerdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Whether a context supports a claim, the evidence, and the reason.

    The status is "unverified" if the judge, even after a reminder, quoted words that are not in the context.
    """

    claim: Claim
    verdict: ClaimStatus
    evidence: str = ""
    reason: str = ""


# The schema that a model sees contains the names of these classes.
class _ListedClaim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    claim: str
    quote: str


class _ClaimList(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    claims: list[_ListedClaim]


class _CheckedClaim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    number: int
    reason: str
    evidence: str
    verdict: Support


class _CheckedClaims(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    verdicts: list[_CheckedClaim]


async def grounded_claims(
    model: Any,
    text: Any,
    context: Any,
    *,
    threshold: float = 1.0,
    temperature: float | None = 0.0,
    max_tokens: int | None = None,
) -> Score:
    """Score the fraction of a text's claims that a context supports, by asking a model.

    A text without claims is skipped. Claims that the model made up are left out and listed. A claim
    with evidence that is not in the context is not supported; if that applies to all claims, there is no verdict.
    """
    check_fraction("grounded_claims", "threshold", threshold)
    adapter, text = provider(model), to_text(text)
    options = create_judge_options(temperature, max_tokens)
    if not text.strip():
        return Score.skipped("there is no text to check")
    try:
        claims, usage = await extract(adapter, text, options)
    except CallFailed as error:
        return failed_score(adapter, load_template(EXTRACT), [error])
    try:
        quoted = [claim for claim in claims if claim.is_quoted]
        verdicts, check_usage = await check(adapter, quoted, to_text(context), options)
    except CallFailed as error:
        error.usage = usage + sum_failed_usage([error])
        return failed_score(adapter, load_template(CHECK), [error])
    judge = {"model": adapter.model, "prompt": load_template(CHECK).id, "extraction": load_template(EXTRACT).id}
    details: dict[str, Any] = {"judge": {**judge, "usage": usage_to_data(usage + check_usage)}}
    made_up = [claim.text for claim in claims if not claim.is_quoted]
    if made_up:
        details["made_up"] = made_up
    if not claims:
        return Score.skipped("the text makes no claims", details)
    if not verdicts:
        return Score.error("the judge listed claims, but none of their quotes is in the text", details)
    return _score_verdicts(verdicts, threshold, details)


async def extract(
    model: ProviderAdapter, text: str, options: JudgeOptions = DEFAULT_OPTIONS
) -> tuple[list[Claim], Usage]:
    """Return the claims of a text in their order, and the usage.

    `is_quoted` is False for a claim whose quote does not occur in the text: the model made it up. Raises `CallFailed`
    if the model cannot be reached or does not return a list.
    """

    def check_claims(answer: _ClaimList) -> None:
        if any(not item.claim.strip() for item in answer.claims):
            raise ValueError("a claim in the list is empty")

    question = Question(load_template(EXTRACT), {"text": text})
    response = await ask_judge(model, question, lambda fence: MarkedForm(_ClaimList, fence, check_claims), options)
    claims = [
        Claim(item.claim.strip(), item.quote.strip(), bool(_find_quote(item.quote, text)))
        for item in response.output.claims
    ]
    return claims, response.usage


async def check(
    model: ProviderAdapter, claims: Sequence[Claim], context: str, options: JudgeOptions = DEFAULT_OPTIONS
) -> tuple[list[ClaimVerdict], Usage]:
    """Return whether a context supports each claim, in their order, and the usage.

    Raises `CallFailed` if the model returns no verdict on a claim.
    """
    batches = [claims[start : start + BATCH] for start in range(0, len(claims), BATCH)]
    verdicts, usage = await run_with_usage(
        [functools.partial(_check_batch, model, batch, context, options) for batch in batches]
    )
    return list(chain.from_iterable(verdicts)), usage


async def _check_batch(
    model: ProviderAdapter, claims: Sequence[Claim], context: str, options: JudgeOptions
) -> tuple[list[ClaimVerdict], Usage]:
    def check_numbers(answer: _CheckedClaims) -> None:
        if Counter(item.number for item in answer.verdicts) != Counter(range(1, len(claims) + 1)):
            raise ValueError(f"it does not have exactly one verdict on each claim from 1 to {len(claims)}")

    def check_quotes(answer: _CheckedClaims) -> None:
        misquoted_numbers = [str(item.number) for item in answer.verdicts if _is_misquoted(item, context)]
        if misquoted_numbers:
            raise ValueError(
                f"the evidence for {', '.join(misquoted_numbers)} is not in the context: quote the context exactly, "
                "and give all verdicts again"
            )

    numbered_claims = "\n".join(f"{n}. {' '.join(claim.text.split())}" for n, claim in enumerate(claims, start=1))
    question = Question(load_template(CHECK), {"context": context, "claims": numbered_claims})
    response = await ask_judge(
        model, question, lambda fence: MarkedForm(_CheckedClaims, fence, check_numbers, check_quotes), options
    )
    by_number = {item.number: item for item in response.output.verdicts}
    verdicts = [_verify(by_number[number], claim, context) for number, claim in enumerate(claims, start=1)]
    return verdicts, response.usage


def _is_misquoted(item: _CheckedClaim, context: str) -> bool:
    if item.verdict == "not_stated":
        return False
    # A quote of function words ("the") proves nothing.
    is_empty = all(word.kind == "function" for word in split_words(item.evidence))
    return is_empty or not _find_quote(item.evidence, context)


def _verify(item: _CheckedClaim, claim: Claim, context: str) -> ClaimVerdict:
    """Return the verdict, if its evidence is in the context."""
    if item.verdict == "not_stated":
        return ClaimVerdict(claim, "not_stated", reason=item.reason)
    if _is_misquoted(item, context):
        reason = f"{item.reason} (the judge chose {item.verdict}, but {NOT_IN_CONTEXT})".strip()
        return ClaimVerdict(claim, "unverified", item.evidence, reason)
    return ClaimVerdict(claim, item.verdict, _find_quote(item.evidence, context), item.reason)


def _find_quote(quote: str, text: str) -> str:
    """Return a quote as it appears in the text, or ""; ignores whitespace, case and surrounding quotation marks."""
    compact_text = " ".join(text.split())
    for candidate in (quote, quote.strip().strip(_QUOTATION_MARKS)):
        pattern = re.escape(" ".join(candidate.split()))
        match = re.search(pattern, compact_text, re.IGNORECASE) if pattern else None
        if match is not None:
            return match[0]
    return ""


def _score_verdicts(verdicts: Sequence[ClaimVerdict], threshold: float, details: dict[str, Any]) -> Score:
    counts = Counter(verdict.verdict for verdict in verdicts)
    by_status = {status: counts[status] for status in get_args(ClaimStatus)}
    details = {**by_status, "claims": codec.to_plain(list(verdicts)), **details}
    if counts["unverified"] == len(verdicts):
        return Score.error(f"no claim has a valid verdict: {NOT_IN_CONTEXT}", details)
    value = counts["supported"] / len(verdicts)
    reasons = [f"{counts['supported']} of {len(verdicts)} claims are supported"]
    labels = {
        "contradicted": "contradicted",
        "not_stated": "not stated",
        "unverified": f"not supported, because {NOT_IN_CONTEXT}",
    }
    reasons += [f"{labels[item.verdict]}: {item.claim.text}" for item in verdicts if item.verdict in labels]
    return Score(value, value >= threshold, "; ".join(reasons), details)
