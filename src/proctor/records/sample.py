"""Samples of a dataset, and tags of runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import Any, Generic, TypeVar

import msgspec

from proctor.errors import ConfigError, Problem

MAX_TAGS = 100


def find_tag_problems(tags: Any) -> Iterator[Problem]:
    """Find all problems with the tags of a run, or of a query for runs."""
    if not isinstance(tags, Mapping):
        yield Problem("tags", f"must be a mapping of strings, got {type(tags).__name__}")
        return
    if len(tags) > MAX_TAGS:
        yield Problem("tags", f"at most {MAX_TAGS} tags are allowed, got {len(tags):,}")
        return
    for name, value in tags.items():
        if not isinstance(name, str) or not isinstance(value, str):
            yield Problem(f"tags.{name}", f"must be a string, got {value!r}")


def check_tags(tags: Any) -> dict[str, str]:
    """Return the tags, or raise one error that lists all their problems."""
    problems = list(find_tag_problems(tags))
    if problems:
        raise ConfigError("the tags are invalid", problems=problems, fix="write tags={'team': 'search'}")
    return dict(tags)


InputT = TypeVar("InputT")
ExpectedT = TypeVar("ExpectedT")

LABELS, CONTEXT, CLUSTER, TAGS = "labels", "context", "cluster", "tags"


class Sample(msgspec.Struct, Generic[InputT, ExpectedT], frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One case of a dataset: an input and, if known, the expected output.

    `metadata` may hold anything; four keys have a fixed meaning: `labels` (a mapping, for classification),
    `context` (the basis of the answer), `cluster` (the group of dependent samples, such as questions on one
    document) and `tags` (a list of words to filter by). `evaluators` are checks for this sample alone, written as in an
    eval file: a name, or a name with its parameters.

    >>> Sample("1", "What is 2 + 2?", "4", metadata={"cluster": "sums"}).cluster
    'sums'
    """

    id: str
    input: InputT
    expected: ExpectedT | None = None
    metadata: dict[str, Any] = {}
    evaluators: tuple[Any, ...] = ()

    @property
    def query(self) -> Any:
        """The user's question: the input, or its `query` (the runner spec's name for it)."""
        return self._read("query", self.input)

    @property
    def response(self) -> Any:
        """The response that needs follow-ups: `response` in the input or the metadata."""
        return self._read("response")

    @property
    def expected_followups(self) -> ExpectedT | None:
        """The expected value (the runner spec's name for it)."""
        return self.expected

    def _read(self, name: str, *default: Any) -> Any:
        if isinstance(self.input, Mapping):
            default = ()
            if name in self.input:
                return self.input[name]
        if name in self.metadata:
            return self.metadata[name]
        if default:
            return default[0]
        raise AttributeError(f"sample {self.id!r}: neither the input nor the metadata has {name!r}")

    @property
    def labels(self) -> Mapping[str, Any]:
        """Labels for classification, by name."""
        return self.metadata.get(LABELS) or {}

    @property
    def context(self) -> Any:
        """The basis of the answer: documents, a conversation, anything."""
        return self.metadata.get(CONTEXT)

    @property
    def cluster(self) -> str | None:
        """The group of this sample, if samples are not independent."""
        return self.metadata.get(CLUSTER)

    @property
    def check_names(self) -> tuple[str, ...]:
        """The names of the scores of its own evaluators; known for the samples of a run.

        >>> Sample("1", "Hi", evaluators=("exact_match", {"uses": "contains", "name": "polite"})).check_names
        ('exact_match', 'polite')
        """
        return tuple(map(_name_check, self.evaluators))

    @property
    def tags(self) -> tuple[str, ...]:
        """Words to filter by."""
        return tuple(self.metadata.get(TAGS) or ())


def _name_check(entry: Any) -> str:
    if isinstance(entry, Mapping):
        return str(entry.get("name") or entry.get("uses") or next(iter(entry), ""))
    return entry if isinstance(entry, str) else str(getattr(entry, "name", None) or getattr(entry, "__name__", ""))


def find_metadata_problems(metadata: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Find problems with the four known metadata keys, as (key, expected and actual type)."""
    problems = []
    labels, tags, cluster = (metadata.get(key) for key in (LABELS, TAGS, CLUSTER))
    if labels is not None and not isinstance(labels, Mapping):
        problems.append((f"metadata.{LABELS}", f"must be a mapping, got {type_name(labels)}"))
    if tags is not None and not (isinstance(tags, list | tuple) and all(isinstance(tag, str) for tag in tags)):
        problems.append((f"metadata.{TAGS}", f"must be a list of strings, got {type_name(tags)}"))
    if cluster is not None and not isinstance(cluster, str):
        problems.append((f"metadata.{CLUSTER}", f"must be a string, got {type_name(cluster)}"))
    return problems


def type_name(value: object) -> str:
    """Describe the type of a value in JSON terms."""
    names: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (bool, "a boolean"),
        ((int, float), "a number"),
        (str, "a string"),
        ((list, tuple), "a list"),
        (Mapping, "a mapping"),
        (FunctionType, "a function"),
    )
    if value is None:
        return "null"
    return next((name for type_, name in names if isinstance(value, type_)), type(value).__name__)
