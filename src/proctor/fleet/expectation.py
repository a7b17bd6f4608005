"""What a worker runs, in words that can be compared: name and version of target and evaluators."""

from __future__ import annotations

from proctor import codec
from proctor.engine.plan import Setup

DIGITS = 8


def expectation(setup: Setup) -> str:
    """Target and evaluators with a digest of each, the same wherever the same code is installed.

    The digests cover what they reach in the project, wherever it lies.
    """
    target = setup.target.spec
    parts = [f"{target.name}@{codec.digest(target.kind, target.identity)[:DIGITS]}"]
    for evaluator in setup.evaluators:
        spec = evaluator.spec
        version = codec.digest(spec.parameters, spec.identity or spec.uses)
        parts.append(f"{spec.name}@{version[:DIGITS]}")
    return " ".join(parts)
