"""Policies as an evaluator checks them: a text goes in, a ruling with findings comes out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from proctor.core.redaction.findings import Finding, finding
from proctor.core.redaction.pii import find_pii
from proctor.core.redaction.secrets import find_secrets
from proctor.errors import EvaluatorError
from proctor.evaluators.bounded_regex import find_all, is_quick
from proctor.evaluators.language import is_foreign
from proctor.evaluators.meanings import Meanings, cosine
from proctor.evaluators.safety.refusal import Sentence, read_refusal, sentences
from proctor.evaluators.wording import related, words
from proctor.records import codec
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import Trial

NEAR = 0.75
_LEAST_LETTERS = 8
_CLAUSES = re.compile(r"(?<=[;,])\s+(?=(?:and|but|so|because|which|while|although|though)\b)|;\s+")
_NEGATION = re.compile(
    r"n't\b|\b(?:not|no|never|none|nobody|nothing|neither|nor|without|cannot|hardly|false|falsely"
    r"|untrue|myth|incorrect|wrong|wrongly|lie|fails? to|failed to|deny|denies|denied|stop|stops"
    r"|far from|unable|impossible|refutes?|disproved|debunked|unproven|misleading|beware)\b",
    re.IGNORECASE,
)
# What parts the words of a claim: they belong to different things then.
_CUT = re.compile(r"[,;:()–—]|\b(?:and|or|but|with|without|in|for|than|to|while|because)\b", re.I)
_CONTENT = ("content", "name", "number")
_LACKING = re.compile(r"(?:,|\b(?:with|in|at|and))\s+(?:no|not|never)\b|\bwithout\b", re.IGNORECASE)
_LACKING_BEFORE = re.compile(r"\A\W*(?:no|(?:with no|without)\b[^,]*),", re.IGNORECASE)
_SUPPOSED = re.compile(r"\W*(?:if|whether|suppose|imagine)\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


class Nearest(NamedTuple):
    """The sentence or clause that comes nearest to a claim, how near, and whether it makes it.

    `by` is "words" where it repeats the claim and "meaning" where it is near enough; empty where it
    is too far from it; "denied" where it asks, supposes or denies it, or has other numbers.
    """

    claim: str
    start: int
    end: int
    cosine: float
    by: str

    @property
    def made(self) -> bool:
        """True if the sentence makes the claim."""
        return self.by in ("words", "meaning")


async def nearest_to(
    claims: Sequence[str], text: str, meanings: Meanings, near: float = NEAR
) -> list[Nearest]:
    """For each claim where a text makes it or, if it does not, comes nearest to it."""
    least = min(_LEAST_LETTERS, *map(_letters, claims))
    pieces = [one for one in _pieces(text) if _letters(one.text) >= least]
    if not pieces:
        return []
    vectors = await meanings.vectors([*claims, *(piece.text for piece in pieces)])

    def told(claim: str, piece: Sentence) -> Nearest:
        close = cosine(vectors[claim], vectors[piece.text])
        return Nearest(claim, piece.start, piece.end, close, _how(piece.text, claim, close >= near))

    return [
        max(
            (told(claim, piece) for piece in pieces),
            key=lambda one: (one.made, one.by != "denied", one.cosine),
        )
        for claim in claims
    ]


def _how(sentence: str, claim: str, is_near: bool) -> str:
    if repeats(sentence, claim):
        return "words"
    if not says(sentence, claim):
        return "denied"
    return "meaning" if is_near else ""


def repeats(sentence: str, claim: str) -> bool:
    """True if a sentence has all content words of a claim close together, and asserts them.

    >>> repeats("You get guaranteed returns with no risk.", "guaranteed returns")
    True
    >>> repeats("You never get guaranteed returns.", "guaranteed returns")
    False
    """
    own = words(claim)
    wanted = [word.text for word in own if word.kind in _CONTENT]
    if not wanted or _asked(sentence):
        return False
    known = {word.text for word in own}
    cuts = [cut.span() for cut in _CUT.finditer(sentence) if cut[0].lower() not in known]
    begins, stops = [0, *(b for _, b in cuts)], [*(a for a, _ in cuts), len(sentence)]
    stretches = zip(begins, stops, strict=True)
    # One word says little by itself, so all that is around it must be there as well.
    together = _stand_together if len(wanted) > 1 else _stand_as_written
    sought = wanted if len(wanted) > 1 else [word.text for word in own]
    return any(
        together(sought, sentence[begin:stop]) and _asserted(sentence, begin, stop, claim)
        for begin, stop in stretches
    )


def _stand_together(wanted: Sequence[str], stretch: str) -> bool:
    """True if all words stand in a stretch, with no more others between than they are."""
    there = [word.text for word in words(stretch) if word.kind in _CONTENT]
    size = 2 * len(wanted)
    return any(
        all(any(related(one, word) for word in there[at : at + size]) for one in wanted)
        for at in range(max(1, len(there) - size + 1))
    )


def _stand_as_written(wanted: Sequence[str], stretch: str) -> bool:
    there = [word.text for word in words(stretch)]
    return f" {' '.join(wanted)} " in f" {' '.join(there)} "


def _asserted(sentence: str, begin: int, stop: int, claim: str) -> bool:
    """True if what stands in a stretch is neither supposed nor denied by what is around it."""
    before, after = sentence[:begin], sentence[stop:]
    # "If you join, …": what follows the condition is said.
    supposed = _SUPPOSED.match(sentence) and "," not in before
    # "…, no questions asked", "… with no risk": what is lacking is something else.
    scope = _LACKING_BEFORE.sub("", before) + sentence[begin:stop] + _LACKING.sub("", after)
    return not supposed and _negated(scope) == _negated(claim)


def says(sentence: str, claim: str) -> bool:
    """True if a sentence can make a claim: asserted, as often negated, with the same numbers.

    >>> says("It does not cure colds.", "It cures colds."), says("It cures colds.", "It cures flu.")
    (False, True)
    """
    if _asked(sentence) or _SUPPOSED.match(sentence) or _negated(sentence) != _negated(claim):
        return False
    mine, theirs = set(_NUMBER.findall(sentence)), set(_NUMBER.findall(claim))
    return not (mine and theirs) or bool(mine & theirs)


def _asked(sentence: str) -> bool:
    return sentence.rstrip(" \n\"'”’)").endswith("?")


def _negated(text: str) -> bool:
    return len(_NEGATION.findall(text.replace("’", "'"))) % 2 == 1


def _pieces(text: str) -> list[Sentence]:
    """The sentences of a text, and the clauses of those that have several."""
    found = []
    for one in sentences(text):
        # A clause of a question does not show that it is asked.
        cuts = [] if _asked(one.text) else [m.span() for m in _CLAUSES.finditer(one.text)]
        begins, stops = [0, *(b for _, b in cuts)], [*(a for a, _ in cuts), len(one.text)]
        parts = [
            Sentence(one.text[a:b], one.start + a, one.start + b) for a, b in zip(begins, stops, strict=True)
        ]
        found += [one, *parts] if cuts else [one]
    return found


def _letters(text: str) -> int:
    return sum(map(str.isalpha, text))


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
                from proctor.core.threads import in_thread

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
        hits = [finding("pattern", text, *place) for pattern in patterns for place in find_all(pattern, text)]
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
    from proctor.evaluators.judges.judge import Judge, View
    from proctor.evaluators.judges.scale import Labels
    from proctor.evaluators.judges.templates import shipped

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
        findings = [{"kind": "claim", **shown} for shown, one in zip(told, nearest, strict=True) if one.made]
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
    from proctor.evaluators.judges.claims import CHECK, Claim, check
    from proctor.evaluators.judges.judge import failed
    from proctor.evaluators.judges.templates import shipped

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
    from proctor.evaluators.judges.judge import Judge, View
    from proctor.evaluators.judges.scale import Labels
    from proctor.evaluators.judges.templates import shipped

    scale = Labels("verdict", {"kept": 1.0, "broken": 0.0}, passing=frozenset({"kept"}))
    view = View(reference=False)
    asked = Judge(judge, shipped("compliance-policy"), scale, {"policy": text}, view=view)

    async def check(case: Case) -> Ruling:
        score = await asked.score(case.text, case.sample)
        return _by_score(score, score.passed if score.ok else None)

    return check


def scored(evaluator: Any, name: str) -> Policy:
    """A policy that is a function or another evaluator: it is kept if that passes."""
    from proctor.evaluators.attached import attach
    from proctor.evaluators.combination import score_later

    part = attach(evaluator, name=name)

    async def check(case: Case) -> Ruling:
        score = await score_later(part, Trial(case.sample, case.output))
        kept = score.passed if score.ok else None
        reason = score.reason or ("it passes" if kept else "it does not pass")
        return Ruling(kept, reason, "function", skipped=score.status == "skipped", more=_details(score))

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
