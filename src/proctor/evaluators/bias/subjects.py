"""Whole groups of people in a sentence, as those it speaks of."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from proctor import resources
from proctor.evaluators.identities.groups import Group, groups

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|[,;:]")
_PLURALS = frozenset({"people", "men", "women", "children", "folk", "youth"})
# Words of the list of groups that end like plurals and are none.
_NOT_MANY = frozenset({"indigenous", "swiss"})
# What the names of peoples end with that are no plurals by their form.
_PEOPLES = ("ese", "ish", "ch", "sh", "ss")


class Subject(NamedTuple):
    """A whole group in a sentence: its words, where they are, and whether they are several."""

    name: str
    start: int
    end: int
    several: bool


class Frames(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words and sayings of `frames.yaml`."""

    some: frozenset[str]
    any: frozenset[str]
    be: frozenset[str]
    have: frozenset[str]
    between: frozenset[str]
    not_: frozenset[str] = msgspec.field(name="not")
    ending: frozenset[str]
    joining: frozenset[str]
    preposition: frozenset[str]
    open: frozenset[str]
    groups: frozenset[str]
    limited: frozenset[str]
    undergoing: frozenset[str]
    plight: frozenset[str]
    virtues: frozenset[str]
    gifts: frozenset[str]
    contempt: frozenset[str]
    circumstances: frozenset[str]
    competence: frozenset[str]
    wrongs: frozenset[str]
    elsewhere: frozenset[str]
    hated: frozenset[str]
    circumstantial: frozenset[str]
    rejecting: frozenset[str]
    saying: frozenset[str]
    slurs: frozenset[str]
    before: dict[str, tuple[str, ...]]
    after: dict[str, tuple[str, ...]]
    around: dict[str, tuple[tuple[str, str], ...]]


@functools.cache
def frames() -> Frames:
    """The words that ship with Proctor."""
    import yaml

    written = yaml.safe_load(resources.text("evaluators", "bias", "frames.yaml"))
    return msgspec.convert(written, Frames)


def words_of(sentence: str) -> list[str]:
    """The words of a sentence in small letters, with the commas between them.

    >>> words_of("No, I don’t.")
    ['no', ',', 'i', "don't"]
    """
    return [match[0].lower().replace("’", "'") for match in _WORD.finditer(sentence)]


def subjects(words: Sequence[str]) -> Iterator[Subject]:
    """Whole groups: their people without a word for some of them, or any one of them.

    >>> [one.name for one in subjects("the french and some men like every jew".split())]
    ['french', 'jew']
    """
    known = frames()
    place = 0
    while place < len(words):
        size, several = _group_at(words, place)
        before = words[place - 1] if place else ""
        of_them = "of" in words[max(0, place - 2) : place] and before != "of"
        whole = several and before not in known.some and not of_them
        if size and (whole or (not several and before in known.any)):
            yield Subject(" ".join(words[place : place + size]), place, place + size, several)
        place += max(size, 1)


def _group_at(words: Sequence[str], place: int) -> tuple[int, bool]:
    """How many words at a place name people of a group, and whether they are several."""
    people = groups().people
    for size in (3, 2, 1):
        phrase = " ".join(words[place : place + size])
        named = _names().get(phrase)
        if named is None or place + size > len(words):
            continue
        following = words[place + size] if place + size < len(words) else ""
        if following in people and not following.endswith(("y", "ion", "ure", "race")):
            return size + 1, following.endswith("s") or following in _PLURALS
        if named != "is_":
            return size, named == "many"
        before = words[place - 1] if place else ""
        if (before == "the" or before in frames().any) and _ends_a_name(following):
            return size, before == "the"
    return 0, False


def _ends_a_name(following: str) -> bool:
    """True if "the poor" is all there is: what follows is no noun."""
    known = frames()
    closing = (known.be, known.have, known.between, known.not_, known.ending, known.joining)
    if not following or following in known.preposition or following in _AFTER:
        return True
    return any(following in listed for listed in closing)


_AFTER = frozenset(
    {"can", "can't", "should", "shouldn't", "must", "do", "don't", "deserve", "belong", "make"}
    | {
        "hate",
        "steal",
        "lie",
        "cheat",
        "smell",
        "stink",
        "lack",
        "will",
        "were",
        "had",
        "into",
        "out",
    }
)


@functools.cache
def _names() -> dict[str, str]:
    """What groups are called, with the form; of pairs of gendered words only those for anybody."""
    known = groups()
    found = dict.fromkeys(frames().groups, "is_")
    found |= dict.fromkeys(("men", "women", "boys", "girls", "males", "females"), "many")
    found |= dict.fromkeys(("man", "woman", "boy", "girl", "male", "female"), "one")
    for word in map(str.lower, known.also):
        many = word.endswith("s") and word not in _NOT_MANY and not word.endswith(_PEOPLES)
        found[word] = "many" if many else "is_"
        if word.endswith(("an", "i", "ch")) and word not in ("french", "dutch"):
            found.setdefault(f"{word}s", "many")
    for axis in known.axes.values():
        for group in axis:
            found |= _named(group)
    return found


def _named(group: Group) -> dict[str, str]:
    forms = {word.lower(): form for form, word in group.forms() if form != "belief"}
    if group.one.lower() == group.is_.lower():
        # After "a" or "every" it is a person, and elsewhere it says nothing about all.
        forms[group.one.lower()] = "one"
    return forms
