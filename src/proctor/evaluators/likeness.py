"""Likeness: which of several texts mean most nearly the same, whole or in part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from proctor import codec
from proctor.evaluators.aside import aside
from proctor.evaluators.excerpts import MOST_CHARACTERS, excerpts, has_excerpts
from proctor.evaluators.meanings import Meanings, cosine
from proctor.evaluators.verdict import shown
from proctor.records.score import Score

# Of more ways to say the same, those that look least like the answer are not worth embedding.
MOST_REFERENCES = 8


class Likeness(NamedTuple):
    """The nearest answer and reference, by their places, and the excerpt if it is what is near."""

    cosine: float
    answer: int
    reference: int
    excerpt: str = ""


class Alike:
    """The output and the reference, compared by the cosine of their embeddings."""

    def __init__(self, meanings: Meanings, threshold: float, inside: bool | None) -> None:
        self._meanings, self._threshold, self._inside = meanings, threshold, inside
        self.given = meanings.given

    async def score(self, output: Any, beside: Any = None) -> Score:
        """The cosine of the nearest two texts; what is empty has nothing to compare."""
        answers, references = texts_of(output), texts_of(beside)
        details = self._meanings.details
        if not references:
            return Score.skipped("there is nothing to compare with: what is expected is empty")
        if not answers:
            return Score(0.0, False, "the output is empty", details)
        found = await likeness(answers, references, self._meanings, self._inside)
        details["cosine"] = found.cosine
        if len(answers) > 1:
            details["answer"] = found.answer
        longest = max(map(len, answers.values()))
        if self._inside is not False and longest > MOST_CHARACTERS:
            details["characters_without_excerpts"] = longest - MOST_CHARACTERS
        if len(references) > 1:
            details["reference"] = found.reference
        part = ""
        if found.excerpt:
            details["excerpt"] = found.excerpt
            part = f" of {shown(found.excerpt)} in it"
        compared = "letters only: cosine" if self._meanings.method == "lexical" else "cosine"
        wanted = shown(references[found.reference])
        value = max(0.0, found.cosine)
        reason = f"{compared} {found.cosine:.3f}{part} with {wanted}"
        return Score(value, value >= self._threshold, reason, details)


def texts_of(value: Any) -> dict[int, str]:
    """The texts in a value, by their place: itself, each of a list, or anything else as JSON.

    Empty ones are left out: they mean nothing, and endpoints refuse them.

    >>> texts_of(["a", "", "b"]), texts_of({"city": "Oslo"})
    ({0: 'a', 2: 'b'}, {0: '{"city":"Oslo"}'})
    """
    if value is None:
        return {}
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        texts = list(value)
    else:
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
