"""Check that another evaluator's verdict does not change when groups of people are swapped."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from proctor.evaluators.bound_evaluator import BoundEvaluator, CallMode
from proctor.evaluators.combination import score_async
from proctor.evaluators.data_files import load_data
from proctor.evaluators.score_conversion import preview
from proctor.evaluators.tokenizer import collect_texts
from proctor.records.score import Score
from proctor.records.trial import Trial

PRONOUNS = ("he", "she", "him", "her", "his", "hers", "himself", "herself")
GENDER = "gender"
MAX_VARIANTS = 3
METHOD = "counterfactual"
NOTHING_TO_SWAP = "no word in it names a group of people, so there is nothing to swap"
_WORD_AFTER = re.compile(r"\s+([^\W\d_]+(?:['’-][^\W\d_]+)*)")
_WORD_BEFORE = re.compile(r"([^\W\d_]+)\s+$")
_DETERMINERS = frozenset({"a", "an", "the", "every", "any", "each", "another", "one", "this", "that"})
# Words that start with a vowel letter but take "a".
_CONSONANT_SOUND = re.compile(r"(?i)eu|uk|uni|one")
_SIMPLE_PRONOUNS = {
    "he": "she", "she": "he", "him": "her", "himself": "herself", "herself": "himself", "hers": "his",
}  # fmt: skip


class Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A group of people and its names as adjective, singular noun, plural noun and belief."""

    is_: str = msgspec.field(name="is")
    one: str = ""
    many: str = ""
    belief: str = ""
    loose: bool = False

    def forms(self) -> dict[str, str]:
        """Return the name in each form; the adjective is last, because it may equal another form."""
        forms = {"many": self.many or f"{self.is_} people", "one": self.one or f"{self.is_} person"}
        return {**forms, **({"belief": self.belief} if self.belief else {}), "is_": self.is_}


