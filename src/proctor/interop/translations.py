"""Translate the checks of other tools into evaluators, by the tables of `translations.yaml`."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from proctor.core import resources
from proctor.core.yaml_text import load_yaml


@functools.cache
def _load_translations() -> dict[str, dict[str, Any]]:
    tables: dict[str, dict[str, Any]] = load_yaml(resources.text("interop", "translations.yaml"))
    return tables


def translate_checks(tool: str, names: Iterable[str], warnings: list[str], noun: str) -> tuple[Any, ...]:
    """Return the evaluators for a tool's checks; a check without an equal evaluator becomes a warning."""
    table = _load_translations()[tool]
    evaluators = []
    for name in dict.fromkeys(names):
        # Names may carry their class, as in `Tone [GEval]`.
        entry: dict[str, Any] = table.get(name) or next((table[key] for key in table if f"[{key}]" in name), {})
        if "evaluator" in entry:
            evaluators.append(entry["evaluator"])
        else:
            instead = entry.get("instead", "a function of your own: file.py:function")
            warnings.append(f"the {noun} {name!r} is not translated; use {instead}")
    return tuple(evaluators)
