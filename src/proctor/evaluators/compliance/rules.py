"""The policies of an evaluator by their names: those that ship, and the user's own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from proctor import importing
from proctor.errors import EvaluatorError, Problem, UsageError, nearest
from proctor.evaluators.compliance import policy
from proctor.evaluators.compliance.policy import Policy
from proctor.evaluators.meanings import Meanings
from proctor.redaction.pii import find_pii
from proctor.redaction.secrets import find_secrets

WHERE = "compliance"
PII, SECRETS, REFUSAL, CLAIMS = "pii", "secrets", "refusal", "prohibited_claims"
KNOWN = (PII, SECRETS, REFUSAL, CLAIMS)
_PARTS = ("patterns", "terms", "text", "function")
_RULE = (
    "a policy is a function, a text for the judge, or a mapping with patterns, terms, text "
    "or function"
)


class Terms(NamedTuple):
    """What policies are made of: their options, the judge and the embedder."""

    refusal: str
    claims: Sequence[str]
    near: float
    judge: Any = None
    meanings: Meanings | None = None


def made_of(names: Sequence[str], own: Mapping[str, Any], terms: Terms) -> dict[str, Policy]:
    """Every policy by its name; all faults are told at once."""
    problems = [
        Problem(f"policies, {name!r}", f"there is no such policy: {nearest(name, [*KNOWN, *own])}")
        for name in names
        if name not in KNOWN and name not in own
    ]
    if CLAIMS in names and not terms.claims:
        problems.append(Problem(CLAIMS, "it needs the claims: claims=['…']"))
    problems += [
        Problem(f"rules, {name!r}", "a policy that ships has this name")
        for name in own
        if name in KNOWN
    ]
    found: dict[str, Policy] = {}
    for name in dict.fromkeys([*names, *own]):
        try:
            if name in own:
                found[name] = _own(name, own[name], terms.judge)
            elif name in KNOWN and (name != CLAIMS or terms.claims):
                found[name] = _shipped(name, terms)
        except UsageError as error:
            problems.append(Problem(f"rules, {name!r}", error.what))
    if problems:
        raise EvaluatorError(
            "its policies do not fit",
            where=WHERE,
            fix=f"policies that ship: {', '.join(KNOWN)}; {_RULE}",
            problems=problems,
        )
    return found


def _shipped(name: str, terms: Terms) -> Policy:
    if name == PII:
        return policy.found_by(find_pii, "none found")
    if name == SECRETS:
        return policy.found_by(find_secrets, "none found")
    if name == REFUSAL:
        required = terms.refusal == "required"
        if terms.judge is not None:
            return policy.refusing_by(terms.judge, required)
        return policy.refusing(required)
    if terms.judge is not None:
        return policy.claiming_by(terms.judge, terms.claims)
    return policy.claiming(terms.claims, terms.meanings or Meanings(None, WHERE), terms.near)


def _own(name: str, given: Any, judge: Any) -> Policy:
    """A policy of the user's: of all that is given, everything must be kept."""
    if isinstance(given, str):
        given = {"text": given}
    elif callable(given) or callable(getattr(given, "evaluate", None)):
        given = {"function": given}
    if not isinstance(given, Mapping) or not given:
        raise EvaluatorError(_RULE)
    unknown = next((key for key in given if key not in _PARTS), None)
    if unknown is not None:
        raise EvaluatorError(f"there is no {unknown!r}: {nearest(str(unknown), _PARTS)}")
    parts = []
    if "patterns" in given or "terms" in given:
        patterns = [_compiled(one) for one in _texts(given.get("patterns", ()), "patterns")]
        parts.append(policy.written(patterns, _texts(given.get("terms", ()), "terms")))
    if "text" in given:
        (text,) = _texts([given["text"]], "text")
        if judge is None:
            raise EvaluatorError("a policy in words needs a judge: judge='openai:gpt-4o-mini'")
        parts.append(policy.judged(judge, text))
    if "function" in given:
        function = given["function"]
        found = importing.load(function) if isinstance(function, str) else function
        parts.append(policy.scored(found, name))
    return policy.every(parts)


def _texts(given: Any, what: str) -> list[str]:
    listed = [given] if isinstance(given, str) else list(given)
    if any(not isinstance(one, str) or not one.strip() for one in listed):
        raise EvaluatorError(f"{what} are texts that say something")
    return listed


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        found = re.compile(pattern)
    except re.error as error:
        raise EvaluatorError(f"{pattern!r} is not a regular expression: {error}") from None
    if found.match("") is not None:
        raise EvaluatorError(f"{pattern!r} matches nothing at all, so it would match everywhere")
    return found
