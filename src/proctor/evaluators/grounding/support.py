"""Support: how much of each sentence stands in a context, and what does not.

Every word of a sentence counts by its kind. It is supported if it, or another form of it, stands
in the passages of the context that fit the sentence best; a word that does not may still be near
in meaning to one that does. Numbers, names, negations and words for the speaker have no
paraphrase, and weigh more. Who changes a number or a name, or denies what the context says, has
said something else, however many words are shared: such a sentence is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from proctor.evaluators.aside import aside
from proctor.evaluators.grounding.denial import agrees, denials, left_out, states
from proctor.evaluators.grounding.exclusive import replaced_words, same_measures
from proctor.evaluators.grounding.opposites import changed_measures, opposites
from proctor.evaluators.grounding.source import Passage, Source
from proctor.evaluators.grounding.stated import stated
from proctor.evaluators.meanings import UNRELATED_WORDS, Meanings, Nearness
from proctor.evaluators.wording import Kind, Word, sentences

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
