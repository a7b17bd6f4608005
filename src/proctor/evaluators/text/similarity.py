"""Likeness: which of several texts mean most nearly the same, whole or in part."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from proctor.evaluators.language import INSTEAD, symbols_in
from proctor.evaluators.meanings import Meanings, aside, cosine
from proctor.evaluators.plain_values import plain_value
from proctor.evaluators.verdict import shown
from proctor.evaluators.wording import english, folded, texts_in, words
from proctor.records import codec
from proctor.records.score import Score

# A reference of more words is compared as a whole: an excerpt of that size is a text of its own.
LONGEST_REFERENCE = 12
# Texts that have at least so many times the words of the reference have excerpts.
LONGER_BY = 1.5
# What comes after so many characters of a text is not looked at.
MOST_CHARACTERS = 200_000
# How many words fewer or more than the reference an excerpt may have.
_FEWER, _MORE = 1, 2
_RUNS = (2, 3, 4)
# A negation so many words before an excerpt, in the same clause, denies it.
_NEGATION_REACHES = 4
_CLAUSE_END = re.compile(r"[.!?;:,\n]+(?=\s|\Z)")
_ENDS_NEGATION = frozenset({"but", "only"})


class Excerpt(NamedTuple):
    """Some words of a text, which reference they look like, and how much, by their letters."""

    alike: float
    text: str
    reference: int


def excerpts(text: str, references: Iterable[tuple[int, str]], most: int = 2) -> list[Excerpt]:
    """The excerpts of a text that look most like one of the references, each by its number.

    What a negation stands before ("not Paris") is no excerpt, unless the reference has one too.

    >>> excerpts("In 1813 it was written by Jane Austen.", [(0, "Jane Austin")])[0].text
    'jane austen'
    """
    there, negated = _words_and_negated(text)
    found = []
    for number, reference in references:
        wanted = [word.text for word in words(reference)]
        best = _best(there, wanted, frozenset() if _has_negation(wanted) else negated)
        if best[0] > 0:
            found.append(Excerpt(*best, number))
    return sorted(found, key=lambda one: -one.alike)[:most]


def is_negated(text: str, reference: str) -> bool:
    """True if a text has the words of a reference, each time behind a negation.

    >>> is_negated("It is certainly not Paris but Lyon.", "Paris")
    True
    >>> is_negated("It is not Lyon but Paris.", "Paris")
    False
    """
    there, negated = _words_and_negated(text)
    wanted = [word.text for word in words(reference)]
    if not negated or not wanted or _has_negation(wanted):
        return False
    size = len(wanted)
    starts = [
        start
        for start, word in enumerate(there)
        if word == wanted[0] and there[start : start + size] == wanted
    ]
    return bool(starts) and negated.issuperset(starts)


def _words_and_negated(text: str) -> tuple[list[str], frozenset[int]]:
    """The words of a text, and the places of those that a negation in their clause denies."""
    there: list[str] = []
    negated: set[int] = set()
    for clause in _CLAUSE_END.split(text[:MOST_CHARACTERS]):
        reaches = 0
        for word in words(clause):
            if word.text in _ENDS_NEGATION:
                reaches = 0
            if reaches:
                negated.add(len(there))
                reaches -= 1
            if word.kind == "negation":
                reaches = _NEGATION_REACHES
            there.append(word.text)
    return there, frozenset(negated)


def _has_negation(some: Iterable[str]) -> bool:
    return not english().negation.isdisjoint(some)


def has_excerpts(text: str, references: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    """Those of some references that are short beside a text.

    >>> has_excerpts("The capital of France is Paris.", [(0, "Paris"), (1, "France has Paris.")])
    [(0, 'Paris'), (1, 'France has Paris.')]
    """
    length = len(words(text[:MOST_CHARACTERS]))
    sized = [(len(words(reference)), number, reference) for number, reference in references]
    return [
        (number, reference)
        for size, number, reference in sized
        if 0 < size <= LONGEST_REFERENCE and length >= LONGER_BY * size
    ]


def _best(there: Sequence[str], wanted: Sequence[str], negated: frozenset[int]) -> tuple[float, str]:
    """How much the best excerpt looks like the wanted words, and that excerpt."""
    letters = frozenset[str]().union(*map(_runs, wanted))
    best, chosen = 0.0, ""
    # The most promising first, so that the others need not be looked at.
    for bound, start, size in sorted(_windows(there, letters, len(wanted)), key=_promise):
        if bound <= best:
            break
        if start in negated:
            continue
        part = there[start : start + size]
        mine = frozenset[str]().union(*map(_runs, part))
        alike = len(mine & letters) / math.sqrt(len(mine) * len(letters))
        if alike > best:
            best, chosen = alike, " ".join(part)
    return best, chosen


def _windows(there: Sequence[str], letters: frozenset[str], wanted: int) -> Iterator[tuple[float, int, int]]:
    """Where an excerpt may stand: how much it can look like the reference at most, start, size."""
    known = {word: len(_runs(word) & letters) for word in set(there)}
    shared = [known[word] for word in there]
    for size in range(max(1, wanted - _FEWER), wanted + _MORE + 1):
        for start in range(len(there) - size + 1):
            end = start + size
            # It begins and ends with something of the reference; else a shorter one is as good.
            if shared[start] and shared[end - 1]:
                most = min(len(letters), sum(shared[start:end]))
                yield math.sqrt(most / len(letters)), start, size


def _promise(window: tuple[float, int, int]) -> tuple[float, int, int]:
    bound, start, size = window
    return -bound, size, start


@functools.lru_cache(maxsize=65536)
def _runs(word: str) -> frozenset[str]:
    """The runs of letters in a word, its ends among them."""
    framed = f" {word} "
    return frozenset(framed[at : at + size] for size in _RUNS for at in range(len(framed) - size + 1))


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
    answers: Mapping[int, str], references: Mapping[int, str], meanings: Meanings, inside: bool | None = None
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
        Likeness(cosine(vectors[part or answers[place]], vectors[references[number]]), place, number, part)
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
