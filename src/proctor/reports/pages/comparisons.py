"""The page that compares two configurations, of one run or of two."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from proctor.comparison.report import EvalReport
from proctor.comparison.sides import PASS_RATE, STRICT_PASS_RATE, Side, align_numbers
from proctor.records.comparison import Comparison
from proctor.records.run import RunMetadata

# The grid shows all flips; more of them would only make the page large.
MAX_FLIPS = 1_000


class ComparedSide(NamedTuple):
    """One side of a comparison: a report and one of its configurations."""

    report: EvalReport
    configuration: str


def comparison_page(
    comparison: Comparison, a: ComparedSide, b: ComparedSide, numbers: tuple[Side, Side]
) -> dict[str, Any]:
    """Describe a comparison: the answer, the differences to show, the table of passes, flips, and what changed.

    `numbers` are the compared numbers of both sides.
    """
    units = {name: metric.unit for name, metric in numbers[0].stored.items()}
    return {
        "comparison": msgspec.structs.replace(
            comparison,
            flips=comparison.flips[:MAX_FLIPS],
            only_a=comparison.only_a[:MAX_FLIPS],
            only_b=comparison.only_b[:MAX_FLIPS],
        ),
        "only": [len(comparison.only_a), len(comparison.only_b)],
        "deltas": [
            {**msgspec.to_builtins(delta), "unit": units.get(delta.name, "")} for delta in comparison.essential()
        ],
        "counts": count_passes(comparison, *numbers),
        "a": _describe_side(a),
        "b": _describe_side(b),
        "changes": list(_list_changes(a, b)),
    }


def count_passes(comparison: Comparison, a: Side, b: Side) -> dict[str, int]:
    """Count the samples that pass on both sides, on one, or on none, as in the flips of the comparison."""
    lost = sum(flip.lost for flip in comparison.flips)
    rates_a, rates_b = (side.find(STRICT_PASS_RATE) or side.find(PASS_RATE) or {} for side in (a, b))
    ids, excluded = [*rates_a], set(comparison.other_content)
    columns = align_numbers(rates_a, ids), align_numbers(rates_b, ids)
    same = [
        rate_a > 0.5
        for name, rate_a, rate_b in zip(ids, *columns, strict=True)
        if rate_a is not None and rate_b is not None and (rate_a > 0.5) is (rate_b > 0.5) and name not in excluded
    ]
    return {"both": sum(same), "lost": lost, "won": len(comparison.flips) - lost, "neither": len(same) - sum(same)}


def _describe_side(side: ComparedSide) -> dict[str, str]:
    return {"run_id": side.report.run_id, "configuration": side.configuration}


def _list_changes(a: ComparedSide, b: ComparedSide) -> Iterator[dict[str, Any]]:
    run_a, run_b = a.report.metadata, b.report.metadata
    if run_a is None or run_b is None:
        return
    if run_a.run_id != run_b.run_id:
        yield _compare_part("target", run_a.target.identity, run_b.target.identity, *_describe_targets(run_a, run_b))
        names = run_a.dataset.name, run_b.dataset.name
        yield _compare_part("dataset", run_a.dataset.fingerprint, run_b.dataset.fingerprint, *names)
        yield from _compare_evaluators(run_a, run_b)
    options_a, options_b = _options(run_a, a.configuration), _options(run_b, b.configuration)
    for name in dict.fromkeys((*options_b, *options_a)):
        old, new = options_b.get(name), options_a.get(name)
        if old != new:
            texts = (repr(options[name]) if name in options else "the default" for options in (options_b, options_a))
            yield {"what": "configuration", "same": False, "text": f"{name}: {' → '.join(texts)}"}


def _compare_part(what: str, a: str | None, b: str | None, text_a: str, text_b: str) -> dict[str, Any]:
    if not a or not b:
        return {"what": what, "same": None, "text": "unknown"}
    return {"what": what, "same": a == b, "text": text_a if text_a == text_b else f"{text_b} → {text_a}"}


def _compare_evaluators(a: RunMetadata, b: RunMetadata) -> Iterator[dict[str, Any]]:
    specs_a, specs_b = ({spec.name: spec for spec in run.evaluators} for run in (a, b))
    for name in dict.fromkeys((*specs_b, *specs_a)):
        old, new = specs_b.get(name), specs_a.get(name)
        if old is None or new is None:
            yield {"what": "evaluator", "same": False, "text": f"{name}: {'new' if old is None else 'removed'}"}
        elif old.identity != new.identity or old.parameters != new.parameters:
            what = "judge" if new.judges_inside else "evaluator"
            yield {"what": what, "same": False, "text": f"{name} changed"}


def _options(run: RunMetadata, configuration: str) -> dict[str, Any]:
    return next((item.options for item in run.configurations if item.name == configuration), {})


def _describe_targets(a: RunMetadata, b: RunMetadata) -> tuple[str, str]:
    """Describe the targets of two runs by what differs: their names, addresses and commits; else by their code."""
    facts = [(run.target.name, _find_address(run), run.provenance.code) for run in (a, b)]
    differences = [pair for pair in zip(*facts, strict=True) if all(pair) and pair[0] != pair[1]]
    if not differences:
        code = f"the code of {a.target.name}, or code and constants that it uses"
        text = a.describe_target_change(b) or code
        return text, text
    text_a, text_b = (", ".join(texts) for texts in zip(*differences, strict=True))
    return text_a, text_b


def _find_address(run: RunMetadata) -> str:
    """Return the address of the target in the command that started the run, if there is one."""
    words = [word for argument in run.provenance.command for word in argument.split("=", 1)]
    return next((address for option, address in pairwise(words) if option == "--target"), "")
