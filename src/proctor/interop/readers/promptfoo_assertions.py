"""promptfoo's assertions as entries of `evaluators`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from proctor.errors import suggest_name
from proctor.interop.translations import translate_checks
from proctor.records.numbers import as_number, is_fraction, is_number
from proctor.records.rubric import RUN_METRICS
from proctor.records.sample import Sample
from proctor.sessions.importers.json_values import as_list, as_mapping, as_text

_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_TYPED = re.compile(r"(not-)?([a-z][a-z0-9-]*)(?:\(([\d.]+)\))?:\s*(.*)", re.DOTALL)
_ALIASES = {"grade": "llm-rubric", "fn": "javascript", "eval": "javascript", "similar-to": "similar"}
_LISTS = ("contains-any", "contains-all", "icontains-any", "icontains-all")
_JUDGED = ("llm-rubric", "model-graded-closedqa", "model-graded-factuality", "factuality", "g-eval")
_NEED_VALUE = ("contains", "icontains", "starts-with", "regex", "word-count", *_LISTS)
# The types that a CSV cell may start with, besides those of the translations.
_KNOWN_TYPES = frozenset((
    "equals", "contains", "icontains", "starts-with", "regex", "is-json", "contains-json", "similar", "latency", "cost",
    "levenshtein", "rouge-n", "bleu", "gleu", "meteor", "javascript", "python", "webhook", "word-count", "is-xml",
    "is-html", "is-sql", "contains-sql", "contains-xml", "contains-html", "answer-relevance", "context-faithfulness",
    "context-recall", "context-relevance", "moderation", "is-refusal", "perplexity",
    "perplexity-score", "classifier", "finish-reason", "conversation-relevance", "search-rubric", "agent-rubric", "pi",
    "ruby", "guardrails", "select-best", "max-score", "tool-call-f1", "is-valid-openai-tools-call",
    "is-valid-openai-function-call", "is-valid-function-call", "trace-span-count", "trace-span-duration",
    "trace-error-spans", "skill-used", "contains-sql", *_LISTS, *_JUDGED, *_ALIASES,
))  # fmt: skip

# The names of providers in the addresses of models.
_PROVIDERS = {
    "openai": "openai", "anthropic": "anthropic", "google": "gemini", "vertex": "gemini",
}  # fmt: skip
_ENDPOINTS = ("chat", "messages", "completion", "responses")


class Checks(NamedTuple):
    """The assertions of one test, with what is needed to translate them."""

    assertions: Sequence[Any]
    variables: Mapping[str, Any]
    threshold: Any
    provider: Any
    templates: Mapping[str, Any]
    evaluators: tuple[Any, ...] = ()
    expected: Any = None
    effect: str = "the test is skipped"

    @classmethod
    def of_test(cls, test: Mapping[str, Any], config: Mapping[str, Any], variables: Mapping[str, Any]) -> Checks:
        """Return the assertions of a test, before they are translated."""
        provider = as_mapping(test.get("options")).get("provider")
        if isinstance(provider, dict):
            provider = provider.get("text") or provider.get("id")
        templates = as_mapping(config.get("assertionTemplates"))
        return cls(as_list(test.get("assert")), variables, test.get("threshold"), provider, templates)


def parse_expected(cell: str) -> dict[str, Any]:
    """Return the assertion of a CSV cell, such as `contains: Paris`, `similar(0.8): Paris` or the expected text.

    >>> parse_expected("not-icontains: no"), parse_expected("Paris: a city")
    ({'type': 'not-icontains', 'value': 'no'}, {'type': 'equals', 'value': 'Paris: a city'})
    """
    match = _TYPED.fullmatch(cell.strip())
    if match is None or match[2] not in _KNOWN_TYPES:
        if cell.strip().removeprefix("not-") in ("is-json", "contains-json", "is-xml", "is-html", "is-sql"):
            return {"type": cell.strip()}
        return {"type": "equals", "value": cell}
    kind = _ALIASES.get(match[2], match[2])
    value: Any = [item.strip() for item in match[4].split(",")] if kind in _LISTS else match[4]
    assertion = {"type": f"{match[1] or ''}{kind}", "value": value}
    if match[3]:
        assertion["threshold"] = float(match[3])
    return assertion


def translate_assertions(checks: Checks, warnings: list[str]) -> Checks:
    """Return the checks with evaluators for their assertions; assertions without an equal one become warnings.

    Names may repeat: `name_checks` makes them unique.
    """
    expected = None
    entries: list[tuple[dict[str, Any], float]] = []
    lost_weight = 0.0
    for item in checks.assertions:
        assertion = _resolve_template(as_mapping(item), checks.templates)
        kind = str(assertion.get("type"))
        value = _render(assertion.get("value"), checks.variables)
        weight = as_number(assertion.get("weight", 1))
        weight = 1.0 if weight is None else weight
        if weight == 0 and kind != "assert-set":
            warnings.append("an assertion with weight 0 is left out: it is measured, but cannot fail")
            continue
        if kind in ("equals", "similar") and isinstance(value, str) and expected in (None, value):
            expected = value
            uses = "exact_match" if kind == "equals" else "semantic_similarity"
            entry = {"uses": uses, **({"threshold": assertion.get("threshold", 0.75)} if kind == "similar" else {})}
        elif kind == "assert-set":
            entry, expected = _translate_set(assertion, checks._replace(expected=expected), warnings)
        else:
            entry = _translate({**assertion, "value": value}, checks, warnings) or {}
        if entry:
            entries.append(
                ({"uses": entry.pop("uses"), "name": as_text(assertion.get("metric")) or kind, **entry}, weight)
            )
        else:
            lost_weight += weight
    evaluators = tuple(entry for entry, _ in entries)
    if is_fraction(checks.threshold) and len(checks.assertions) > 1:
        evaluators = _combine_weighted(entries, lost_weight, checks, warnings)
    elif checks.threshold is not None and not is_fraction(checks.threshold):
        warnings.append(f"the threshold {checks.threshold!r} is left out: it is not a number from 0 to 1")
    elif any(weight != 1 for _, weight in entries) and len(entries) > 1:
        warnings.append("weights without a threshold are left out: they do not change the verdict, only the score")
    return checks._replace(evaluators=evaluators, expected=expected)


def _translate_set(assertion: Mapping[str, Any], checks: Checks, warnings: list[str]) -> tuple[dict[str, Any], Any]:
    """Return the entry of an assert-set, empty if it cannot be translated, and the expected value of the test."""
    inner = checks._replace(
        assertions=as_list(assertion.get("assert")),
        threshold=assertion.get("threshold"),
        effect="an assert-set is left out",
    )
    parts = translate_assertions(inner, warnings)
    if parts.expected is not None and checks.expected not in (None, parts.expected):
        warnings.append("an assert-set with a second expected value is left out")
        return {}, checks.expected
    names: dict[str, int] = {}
    evaluators = [{**entry, "name": _make_unique(entry["name"], names)} for entry in parts.evaluators]
    entry = {"uses": "all_of", "evaluators": evaluators} if evaluators else {}
    return entry, parts.expected if checks.expected is None else checks.expected


def _combine_weighted(
    entries: Sequence[tuple[dict[str, Any], float]], lost_weight: float, checks: Checks, warnings: list[str]
) -> tuple[Any, ...]:
    """Return one check for the weighted mean; none if the assertions that are not translated could change it."""
    if lost_weight:
        warnings.append(
            f"{checks.effect}: its threshold {checks.threshold:g} needs assertions that are not translated; add checks "
            "of your own to the sample"
        )
        return ()
    names: dict[str, int] = {}
    parts = [
        {"evaluator": {**entry, "name": _make_unique(entry["name"], names)}, "weight": weight}
        for entry, weight in entries
        if weight > 0
    ]
    return (
        ({"uses": "weighted", "name": "assertions", "evaluators": parts, "threshold": checks.threshold},)
        if parts
        else ()
    )


def name_checks(samples: Iterable[Sample[Any, Any]]) -> tuple[Sample[Any, Any], ...]:
    """Return the samples with names that are unique in a sample and belong to one kind of evaluator in all samples.

    >>> checks = ({"uses": "keywords", "name": "a"}, {"uses": "starts_with", "name": "a"})
    >>> [check["name"] for check in name_checks([Sample("1", "", evaluators=checks)])[0].evaluators]
    ['a (keywords)', 'a (starts_with)']
    """
    samples = tuple(samples)
    kinds: dict[str, set[str]] = {}
    for entry in (entry for sample in samples for entry in sample.evaluators):
        kinds.setdefault(entry["name"], set()).add(entry["uses"])
    return tuple(_name_checks_of_sample(sample, kinds) for sample in samples)


def _name_checks_of_sample(sample: Sample[Any, Any], kinds: Mapping[str, set[str]]) -> Sample[Any, Any]:
    names: dict[str, int] = {}
    evaluators = []
    for entry in sample.evaluators:
        name = entry["name"]
        # The metrics of a run have these names.
        if len(kinds[name]) > 1 or name in RUN_METRICS:
            name = f"{name} ({entry['uses']})"
        evaluators.append({**entry, "name": _make_unique(name, names, kinds)})
    return msgspec.structs.replace(sample, evaluators=tuple(evaluators))


def _resolve_template(assertion: Mapping[str, Any], templates: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = as_text(assertion.get("$ref")) or ""
    return as_mapping(templates.get(reference.rpartition("/")[2])) if reference else assertion


def _make_unique(name: str, names: dict[str, int], reserved: Collection[str] = ()) -> str:
    """Number a name that occurs again; `names` counts them, and a number never makes a reserved name."""
    unique = name
    while names.get(unique) or (unique != name and unique in reserved):
        names[name] += 1
        unique = f"{name} {names[name]}"
    names[unique] = 1
    return unique


def _render(value: Any, variables: Mapping[str, Any]) -> Any:
    """Fill the variables of a template; other parts of the template language stay."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: str(variables.get(match[1], match[0])), value)
    return [_render(item, variables) for item in value] if isinstance(value, list) else value


