"""Likeness: which of several texts mean most nearly the same, whole or in part."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from proctor import codec
from proctor.evaluators.aside import aside
from proctor.evaluators.excerpts import MOST_CHARACTERS, excerpts, has_excerpts, is_negated
from proctor.evaluators.language import INSTEAD, symbols_in
from proctor.evaluators.meanings import Meanings, cosine
from proctor.evaluators.plain_values import plain_value
from proctor.evaluators.verdict import shown
from proctor.evaluators.wording import folded, texts_in
from proctor.records.score import Score

# Of more ways to say the same, those that look least like the answer are not worth embedding.
MOST_REFERENCES = 8
# So much of a text may be words that the embedder cannot tell apart, if both have some, or one.
MOST_UNKNOWN, MOST_UNKNOWN_ON_ONE_SIDE = 0.05, 0.4
SAME_VECTOR = 1 - 1e-6
NOTHING_EXPECTED = "there is nothing to compare with: what is expected is empty"

Match = Literal["any"]


class Likeness(NamedTuple):
    """The nearest answer and reference, by their places, and the excerpt if it is what is near."""

    cosine: float
    answer: int
    reference: int
    excerpt: str = ""


class Alike:
    """The output and the reference, compared by the cosine of their embeddings."""

    def __init__(
        self, meanings: Meanings, threshold: float, inside: bool | None, match: Match | None = None
    ) -> None:
        self._meanings, self._threshold, self._inside = meanings, threshold, inside
        self._match = match
        self.given = meanings.given

    async def score(self, output: Any, beside: Any = None) -> Score:
        """The cosine of the nearest two texts; lists of texts are compared item by item."""
        outputs = None if self._match == "any" else list_of_texts(output)
        if outputs is None:
            return await self._nearest(output, beside)
        wanted = list_of_texts(beside)
        if wanted is None:
            return await self._nearest("\n".join(outputs), beside)
        if len(outputs) != len(wanted):
            return Score(0.0, False, f"{len(outputs)} texts, expected {len(wanted)}", self._details)
        if not wanted:
            return Score.skipped(NOTHING_EXPECTED)
        scores = [await self._nearest(*pair) for pair in zip(outputs, wanted, strict=True)]
        undecided = next((score for score in scores if not score.ok), None)
        # An item that failed decides, whatever the others are.
        if undecided is not None and all(score.passed for score in scores if score.ok):
            return undecided
        place = min(
            (place for place, score in enumerate(scores) if score.ok),
            key=lambda place: scores[place].value or 0.0,
        )
        worst = scores[place]
        return msgspec.structs.replace(worst, reason=f"item {place}: {worst.reason}")

    @property
    def _details(self) -> dict[str, Any]:
        return self._meanings.details

    async def _nearest(self, output: Any, beside: Any) -> Score:
        """The cosine of the nearest two texts; what is empty has nothing to compare."""
        answers, references = texts_of(output), texts_of(beside)
        details = self._details
        if not references:
            return Score.skipped(NOTHING_EXPECTED)
        if not answers:
            return Score(0.0, False, "the output is empty", details)
        if same := set(answers.values()) & set(references.values()):
            details["cosine"] = 1.0
            return Score(1.0, True, f"identical to {shown(min(same))}", details)
        problem, unread = self._readable(answers, references, output, beside)
        if problem:
            return Score.skipped(problem, details)
        found = await likeness(answers, references, self._meanings, self._inside)
        details["cosine"] = found.cosine
        if len(answers) > 1:
            details["answer"] = found.answer
        longest = max(map(len, answers.values()))
        if self._inside is not False and longest > MOST_CHARACTERS:
            details["characters_without_excerpts"] = longest - MOST_CHARACTERS
        if len(references) > 1:
            details["reference"] = found.reference
        compared_text = found.excerpt or answers[found.answer]
        problem = self._indistinct(found.cosine, compared_text, references[found.reference])
        if problem:
            return Score.skipped(problem, details)
        score = self._verdict(found, references[found.reference], details)
        if score.passed and is_negated(answers[found.answer], references[found.reference]):
            wanted = shown(references[found.reference])
            return Score.skipped(f"the output has {wanted} only behind a negation", details)
        # One of the others might have been the one that fits.
        return Score.skipped(unread, details) if unread and not score.passed else score

    def _verdict(self, found: Likeness, wanted: str, details: dict[str, Any]) -> Score:
        part = ""
        if found.excerpt:
            details["excerpt"] = found.excerpt
            part = f" of {shown(found.excerpt)} in it"
        compared = "letters only: cosine" if self._meanings.method == "lexical" else "cosine"
        value = max(0.0, found.cosine)
        reason = f"{compared} {found.cosine:.3f}{part} with {shown(wanted)}"
        return Score(value, value >= self._threshold, reason, details)

    def _readable(
        self, answers: dict[int, str], references: dict[int, str], output: Any, beside: Any
    ) -> tuple[str, str]:
        """Leave out the texts that cannot be read; why none is left, or why some were left out."""
        unread = ""
        for texts, value in ((answers, output), (references, beside)):
            listed = texts if list_of_texts(value) is not None else {}
            for place in list(texts):
                read = [listed[place]] if place in listed else texts_in_data(value)
                problem = self._meanings.unreadable(read, by_letters=True)
                if problem:
                    unread = unread or problem
                    del texts[place]
            if not texts:
                return unread, unread
        return "", unread

    def _indistinct(self, found: float, text: str, reference: str) -> str:
        """Why two different texts only look alike to the embedder; "" if they do not."""
        if found < self._threshold:
            return ""
        left, right = (self._meanings.unknown_words(one) for one in (text, reference))
        if left != right:
            share = max(_share(left, text), _share(right, reference))
            if share >= (MOST_UNKNOWN if left and right else MOST_UNKNOWN_ON_ONE_SIDE):
                unknown = ", ".join(sorted(left ^ right)[:5])
                return f"{self._meanings.live.name} does not know {unknown}; {INSTEAD}"
        if found > SAME_VECTOR and _tokens(text) != _tokens(reference):
            name = self._meanings.live.name
            return f"{name} gives these different texts the same vector; {INSTEAD}"
        return ""


def _share(unknown: Collection[str], text: str) -> float:
    return len(unknown) / max(1, len(text.split()))


def _tokens(text: str) -> list[str]:
    """The words and symbols of a text, in no order."""
    return sorted([*re.findall(r"\w+", folded(text)), *symbols_in(text)])


def list_of_texts(value: Any) -> list[str] | None:
    """A list of texts as it is; None for anything else.

    >>> list_of_texts(("a", "b")), list_of_texts("a"), list_of_texts([1])
    (['a', 'b'], None, None)
    """
    value = plain_value(value)
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return list(value)
    return None


def texts_in_data(value: Any) -> list[str]:
    """The texts to be read in a value: of mappings and JSON, what stands in them."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError:
            return [value]
    listed = list_of_texts(value)
    if listed is not None:
        return listed
    return ["\n".join(texts_in(codec.plain(value)))]


