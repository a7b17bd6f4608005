"""The policies of an evaluator by their names: those that ship, and the user's own."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from proctor.core import imports as importing
from proctor.core.redaction.pii import find_pii
from proctor.core.redaction.secrets import find_secrets
from proctor.errors import EvaluatorError, Problem, UsageError, nearest
from proctor.evaluators.meanings import Meanings
from proctor.evaluators.safety import policy
from proctor.evaluators.safety.policy import Case, Policy, Ruling, text_of
from proctor.evaluators.verdict import shown
from proctor.models import connect as connections
from proctor.records.numbers import is_fraction
from proctor.records.sample import Sample
from proctor.records.score import Score

WHERE = "compliance"
PII, SECRETS, REFUSAL, CLAIMS = "pii", "secrets", "refusal", "prohibited_claims"
KNOWN = (PII, SECRETS, REFUSAL, CLAIMS)
_PARTS = ("patterns", "terms", "text", "function")
_RULE = "a policy is a function, a text for the judge, or a mapping with patterns, terms, text or function"


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
        Problem(f"rules, {name!r}", "a policy that ships has this name") for name in own if name in KNOWN
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


NO_TEXT = "there is no text to check"


def compliant(
    policies: str | Sequence[str],
    refusal: str | None,
    claims: str | Sequence[str],
    *,
    near: float,
    rules: Mapping[str, Any] | None,
    judge: Any,
    embedder: Any,
) -> tuple[Callable[..., Awaitable[Score]], dict[str, Any]]:
    """The evaluator of these policies, and the options it was made with, as they can be kept."""
    names, told = _listed(policies, "policies"), _listed(claims, "claims")
    _check(refusal, near)
    names += [REFUSAL] * (refusal is not None) + [CLAIMS] * bool(told)
    adapter = _connected(judge)
    # Nobody waits for an embedder that is not asked.
    meanings = Meanings(embedder, WHERE) if told and adapter is None else None
    terms = Terms(refusal or "forbidden", told, near, adapter, meanings)
    live = made_of(list(dict.fromkeys(names)), rules or {}, terms)
    if not live:
        raise EvaluatorError("there is no policy to keep", where=WHERE, fix="name at least one")

    async def evaluate(output: Any, sample: Any = None) -> Score:
        return await held(live, output, sample)

    own = dict(rules or {})
    given: dict[str, Any] = {"refusal": refusal, "claims": told, "rules": own}
    # The judge and the embedder rather than what was given for them, which may hold a key.
    given |= {"judge": adapter, "embedder": meanings.live if meanings else None}
    kept = {name: value for name, value in given.items() if value}
    kept |= {"near": near} if meanings else {}
    kept["policies"] = [name for name in live if name not in own]
    return evaluate, kept


async def held(policies: Mapping[str, Policy], output: Any, sample: Any = None) -> Score:
    """One score out of what every policy says of an output."""
    text = "" if output is None else text_of(output)
    if not text.strip():
        return Score.skipped(NO_TEXT)
    if not isinstance(sample, Sample):
        # Called directly, with an output and what was expected.
        sample = Sample("", None, sample)
    case = Case(text, output, sample)
    rulings = await asyncio.gather(*(policy(case) for policy in policies.values()))
    return _score(dict(zip(policies, rulings, strict=True)))


def _score(rulings: Mapping[str, Ruling]) -> Score:
    methods = dict.fromkeys(one.method for one in rulings.values())
    details: dict[str, Any] = {
        "method": "+".join(methods),
        "policies": {name: one.told() for name, one in rulings.items()},
    }
    known = {name: one for name, one in rulings.items() if one.kept is not None}
    broken = [name for name, one in known.items() if not one.kept]
    failed = [name for name, one in rulings.items() if one.kept is None and not one.skipped]
    if failed and not broken:
        return Score.error(f"no verdict on {_why(failed, rulings)}", details)
    if not known:
        return Score.skipped(f"nothing to check: {_why(list(rulings), rulings)}", details)
    if not broken and (open_ones := [name for name in rulings if name not in known]):
        return Score.skipped(f"{_all_kept(known)}, but {_why(open_ones, rulings)}", details)
    if not broken:
        return Score(1.0, True, _all_kept(known), details)
    reason = _why(broken, rulings)
    if len(known) > 1:
        reason += f"; {len(broken)} of {len(known)} policies broken"
    if failed:
        reason += f"; no verdict on {_why(failed, rulings)}"
    return Score(1 - len(broken) / len(known), False, reason, details)


def _why(names: Sequence[str], rulings: Mapping[str, Ruling]) -> str:
    return "; ".join(f"{name}: {rulings[name].reason}" for name in names)


def _all_kept(known: Mapping[str, Ruling]) -> str:
    """That nothing was found in a text, or what each policy says of it."""
    if len(known) > 2:
        return f"all {len(known)} policies are kept"
    if set(known) <= {PII, SECRETS}:
        return ", ".join(f"no {name}" for name in known) + " found"
    return _why(list(known), known)


def _listed(given: Any, what: str) -> list[str]:
    listed = [given] if isinstance(given, str) else list(given)
    if any(not isinstance(one, str) or not one.strip() for one in listed):
        raise EvaluatorError(f"{what} are a list of texts, got {shown(given)}", where=WHERE)
    return listed


def _check(refusal: Any, near: Any) -> None:
    if refusal not in (None, "forbidden", "required"):
        raise EvaluatorError(f"a refusal is forbidden or required, not {shown(refusal)}", where=WHERE)
    if not is_fraction(near):
        raise EvaluatorError(f"`near` is from 0 to 1, got {shown(near)}", where=WHERE)


def _connected(judge: Any) -> Any:
    if judge is None:
        return None
    try:
        return connections.provider(judge)
    except UsageError as error:
        raise EvaluatorError(error.what, where=WHERE, fix=error.fix, problems=error.problems) from None