def _translate(assertion: Mapping[str, Any], checks: Checks, warnings: list[str]) -> dict[str, Any] | None:
    kind = str(assertion.get("type"))
    base = kind.removeprefix("not-")
    if base in _JUDGED:
        entry = _translate_rubric(assertion, checks, warnings)
    else:
        entry = _TRANSLATIONS[base](assertion) if base in _TRANSLATIONS else None
        if entry is None and base in _NEED_VALUE and assertion["value"] in (None, "", []):
            warnings.append(f"the assertion {kind!r} is left out: its value is missing")
        elif entry is None and (similar := _suggest_type(base)):
            warnings.append(f"the assertion {kind!r} is left out: {similar}")
        elif entry is None:
            translate_checks("promptfoo", [base], warnings, "assertion")
    if entry is not None and base != kind:
        entry["uses"] = f"not-{entry['uses']}"
    return entry


def _suggest_type(name: str) -> str:
    """Suggest the type that is meant by a misspelt one; empty for known types and for those like no other."""
    hint = "" if name in _KNOWN_TYPES or name in _TRANSLATIONS else suggest_name(name, _KNOWN_TYPES)
    return hint if hint.startswith("did you mean") else ""


def _translate_rubric(assertion: Mapping[str, Any], checks: Checks, warnings: list[str]) -> dict[str, Any] | None:
    provider = assertion.get("provider") or checks.provider
    model = translate_model(provider) if isinstance(provider, str) else None
    if model is None or not isinstance(assertion["value"], str):
        warnings.append(
            f"the assertion {assertion['type']!r} is not translated, because its grader is not named; "
            "use llm_judge: {model: …, criterion: …}"
        )
        return None
    threshold = assertion.get("threshold")
    return {
        "uses": "llm_judge",
        "model": model,
        "criterion": assertion["value"],
        **({"threshold": threshold} if is_number(threshold) else {}),
    }


