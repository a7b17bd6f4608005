"""What a worker runs, in words that can be compared: name and version of target and evaluators."""

from __future__ import annotations

import re
from collections.abc import Iterator

from proctor import codec
from proctor.engine.plan import Setup

DIGITS = 8
_PART = re.compile(rf"(.+?)@([0-9a-f]{{{DIGITS}}})(?: |$)", re.DOTALL)


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


def describe_difference(wanted: str, runs: str) -> str:
    """Say in which parts what a worker runs differs from what it should run.

    >>> describe_difference("answer@00000001 exact_match@00000002", "answer@0000000f")
    "its target 'answer' is another version; it lacks the evaluator 'exact_match'"
    """
    theirs, ours = _PART.findall(runs), _PART.findall(wanted)
    if not (theirs and ours):
        return f"it runs {runs!r}, not {wanted!r}"
    return "; ".join(_differences(ours, theirs)) or "its evaluators are in another order"


def _differences(ours: list[tuple[str, str]], theirs: list[tuple[str, str]]) -> Iterator[str]:
    (target, digest), (their_target, their_digest) = ours[0], theirs[0]
    if their_target != target:
        yield f"its target is {their_target!r}, not {target!r}"
    elif their_digest != digest:
        yield f"its target {target!r} is another version"
    known, wanted = dict(theirs[1:]), dict(ours[1:])
    for name, version in wanted.items():
        if name not in known:
            yield f"it lacks the evaluator {name!r}"
        elif known[name] != version:
            yield f"its evaluator {name!r} is another version or has other parameters"
    for name in known.keys() - wanted.keys():
        yield f"its evaluator {name!r} is not one of the run's"
