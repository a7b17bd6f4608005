"""Texts in which one group of people stands for another, and nothing else is changed."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from proctor.evaluators.identities.groups import PRONOUNS, Group, groups

GENDER = "gender"
MOST = 3
_WORD_AFTER = re.compile(r"\s+([^\W\d_]+(?:['’-][^\W\d_]+)*)")
_WORD_BEFORE = re.compile(r"([^\W\d_]+)\s+$")
_ARTICLES = frozenset({"a", "an", "the", "every", "any", "each", "another", "one", "this", "that"})
_SOUNDS_CLOSED = re.compile(r"eu|uk|uni|one", re.IGNORECASE)


class Swap(NamedTuple):
    """One way to swap: within which axis, and by how many places its groups move on."""

    axis: str
    shift: int = 1


class Swapped(NamedTuple):
    """A text with groups swapped: along which axis, and every word that changed."""

    text: str
    axis: str
    changed: tuple[tuple[str, str], ...]


def swaps(text: str, *, most: int = MOST) -> list[Swapped]:
    """The same text about other people: men for women, and one religion, race, nationality,
    orientation, gender identity, disability or age for another.

    Gender gives one variant, every other axis that the text names at most `most`. Different groups
    stay different, the case of letters and "a" or "an" are kept right, and "her" becomes "him" or
    "his" by what follows it. Words with other meanings ("black", "straight") are swapped only
    before a word for people. First names are left alone, and so is what no list can know.

    >>> [one.text for one in swaps("She gave her husband a book, and he thanked her.")]
    ['He gave his wife a book, and she thanked him.']
    >>> swaps("An atheist met a Jewish man.", most=1)[1].text
    'A Christian met a Hindu man.'
    >>> swaps("The black car is fast.")
    []
    """
    return [found for one in ways(text, most=most) if (found := swapped(text, one)).changed]


def ways(*texts: str, most: int = MOST) -> list[Swap]:
    """The swaps that change any of the texts."""
    named = {_forms()[_usual(match)].axis for text in texts for match in _pattern().finditer(text)}
    return [
        Swap(axis, shift)
        for axis in (GENDER, *groups().axes)
        if axis in named and any(swapped(text, Swap(axis)).changed for text in texts)
        for shift in _shifts(axis, most)
    ]


def swapped(text: str, way: Swap) -> Swapped:
    """A text with one swap made; nothing is changed in it if it names no such group."""
    changed: list[tuple[str, str]] = []

    def put(match: re.Match[str]) -> str:
        old = match["form"]
        other = _other(match, way)
        if other is None:
            return match[0]
        new = _in_case_of(old, *other)
        changed.append((old, new))
        article = match["article"]
        return f"{_article(article, new)}{match['space']}{new}" if article else new

    return Swapped(_pattern().sub(put, text), way.axis, tuple(changed))


def swapped_in(value: Any, way: Swap) -> Any:
    """A value with one swap made in every text inside it."""
    if isinstance(value, str):
        return swapped(value, way).text
    if isinstance(value, dict):
        return {key: swapped_in(item, way) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [swapped_in(item, way) for item in value]
    return value


def _shifts(axis: str, most: int) -> list[int]:
    """How far the groups of an axis move on: so many shifts, far apart."""
    if axis == GENDER:
        return [1]
    others = len(groups().axes[axis]) - 1
    count = min(most, others)
    return [1 + place * others // count for place in range(count)]


class _Form(NamedTuple):
    """Where a word comes from: its axis, its group's place in it, and the form it is."""

    axis: str
    place: int = 0
    form: str = ""


@functools.cache
def _forms() -> dict[str, _Form]:
    """Every word and phrase in small letters; an adjective that is also a noun is the adjective."""
    known = groups()
    found = {word: _Form(GENDER) for word in (*PRONOUNS, *sum(known.pairs, ()))}
    for axis, members in known.axes.items():
        for place, group in enumerate(members):
            found |= {word.lower(): _Form(axis, place, form) for form, word in group.forms()}
    return found


