"""The tags of a run: a few texts by name, to find the run by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

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
