"""Support: how much of each sentence stands in a context, and what does not.

Every word of a sentence counts by its kind. It is supported if it, or another form of it, stands
in the passages of the context that fit the sentence best; a word that does not may still be near
in meaning to one that does. Numbers, names, negations and words for the speaker have no
paraphrase, and weigh more. Who changes a number or a name, or denies what the context says, has
said something else, however many words are shared: such a sentence is wrong.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from proctor.evaluators.grounding.exclusive import replaced_words, same_measures
from proctor.evaluators.grounding.opposites import changed_measures, opposites
from proctor.evaluators.language import is_english_word
from proctor.evaluators.meanings import UNRELATED_WORDS, Meanings, Nearness, aside
from proctor.evaluators.wording import Kind, Word, english, folded, related, sentences, words

_REACHES = 5
_MOST_DENIED = 2
_MEANING = ("content", "name", "number")


class Denial(NamedTuple):
    """A negation, and the words that it denies."""

    word: Word
    of: tuple[Word, ...]


def denials(sentence: Sequence[Word]) -> list[Denial]:
    """Every negation in a sentence with the words it most likely denies.

    These are the next one or two that have a meaning, up to a little word; where there are none,
    the last one before it.

    >>> from proctor.evaluators.wording import words
    >>> [found] = denials(words("Bergen is not the capital of Norway"))
    >>> [word.text for word in found.of]
    ['capital']
    """
    found = []
    for place, word in enumerate(sentence):
        if word.kind != "negation":
            continue
        after = sentence[place + 1 : place + 1 + _REACHES]
        if after and _is_none(word, after[0]):
            continue
        before = [one for one in sentence[:place] if one.kind in _MEANING][-1:]
        found.append(Denial(word, tuple(_is_denied(after) or before)))
    return found


def agrees(denial: Denial, others: Iterable[Denial]) -> bool:
    """True if one of the others denies one of the same words."""
    return any(_same(mine, theirs) for other in others for mine in denial.of for theirs in other.of)


def states(passage: Sequence[Word], denial: Denial) -> list[Word]:
    """The words of a denial that a passage has, without a word before them that may deny them."""
    return [
        mine
        for mine in denial.of
        if any(
            _same(mine, theirs) and not _may_deny(passage[max(0, place - _REACHES) : place])
            for place, theirs in enumerate(passage)
        )
    ]


def left_out(sentence: Sequence[Word], passage: Sequence[Word]) -> list[Word]:
    """The words that a sentence states while a passage denies them, and does not state them too."""
    theirs = denials(passage)
    if not theirs or _may_deny(sentence):
        return []
    denied = [word for one in theirs for word in one.of]
    mine = denials(sentence)
    if any(agrees(one, theirs) for one in mine):
        return []
    # What is stated in one half of the passage may be denied in the other.
    once = [word for word in denied if sum(_same(word, other) for other in passage) == 1]
    return [word for word in sentence if word.kind in _MEANING and any(_same(word, other) for other in once)]


def _may_deny(some: Iterable[Word]) -> bool:
    return any(word.text in english().denying for word in some)


def _is_none(word: Word, after: Word) -> bool:
    """True for "not only", which denies nothing, and for "No. 5"."""
    return after.text in english().not_a_negation_before or (word.text == "no" and after.kind == "number")


def _is_denied(after: Sequence[Word]) -> list[Word]:
    found: list[Word] = []
    for word in after:
        if word.kind in _MEANING:
            found.append(word)
        elif found and word.text not in english().articles:
            break
    return found[:_MOST_DENIED]


def _same(one: Word, other: Word) -> bool:
    return other.kind in _MEANING and related(one.text, other.text)


# [1], [2, 3], [4-6], [^1], 【1】, and small raised figures.
_CITED = re.compile(r"\[\^?[0-9]{1,3}(?:\s*[,;–-]\s*[0-9]{1,3})*\]|【[^】]*】|[⁰¹²³⁴-⁹]+")
_LIST_NUMBER = re.compile(r"^\W*\(?[0-9]{1,2}[.)]\s+(?=\S)")
_HEADING = re.compile(r"^\s*#")
# A courtesy is short, and does not go on to say something.
_LONGEST_COURTESY = 14
# "Yes, it is", "I do".
_SAYS_NOTHING = ("function", "speaker")
_SHORTEST_NAME = 3
_ORDINARY_END = re.compile(r"(?:(?<![suia])s|\w{3}(?:ing|ed|ly))\Z")
_GOES_ON = frozenset({"but", "that", "because", "however"})


def stated(sentence: str) -> list[Word]:
    """The words of a sentence that states something; none if it does not.

    >>> [word.text for word in stated("1. Sure! Oslo is old [2].")]
    ['oslo', 'is', 'old']
    >>> stated("Here is what I found:"), stated("I don't know.")
    ([], [])
    """
    bare = _LIST_NUMBER.sub("", _CITED.sub(" ", sentence))
    bare = _openings().sub("", bare)
    found = words(bare)
    if _is_courtesy(bare, found) or all(word.kind in _SAYS_NOTHING for word in found):
        return []
    if _HEADING.match(sentence) or sentence.isupper():
        # They have capitals where there are no names.
        return [word._replace(kind="content") if word.kind == "name" else word for word in found]
    return [word._replace(kind="name") if _is_name(word) else word for word in found]


def _is_name(word: Word) -> bool:
    """True for a capitalised word at the beginning that is no ordinary English word."""
    if word.kind != "content" or not word.written[0].isupper() or len(word.text) < _SHORTEST_NAME:
        return False
    if word.text in english().proper_names:
        return True
    # A rare word in the plural or with the ending of a verb is no name: "Felines", "Ferreting".
    return _ORDINARY_END.search(word.text) is None and not is_english_word(word.text)


def _is_courtesy(sentence: str, found: list[Word]) -> bool:
    if len(found) > _LONGEST_COURTESY or any(
        word.kind in ("name", "number") or word.text in _GOES_ON for word in found
    ):
        return False
    plain = folded(sentence).replace("’", "'").replace(" n't", "n't")
    start = " ".join([*re.findall(r"[^\W_]+", plain), ""])
    return any(start.startswith(f"{phrase} ") for phrase in english().courtesies)


@functools.cache
def _openings() -> re.Pattern[str]:
    """Words of courtesy before the first sign."""
    listed = "|".join(phrase.replace(" ", r"[\s'’]+") for phrase in english().openings)
    sign = r"(?:[,.!:;–—-]+\s*|$|(?=but\b))(?:but\b)?"
    return re.compile(rf"^\W*(?:(?:{listed})\s*{sign}\s*)+", re.IGNORECASE)


# A sentence may put together what stands in so many places of the context.
MOST_PASSAGES = 3
# What stands in more passages than these does not tell one from another.
COMMON = 200
_START = 3
_LONGEST_ACRONYM = 6


class Passage:
    """One sentence of the context."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = words(text)

    @functools.cached_property
    def content(self) -> frozenset[str]:
        """Its words that have a meaning of their own."""
        return frozenset(w.text for w in self.words if w.kind in ("content", "name"))

    @functools.cached_property
    def acronyms(self) -> frozenset[str]:
        """What its words could be shortened to: "us" for "United States".

        They begin with a capital, but for little words among them.
        """
        initials = [word[0] for word in re.findall(r"\w+", self.text)]
        return frozenset(
            "".join(initials[start : start + length]).lower()
            for length in range(2, _LONGEST_ACRONYM + 1)
            for start in range(len(initials) - length + 1)
            if initials[start].isupper() and initials[start + length - 1].isupper()
        )