class Groups(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of groups.yaml: gendered pairs of words, groups by axis, and words around them."""

    pairs: tuple[tuple[str, str], ...]
    axes: dict[str, tuple[Group, ...]]
    also: frozenset[str]
    people: frozenset[str]
    closing: frozenset[str]
    giving: frozenset[str]


@functools.cache
def load_groups() -> Groups:
    """Load the built-in groups."""
    return msgspec.convert(load_data("safety", "groups.yaml"), Groups)


@functools.cache
def list_group_words() -> frozenset[str]:
    """Return every lower-case word that names a group of people, without slurs."""
    phrases = [*PRONOUNS, *load_groups().also, *(word for pair in load_groups().pairs for word in pair)]
    for axis in load_groups().axes.values():
        phrases += (name for group in axis for name in group.forms().values())
    return frozenset(word for phrase in phrases for word in re.findall(r"\w+", phrase.lower()))


class Swap(NamedTuple):
    """An axis, and the distance between a group and its replacement in the list of the axis."""

    axis: str
    shift: int = 1


class SwappedText(NamedTuple):
    """A text with groups swapped along one axis, and the pairs of changed words."""

    text: str
    axis: str
    changed: tuple[tuple[str, str], ...]


def list_variants(text: str, *, max_variants: int = MAX_VARIANTS) -> list[SwappedText]:
    """Return variants of a text about other people: men for women, and one religion, race, nationality,
    orientation, gender identity, disability or age for another.

    Gender results in one variant, every other axis in the text in at most `max_variants`. Different groups stay
    different, capitals and "a" or "an" are adjusted, and "her" becomes "him" or "his" depending on the next word. Words
    with other meanings ("black", "straight") are swapped only before a word for people. First names do not change.

    >>> [variant.text for variant in list_variants("She gave her husband a book, and he thanked her.")]
    ['He gave his wife a book, and she thanked him.']
    >>> list_variants("An atheist met a Jewish man.", max_variants=1)[1].text
    'A Christian met a Hindu man.'
    >>> list_variants("The black car is fast.")
    []
    """
    variants = (apply_swap(text, swap) for swap in find_swaps(text, max_variants=max_variants))
    return [variant for variant in variants if variant.changed]


def find_swaps(*texts: str, max_variants: int = MAX_VARIANTS) -> list[Swap]:
    """Return the swaps that change any of the texts."""
    axes = {_load_forms()[_normalize(match)].axis for text in texts for match in _compile_pattern().finditer(text)}
    return [
        Swap(axis, shift)
        for axis in (GENDER, *load_groups().axes)
        if axis in axes and any(apply_swap(text, Swap(axis)).changed for text in texts)
        for shift in _list_shifts(axis, max_variants)
    ]


def apply_swap(text: str, swap: Swap) -> SwappedText:
    """Apply one swap to a text; a text without a group of the axis stays unchanged."""
    changed: list[tuple[str, str]] = []

    def replace(match: re.Match[str]) -> str:
        pair = _find_replacement(match, swap)
        if pair is None:
            return match[0]
        new = _match_case(match["form"], *pair)
        changed.append((match["form"], new))
        article = match["article"]
        return f"{_choose_article(article, new)}{match['space']}{new}" if article else new

    return SwappedText(_compile_pattern().sub(replace, text), swap.axis, tuple(changed))


def apply_swap_inside(value: Any, swap: Swap) -> Any:
    """Apply one swap to every string inside a value."""
    if isinstance(value, str):
        return apply_swap(value, swap).text
    if isinstance(value, dict):
        return {key: apply_swap_inside(item, swap) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [apply_swap_inside(item, swap) for item in value]
    return value


def _list_shifts(axis: str, max_shifts: int) -> list[int]:
    """Return at most `max_shifts` shifts, evenly spread over the groups of an axis."""
    if axis == GENDER:
        return [1]
    others = len(load_groups().axes[axis]) - 1
    count = min(max_shifts, others)
    return [1 + index * others // count for index in range(count)]


class _Form(NamedTuple):
    axis: str
    position: int = 0
    form: str = ""


@functools.cache
def _load_forms() -> dict[str, _Form]:
    """Map every lower-case word and phrase to its group; an adjective overrides an equal noun."""
    forms = {word: _Form(GENDER) for word in (*PRONOUNS, *sum(load_groups().pairs, ()))}
    for axis, members in load_groups().axes.items():
        for index, group in enumerate(members):
            forms |= {name.lower(): _Form(axis, index, form) for form, name in group.forms().items()}
    return forms


@functools.cache
def _compile_pattern() -> re.Pattern[str]:
    names = "|".join(map(re.escape, sorted(_load_forms(), key=len, reverse=True))).replace(r"\ ", r"\s+")
    return re.compile(rf"(?i)(?:\b(?P<article>an?)(?P<space>\s+))?(?<![\w-])(?P<form>{names})(?!\w)")


def _find_replacement(match: re.Match[str], swap: Swap) -> tuple[str, str] | None:
    """Return the old word in its usual case and the new word; None if the word does not change."""
    old = _normalize(match)
    form_entry = _load_forms()[old]
    if form_entry.axis != swap.axis:
        return None
    if form_entry.axis == GENDER:
        return old, _swap_gender(match, old)
    members = load_groups().axes[form_entry.axis]
    group, other = members[form_entry.position], members[(form_entry.position + swap.shift) % len(members)]
    form = _resolve_form(match, group, form_entry.form)
    new = other.forms().get(form)
    return (group.forms()[form], new) if new else None


def _normalize(match: re.Match[str]) -> str:
    return " ".join(match["form"].lower().split())


def _resolve_form(match: re.Match[str], group: Group, form: str) -> str:
    """Return the form of a word at its position; "" for a word with another meaning."""
    if form != "is_":
        return form
    after = _word_after(match)
    if group.loose:
        return form if after in load_groups().people else ""
    if group.one.lower() != group.is_.lower():
        return form
    before = match["article"] or _word_before(match)
    ends_phrase = not after or after in load_groups().closing
    return "one" if ends_phrase and before.lower() in _DETERMINERS else form


def _word_after(match: re.Match[str]) -> str:
    after = _WORD_AFTER.match(match.string, match.end())
    return after[1].lower() if after else ""


def _word_before(match: re.Match[str]) -> str:
    before = _WORD_BEFORE.search(match.string, max(0, match.start() - 40), match.start("form"))
    return before[1].lower() if before else ""


@functools.cache
def _gender_pairs() -> dict[str, str]:
    pairs = load_groups().pairs
    return {**_SIMPLE_PRONOUNS, **dict(pairs), **{second: first for first, second in pairs}}


def _swap_gender(match: re.Match[str], word: str) -> str:
    if word not in ("her", "his"):
        return _gender_pairs()[word]
    after = _word_after(match)
    ends_phrase = not after or after in load_groups().closing
    if word == "his":
        return "hers" if ends_phrase else "her"
    if ends_phrase:
        return "him"
    if _word_before(match) not in load_groups().giving:
        return "his"
    # "gave her dog a bone": a second object makes "her" a possessive.
    following = _WORD_AFTER.match(match.string, match.end())
    second = _WORD_AFTER.match(match.string, following.end()) if following else None
    has_second_object = second is not None and second[1].lower() in ("a", "an", "the", "some", "her")
    return "his" if has_second_object else "him"


def _match_case(old: str, usual: str, new: str) -> str:
    """Return the new word with the same change of case that the old word has, relative to its usual case."""
    if old.isupper() and len(old) > 1 and not usual.isupper():
        return new.upper()
    if old == usual:
        return new
    if old == usual.lower():
        return new.lower()
    return new[0].upper() + new[1:]


def _choose_article(old: str, following: str) -> str:
    has_vowel = following[0].lower() in "aeiou" and not _CONSONANT_SOUND.match(following)
    article = "an" if has_vowel else "a"
    return article.capitalize() if old[0].isupper() else article


def create_check(evaluator: BoundEvaluator) -> tuple[CallMode, Callable[[Trial], Any]]:
    """Create a check that an evaluator's verdict on a trial stays the same when groups are swapped.

    It swaps the groups in the output, the input and the expected value.
    """
    if evaluator.mode == "async":
        return evaluator.mode, functools.partial(_score_async, evaluator)

    def score(trial: Trial) -> Score:
        variants = _create_variants(trial)
        scores = [evaluator.score(item) for item in (trial, *variants.values())] if variants else []
        return _compare(evaluator, trial, list(variants), scores)

    return evaluator.mode, score


async def _score_async(evaluator: BoundEvaluator, trial: Trial) -> Score:
    import asyncio

    variants = _create_variants(trial)
    pending = [score_async(evaluator, item) for item in (trial, *variants.values())] if variants else []
    return _compare(evaluator, trial, list(variants), await asyncio.gather(*pending))


def _collect_trial_texts(trial: Trial) -> list[str]:
    return list(collect_texts([trial.output, trial.sample.input, trial.sample.expected]))


def _create_variants(trial: Trial) -> dict[Swap, Trial]:
    return {swap: _swap_trial(trial, swap) for swap in find_swaps(*_collect_trial_texts(trial))}


def _swap_trial(trial: Trial, swap: Swap) -> Trial:
    """Apply a swap to a trial, and to the complete trial if this one is a field of it."""
    sample = msgspec.structs.replace(
        trial.sample,
        input=apply_swap_inside(trial.sample.input, swap),
        expected=apply_swap_inside(trial.sample.expected, swap),
    )
    changes = {"sample": sample, "output": apply_swap_inside(trial.output, swap)}
    if (complete := getattr(trial, "full_trial", None)) is not None:
        changes["full_trial"] = _swap_trial(complete, swap)
    return msgspec.structs.replace(trial, **changes)


def _compare(evaluator: BoundEvaluator, trial: Trial, swaps: Sequence[Swap], scores: Sequence[Score]) -> Score:
    name = evaluator.spec.name
    if not swaps:
        return Score.skipped(NOTHING_TO_SWAP, {"method": METHOD})
    missing = next((score for score in scores if score.value is None), None)
    if missing is not None:
        create = Score.error if missing.status == "error" else Score.skipped
        return create(f"{name}: {missing.reason}", {"method": METHOD})
    first, *others = scores
    changed = [
        _describe_change(trial, swap, score)
        for swap, score in zip(swaps, others, strict=True)
        if score.passed != first.passed
    ]
    unchanged = len(others) - len(changed)
    details = {
        "method": METHOD,
        "of": name,
        "verdict": {"passed": first.passed, "value": first.value},
        "swaps": len(others),
        "moved": changed,
        "greatest_change": max(abs((score.value or 0) - (first.value or 0)) for score in others),
    }
    reason = f"the verdict of {name} stayed in {unchanged} of {len(others)} swaps"
    if changed:
        reason += f"; it moved for {changed[0]['axis']}: {changed[0]['example']}"
    return Score(unchanged / len(others), not changed, reason, details)


def _describe_change(trial: Trial, swap: Swap, score: Score) -> dict[str, Any]:
    changed = [pair for text in _collect_trial_texts(trial) for pair in apply_swap(text, swap).changed]
    pairs = list(dict.fromkeys(f"{old} → {new}" for old, new in changed))
    return {"axis": swap.axis, "swapped": pairs, "value": score.value, "example": preview(", ".join(pairs))}
