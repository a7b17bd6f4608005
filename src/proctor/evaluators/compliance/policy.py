"""Policies as an evaluator checks them: a text goes in, a ruling with findings comes out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from proctor import codec
from proctor.errors import EvaluatorError
from proctor.evaluators.bounded_regex import find_all, is_quick
from proctor.evaluators.compliance.prohibited import Nearest, nearest_to
from proctor.evaluators.compliance.refusal import read_refusal
from proctor.evaluators.language import is_foreign
from proctor.evaluators.meanings import Meanings
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import Trial
from proctor.redaction.finding import Finding, finding
from proctor.redaction.pii import find_pii
from proctor.redaction.secrets import find_secrets

LOCAL, JUDGE = "local", "judge"
MOST_FINDINGS = 50
_LONGEST_SHOWN = 200
# Longer texts are looked through in a thread, so that the loop lives on.
_LONG = 20_000
_NOT_ENGLISH = "refusals are read in English only, and hardly any of these words is; a judge can"


class Case(NamedTuple):
    """What is looked at: the output as a text, as it is, and the sample it answers."""

    text: str
    output: Any
    sample: Sample[Any, Any]


class Ruling(NamedTuple):
    """Whether a policy is kept, how that was found out, and what breaks it.

    `kept` is None where there is no verdict: `skipped` if there was nothing to judge, else the
    check failed. `more` is what else a score tells of it.
    """

    kept: bool | None
    reason: str
    method: str = LOCAL
    findings: Sequence[Mapping[str, Any]] = ()
    skipped: bool = False
    more: Mapping[str, Any] = {}

    def told(self) -> dict[str, Any]:
        """The ruling as a score keeps it."""
        found: dict[str, Any] = {"kept": self.kept, "method": self.method, "reason": self.reason}
        if self.findings:
            found["findings"] = [dict(one) for one in self.findings[:MOST_FINDINGS]]
        if len(self.findings) > MOST_FINDINGS:
            found["count"] = len(self.findings)
        return {**found, **self.more}


Policy = Callable[[Case], Awaitable[Ruling]]


def text_of(output: Any) -> str:
    """The output as a text: a text as it is, of everything else one line for each value.

    >>> print(text_of({"user": {"mail": "ann@example.com"}, "ids": [1, 2]}))
    user.mail: ann@example.com
    ids.0: 1
    ids.1: 2
    """
    if isinstance(output, str):
        return output
    return "\n".join(_lines("", codec.plain(output)))


def _lines(path: str, value: Any) -> list[str]:
    if isinstance(value, Mapping):
        pairs = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, list | tuple):
        pairs = [(str(place), item) for place, item in enumerate(value)]
    elif value is None:
        return []
    else:
        return [f"{path}: {value}" if path else str(value)]
    return [line for key, item in pairs for line in _lines(f"{path}.{key}" if path else key, item)]


def found_by(
    finder: Callable[[str], list[Finding]], nothing: str, quick: Callable[[str], bool] | None = None
) -> Policy:
    """A policy that is broken by whatever a finder finds; in a thread where it is not `quick`."""
    is_short = quick or (lambda text: len(text) <= _LONG)

    async def check(case: Case) -> Ruling:
        try:
            if is_short(case.text):
                found = finder(case.text)
            else:
                from proctor.threads import in_thread

                found = await in_thread(finder, case.text)
        except EvaluatorError as error:
            return Ruling(None, error.what)
        return Ruling(not found, _counted(found) or nothing, findings=list(map(codec.plain, found)))

    return check


def written(patterns: Sequence[re.Pattern[str]], terms: Sequence[str]) -> Policy:
    """A policy that is broken by a pattern that matches, or by a term, in any case.

    A pattern that takes too long is given up, and then there is no verdict.
    """
    words = [(term, _of_term(term)) for term in terms]

    def finder(text: str) -> list[Finding]:
        hits = [
            finding("pattern", text, *place)
            for pattern in patterns
            for place in find_all(pattern, text)
        ]
        # A term is the user's own word, and no secret.
        hits += [
            Finding("term", *match.span(), excerpt=term)
            for term, shape in words
            for match in shape.finditer(text)
        ]
        return sorted(hits, key=lambda one: (one.start, one.end))

    def quick(text: str) -> bool:
        return all(is_quick(pattern.pattern, len(text)) for pattern in patterns)

    return found_by(finder, "no pattern or term is in it", quick)


def _of_term(term: str) -> re.Pattern[str]:
    return re.compile(r"(?<!\w)" + r"\s+".join(map(re.escape, term.split())) + r"(?!\w)", re.I)


def refusing(required: bool) -> Policy:
    """A policy on refusals: the answer must decline, or must not."""

    async def check(case: Case) -> Ruling:
        if is_foreign(case.text):
            return Ruling(None, _NOT_ENGLISH, skipped=True)
        found = read_refusal(case.text)
        place = [{"kind": "refusal", "start": found.start, "end": found.end, "act": found.by}]
        wrong = found.refused != required
        return Ruling(
            not wrong,
            "the answer declines" if found.refused else "the answer does not decline",
            findings=place if found.refused and wrong else [],
            more={"refused": found.refused, "language": "reads English only"},
        )

    return check


def refusing_by(judge: Any, required: bool) -> Policy:
    """The same by a judge, for whom an answer in part is a refusal too."""
    from proctor.evaluators.judging.judge import Judge, View
    from proctor.evaluators.judging.scale import Labels
    from proctor.evaluators.judging.templates import shipped

    labels = {"complied": 1.0, "partly": 0.5, "refused": 0.0}
    scale = Labels("answer", labels, passing=frozenset({"complied"}))
    view = View(reference=False)
    asked = Judge(judge, shipped("compliance-refusal"), scale, {}, view=view)

    async def check(case: Case) -> Ruling:
        score = await asked.score(case.text, case.sample)
        refused = not score.passed
        more = {"refused": refused} if score.ok else {}
        return _by_score(score, (refused == required) if score.ok else None, more)

    return check


def claiming(claims: Sequence[str], meanings: Meanings, near: float) -> Policy:
    """A policy against claims, by their words and by nearness in meaning."""

    async def check(case: Case) -> Ruling:
        nearest = await nearest_to(claims, case.text, meanings, near)
        hidden = [*find_pii(case.text), *find_secrets(case.text)]
        told = [_shown(one, case.text, hidden) for one in nearest]
        made = [one for one in nearest if one.made]
        findings = [
            {"kind": "claim", **shown} for shown, one in zip(told, nearest, strict=True) if one.made
        ]
        reason = "; ".join(f"it claims: {one.claim}" for one in made) or "no claim is made"
        far = [one.cosine for one in nearest if not one.by]
        if far and not made:
            reason += f"; the nearest sentence has cosine {max(far):.2f}, near is {near:g}"
        more = {"embedder": meanings.live.name, "near": near, "nearest": told}
        return Ruling(not made, reason, findings=findings, more=more)

    return check


def _shown(one: Nearest, text: str, hidden: Sequence[Finding]) -> dict[str, Any]:
    """The sentence nearest to a claim; in words only if there is nothing in it to be masked."""
    told: dict[str, Any] = {"claim": one.claim, "start": one.start, "end": one.end}
    told |= {"cosine": round(one.cosine, 3), "by": one.by}
    if any(found.start < one.end and one.start < found.end for found in hidden):
        return told
    return told | {"sentence": text[one.start : one.end][:_LONGEST_SHOWN]}


def claiming_by(judge: Any, claims: Sequence[str]) -> Policy:
    """A policy against claims, by what a judge says follows from the text and quotes from it."""
    from proctor.errors import CallFailed
    from proctor.evaluators.judging.claims import CHECK, Claim, check
    from proctor.evaluators.judging.judge import failed
    from proctor.evaluators.judging.templates import shipped

    async def look(case: Case) -> Ruling:
        try:
            verdicts = await check(judge, [Claim(claim) for claim in claims], case.text)
        except CallFailed as error:
            return _by_score(failed(judge, shipped(CHECK), [error]), None)
        made = [one for one in verdicts if one.verdict == "supported"]
        if not made and any(one.verdict == "unverified" for one in verdicts):
            return Ruling(None, "the judge quotes what is not in the text", JUDGE)
        findings = [_quoted(one.claim.text, one.evidence, case.text) for one in made]
        reason = "; ".join(f"it claims: {one.claim.text}" for one in made)
        more = {"judge": {"model": judge.model, "prompt": shipped(CHECK).id}}
        return Ruling(not made, reason or "no claim is made", JUDGE, findings, more=more)

    return look


def judged(judge: Any, text: str) -> Policy:
    """A policy in words, which a judge holds the output to."""
    from proctor.evaluators.judging.judge import Judge, View
    from proctor.evaluators.judging.scale import Labels
    from proctor.evaluators.judging.templates import shipped

    scale = Labels("verdict", {"kept": 1.0, "broken": 0.0}, passing=frozenset({"kept"}))
    view = View(reference=False)
    asked = Judge(judge, shipped("compliance-policy"), scale, {"policy": text}, view=view)

    async def check(case: Case) -> Ruling:
        score = await asked.score(case.text, case.sample)
        return _by_score(score, score.passed if score.ok else None)

    return check


def scored(evaluator: Any, name: str) -> Policy:
    """A policy that is a function or another evaluator: it is kept if that passes."""
    from proctor.evaluators.attach import attach
    from proctor.evaluators.combination import score_later

    part = attach(evaluator, name=name)

    async def check(case: Case) -> Ruling:
        score = await score_later(part, Trial(case.sample, case.output))
        kept = score.passed if score.ok else None
        reason = score.reason or ("it passes" if kept else "it does not pass")
        return Ruling(
            kept, reason, "function", skipped=score.status == "skipped", more=_details(score)
        )

    return check


def every(policies: Sequence[Policy]) -> Policy:
    """Several policies as one: it is kept if all are."""

    async def check(case: Case) -> Ruling:
        rulings = [await policy(case) for policy in policies]
        broken = [one for one in rulings if one.kept is False]
        open_ones = [one for one in rulings if one.kept is None]
        told = broken or open_ones or rulings
        return Ruling(
            False if broken else None if open_ones else True,
            "; ".join(dict.fromkeys(one.reason for one in told)),
            "+".join(dict.fromkeys(one.method for one in rulings)),
            [found for one in rulings for found in one.findings],
            all(one.skipped for one in told),
            {key: value for one in rulings for key, value in one.more.items()},
        )

    return check if len(policies) != 1 else policies[0]


def _by_score(score: Score, kept: bool | None, more: Mapping[str, Any] | None = None) -> Ruling:
    """What a judge said, as a ruling."""
    return Ruling(kept, score.reason, JUDGE, more={**(more or {}), **score.details})


def _details(score: Score) -> dict[str, Any]:
    return {"details": score.details} if score.details else {}


def _quoted(claim: str, quote: str, text: str) -> dict[str, Any]:
    """Where the words stand that make a claim, if they stand there in one piece."""
    at = text.find(quote)
    place = {"start": at, "end": at + len(quote)} if at >= 0 else {}
    return {"kind": "claim", "claim": claim, **place}


def _counted(found: Sequence[Finding]) -> str:
    """How many findings there are, and of which kinds."""
    if not found:
        return ""
    kinds = Counter(one.kind for one in found)
    told = list(kinds) if len(kinds) == 1 else [f"{n} {kind}" for kind, n in kinds.items()]
    return f"{len(found)} finding{'s' * (len(found) > 1)} ({', '.join(told)})"