class Source:
    """A context: its sentences, and where each word stands.

    >>> source = Source(["Oslo is the capital of Norway. It is old.", "Bergen is wet."])
    >>> source.best({word: 1.0 for word in words("Bergen, Norway")})
    [2, 0]
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self.passages = [Passage(one) for text in texts for one in sentences(text)]
        self._places: dict[str, set[int]] = defaultdict(set)
        self._beginning: dict[str, set[str]] = defaultdict(set)
        for place, passage in enumerate(self.passages):
            for word in passage.words:
                self._places[word.text].add(place)
                if word.kind in ("content", "name"):
                    self._beginning[word.text[:_START]].add(word.text)
        self._known: dict[Word, Set[int]] = {}

    def where(self, word: Word) -> Set[int]:
        """The numbers of the passages that have a word, or another form of it."""
        found = self._known.get(word)
        if found is None:
            found = set(self._places.get(word.text, ()))
            if word.kind in ("content", "name"):
                for other in self._beginning.get(word.text[:_START], ()):
                    if related(word.text, other):
                        found |= self._places[other]
            self._known[word] = found
        return found

    def best(self, weights: Mapping[Word, float]) -> Sequence[int]:
        """The numbers of the few passages that together have most of some words, best first."""
        missing, chosen = dict(weights), list[int]()
        while missing and len(chosen) < MOST_PASSAGES:
            gain = self._gain(missing)
            if not gain:
                break
            # Of passages that have the same, the one that says least besides.
            place = max(gain, key=lambda one: (gain[one], -len(self.passages[one].words), -one))
            chosen.append(place)
            missing = {word: w for word, w in missing.items() if place not in self.where(word)}
        return chosen

    def _gain(self, missing: Mapping[Word, float]) -> Mapping[int, float]:
        """How much of the words the passages have, those with a telling word if there is one."""
        gain: dict[int, float] = defaultdict(float)
        common = []
        for word, weight in missing.items():
            places = self.where(word)
            if len(places) > COMMON:
                common.append((places, weight))
                continue
            for place in places:
                gain[place] += weight
        if common and not gain:
            # Only such words: any passage with the rarest of them will do.
            gain.update(dict.fromkeys(sorted(min(common, key=lambda one: len(one[0]))[0]), 0.0))
        for places, weight in common:
            for place in gain.keys() & places:
                gain[place] += weight
        return gain


WEIGHTS: Mapping[Kind, float] = {
    "function": 0.5,
    "content": 1.0,
    "number": 2.0,
    "name": 2.0,
    "speaker": 2.0,
    "negation": 2.0,
}
# From here on a word counts as meaning something like another one, from there on as the same.
SIMILAR, SAME = 0.25, 0.75
# Who says what the context denies has at most so much support, whatever words they share.
DENIED = 0.5
# What a wrong sentence is worth at most: below the usual threshold, whatever stands around it.
WRONG = 0.7
# A short sentence says little by itself: it is seen as if so much more of the text belonged to it.
SURROUNDINGS = 10.0
# Of longer texts the rest is not looked at, and the score says so.
MOST_SENTENCES = 2000


class Sentence(NamedTuple):
    """A sentence of the text: its words' weight, how much of it is supported, and what is not."""

    text: str
    weight: float
    supported: float
    unsupported: tuple[str, ...]
    passages: tuple[str, ...]
    wrong: bool = False

    @property
    def support(self) -> float:
        """The share of its weight that is supported."""
        return self.supported / self.weight


