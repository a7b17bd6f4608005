"""The source: a context taken apart, so that the passages which bear a sentence out are found."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set

from proctor.evaluators.wording import Word, related, sentences, words

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
