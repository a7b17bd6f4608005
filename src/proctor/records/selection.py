"""Select samples by id, metadata, tags, or text."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from proctor.errors import ConfigError, Problem, suggest_name
from proctor.records import codec
from proctor.records.formatting import format_count
from proctor.records.sample import TAGS, Sample
from proctor.records.trial import EvalResult

# The label of samples without a value.
MISSING = "(none)"
FORM = "KEY=VALUE or KEY!=VALUE"
PREFIX = "metadata."
MAX_KEYS_LISTED = 15
_ABSENT = object()

Samples = Callable[[], Iterable[Sample[Any, Any]]]


class Selection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The samples to run: those that meet every rule that is set.

    `samples` are ids. `where` holds conditions on metadata, such as "topic=billing" or "level!=3"; conditions on the
    same key with `=` are alternatives. `tags` selects the samples with any of these tags. `failed_of` is a run: the
    samples that did not pass in it, in any configuration and epoch.
    """

    samples: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    failed_of: str | None = None

    def describe(self) -> str:
        """Return the rules as one line."""
        samples = f"{len(self.samples):,} ids" if len(self.samples) > 3 else f"sample {', '.join(self.samples)}"
        facts = [
            samples if self.samples else "",
            *self.where,
            *(f"tag {tag}" for tag in self.tags),
            f"not passed in run {self.failed_of}" if self.failed_of else "",
        ]
        return ", ".join(filter(None, facts))