class Grounding(NamedTuple):
    """The sentences of a text, the share of it that is supported, and how many were left out."""

    sentences: Sequence[Sentence]
    overall: float
    left_out: int = 0

    @property
    def weakest(self) -> Sentence:
        """The sentence that is worth least, short ones seen together with the rest."""
        return min(self.sentences, key=self.worth)

    @property
    def value(self) -> float:
        """What the weakest sentence is worth."""
        return min(1.0, max(0.0, self.worth(self.weakest)))

    def worth(self, one: Sentence) -> float:
        """The support of a sentence and what stands around it; less if it is wrong."""
        seen = (one.supported + SURROUNDINGS * self.overall) / (one.weight + SURROUNDINGS)
        return seen * WRONG if one.wrong else seen


class _Draft(NamedTuple):
    """A sentence whose words were looked up, before meanings are compared."""

    text: str
    words: list[Word]
    passages: Sequence[Passage]
    missing: list[Word]
    denied: list[str]

    @property
    def open(self) -> list[Word]:
        """Missing words that another word might stand for."""
        return [word for word in self.missing if word.kind == "content"]

    @property
    def choice(self) -> set[str]:
        """The words that might stand for them."""
        return {text for passage in self.passages for text in passage.content}


async def ground(text: str, context: Sequence[str], meanings: Meanings) -> Grounding | None:
    """Look up what a text says in a context; None if it says nothing that could be looked up."""
    size = len(text) + sum(map(len, context))
    drafts, rest = await aside(size, _drafts, text, context)
    if all(word.kind == "function" for draft in drafts for word in draft.words):
        return None
    near = await _nearness(drafts, meanings, size)
    found = await aside(size, lambda: [_settled(draft, near) for draft in drafts])
    overall = sum(one.supported for one in found) / sum(one.weight for one in found)
    return Grounding(found, overall, rest)