def translate_model(address: str) -> str | None:
    """Return Proctor's address of a promptfoo provider, or None if it is not a known model.

    >>> translate_model("anthropic:messages:claude-sonnet-4-6"), translate_model("file://provider.js")
    ('anthropic:claude-sonnet-4-6', None)
    """
    provider, *rest = address.split(":")
    if rest and rest[0] in _ENDPOINTS:
        rest = rest[1:]
    return f"{_PROVIDERS[provider]}:{':'.join(rest)}" if provider in _PROVIDERS and rest and rest[0] else None


def _match_words(need: str, *, case_sensitive: bool) -> Callable[[Mapping[str, Any]], dict[str, Any] | None]:
    def translate(assertion: Mapping[str, Any]) -> dict[str, Any] | None:
        value = assertion["value"]
        words = [str(item) for item in (value if isinstance(value, list) else [value])]
        if not all(words) or value is None:
            return None
        options = {} if need == "all" else {"need": need}
        case = {"case_sensitive": True} if case_sensitive else {}
        return {"uses": "keywords", "include": words, "whole_words": False, **options, **case}

    return translate


def _match_start(assertion: Mapping[str, Any]) -> dict[str, Any] | None:
    if assertion["value"] in (None, ""):
        return None
    phrases = [str(assertion["value"])]
    return {"uses": "starts_with", "phrases": phrases, "whole_words": False, "case_sensitive": True}


