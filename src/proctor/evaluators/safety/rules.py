"""Create the compliance evaluator from built-in policies and the user's rules."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from proctor.core import imports as importing
from proctor.core.redaction.pii import find_pii
from proctor.core.redaction.secrets import find_secrets
from proctor.errors import EvaluatorError, Problem, UsageError, suggest_name
from proctor.evaluators.embeddings import TextEmbedder
from proctor.evaluators.measurements import check_fraction
from proctor.evaluators.safety import policy
from proctor.evaluators.safety.policy import Case, Policy, Ruling
from proctor.evaluators.score_conversion import preview
from proctor.models import connect as connections
from proctor.records.sample import Sample
from proctor.records.score import Score

WHERE = "compliance"
PII, SECRETS, REFUSAL, CLAIMS = "pii", "secrets", "refusal", "prohibited_claims"
BUILT_IN = (PII, SECRETS, REFUSAL, CLAIMS)
_RULE_KEYS = ("patterns", "terms", "text", "function")
_RULE = "a policy is a function, a text for the judge, or a mapping with patterns, terms, text or function"


class PolicyOptions(NamedTuple):
    """The options of the built-in policies, with the judge and the embedder."""

    refusal: str
    claims: Sequence[str]
    near: float
    judge: Any = None
    text_embedder: TextEmbedder | None = None


def create_policies(names: Sequence[str], rules: Mapping[str, Any], options: PolicyOptions) -> dict[str, Policy]:
    """Create every policy by its name; one error lists all problems."""
    problems = [
        Problem(f"policies, {name!r}", f"unknown policy: {suggest_name(name, [*BUILT_IN, *rules])}")
        for name in names
        if name not in BUILT_IN and name not in rules
    ]
    if CLAIMS in names and not options.claims:
        problems.append(Problem(CLAIMS, "it needs the claims: write claims=['It cures colds.']"))
    problems += [
        Problem(f"rules, {name!r}", "a built-in policy has this name; choose another")
        for name in rules
        if name in BUILT_IN
    ]
    policies: dict[str, Policy] = {}
    for name in dict.fromkeys([*names, *rules]):
        try:
            if name in rules:
                policies[name] = _create_rule(name, rules[name], options.judge)
            elif name in BUILT_IN and (name != CLAIMS or options.claims):
                policies[name] = _create_shipped(name, options)
        except UsageError as error:
            problems.append(Problem(f"rules, {name!r}", error.what))
    if problems:
        is_unknown = any(name not in BUILT_IN and name not in rules for name in names)
        rule = 'write rules={"no_slang": {"terms": ["gonna", "wanna"]}}'
        fix = f"choose from {', '.join(BUILT_IN)}, or add the policy to rules" if is_unknown else rule
        raise EvaluatorError("the policies are invalid", where=WHERE, fix=fix, problems=problems)
    return policies


def _create_shipped(name: str, options: PolicyOptions) -> Policy:
    judge, is_required = options.judge, options.refusal == "required"
    match name:
        case "pii":
            return policy.create_search_policy(partial(find_pii, reserved_domains=False), "none found")
        case "secrets":
            return policy.create_search_policy(find_secrets, "none found")
        case "refusal":
            if judge is None:
                return policy.create_refusal_policy(is_required)
            return policy.create_judged_refusal_policy(judge, is_required)
    if judge is not None:
        return policy.create_judged_claims_policy(judge, options.claims)
    return policy.create_claims_policy(options.claims, options.text_embedder or TextEmbedder(None, WHERE), options.near)


def _create_rule(name: str, rule: Any, judge: Any) -> Policy:
    """Create a policy from a user's rule, which requires everything that it lists."""
    if isinstance(rule, str):
        rule = {"text": rule}
    elif callable(rule) or callable(getattr(rule, "evaluate", None)):
        rule = {"function": rule}
    if not isinstance(rule, Mapping) or not rule:
        raise EvaluatorError(_RULE)
    unknown_key = next((key for key in rule if key not in _RULE_KEYS), None)
    if unknown_key is not None:
        raise EvaluatorError(f"unknown key {unknown_key!r}: {suggest_name(str(unknown_key), _RULE_KEYS)}")
    policies = []
    if "patterns" in rule or "terms" in rule:
        patterns = [_compile(pattern) for pattern in _read_texts(rule.get("patterns", ()), "patterns")]
        policies.append(policy.create_pattern_policy(patterns, _read_texts(rule.get("terms", ()), "terms")))
    if "text" in rule:
        (text,) = _read_texts([rule["text"]], "text")
        if judge is None:
            raise EvaluatorError("a policy in words needs a judge: add model='openai:gpt-4o-mini'")
        policies.append(policy.create_judged_policy(judge, text))
    if "function" in rule:
        function = rule["function"]
        loaded = importing.import_object(function) if isinstance(function, str) else function
        policies.append(policy.create_evaluator_policy(loaded, name))
    return policy.combine_policies(policies)