def _drafts(text: str, context: Iterable[str]) -> tuple[list[_Draft], int]:
    """The sentences that state something, looked up, and how many were not looked at."""
    there, source = sentences(text), Source(context)
    found = [(one, stated(one)) for one in there[:MOST_SENTENCES]]
    drafts = [_draft(one, says, source) for one, says in found if says]
    return drafts, max(0, len(there) - MOST_SENTENCES)


def _draft(text: str, found: list[Word], source: Source) -> _Draft:
    places = source.best({word: WEIGHTS[word.kind] for word in found})
    passages = [source.passages[place] for place in places]
    there = {word.text for passage in passages for word in passage.words}
    known = {short for passage in passages for short in passage.acronyms}
    theirs = [word for passage in passages for word in passage.words]
    spelt = _spelt_out(found, passages) | same_measures(found, theirs)
    missing = [
        word
        for word in found
        if word.text not in there
        and not (word.written.isupper() and word.text.lower() in known)
        and word not in spelt
        and source.where(word).isdisjoint(places)
    ]
    unfounded, denied = _denied(found, passages)
    replaced = [*replaced_words(found, theirs), *opposites(found, theirs)]
    denied += [f"{word.written} (not {other.written})" for word, other in replaced]
    denied += [f"{said} (not {other})" for said, other in changed_measures(found, theirs)]
    return _Draft(text, found, passages, missing + unfounded, denied)


def _spelt_out(found: Sequence[Word], passages: Sequence[Passage]) -> set[Word]:
    """Words that the passages have as an acronym: "National Football League" for "NFL"."""
    short = {w.text for p in passages for w in p.words if w.written.isupper() and len(w.text) > 1}
    return {
        word
        for acronym in short
        for start in range(len(found) - len(acronym) + 1)
        if "".join(word.text[0] for word in found[start : start + len(acronym)]) == acronym
        for word in found[start : start + len(acronym)]
    }


def _denied(found: Sequence[Word], passages: Sequence[Passage]) -> tuple[list[Word], list[str]]:
    """Negations that the passages do not have there, and the words on which they disagree."""
    if not passages:
        return [], []
    theirs = [one for passage in passages for one in denials(passage.words)]
    unfounded, disagreed = [], []
    for denial in denials(found):
        if agrees(denial, theirs):
            continue
        # What stands in no passage at all is missing already.
        if any(denial.word.text == w.text for passage in passages for w in passage.words):
            unfounded.append(denial.word)
        stated_there = (word for passage in passages for word in states(passage.words, denial))
        disagreed += [f"{denial.word.written} {word.written}" for word in stated_there]
    disagreed += [f"(not) {word.written}" for word in left_out(found, passages[0].words)]
    return unfounded, disagreed


async def _nearness(drafts: Sequence[_Draft], meanings: Meanings, size: int) -> Nearness | None:
    """How near words are to each other; None where only their letters are known."""
    texts = {word.text for draft in drafts for word in draft.open if draft.choice}
    if meanings.method == "lexical":
        # Forms of a word have been looked for already, and letters know nothing else.
        await meanings.vectors(())
        return None
    if not texts:
        return None
    texts |= {text for draft in drafts if draft.open for text in draft.choice}
    vectors, floor = await meanings.vectors(texts), await meanings.floor(UNRELATED_WORDS)
    return await aside(size, Nearness, vectors, floor)


def _settled(draft: _Draft, near: Nearness | None) -> Sentence:
    weight = sum(WEIGHTS[word.kind] for word in draft.words)
    supported = weight - sum(WEIGHTS[word.kind] for word in draft.missing)
    unsupported = [word.written for word in draft.missing if word.kind != "function"]
    choice = draft.choice
    if near is not None and choice:
        open_words = draft.open
        nearest = near.nearest([word.text for word in open_words], sorted(choice))
        for word, nearness in zip(open_words, nearest, strict=True):
            credit = min(1.0, max(0.0, (nearness - SIMILAR) / (SAME - SIMILAR)))
            supported += credit * WEIGHTS[word.kind]
            if credit >= 0.5:
                unsupported.remove(word.written)
    if draft.denied:
        supported = min(supported, weight * DENIED)
        unsupported += draft.denied
    wrong = bool(draft.denied) or any(word.kind in ("number", "name") for word in draft.missing)
    places = tuple(passage.text for passage in draft.passages)
    told = tuple(dict.fromkeys(unsupported))
    return Sentence(draft.text, weight, supported, told, places, wrong)
