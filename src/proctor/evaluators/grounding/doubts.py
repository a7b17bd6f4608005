"""Find reasons to doubt a sentence that shares its words with the context.

Nothing here is certain: other words may say the same. A sentence with a doubt gets no verdict instead of a pass.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import pairwise, permutations

from proctor.evaluators.grounding.contradictions import find_moved_numbers
from proctor.evaluators.grounding.features import (
    find_added_names,
    index_words,
    join_split_numbers,
    load_roles,
    measure_overlap,
)
from proctor.evaluators.tokenizer import Word, are_related, split_words

_MEANINGFUL = ("content", "name", "number")
# The passage of a fact has this share of its words besides place and time.
_MIN_REST = 0.7
# A longer passage is a list.
_MAX_PARTS = 12
_MAX_OBJECT_WORDS = 12


@functools.cache
def _compile_part_end() -> re.Pattern[str]:
    return re.compile(rf"[,;]\s|\s(?=(?:{'|'.join(sorted(load_roles()['parting']))})\s)")


def find_doubts(
    words: Sequence[Word],
    new: Collection[Word],
    passages: Sequence[tuple[str, Sequence[Word]]],
    find_passages: Callable[[Word], Sequence[Sequence[Word]]],
    are_alike: Callable[[Sequence[Word], Sequence[Word]], bool] | None,
) -> Iterator[str]:
    """Yield why the best passages of a context, each as text and words, may not say what a sentence says.

    `new` are the words that the context lacks, `find_passages` returns its passages with a word, and `are_alike` tells
    if words may name the same thing; it is None for a context of many sentences.
    """
    texts, parts = [text for text, _ in passages], [part for _, part in passages]
    if names := list(find_misplaced_names(words, parts, find_passages)):
        yield f"the context mentions {', '.join(names)} only in passages about something else"
    if names := find_added_names(words, new, parts):
        yield f"the context does not mention {', '.join(names)}"
    if mixed_fact := find_mixed_fact(words, texts):
        yield f"the context may have {mixed_fact[0]} for something else than {mixed_fact[1]}"
    if item := find_added_item(words, new):
        yield f"the context does not mention {item!r}"
    for amount, other, is_certain in find_moved_numbers(words, parts):
        if not is_certain:
            yield f"the context may have {other!r} and not {amount!r}"
    # In a long context a verb often has several objects.
    if are_alike and (replacement := find_replaced_object(words, new, parts, are_alike)):
        yield f"the context has {replacement[1]!r} and not {replacement[0]!r}"


def find_misplaced_names(
    words: Sequence[Word], passages: Sequence[Sequence[Word]], find_passages: Callable[[Word], Sequence[Sequence[Word]]]
) -> Iterator[str]:
    """Yield names and years after a preposition that only passages about something else have.

    The passage about the rest has another one after this preposition: "prices rose in Norway", "prices rose in Sweden".
    `find_passages` returns the passages of the context with a word.
    """
    for preposition, word in pairwise(words):
        homes = (
            find_passages(word)
            if preposition.text in load_roles()["placing"] and word.kind in ("name", "number")
            else ()
        )
        if not homes or not passages:
            continue
        rest = [item for item in words if item is not word]
        best = max(passages, key=lambda passage: measure_overlap(rest, passage))
        others = [other for before, other in pairwise(best) if before.text == preposition.text]
        if best in homes or measure_overlap(rest, best) < _MIN_REST or not others or others[0].kind != word.kind:
            continue
        content = [item.text for item in rest if item.kind == "content"]
        if not any(text in index_words(home) for home in homes for text in content):
            yield word.original


def find_mixed_fact(words: Sequence[Word], passages: Iterable[str]) -> tuple[str, str] | None:
    """Return a number and a name of a sentence that a passage gives in two parts, each with its own name and number.

    "It leaves Lisbon at 9" mixes the parts of "it leaves Rome at 9 and reaches Lisbon at 11".
    """
    names, numbers = ({word.text for word in words if word.kind == kind} for kind in ("name", "number"))
    for passage in passages if names and numbers else ():
        parts = [split_words(part) for part in _compile_part_end().split(join_split_numbers(passage))]
        if len(parts) > _MAX_PARTS:
            continue
        pairs = [[{word.text for word in part if word.kind == kind} for kind in ("name", "number")] for part in parts]
        for (other_names, own_numbers), (own_names, other_numbers) in permutations(pairs, 2):
            if other_names & names or other_numbers & numbers or not other_names or not other_numbers:
                continue
            number, name = min(own_numbers & numbers, default=""), min(own_names & names, default="")
            is_alone = sum(number in part[1] for part in pairs) == sum(name in part[0] for part in pairs) == 1
            if number and name and is_alone and any(len(other) == len(number) for other in other_numbers):
                originals = {word.text: word.original for word in words}
                return originals[number], originals[name]
    return None


def find_replaced_object(
    words: Sequence[Word],
    new: Collection[Word],
    passages: Iterable[Sequence[Word]],
    are_alike: Callable[[Sequence[Word], Sequence[Word]], bool],
) -> tuple[str, str] | None:
    """Return a verb with an object of new words, and with its object in the passages: "sells tea", "sells rice"."""
    index = index_words(words)
    others = [item for passage in passages for item in _find_objects(passage)]
    for verb, phrase in _find_objects(words):
        if verb in new or not all(word in new for word in phrase) or not _is_finite(words, words.index(verb)):
            continue
        same_verb = [item for word, item in others if word.text == verb.text or are_related(word.text, verb.text)]
        is_known = any(word.text in index for item in same_verb for word in item)
        if same_verb and not is_known and not any(are_alike(phrase, item) for item in same_verb):
            sides = ((verb, *phrase), (verb, *same_verb[0]))
            own, other = (" ".join(word.original for word in side) for side in sides)
            return own, other
    return None


def find_added_item(words: Sequence[Word], new: Collection[Word]) -> str:
    """Return a further thing of new words in a list: "and a tram station"; "" if there is none."""
    for word, phrase in _find_objects(words):
        is_thing = len(phrase) > 1 and words[words.index(phrase[0]) - 1].text in load_roles()["determiners"]
        if word.text in load_roles()["adding"] and is_thing and all(item in new for item in phrase):
            return " ".join(item.original for item in phrase)
    return ""


def _find_objects(words: Sequence[Word]) -> Iterator[tuple[Word, Sequence[Word]]]:
    """Yield each content word, "and" or "or" with the meaningful words that follow it, after determiners."""
    roles = load_roles()
    for place, verb in enumerate(words):
        if verb.kind != "content" and verb.text not in roles["adding"]:
            continue
        start, limit = place + 1, min(place + 1 + _MAX_OBJECT_WORDS, len(words))
        while start < limit and words[start].text in roles["determiners"]:
            start += 1
        end = start
        while end < limit and words[end].kind in _MEANINGFUL:
            end += 1
        # "Played practically" has no object.
        if end > start and not words[start].text.endswith("ly"):
            yield verb, words[start:end]


def _is_finite(words: Sequence[Word], place: int) -> bool:
    """Return True if a word is a verb form after its subject: "Ann sells", "it sold", "the firm has sold"."""
    verb, before = words[place], words[place - 1] if place else None
    if before is None or not (verb.text.endswith(("s", "ed")) or verb.text in load_roles()["past"]):
        return False
    starts_clause = place == 1 or words[place - 2].text in load_roles()["determiners"]
    return (
        before.kind == "name" or before.text in load_roles()["subjects"] or (before.kind == "content" and starts_clause)
    )