def _read_texts(value: Any, name: str, where: str = "") -> list[str]:
    texts = [value] if isinstance(value, str) else list(value)
    if any(not isinstance(text, str) or not text.strip() for text in texts):
        raise EvaluatorError(f"{name} must be non-empty strings, got {preview(value)}", where=where)
    return texts


def _compile(pattern: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise EvaluatorError(f"{pattern!r} is not a regular expression: {error}") from None
    if compiled.match("") is not None:
        raise EvaluatorError(f"{pattern!r} matches the empty text, so it would match everywhere")
    return compiled


def create_compliance(
    policies: str | Sequence[str],
    refusal: str | None,
    claims: str | Sequence[str],
    *,
    near: float,
    rules: Mapping[str, Any] | None,
    model: Any,
    embedder: Any,
) -> tuple[Callable[..., Awaitable[Score]], dict[str, Any]]:
    """Return the evaluator of these policies, and its options in a form that can be stored."""
    names, claims = _read_texts(policies, "policies", WHERE), _read_texts(claims, "claims", WHERE)
    if refusal not in (None, "forbidden", "required"):
        fix = 'write refusal="forbidden" or refusal="required"'
        raise EvaluatorError(f"refusal must be forbidden or required, got {preview(refusal)}", where=WHERE, fix=fix)
    check_fraction(WHERE, "near", near)
    names += [REFUSAL] * (refusal is not None) + [CLAIMS] * bool(claims)
    adapter = _connect(model)
    # The embedder is slow to load, so it is created only if it is used.
    text_embedder = TextEmbedder(embedder, WHERE) if claims and adapter is None else None
    options = PolicyOptions(refusal or "forbidden", claims, near, adapter, text_embedder)
    rules = dict(rules or {})
    created = create_policies(list(dict.fromkeys(names)), rules, options)
    if not created:
        raise EvaluatorError("no policy is selected", where=WHERE, fix='write policies=["pii", "secrets"]')

    async def evaluate(output: Any, sample: Any = None) -> Score:
        return await _evaluate(created, output, sample)

    stored: dict[str, Any] = {"refusal": refusal, "claims": claims, "rules": rules}
    # The adapter and the embedder replace the user's values, which may contain a key.
    stored |= {"model": adapter, "embedder": text_embedder.embedder if text_embedder else None}
    stored = {name: value for name, value in stored.items() if value}
    stored |= {"near": near} if text_embedder else {}
    stored["policies"] = [name for name in created if name not in rules]
    return evaluate, stored


async def _evaluate(policies: Mapping[str, Policy], output: Any, sample: Any) -> Score:
    text = "" if output is None else policy.to_text(output)
    if not text.strip():
        return Score.skipped("there is no text to check")
    if not isinstance(sample, Sample):
        # A direct call passes the expected value instead of a sample.
        sample = Sample("", None, sample)
    case = Case(text, output, sample)
    rulings = await asyncio.gather(*(check(case) for check in policies.values()))
    return _combine(dict(zip(policies, rulings, strict=True)))


def _combine(rulings: Mapping[str, Ruling]) -> Score:
    details: dict[str, Any] = {
        "method": "+".join(dict.fromkeys(ruling.method for ruling in rulings.values())),
        "policies": {name: ruling.to_data() for name, ruling in rulings.items()},
    }
    decided_rulings = {name: ruling for name, ruling in rulings.items() if ruling.complies is not None}
    undecided_names = [name for name in rulings if name not in decided_rulings]
    broken = [name for name, ruling in decided_rulings.items() if not ruling.complies]
    failed = [name for name in undecided_names if not rulings[name].skipped]
    if not broken:
        if failed:
            return Score.error(f"no verdict on {_list_reasons(failed, rulings)}", details)
        if not decided_rulings:
            return Score.skipped(f"nothing to check: {_list_reasons(rulings, rulings)}", details)
        summary = _summarize_compliance(decided_rulings)
        if undecided_names:
            return Score.skipped(f"{summary}, but {_list_reasons(undecided_names, rulings)}", details)
        return Score(1.0, True, summary, details)
    reason = _list_reasons(broken, rulings)
    if len(decided_rulings) > 1:
        reason += f"; {len(broken)} of {len(decided_rulings)} policies broken"
    if failed:
        reason += f"; no verdict on {_list_reasons(failed, rulings)}"
    return Score(1 - len(broken) / len(decided_rulings), False, reason, details)


def _list_reasons(names: Iterable[str], rulings: Mapping[str, Ruling]) -> str:
    return "; ".join(f"{name}: {rulings[name].reason}" for name in names)


def _summarize_compliance(rulings: Mapping[str, Ruling]) -> str:
    if len(rulings) > 2:
        return f"the output follows all {len(rulings)} policies"
    if set(rulings) <= {PII, SECRETS}:
        return ", ".join(f"no {name}" for name in rulings) + " found"
    return _list_reasons(rulings, rulings)


def _connect(model: Any) -> Any:
    if model is None:
        return None
    try:
        return connections.provider(model)
    except UsageError as error:
        raise EvaluatorError(error.what, where=WHERE, fix=error.fix, problems=error.problems) from None
