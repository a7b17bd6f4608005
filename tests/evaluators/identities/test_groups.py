"""The word lists of groups are consistent."""

from __future__ import annotations

from collections import Counter

from proctor.evaluators.safety.counterfactual import load_groups


def test_no_gendered_word_is_in_two_pairs() -> None:
    counted = Counter(word for pair in load_groups().pairs for word in pair)
    assert [word for word, count in counted.items() if count > 1] == []


def test_no_word_belongs_to_two_groups() -> None:
    owners: dict[str, set[str]] = {}
    for axis in load_groups().axes.values():
        for group in axis:
            for word in group.forms().values():
                owners.setdefault(word.lower(), set()).add(group.is_)
    assert {word: names for word, names in owners.items() if len(names) > 1} == {}


def test_every_axis_has_a_group_to_swap_with() -> None:
    assert all(len(axis) > 1 for axis in load_groups().axes.values())