@functools.cache
def _pattern() -> re.Pattern[str]:
    listed = "|".join(map(re.escape, sorted(_forms(), key=len, reverse=True)))
    listed = listed.replace(r"\ ", r"\s+")
    return re.compile(
        rf"(?:\b(?P<article>an?)(?P<space>\s+))?(?<![\w-])(?P<form>{listed})(?!\w)", re.IGNORECASE
    )


def _other(match: re.Match[str], way: Swap) -> tuple[str, str] | None:
    """How the old word is usually written, and the new one; None if it stays."""
    old = _usual(match)
    known = _forms()[old]
    if known.axis != way.axis:
        return None
    if known.axis == GENDER:
        return old, (_PRONOUNS.get(old) or _paired)(match, old)
    members = groups().axes[known.axis]
    mine, theirs = members[known.place], members[(known.place + way.shift) % len(members)]
    form = _form(match, mine, known.form)
    new = theirs.called(form) if form else ""
    return (mine.called(form), new) if new else None


def _usual(match: re.Match[str]) -> str:
    """The word or phrase that was found, as the lists have it."""
    return " ".join(match["form"].lower().split())


def _form(match: re.Match[str], group: Group, form: str) -> str:
    """The form that a word is in, in this place; empty for a word that means something else."""
    if form != "is_":
        return form
    after = _after(match)
    if group.loose:
        return form if after in groups().people else ""
    if group.one.lower() != group.is_.lower():
        return form
    before = match["article"] or _before(match)
    ends = not after or after in groups().closing
    return "one" if ends and before.lower() in _ARTICLES else form


def _after(match: re.Match[str]) -> str:
    """The next word in small letters; empty where the phrase ends."""
    found = _WORD_AFTER.match(match.string, match.end())
    return found[1].lower() if found else ""


def _before(match: re.Match[str]) -> str:
    found = _WORD_BEFORE.search(match.string, max(0, match.start() - 40), match.start("form"))
    return found[1].lower() if found else ""


@functools.cache
def _pairs() -> dict[str, str]:
    both = [pair for one, two in groups().pairs for pair in ((one, two), (two, one))]
    return dict(both)


def _paired(match: re.Match[str], old: str) -> str:  # noqa: ARG001 - called like the pronouns
    return _pairs()[old]


def _of_her(match: re.Match[str], old: str) -> str:  # noqa: ARG001
    """His before what she has, him where she is the object."""
    known, after = groups(), _after(match)
    if not after or after in known.closing:
        return "him"
    if _before(match) in known.giving:
        further = _WORD_AFTER.match(match.string, match.end())
        second = _WORD_AFTER.match(match.string, further.end()) if further else None
        two_things = second is not None and second[1].lower() in ("a", "an", "the", "some", "her")
        return "his" if two_things else "him"
    return "his"


def _of_his(match: re.Match[str], old: str) -> str:  # noqa: ARG001
    after = _after(match)
    return "her" if after and after not in groups().closing else "hers"


def _always(word: str) -> Callable[[re.Match[str], str], str]:
    return lambda match, old: word  # noqa: ARG005


_PRONOUNS: dict[str, Callable[[re.Match[str], str], str]] = {
    "he": _always("she"),
    "she": _always("he"),
    "him": _always("her"),
    "himself": _always("herself"),
    "herself": _always("himself"),
    "hers": _always("his"),
    "her": _of_her,
    "his": _of_his,
}


def _in_case_of(found: str, usual: str, new: str) -> str:
    """The new word in the case of the one that was found, seen from how that is usually written."""
    if found.isupper() and len(found) > 1 and not usual.isupper():
        return new.upper()
    if found == usual:
        return new
    if found == usual.lower():
        return new.lower()
    return new[0].upper() + new[1:]


def _article(found: str, following: str) -> str:
    """ "a" or "an", in the case of the one that was found."""
    vowel = following[0].lower() in "aeiou" and not _SOUNDS_CLOSED.match(following)
    article = "an" if vowel else "a"
    return article.capitalize() if found[0].isupper() else article
