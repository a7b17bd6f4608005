"""What is asked: a sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from proctor.errors import ConfigError, Problem

MAX_TAGS = 100


def tag_problems(tags: Any) -> Iterator[Problem]:
    """Everything that is wrong with the tags of a run, or of a query for runs.

    >>> list(tag_problems({"branch": "main"})), len(list(tag_problems({"n": 1})))
    ([], 1)
    """
    if not isinstance(tags, Mapping):
        yield Problem("tags", f"expected a mapping of names to texts, got {type(tags).__name__}")
        return
    if len(tags) > MAX_TAGS:
        yield Problem("tags", f"{len(tags):,} tags, at most {MAX_TAGS} are allowed")
        return
    for name, value in tags.items():
        if not isinstance(name, str) or not isinstance(value, str):
            yield Problem(f"tags.{name}", f"expected a text, got {value!r}")


def check_tags(tags: Any) -> dict[str, str]:
    """Return the tags, or raise one error that lists everything that is wrong with them."""
    problems = list(tag_problems(tags))
    if problems:
        raise ConfigError(
            "the tags cannot be used",
            problems=problems,
            fix="tags are for finding runs; put data about samples into their metadata",
        )
    return dict(tags)


InputT = TypeVar("InputT")
ExpectedT = TypeVar("ExpectedT")

LABELS, CONTEXT, CLUSTER, TAGS = "labels", "context", "cluster", "tags"


class Sample(
    msgspec.Struct, Generic[InputT, ExpectedT], frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One case of a dataset: what goes in and, where it is known, what should come out.

    `metadata` may hold anything; four of its keys have a meaning: `labels` (a mapping, for
    classification), `context` (what the answer should rest on), `cluster` (samples that belong
    together, such as questions on one document) and `tags` (a list of words to filter by).

    >>> Sample("1", "What is 2 + 2?", "4", metadata={"cluster": "sums"}).cluster
    'sums'
    """

    id: str
    input: InputT
    expected: ExpectedT | None = None
    metadata: dict[str, Any] = {}

    @property
    def query(self) -> Any:
        """What the user asked: the input, or its `query` (the runner spec's name for it)."""
        return self._part("query", self.input)

    @property
    def response(self) -> Any:
        """The response that follow-ups are asked for: `response` of the input or the metadata."""
        return self._part("response")

    @property
    def expected_followups(self) -> ExpectedT | None:
        """The expected value (the runner spec's name for it)."""
        return self.expected

    def _part(self, name: str, *otherwise: Any) -> Any:
        if isinstance(self.input, Mapping):
            otherwise = ()
            if name in self.input:
                return self.input[name]
        if name in self.metadata:
            return self.metadata[name]
        if otherwise:
            return otherwise[0]
        raise AttributeError(f"sample {self.id!r}: neither the input nor the metadata has {name!r}")

    @property
    def labels(self) -> Mapping[str, Any]:
        """Labels for classification, by name."""
        return self.metadata.get(LABELS) or {}

    @property
    def context(self) -> Any:
        """What the answer should rest on: documents, a conversation, anything."""
        return self.metadata.get(CONTEXT)

    @property
    def cluster(self) -> str | None:
        """The group this sample belongs to when samples are not independent of each other."""
        return self.metadata.get(CLUSTER)

    @property
    def tags(self) -> tuple[str, ...]:
        """Words to filter by."""
        return tuple(self.metadata.get(TAGS) or ())


def metadata_faults(metadata: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is wrong with the four known metadata keys, as (key, what was expected and found).

    >>> metadata_faults({"tags": "easy"})
    [('metadata.tags', 'expected a list of strings, found a string')]
    """
    faults = []
    labels, tags, cluster = (metadata.get(key) for key in (LABELS, TAGS, CLUSTER))
    if labels is not None and not isinstance(labels, Mapping):
        faults.append((f"metadata.{LABELS}", f"expected a mapping, found {kind_of(labels)}"))
    if tags is not None and not (
        isinstance(tags, list | tuple) and all(isinstance(tag, str) for tag in tags)
    ):
        faults.append((f"metadata.{TAGS}", f"expected a list of strings, found {kind_of(tags)}"))
    if cluster is not None and not isinstance(cluster, str):
        faults.append((f"metadata.{CLUSTER}", f"expected a string, found {kind_of(cluster)}"))
    return faults


def kind_of(value: object) -> str:
    """The kind of a value in words that a reader of JSON knows.

    >>> kind_of(True), kind_of(3), kind_of([1]), kind_of(None)
    ('a boolean', 'a number', 'a list', 'null')
    """
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (bool, "a boolean"),
        ((int, float), "a number"),
        (str, "a string"),
        ((list, tuple), "a list"),
        (Mapping, "a mapping"),
    )
    if value is None:
        return "null"
    return next((word for type_, word in kinds if isinstance(value, type_)), type(value).__name__)
