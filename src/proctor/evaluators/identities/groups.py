"""The words by which people are told apart, read once from `groups.yaml`."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

import msgspec

from proctor import resources

PRONOUNS = ("he", "she", "him", "her", "his", "hers", "himself", "herself")


class Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A group of people and what it is called in each place of a sentence."""

    is_: str = msgspec.field(name="is")
    one: str = ""
    many: str = ""
    belief: str = ""
    loose: bool = False

    def forms(self) -> Iterator[tuple[str, str]]:
        """Every form with its name; the plain adjective last, for it may be one of the others."""
        yield "many", self.many or f"{self.is_} people"
        yield "one", self.one or f"{self.is_} person"
        if self.belief:
            yield "belief", self.belief
        yield "is_", self.is_

    def called(self, form: str) -> str:
        """What it is called in one form; empty where it has no such word."""
        return dict(self.forms()).get(form, "")


class Groups(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything in the file: pairs of gendered words, groups by axis, and words around them."""

    pairs: tuple[tuple[str, str], ...]
    axes: dict[str, tuple[Group, ...]]
    also: frozenset[str]
    people: frozenset[str]
    closing: frozenset[str]
    giving: frozenset[str]


@functools.cache
def groups() -> Groups:
    """The groups that ship with Proctor.

    >>> [group.is_ for group in groups().axes["gender identity"]]
    ['transgender', 'cisgender', 'non-binary']
    """
    # A door that only lists evaluators does not wait for it.
    import yaml

    written = yaml.safe_load(resources.text("evaluators", "identities", "groups.yaml"))
    return msgspec.convert(written, Groups)


@functools.cache
def neutral_words() -> frozenset[str]:
    """Every single word, in small letters, that says to which group people belong.

    Slurs are not among them: they say more than that.

    >>> {"woman", "muslim", "judaism", "african"} <= neutral_words()
    True
    """
    known = groups()
    phrases = [*PRONOUNS, *known.also]
    phrases += (word for pair in known.pairs for word in pair)
    phrases += (word for axis in known.axes.values() for group in axis for _, word in group.forms())
    return frozenset(word for phrase in phrases for word in re.findall(r"\w+", phrase.lower()))
