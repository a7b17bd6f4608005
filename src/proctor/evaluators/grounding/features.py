"""Describe how well passages support a sentence, as a few numbers, and combine them into one value.

There are two sets of weights in `weights.json`: for words alone, and for words with a cross-encoder.
`python -m benchmarks.quality.fit_grounding` fits them on several data sets.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations, pairwise, zip_longest
from typing import NamedTuple

import msgspec

from proctor.core import resources
from proctor.evaluators.data_files import load_data
from proctor.evaluators.numeric.parse import replace_number_words
from proctor.evaluators.tokenizer import Word, WordIndex, are_related

_MEANINGFUL = ("content", "name", "number")
_YEAR = re.compile(r"1[0-9]{3}|20[0-9]{2}")
# "By" may be this many words after a participle.
_MAX_PASSIVE = 10
# A passage with this share of the content words is about the same.
_MIN_NEAR = 0.3
# More words are a list or code, not a sentence with a subject and an object.
_MAX_ROLE_WORDS = 200
# A sentence of more names is a list.
_MAX_HEADS = 20
_STEM_ENDINGS = ("ing", "ed", "es", "s", "ly", "e")
_MIN_STEM = 3
# Numbers as tokenizers and some corpora write them: "735 , 000", "3 . 5 million", "-LRB-".
_SPLIT_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?: , \d{3})+(?!\d)|(?<![\d.,])\d{1,3}(?: \d{3})+(?![\d.,]*\d)")
_SPLIT_DECIMAL = re.compile(r"(?<=\d) \. (?=\d+ (?:%|percent|million|billion|km\b|m\b))")
_ISO_DATE = re.compile(r"(?<![\w-])([0-9]{4})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])(?![\w-])")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
# "9 to 11 am": the start of a range may do without its half of the day. A dot that may end the sentence stays.
_TIME = r"(?<![\w.,:/$€£¥-])([0-9]{1,2})(?:[:.]([0-5][0-9]))?"
_HALF_DAY = re.compile(
    rf"(?:{_TIME}(\s?[–—-]\s?|\s(?:to|until|till)\s|(?<=between [0-9])\sand\s|(?<=between [0-9]{{2}})\sand\s))?"
    rf"{_TIME.replace('¥-', '¥')}\s?([ap])(?:\.\s?m\b(?:\.(?!\s*\Z|\s*\n|\s+[A-Z][a-z]))?|m\b)",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"(?<![\w.,:])([0-9]{1,2}):([0-5][0-9])(?![\w:]|[.,][0-9])")
_EARLY, _LATE = " in the morning", (" in the afternoon", " in the evening")
# "It took 15:30" is 15 minutes and 30 seconds: two numbers, and no time of the day.
_DURATION = re.compile(
    r"\b(?:took|takes?|lasts?|lasted) [0-9]{1,2}:(?=[0-5][0-9]\b)|\b[0-9]{1,2}:(?=[0-5][0-9]\s?(?:min|sec|hours?\b))"
)
_BARE_HOUR = re.compile(
    r"(?<=\b(?:at|to|by) )([1-9]|1[0-2])(?: o['’]clock)?(?=( in the \w+)?(?:[.,;]?\s*\Z|[.,;]?\s[^0-9]))"
    r"|(?<=\b(?:from) )([1-9]|1[0-2])(?= to [0-9])|(?<=\b(?:until|after) )([1-9]|1[0-2])(?=[.,;]?\s*\Z|[.,;]\s)"
)
_HOUR = re.compile(r"(?<![\w:.,])(?:[1-9]|1[0-2])(?![\w:]|[.,][0-9])")
_NOON = 12
_DECADE = re.compile(r"(?<=\d{3}0) ?['’]s\b")
_BRACKET = re.compile(r"-[LR][RSC]B-")


class Features(NamedTuple):
    """The numbers that the value of a sentence is computed from, each from 0 to 1."""

    # The share of the weight of its words that the best passages contain.
    coverage: float
    # The same for content words, counting later words more: what is said rather than of what.
    ending: float
    # The share of its words that the complete context contains.
    precision: float
    # The share of its pairs of adjacent words that the best passages contain.
    pairs: float
    # 1 if the speaker talks of themselves.
    speaker: float
    # 1 if a number is missing; half if the passages have no other one of its kind.
    number: float
    # The share of names that are missing, after the first name.
    name: float
    # 1 if the passage has an opposite, another unit, month or bound, a negation, or exchanged roles.
    clash: float
    # The logit of a cross-encoder for the sentence and its passages, in a low and a high range; None if not scored.
    related: float | None = None
    same: float | None = None

    def add_relation(self, logit: float) -> Features:
        """Return the features with the logit of a cross-encoder."""
        low, middle, high = RELATION_RANGES
        related, same = (logit - low) / (middle - low), (logit - middle) / (high - middle)
        return self._replace(related=min(1.0, max(0.0, related)), same=min(1.0, max(0.0, same)))


# The limits of the two ranges of a logit.
RELATION_RANGES = -8.0, 4.0, 10.0


class _Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    weights: dict[str, float]
    bias: float


@functools.cache
def load_models() -> tuple[_Model, _Model]:
    """Load the weights without and with a cross-encoder, once."""
    text = resources.text("evaluators", "grounding", "weights.json")
    models = msgspec.json.decode(text, type=dict[str, _Model])
    return models["words"], models["cross_encoder"]


def compute_logit(features: Features) -> float:
    """Return the weighted sum of the features; 0 is the default threshold."""
    model = load_models()[features.related is not None]
    return model.bias + math.fsum(weight * getattr(features, name) for name, weight in model.weights.items())


def to_value(logit: float) -> float:
    """Return the logistic function.

    >>> to_value(0.0)
    0.5
    """
    return 1.0 / (1.0 + math.exp(-logit))


def join_split_numbers(text: str) -> str:
    """Remove the spaces that tokenizers put into numbers, and their names of brackets; write number words in digits.

    Dates such as 2024-06-05 get the name of their month, and times with am or pm are written with 24 hours.

    >>> join_split_numbers("about 735 , 000 people -LRB- 3 . 5 % -RRB-"), join_split_numbers("Twenty-three people")
    ('about 735,000 people   3.5 %  ', '23 people')
    >>> join_split_numbers("On 2024-06-05 from 9:30 am to 5 pm")
    'On 5 June 2024 from 09:30 to 17:00'
    """
    text = replace_number_words(text)
    text = _ISO_DATE.sub(lambda match: f"{int(match[3])} {_MONTHS[int(match[2]) - 1]} {match[1]}", text)
    text = _HALF_DAY.sub(_write_times, _DURATION.sub(r"\g<0> ", text))
    text = _SPLIT_THOUSANDS.sub(lambda match: match[0].replace(" , ", ",").replace(" ", ","), text)
    return _DECADE.sub("s", _SPLIT_DECIMAL.sub(".", _BRACKET.sub(" ", text)))


def _write_times(match: re.Match[str]) -> str:
    """Write a time, or a range of times that ends with am or pm, with 24 hours; no hour of a clock stays as it is."""
    start, end = int(match[1] or 1), int(match[4])
    if not 0 < start <= _NOON or not 0 < end <= _NOON:
        return match[0]
    is_afternoon = match[6].lower() == "p"
    written = f"{end % _NOON + _NOON * is_afternoon:02}:{match[5] or '00'}"
    if not match[1]:
        return written
    # "10 to 6 pm" starts in the morning.
    starts_in_afternoon = is_afternoon is (start % _NOON < end % _NOON)
    return f"{start % _NOON + _NOON * starts_in_afternoon:02}:{match[2] or '00'}{match[3]}{written}"


def complete_times(text: str, context: Collection[str]) -> str:
    """Write the times of a text as those of the afternoon that a context has, if the text may leave out "pm".

    >>> complete_times("from 9:00 to 5:30", ["from 09:00 to 17:30"])
    'from 9:00 to 17:30'
    """
    known = {f"{int(match[1]):02}:{match[2]}" for part in context for match in _CLOCK.finditer(part)}
    if known:
        text = _complete_hours(text, context, known)
    if not known or any(int(match[1]) > _NOON or match[1][0] == "0" for match in _CLOCK.finditer(text)):
        return text

    def complete(match: re.Match[str]) -> str:
        time, later = f"{int(match[1]):02}:{match[2]}", f"{int(match[1]) + _NOON}:{match[2]}"
        return later if time not in known and later in known else match[0]

    return _CLOCK.sub(complete, text)


def _complete_hours(text: str, context: Collection[str], known: Collection[str]) -> str:
    """Write hours such as "at 9" as times that a context has, if it does not have the number itself."""
    hours = {match[0] for part in context for match in _HOUR.finditer(part)}

    def complete(match: re.Match[str]) -> str:
        number = match[1] or match[3] or match[4]
        times = [f"{int(number):02}:00"] * (match[2] not in _LATE) + [f"{int(number) + _NOON}:00"] * (
            match[2] != _EARLY
        )
        if number in hours:
            return match[0]
        return next((time for time in times if time in known), match[0])

    return _BARE_HOUR.sub(complete, text)


def get_stem(word: Word) -> str:
    """Return a word without its most common endings."""
    if word.kind != "number":
        for ending in _STEM_ENDINGS:
            if word.text.endswith(ending) and len(word.text) >= len(ending) + _MIN_STEM:
                return word.text[: -len(ending)]
    return word.text


def measure_pairs(words: Sequence[Word], passages: Sequence[Sequence[Word]]) -> float:
    """Return the share of pairs of adjacent words that the passages contain; 1 for a single word."""
    stems = [get_stem(word) for word in words]
    pairs = {pair for passage in passages for pair in pairwise(map(get_stem, passage))}
    return sum(pair in pairs for pair in pairwise(stems)) / (len(stems) - 1) if len(stems) > 1 else 1.0


def measure_ending(words: Sequence[Word], missing: Collection[Word]) -> float:
    """Return the share of content words that are not missing; the last word counts most."""
    content = [word for word in words if word.kind in _MEANINGFUL]
    total = len(content) * (len(content) + 1) / 2
    return sum(place for place, word in enumerate(content, 1) if word not in missing) / total if total else 1.0


def measure_names(words: Sequence[Word], missing: Collection[Word]) -> float:
    """Return the share of missing names, without those at the start: a passage may call them by a pronoun."""
    names = [word in missing for place, word in enumerate(words) if word.kind == "name" and place > 2]
    return sum(names) / len(names) if names else 0.0


def measure_numbers(missing: Collection[Word], passage: Sequence[Word]) -> float:
    """Return 0 if no number is missing, 1 if the passage has another one of its kind, else 0.5."""
    numbers = [word for word in missing if word.kind == "number"]
    years = {_YEAR.fullmatch(word.text) is not None for word in passage if word.kind == "number"}
    if any((_YEAR.fullmatch(word.text) is not None) in years for word in numbers):
        return 1.0
    return 0.5 if numbers else 0.0


def measure_overlap(words: Sequence[Word], passage: Sequence[Word]) -> float:
    """Return the share of content words that one passage has; names and numbers may differ."""
    shares, index = [], index_words(passage)
    for kinds in (("content",), _MEANINGFUL):
        content = [word for word in words if word.kind in kinds]
        shares.append(sum(word.text in index for word in content) / len(content) if content else 0.0)
    return max(shares)


def index_words(words: Iterable[Word]) -> WordIndex:
    """Return an index to look up words and their other forms."""
    return WordIndex(word.text for word in words)


def find_antonyms(words: Sequence[Word], passage: Sequence[Word]) -> list[tuple[Word, Word]]:
    """Return words of a sentence that a passage lacks, each with its antonym that only the passage has."""
    antonyms, texts = load_antonyms(), {word.text for word in words}
    passage_words = {word.text: word for word in passage}
    return [
        (word, passage_words[other])
        for word in words
        if word.text not in passage_words
        for other in antonyms.get(word.text, ())
        if other in passage_words and other not in texts
    ]


def select_near(words: Sequence[Word], passages: Sequence[Sequence[Word]]) -> list[Sequence[Word]]:
    """Return the passages that contain a good part of the content words."""
    return [passage for passage in passages if measure_overlap(words, passage) >= _MIN_NEAR]


def find_changed_entities(
    words: Sequence[Word], missing: Collection[Word], near: Sequence[Sequence[Word]]
) -> list[str]:
    """Return the numbers and names for which the passages have others."""
    passage = [word for part in near for word in part]
    changes = []
    if measure_numbers(missing, passage) == 1.0:
        changes = [word.original for word in missing if word.kind == "number"]
    index = index_words(words)
    others = [word for word in passage if word.kind == "name" and word.text not in index]
    is_named = any(word.kind == "name" and word.text not in index for part in near for word in part[:3])
    for start, group in _group_names(words):
        # "Steve Ditko" may be called "Ditko"; a person or thing at the start may be called "she" or "it".
        is_missing = group[-1] in missing and not any(_is_short_form(group[-1], word) for word in others)
        if is_missing and others and (start > 1 or is_named):
            changes.append(group[-1].original)
    return changes


def find_added_names(
    words: Sequence[Word], new: Collection[Word], near: Sequence[Sequence[Word]], *, is_certain: bool = False
) -> list[str]:
    """Return the new names after a preposition, such as "in Prague", if the passages have no other name instead.

    It is not certain that a name is new if the passages have a word that may stand for it: "the capital".
    """
    index, unnamed = index_words(words), load_roles()["unnamed"] if is_certain else frozenset[str]()
    others = (word for part in near for word in part if word.text not in index)
    if any(word.kind == "name" or word.text in unnamed for word in others):
        return []
    return [
        group[-1].original
        for start, group in _group_names(words)
        if start and words[start - 1].text in load_roles()["placing"] and all(word in new for word in group)
    ]


def _group_names(words: Sequence[Word]) -> list[tuple[int, list[Word]]]:
    groups: list[tuple[int, list[Word]]] = []
    for index, word in enumerate(words):
        if word.kind != "name":
            continue
        if groups and groups[-1][0] + len(groups[-1][1]) == index:
            groups[-1][1].append(word)
        else:
            groups.append((index, [word]))
    return groups


def _is_short_form(word: Word, other: Word) -> bool:
    short, long = sorted((word.text, other.text), key=len)
    return len(short) >= _MIN_STEM and long.startswith(short)


def find_exchanged_roles(words: Sequence[Word], passage: Sequence[Word]) -> tuple[Word, Word] | None:
    """Return two names that have changed places around a verb ("A paid B", "B paid A") or around "from … to"."""
    if max(len(words), len(passage)) > _MAX_ROLE_WORDS:
        return None
    exchange = _find_exchanged_ends(words, passage)
    if exchange:
        return exchange
    for verb, word in enumerate(words):
        if word.kind != "content" or word.text in load_roles()["symmetric"] or not _follows_name(words, verb):
            continue
        centers = _find_places(word, passage)
        if len(centers) != 1 or not _follows_name(passage, centers[0]):
            continue
        left = [item for item in words[:verb] if item.kind == "name"][-1:]
        right = [item for item in words[verb:] if item.kind == "name"][:1]
        ends = [_find_places(item, passage) for item in left + right]
        if len(ends) != 2 or any(len(places) != 1 for places in ends):
            continue
        (first,), (second,), center = *ends, centers[0]
        is_passive, is_other_passive = _is_passive(words, verb, right[0]), _is_passive(passage, center)
        # "Acme was founded in Oslo" does not say who founded it.
        if words[verb - 1].text in load_roles()["be"] and is_other_passive and not is_passive:
            continue
        is_other_voice = is_passive is not is_other_passive
        if (second < center < first and not is_other_voice) or (first < center < second and is_other_voice):
            return left[0], right[0]
    return None


def find_exchanged_participants(words: Sequence[Word], passages: Iterable[Sequence[Word]]) -> tuple[Word, Word] | None:
    """Return two participants that passages name on the other sides of the same verb: "the dog chased the cat".

    None if no passage does, if one has them as the sentence does, if the verb says the same about both sides, or if the
    words are not certainly a verb with a subject and an object.
    """
    relations, others = _find_relations(words), [other for passage in passages for other in _find_relations(passage)]
    for relation in relations:
        if {relation.compare(other) for other in others} - {None} == {False}:
            return relation.agent, relation.patient
    return None


def find_exchanged_heads(words: Sequence[Word], passages: Iterable[Sequence[Word]]) -> tuple[Word, Word] | None:
    """Return two names that have changed places after the words they belong to: "born in Rome and died in Berlin"."""
    known = {(head.text, name.text) for passage in passages for head, name in _find_heads(passage)}
    for (head, name), (next_head, next_name) in combinations(_find_heads(words)[:_MAX_HEADS], 2):
        pairs = {(head.text, name.text), (next_head.text, next_name.text)}
        if {(head.text, next_name.text), (next_head.text, name.text)} <= known and not pairs & known:
            return name, next_name
    return None


def _find_heads(words: Sequence[Word]) -> list[tuple[Word, Word]]:
    """Return the names of a sentence that are no subjects, each with the content word before it."""
    heads, head = list[tuple[Word, Word]](), None
    for word, following in zip_longest(words, words[1:]):
        if word.kind == "content":
            head = word
        elif word.kind == "name" and head and not (following and _may_be_verb(following)):
            heads.append((head, word))
    return heads


def _may_be_verb(word: Word) -> bool:
    roles = load_roles()
    return word.text in roles["auxiliaries"] or word.text in roles["past"] or word.text.endswith("ed")


def has_same_roles(words: Sequence[Word], passages: Sequence[Sequence[Word]]) -> bool:
    """Return True if a passage has a verb of the sentence with the same roles, or the same "from … to"."""
    others = [other for passage in passages for other in _find_relations(passage)]
    if any(relation.compare(other) for relation in _find_relations(words) for other in others):
        return True
    return any(ends in _find_ends(passage) for ends in _find_ends(words) for passage in passages)


class _Relation(NamedTuple):
    """A verb with the one who does it and the one it is done to."""

    verb: Word
    agent: Word
    patient: Word

    def compare(self, other: _Relation) -> bool | None:
        """Return whether another relation has the same roles; None if it is about something else."""
        if self.verb.text != other.verb.text and not are_related(self.verb.text, other.verb.text):
            return None
        own, theirs = (self.agent.text, self.patient.text), (other.agent.text, other.patient.text)
        return True if own == theirs else False if own == theirs[::-1] else None


def _find_relations(words: Sequence[Word]) -> list[_Relation]:
    if len(words) > _MAX_ROLE_WORDS:
        return []
    roles = load_roles()
    relations = []
    for place, verb in enumerate(words):
        if verb.kind != "content" or not verb.original.islower() or verb.text in roles["symmetric"]:
            continue
        first = place - 1
        while first >= 0 and words[first].text in load_roles()["auxiliaries"]:
            first -= 1
        last = place + 1
        while last < len(words) and (words[last].text in roles["determiners"] or words[last].text == "by"):
            last += 1
        if first < 0 or last >= len(words):
            continue
        subject, other = words[first], words[last]
        is_passive = any(word.text == "by" for word in words[place:last])
        is_past = verb.text.endswith("ed") or verb.text in roles["past"]
        is_verb = last > place + 1 or other.original[0].isupper() or is_past
        starts_clause = first == 0 or words[first - 1].text in roles["determiners"] or subject.original[0].isupper()
        if is_verb and starts_clause and all(_is_participant(word) for word in (subject, other)):
            relations.append(_Relation(verb, *((other, subject) if is_passive else (subject, other))))
    return relations


def _is_participant(word: Word) -> bool:
    return word.kind in ("content", "name") and not word.text.endswith(("ed", "ing", "ly"))


@functools.cache
def load_roles() -> Mapping[str, frozenset[str]]:
    """Load the words that tell who does something to whom, by kind."""
    return {name: frozenset(text.split()) for name, text in load_data("grounding", "roles.yaml").items()}


def _follows_name(words: Sequence[Word], index: int) -> bool:
    before = next((word for word in reversed(words[:index]) if word.text not in load_roles()["auxiliaries"]), None)
    return before is not None and before.kind == "name"


def _is_passive(words: Sequence[Word], verb: int, agent: Word | None = None) -> bool:
    """Return True if "by" follows a verb: soon, before the agent ("built in 1906 by Ann"), or after "was built"."""
    is_participle = (
        words[verb - 1].text in load_roles()["auxiliaries"] and not words[verb].text.endswith("ing") if verb else False
    )
    end = words.index(agent) if agent in words[verb:] else verb + (_MAX_PASSIVE if is_participle else 3)
    return any(word.text == "by" for word in words[verb + 1 : end])


def _find_exchanged_ends(words: Sequence[Word], passage: Sequence[Word]) -> tuple[Word, Word] | None:
    ends, others = _find_ends(words), _find_ends(passage)
    exchanged = (pair for names, pair in ends.items() if names[::-1] in others and names not in others)
    return next(exchanged, None)


def _find_ends(words: Sequence[Word]) -> dict[tuple[str, str], tuple[Word, Word]]:
    """Return the words after each "from" and the "to" that follows it, or that precedes it."""
    determiners, marks = load_roles()["determiners"], list[tuple[str, Word]]()
    bare = [word for word in words if word.text not in determiners]
    for before, word in pairwise(bare):
        if before.text in ("from", "to") and word.kind in _MEANINGFUL:
            marks.append((before.text, word))
    ends, place = dict[tuple[str, str], tuple[Word, Word]](), 0
    while place + 1 < len(marks):
        (mark, word), (next_mark, next_word) = marks[place : place + 2]
        if mark != next_mark:
            start, end = (word, next_word) if mark == "from" else (next_word, word)
            ends[start.text, end.text] = start, end
            place += 1
        place += 1
    return ends


def _find_places(word: Word, passage: Sequence[Word]) -> list[int]:
    if word.kind not in ("content", "name"):
        return []
    exact = [index for index, other in enumerate(passage) if other.text == word.text]
    return exact or [index for index, other in enumerate(passage) if are_related(word.text, other.text)]


@functools.cache
def load_antonyms() -> Mapping[str, frozenset[str]]:
    """Load the antonyms of each word."""
    antonyms: dict[str, frozenset[str]] = {}
    for line in load_data("text", "antonyms.yaml"):
        pair = line.split()
        for word, other in (pair, reversed(pair)):
            antonyms[word] = antonyms.get(word, frozenset()) | {other}
    return antonyms