def _match_regex(assertion: Mapping[str, Any]) -> dict[str, Any] | None:
    if assertion["value"] is None:
        return None
    try:
        re.compile(str(assertion["value"]))
    except (re.error, RecursionError, OverflowError):
        return None
    return {"uses": "regex_match", "pattern": str(assertion["value"])}


def _match_json(assertion: Mapping[str, Any]) -> dict[str, Any] | None:
    schema = assertion["value"]
    if isinstance(schema, str):
        return None
    return {"uses": "schema_match", "schema": schema} if isinstance(schema, dict) else {"uses": "json_validity"}


def _match_value(assertion: Mapping[str, Any]) -> dict[str, Any] | None:
    value = assertion["value"]
    if isinstance(value, dict | list):
        return {"uses": "schema_match", "schema": {"const": value}}
    pattern = re.escape("" if value is None else str(value))
    return {"uses": "regex_match", "pattern": pattern, "mode": "fullmatch"}


def _count_words(assertion: Mapping[str, Any]) -> dict[str, Any] | None:
    value = assertion["value"]
    if isinstance(value, int):
        return {"uses": "text_count", "exactly": value}
    limits = {"at_least": as_mapping(value).get("min"), "at_most": as_mapping(value).get("max")}
    known = {key: limit for key, limit in limits.items() if isinstance(limit, int)}
    return {"uses": "text_count", **known} if known else None


def _limit_latency(assertion: Mapping[str, Any]) -> dict[str, Any] | None:
    limit = as_number(assertion.get("threshold"))
    return {"uses": "latency", "max_ms": limit} if limit is not None and limit > 0 else None


_TRANSLATIONS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any] | None]] = {
    "equals": _match_value,
    "contains": _match_words("all", case_sensitive=True),
    "icontains": _match_words("all", case_sensitive=False),
    "contains-all": _match_words("all", case_sensitive=True),
    "icontains-all": _match_words("all", case_sensitive=False),
    "contains-any": _match_words("any", case_sensitive=True),
    "icontains-any": _match_words("any", case_sensitive=False),
    "starts-with": _match_start,
    "regex": _match_regex,
    "is-json": _match_json,
    "is-xml": lambda _: {"uses": "format_compliance", "format": "xml"},
    "is-html": lambda _: {"uses": "format_compliance", "format": "html"},
    "word-count": _count_words,
    "latency": _limit_latency,
    "answer-relevance": lambda _: {"uses": "relevance"},
    "context-faithfulness": lambda _: {"uses": "hallucination_detection"},
}
