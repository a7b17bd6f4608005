"""Two evaluators of the demonstration's own: plain functions, named in its eval file."""

from __future__ import annotations

import re

from proctor.records.sample import Sample
from proctor.records.score import Score


def cites_source(output: str, sample: Sample[str, str]) -> Score:
    """Passes if the answer cites the passage that holds it, or nothing where none does.

    >>> sample = Sample("1", "Which metal was named after Pallas?", metadata={"context": "pallas"})
    >>> cites_source("Vesta is the brightest asteroid. [vesta]", sample).reason
    'cites vesta; the answer stands in pallas'
    """
    found = re.search(r"\[([^\]]+)\]$", output)
    cited = found[1] if found else None
    if cited == sample.context:
        return Score(1.0, True)
    cites, stands = cited or "nothing", sample.context or "no passage"
    return Score(0.0, False, f"cites {cites}; the answer stands in {stands}")


def brief(output: str, *, limit: int = 20) -> float:
    """How brief an answer is: 1 up to a limit of words, half of it at twice as many.

    >>> brief("No."), brief("word " * 40)
    (1.0, 0.5)
    """
    return min(1.0, limit / max(1, len(output.split())))
