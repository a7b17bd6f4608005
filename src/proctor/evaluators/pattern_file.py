"""Load regular expressions that ship as YAML files beside the evaluators."""

from __future__ import annotations

import functools
import re

from proctor.core import resources


@functools.cache
def load_patterns(*path: str) -> dict[str, re.Pattern[str]]:
    """Compile the patterns of a shipped file; line breaks inside a pattern do not count."""
    import yaml

    texts: dict[str, str] = yaml.safe_load(resources.text("evaluators", *path))
    return {name: re.compile("".join(text.splitlines())) for name, text in texts.items()}
