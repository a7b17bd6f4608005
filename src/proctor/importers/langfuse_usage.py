"""Tokens and money of an observation, as Langfuse counts them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.genai.values import decoded
from proctor.importers.shapes import amount, count, mapping, number_at
from proctor.records.session import Usage

_INPUT = ("input", "input_tokens", "prompt_tokens", "promptTokens")
_OUTPUT = ("output", "output_tokens", "completion_tokens", "completionTokens")
_TOTAL = ("total", "total_tokens", "totalTokens")
_CACHED = (
    "input_cache_read",
    "input_cached_tokens",
    "cache_read_input_tokens",
    "prompt_details.cache_read",
)
_CACHE_WRITTEN = ("input_cache_creation", "cache_creation_input_tokens")
_MAIN = frozenset((*_INPUT, *_OUTPUT, *_TOTAL))
# By these words in its name a further kind of tokens belongs to a side.
_ASKED = ("input", "prompt", "cache")
_SAID = ("output", "completion", "reasoning")


def usage_of(observation: Mapping[str, Any]) -> Usage | None:
    """What a model used, what was read from a cache in it; None if nothing was counted.

    >>> usage_of({"usageDetails": {"input": 5, "input_cache_read": 40, "output": 2, "total": 47}})
    Usage(input_tokens=45, output_tokens=2, cached_tokens=40)
    """
    found = mapping(decoded(observation.get("usageDetails")))
    older = mapping(decoded(observation.get("usage")))
    if not found and older.get("unit") in (None, "TOKENS"):
        found = older
    asked, said = _tokens(found)
    usage = Usage(
        asked,
        said,
        number_at(found, *_CACHED),
        _cost(observation),
        number_at(found, *_CACHE_WRITTEN),
    )
    return None if usage == Usage() else usage


def _tokens(found: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """All that went in and came out.

    The kinds of tokens stand beside each other and add up; but some programs tell kinds again that
    are in the input or the output already. The total tells which. What only the total counts is
    what a model thought, as Gemini's do.
    """
    asked, said = number_at(found, *_INPUT), number_at(found, *_OUTPUT)
    more_asked, more_said = _further(found)
    total = number_at(found, *_TOTAL)
    if total is not None:
        if asked is None and said is None and not (more_asked or more_said):
            return None, None  # Of which side they are, nobody tells.
        beyond = max(total - (asked or 0) - (said or 0), 0)
        if beyond == more_said:
            more_asked = 0
        elif asked is None and not more_asked:
            more_asked = max(beyond - more_said, 0)
        else:
            more_asked = min(beyond, more_asked)
        more_said = beyond - more_asked
    return _with(asked, more_asked), _with(said, more_said)


def _with(known: int | None, more: int) -> int | None:
    return count((known or 0) + more) if more else known


def _further(found: Mapping[str, Any]) -> tuple[int, int]:
    """How many tokens are of further kinds that belong to the input, and to the output."""
    asked = said = 0
    for name, value in found.items():
        number = count(value)
        if number is None or name in _MAIN or "cost" in name.casefold():
            continue
        if any(word in name for word in _SAID):
            said += number
        elif any(word in name for word in _ASKED):
            asked += number
    return asked, said


def _cost(observation: Mapping[str, Any]) -> float | None:
    details = mapping(decoded(observation.get("costDetails")))
    whole = amount(details.get("total"))
    for name in ("totalCost", "calculatedTotalCost"):
        # Zero stands here too where no price is known.
        whole = whole or amount(observation.get(name)) or whole
    return whole
