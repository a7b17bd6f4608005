"""The JSON Schema of rubric files, for editors."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec

from proctor.records.rubric import RubricSet

SCHEMA_FILE = "rubrics.schema.json"


def schema() -> dict[str, Any]:
    """The JSON Schema of rubric files.

    >>> schema()["title"]
    'Proctor rubric file'
    """
    made: dict[str, Any] = _tidied(msgspec.json.schema(RubricSet))
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {**head, "title": "Proctor rubric file", **made}


def _tidied(part: Any) -> Any:
    """Descriptions as docstrings are meant: Python 3.13 takes their indent away, older ones not."""
    if isinstance(part, dict):
        return {
            key: inspect.cleandoc(value)
            if key == "description" and isinstance(value, str)
            else _tidied(value)
            for key, value in part.items()
            # Further keys are kept in the metadata.
            if (key, value) != ("additionalProperties", False)
        }
    return [_tidied(one) for one in part] if isinstance(part, list) else part
