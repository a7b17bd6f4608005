"""Load the built-in word lists and patterns from the YAML files in this folder."""

from __future__ import annotations

import functools
import re
from typing import Any

from proctor.core import resources


def load_data(*path: str) -> Any:
    """Return the content of a built-in file."""
    # Slow to import, and listing the evaluators does not need it.
    import yaml

    return yaml.safe_load(resources.text("evaluators", *path))


@functools.cache
def load_patterns(*path: str) -> dict[str, re.Pattern[str]]:
    """Compile the patterns of a built-in file; line breaks inside a pattern are ignored."""
    return {name: re.compile("".join(text.splitlines())) for name, text in load_data(*path).items()}