class SelectedSamples(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How many samples a selection has, and a fingerprint of their ids.

    `failed_in` are the runs whose failures decided the selection: compared with one of them, these samples get better
    even if nothing has changed.
    """

    count: int
    fingerprint: str
    failed_in: tuple[str, ...] = ()


class Condition(NamedTuple):
    """A condition on one metadata key."""

    key: str
    value: str
    negated: bool = False

    def __str__(self) -> str:
        return f"{self.key}{'!=' if self.negated else '='}{self.value}"

    def has_value(self, values: Iterable[Any]) -> bool:
        """True if one of the values of a sample is the value of this condition."""
        return any(_is_value(value, self.value) for value in values)


def parse_conditions(texts: Iterable[str], where: str = "where") -> list[Condition]:
    """Parse conditions; one error lists all that are invalid.

    >>> parse_conditions(["topic=billing", "level!=3"])
    [Condition(key='topic', value='billing', negated=False), Condition(key='level', value='3', negated=True)]
    """
    conditions, problems = [], []
    for text in texts:
        left, equals, value = text.partition("=")
        key = left.removesuffix("!").strip()
        if not equals or not key:
            problems.append(Problem(where, f"must be {FORM}, got {text!r}"))
        conditions.append(Condition(key, value.removeprefix("=").strip(), left.endswith("!")))
    if problems:
        raise ConfigError("some conditions are invalid", problems=problems, fix=f"write {where} topic=billing")
    return conditions


def find_value(metadata: Mapping[str, Any], key: str) -> Any:
    """Return the value of a key, which may be nested (`user.plan`); None if it is missing.

    >>> find_value({"user": {"plan": "free"}, "a.b": 1}, "user.plan"), find_value({"a.b": 1}, "a.b")
    ('free', 1)
    """
    value = metadata[key] if key in metadata else _find(metadata, key)
    if value is _ABSENT and key.startswith(PREFIX):
        value = _find(metadata, key.removeprefix(PREFIX))
    return None if value is _ABSENT else value


def _find(metadata: Mapping[str, Any], key: str) -> Any:
    if key in metadata:
        return metadata[key]
    parts = key.split(".")
    for length in range(1, len(parts)):
        inner = metadata.get(".".join(parts[:length]))
        if isinstance(inner, Mapping):
            value = _find(inner, ".".join(parts[length:]))
            if value is not _ABSENT:
                return value
    return _ABSENT


def list_values(metadata: Mapping[str, Any], key: str) -> list[Any]:
    """Return the values of a key: the items of a list, or its only value; empty if it is missing."""
    value = find_value(metadata, key)
    if value is None:
        return []
    return [item for item in value if item is not None] if isinstance(value, list | tuple) else [value]


def label_value(value: Any) -> str:
    """Return a value as text: true, 3, 0.5, or the string itself.

    >>> [label_value(value) for value in (True, 3.0, 0.5, "billing")]
    ['true', '3', '0.5', 'billing']
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return value if isinstance(value, str) else codec.to_text(value)


def list_keys(metadata: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the keys of metadata, nested keys with dots."""
    for key, value in metadata.items():
        if isinstance(value, Mapping) and value:
            yield from list_keys(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def describe_keys(keys: Collection[str]) -> str:
    """List the known keys for an error message."""
    if not keys:
        return "the samples have no metadata"
    names = sorted(keys)
    more = f", … and {len(names) - MAX_KEYS_LISTED} more" if len(names) > MAX_KEYS_LISTED else ""
    return f"known keys: {', '.join(names[:MAX_KEYS_LISTED])}{more}"


def unknown_key_problem(key: str, samples: Iterable[Sample[Any, Any]], where: str = "") -> Problem:
    """Explain that no sample has a metadata key; suggest a similar key, and list all keys."""
    keys: set[str] = set()
    is_mapping = False
    for sample in samples:
        keys.update(list_keys(sample.metadata))
        is_mapping = is_mapping or isinstance(find_value(sample.metadata, key), Mapping)
    what = f"{key!r} is a mapping" if is_mapping else f"no sample has the metadata key {key!r}"
    inner = sorted(name for name in keys if name.startswith(f"{key}."))
    suggestion = f"choose one of: {', '.join(inner)}" if is_mapping else suggest_name(key, keys)
    fix = suggestion if suggestion.startswith(("did you mean", "choose one of")) else "add metadata to the samples"
    # A suggestion that lists the keys says it all.
    return Problem(where, what if fix.startswith("choose one of") else f"{what} ({describe_keys(keys)})", fix)


def find_samples(samples: Samples, selection: Selection, candidates: Collection[str] | None = None) -> frozenset[str]:
    """Return the ids of the selected samples; one error lists all ids, keys, values and tags that no sample has.

    `candidates` are the samples that did not pass in the run `failed_of`. `samples` is called again to explain an
    error.
    """
    conditions = parse_conditions(selection.where)
    selected_ids, tags = set(selection.samples), set(selection.tags)
    ids: set[str] = set()
    known_ids: set[str] = set()
    known_tags: set[str] = set()
    known_keys: set[str] = set()
    known_conditions: set[Condition] = set()
    for sample in samples():
        values = {condition.key: list_values(sample.metadata, condition.key) for condition in conditions}
        known_keys.update(key for key, entries in values.items() if any(not isinstance(v, Mapping) for v in entries))
        matched = {condition for condition in conditions if condition.has_value(values[condition.key] or [MISSING])}
        known_conditions |= matched
        known_tags.update(tags.intersection(sample.tags))
        known_ids.update(selected_ids & {sample.id})
        if (
            (not selected_ids or sample.id in selected_ids)
            and (not tags or tags.intersection(sample.tags))
            and (candidates is None or sample.id in candidates)
            and _meets(conditions, matched)
        ):
            ids.add(sample.id)
    problems = [
        *_explain_ids(sorted(selected_ids - known_ids), samples),
        *_explain_conditions(
            [c for c in conditions if c.key not in known_keys or c not in known_conditions], known_keys, samples
        ),
        *_explain_tags(sorted(tags - known_tags), samples),
    ]
    if len(problems) == 1:
        raise ConfigError(problems[0].what, where=problems[0].where, fix=problems[0].fix)
    if problems:
        problems = [problem._replace(what=f"{problem.what}; {problem.fix}") for problem in problems]
        raise ConfigError("the samples cannot be selected", problems=problems, fix="correct the conditions above")
    if not ids:
        raise ConfigError(
            f"no sample is selected by: {selection.describe()}", fix="leave out one of the conditions, or change it"
        )
    return frozenset(ids)


def _meets(conditions: Iterable[Condition], matched: Collection[Condition]) -> bool:
    alternatives: dict[str, bool] = {}
    for condition in conditions:
        if condition.negated:
            if condition in matched:
                return False
        else:
            alternatives[condition.key] = alternatives.get(condition.key, False) or condition in matched
    return all(alternatives.values())


def _is_value(value: Any, text: str) -> bool:
    label = label_value(value)
    if label == text or (isinstance(value, bool) and label == text.casefold()) or (label == MISSING and not text):
        return True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isclose(value, float(text), rel_tol=1e-12)
    except ValueError:
        return False


def _explain_ids(unknown: Collection[str], samples: Samples) -> Iterator[Problem]:
    if not unknown:
        return
    known_ids = [sample.id for sample in samples()]
    for sample_id in unknown:
        suggestion = suggest_name(sample_id, known_ids)
        fix = suggestion if suggestion.startswith("did you mean") else "use an id from the dataset"
        yield Problem("", f"no sample has the id {sample_id!r}", fix)


def _explain_conditions(
    unknown: Iterable[Condition], known_keys: Collection[str], samples: Samples
) -> Iterator[Problem]:
    for condition in unknown:
        if condition.key not in known_keys:
            yield unknown_key_problem(condition.key, samples(), str(condition))
            continue
        labels = {label_value(v) for sample in samples() for v in list_values(sample.metadata, condition.key)}
        yield Problem(
            str(condition),
            f"no sample has this value of {condition.key!r} ({format_count(len(labels), 'value')})",
            suggest_name(condition.value, labels),
        )


def _explain_tags(unknown: Collection[str], samples: Samples) -> Iterator[Problem]:
    if not unknown:
        return
    known_tags = {tag for sample in samples() for tag in sample.tags}
    for tag in unknown:
        if not known_tags:
            yield Problem("", f"no sample has the tag {tag!r}", f"add metadata.{TAGS} to the samples")
        else:
            yield Problem("", f"no sample has the tag {tag!r}", suggest_name(tag, known_tags))


def contains_words(result: EvalResult, words: Iterable[str]) -> bool:
    """True if every word is in the input, output, expected value, reasons or error of a result, in any case."""
    sample = result.trial.sample
    values = (sample.input, sample.expected, result.output, result.error)
    texts = [value if isinstance(value, str) else codec.to_text(value) for value in values if value is not None]
    text = "\n".join([*texts, *(score.reason for score in result.scores.values())]).casefold()
    return all(word in text for word in words)


def split_words(text: str) -> list[str]:
    """Split the text of a search into words."""
    if not (words := text.casefold().split()):
        raise ConfigError("the text to search for is empty", where="text", fix="write text refund")
    return words