def texts_of(value: Any) -> dict[int, str]:
    """The texts in a value, by their place: itself, each of a list, or anything else as JSON.

    Empty ones are left out: they mean nothing, and endpoints refuse them.

    >>> texts_of(["a", "", "b"]), texts_of({"city": "Oslo"})
    ({0: 'a', 2: 'b'}, {0: '{"city":"Oslo"}'})
    """
    if value is None:
        return {}
    texts = list_of_texts(value)
    if texts is None:
        value = plain_value(value)
        texts = [value if isinstance(value, str) else codec.canonical(value).decode()]
    return {place: text for place, text in enumerate(texts) if text.strip()}


async def likeness(
    answers: Mapping[int, str],
    references: Mapping[int, str],
    meanings: Meanings,
    inside: bool | None = None,
) -> Likeness:
    """Compare every answer with every reference, of many with those that look most like it.

    `inside` looks for the references inside the answers too: True and False always and never,
    None where the reference is short and the answer is not.
    """
    pairs: list[tuple[int, str, int]] = []
    for place, text in answers.items():
        size = len(text) + sum(map(len, references.values()))
        pairs += await aside(size, _pairs, place, text, references, inside)
    compared = {part or answers[place] for place, part, _ in pairs}
    vectors = await meanings.vectors([*compared, *(references[n] for *_, n in pairs)])
    found = (
        Likeness(
            cosine(vectors[part or answers[place]], vectors[references[number]]),
            place,
            number,
            part,
        )
        for place, part, number in pairs
    )
    return max(found, key=lambda one: one.cosine)


def _pairs(
    place: int, text: str, references: Mapping[int, str], inside: bool | None
) -> list[tuple[int, str, int]]:
    """What of an answer is compared with which reference: the whole, or an excerpt."""
    chosen = _most_alike(text, references)
    listed = [(number, references[number]) for number in chosen]
    if inside is None:
        listed = has_excerpts(text, listed)
    found = excerpts(text, listed) if inside is not False else []
    whole = [(place, "", number) for number in chosen]
    return [*whole, *((place, part.text, part.reference) for part in found)]


def _most_alike(text: str, references: Mapping[int, str]) -> list[int]:
    """The numbers of the references that look most like some part of a text."""
    if len(references) <= MOST_REFERENCES:
        return list(references)
    alike = [one.reference for one in excerpts(text, references.items(), MOST_REFERENCES)]
    return list(dict.fromkeys([*alike, *references]))[:MOST_REFERENCES]
