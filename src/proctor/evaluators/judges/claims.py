"""Claims: what a text says, one by one, and whether a context bears it out.

A model does the reading, but it is not taken at its word: what it says a claim is made of must
be in the text, and what it says decides a claim must be in the context. Where it misquotes, the
claim is not supported.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import msgspec

from proctor.errors import CallFailed, EvaluatorError
from proctor.evaluators.judges.fence import MarkedForm
from proctor.evaluators.judges.judge import failed
from proctor.evaluators.judges.opinion import (
    Asking,
    Question,
    as_text,
    side_by_side,
    tell,
    usage_data,
    used_by_failures,
)
from proctor.evaluators.judges.templates import shipped
from proctor.evaluators.wording import words
from proctor.models.connect import provider
from proctor.ports import ProviderAdapter
from proctor.records import codec
from proctor.records.numbers import is_fraction
from proctor.records.score import Score
from proctor.records.session import Usage

Support = Literal["supported", "contradicted", "not_stated"]
Checked = Literal["supported", "contradicted", "not_stated", "unverified"]

# So many claims are checked in one call; of more at once, some would be passed over.
BATCH = 10
EXTRACT, CHECK = "claims-extract", "claims-check"
NOT_IN_CONTEXT = "the evidence that was quoted is not in the context"
_QUOTATION_MARKS = "\"'`“”„‘’«»"


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One statement of a text, and the words that make it; `found` if they stand in the text."""

    text: str
    quote: str = ""
    found: bool = True


class ClaimVerdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Whether a context bears a claim out, the words that decide it, and why.

    It is "unverified" if the judge quoted, also when reminded, what is not in the context.
    """

    claim: Claim
    verdict: Checked
    evidence: str = ""
    reason: str = ""


class _Said(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    claim: str
    quote: str


class _Listed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    claims: list[_Said]


class _Checked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    number: int
    reason: str
    evidence: str
    verdict: Support


class _Verdicts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    verdicts: list[_Checked]


async def extract(adapter: Any, text: str, *, how: Asking | None = None) -> tuple[Claim, ...]:
    """The claims that a text makes, in their order.

    One whose quote does not stand in the text is not `found`: the model made it up. Raises
    `CallFailed` if the model cannot be reached or gives no list.
    """
    claims, _ = await _extracted(provider(adapter), text, how or Asking())
    return claims


async def check(
    adapter: Any, claims: Sequence[Claim], context: Any, *, how: Asking | None = None
) -> tuple[ClaimVerdict, ...]:
    """Whether a context bears out each claim, in their order.

    Raises `CallFailed` if there is a claim on which the model gives no verdict.
    """
    verdicts, _ = await _checked(provider(adapter), claims, as_text(context), how or Asking())
    return verdicts


async def grounded_claims(
    adapter: Any, text: Any, context: Any, *, threshold: float = 1.0, how: Asking | None = None
) -> Score:
    """The share of a text's claims that a context supports, as a score.

    An empty text, or one that makes no claims, is skipped. Claims that the model made up are left
    out and listed. A claim that it backs with words which are not in the context is not supported;
    if that is so of all claims, there is no verdict.
    """
    if not is_fraction(threshold):
        raise EvaluatorError(f"a threshold is from 0 to 1, got {threshold!r}")
    model, how = provider(adapter), how or Asking()
    text = as_text(text)
    if not text.strip():
        return Score.skipped("there is no text to check")
    try:
        claims, used = await _extracted(model, text, how)
    except CallFailed as error:
        return failed(model, shipped(EXTRACT), [error])
    try:
        found = [claim for claim in claims if claim.found]
        verdicts, more = await _checked(model, found, as_text(context), how)
    except CallFailed as error:
        error.usage = used + used_by_failures([error])
        return failed(model, shipped(CHECK), [error])
    judge = {"model": model.model, "prompt": shipped(CHECK).id, "extraction": shipped(EXTRACT).id}
    details: dict[str, Any] = {"judge": {**judge, "usage": usage_data(used + more)}}
    made_up = [claim.text for claim in claims if not claim.found]
    if made_up:
        details["made_up"] = made_up
    if not claims:
        return Score.skipped("the text makes no claims", details)
    if not verdicts:
        return Score.error("no claim that was listed quotes the text", details)
    return _share(verdicts, threshold, details)


async def _extracted(model: ProviderAdapter, text: str, how: Asking) -> tuple[tuple[Claim, ...], Usage]:
    question = Question(shipped(EXTRACT), {"text": text})
    listed, response, _ = await tell(
        model, question, lambda fence: MarkedForm(_Listed, fence, _check_listed), how
    )
    claims = (
        Claim(one.claim.strip(), one.quote.strip(), bool(_quoted(one.quote, text))) for one in listed.claims
    )
    return tuple(claims), response.usage


async def _checked(
    model: ProviderAdapter, claims: Sequence[Claim], context: str, how: Asking
) -> tuple[tuple[ClaimVerdict, ...], Usage]:
    batches = [claims[at : at + BATCH] for at in range(0, len(claims), BATCH)]
    asks = [functools.partial(_check_batch, model, batch, context, how) for batch in batches]
    told = await side_by_side(asks)
    found = [one for one in told if not isinstance(one, CallFailed)]
    failures = [one for one in told if isinstance(one, CallFailed)]
    used = sum((usage for _, usage in found), used_by_failures(failures))
    if failures:
        # The batches that were answered were paid for too.
        failures[0].usage = used
        raise failures[0]
    return tuple(verdict for verdicts, _ in found for verdict in verdicts), used


async def _check_batch(
    model: ProviderAdapter, claims: Sequence[Claim], context: str, how: Asking
) -> tuple[list[ClaimVerdict], Usage]:
    listed = "\n".join(
        f"{number}. {' '.join(claim.text.split())}" for number, claim in enumerate(claims, start=1)
    )
    question = Question(shipped(CHECK), {"context": context, "claims": listed})
    complete, exact = _complete(len(claims)), _exact(context)
    answer, response, _ = await tell(
        model, question, lambda fence: MarkedForm(_Verdicts, fence, complete, exact), how
    )
    by_number = {one.number: one for one in answer.verdicts}
    verdicts = [_held_to(by_number[number], claim, context) for number, claim in enumerate(claims, start=1)]
    return verdicts, response.usage


def _check_listed(listed: _Listed) -> None:
    if any(not one.claim.strip() for one in listed.claims):
        raise ValueError("a claim in the list is empty")


def _complete(count: int) -> Callable[[_Verdicts], None]:
    """Every claim has exactly one verdict."""

    def look(answer: _Verdicts) -> None:
        numbers = Counter(one.number for one in answer.verdicts)
        if numbers != Counter(range(1, count + 1)):
            raise ValueError(f"it does not have exactly one verdict on each claim from 1 to {count}")

    return look


def _exact(context: str) -> Callable[[_Verdicts], None]:
    """All evidence stands in the context."""

    def look(answer: _Verdicts) -> None:
        misquoted = [str(one.number) for one in answer.verdicts if _misquoted(one, context)]
        if misquoted:
            raise ValueError(
                f"the evidence for {', '.join(misquoted)} is not in the context: quote it exactly "
                "as it stands there, and give all verdicts again"
            )

    return look


def _misquoted(said: _Checked, context: str) -> bool:
    return said.verdict != "not_stated" and not _evidence(said.evidence, context)


def _evidence(quote: str, context: str) -> str:
    """A quote as it stands in the context; "" if it does not, or says nothing ("the")."""
    if all(word.kind == "function" for word in words(quote)):
        return ""
    return _quoted(quote, context)


def _held_to(said: _Checked, claim: Claim, context: str) -> ClaimVerdict:
    """The verdict, if its evidence stands in the context."""
    if said.verdict == "not_stated":
        return ClaimVerdict(claim, "not_stated", reason=said.reason)
    if _misquoted(said, context):
        reason = f"{said.reason} (it was called {said.verdict}, but {NOT_IN_CONTEXT})".strip()
        return ClaimVerdict(claim, "unverified", said.evidence, reason)
    return ClaimVerdict(claim, said.verdict, _quoted(said.evidence, context), said.reason)


def _quoted(quote: str, text: str) -> str:
    """A quote as it stands in a text, or "".

    White space, capitals and quotation marks around it do not matter.
    """
    whole = " ".join(text.split())
    for one in (quote, quote.strip().strip(_QUOTATION_MARKS)):
        wanted = " ".join(one.split())
        found = re.search(re.escape(wanted), whole, re.IGNORECASE) if wanted else None
        if found is not None:
            return found[0]
    return ""


def _share(verdicts: Sequence[ClaimVerdict], threshold: float, details: dict[str, Any]) -> Score:
    tally = Counter(one.verdict for one in verdicts)
    counts = {name: tally[name] for name in get_args(Checked)}
    details = {**counts, "claims": codec.plain(list(verdicts)), **details}
    if tally["unverified"] == len(verdicts):
        return Score.error(f"no verdict on any claim holds: {NOT_IN_CONTEXT}", details)
    # What is backed by words that are not in the context is not supported by it.
    value = tally["supported"] / len(verdicts)
    told = [f"{tally['supported']} of {len(verdicts)} claims are supported"]
    labels = {
        "contradicted": "contradicted",
        "not_stated": "not stated",
        "unverified": f"not supported, for {NOT_IN_CONTEXT}",
    }
    told += [f"{labels[one.verdict]}: {one.claim.text}" for one in verdicts if one.verdict in labels]
    return Score(value, value >= threshold, "; ".join(told), details)
