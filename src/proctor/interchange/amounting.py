"""Whether the results in a file amount to what its end tells of them."""

from __future__ import annotations

from itertools import chain

import msgspec

from proctor.interchange.parts import EndPart
from proctor.records.metric import MetricValue
from proctor.records.run import RunMetadata
from proctor.records.trial import EvalResult

# The evaluator of a field is called so, and the metrics of its score have a name of their own.
FIELD = "field"
TOLERANCE = 1e-6

Table = dict[str, list[float]]


class Tally:
    """Counts results as they are read: verdicts and mean scores, by configuration and evaluator.

    Only these are held against the end; other metrics may be anybody's own. Earlier versions
    ignored skipped scores in the verdict of a result: a file may agree with that count instead.
    """

    def __init__(self, run: RunMetadata) -> None:
        self._named = {
            spec.name: (f"{FIELD}.{spec.name}.pass_rate", f"{FIELD}.{spec.name}.score")
            if spec.uses == FIELD
            else (f"{spec.name}.pass_rate", f"{spec.name}.mean")
            for spec in run.evaluators
        }
        names = [configuration.name for configuration in run.configurations]
        self._found: dict[str, Table] = {name: {} for name in names}
        self._ignoring: dict[str, Table] = {name: {} for name in names}

    def add(self, result: EvalResult) -> None:
        """Count a result, of one of the run's configurations."""
        self._add(self._found, result)
        self._add(self._ignoring, msgspec.structs.replace(result, skipped="ignore"))

    def _add(self, tables: dict[str, Table], result: EvalResult) -> None:
        table = tables[result.trial.configuration]
        outcome, value = result.verdict()
        if outcome in ("passed", "failed") and value is not None:
            _count(table, "pass_rate", float(outcome == "passed"))
            _count(table, "mean_score", value)
        if result.trial.error is not None:
            return
        for name, (rate, mean) in self._named.items():
            score = result.scores.get(name)
            if score is not None and score.value is not None:
                _count(table, rate, float(bool(score.passed)))
                _count(table, mean, score.value)

    def fault(self, end: EndPart) -> str:
        """What the end tells that the results do not amount to, in words; empty if all fits."""
        fault = self._fault(self._found, end)
        return fault if fault and self._fault(self._ignoring, end) else ""

    def _fault(self, tables_found: dict[str, Table], end: EndPart) -> str:
        whole: Table = {}
        for table in tables_found.values():
            for name, (n, total) in table.items():
                kept = whole.setdefault(name, [0, 0.0])
                kept[0] += n
                kept[1] += total
        tables = [("", end.metrics, whole)]
        tables += [
            (f" of {name}", told, tables_found.get(name, {}))
            for name, told in end.by_configuration.items()
        ]
        names = ["pass_rate", "mean_score", *chain.from_iterable(self._named.values())]
        for of, told, found in tables:
            for name in names:
                if name in told and (said := _differs(told[name], found.get(name, [0, 0.0]))):
                    return f"its end tells of {name}{of} {said}"
        return ""


def _count(table: dict[str, list[float]], name: str, value: float) -> None:
    kept = table.setdefault(name, [0, 0.0])
    kept[0] += 1
    kept[1] += value


def _differs(told: MetricValue, found: list[float]) -> str:
    n, total = found
    mean = total / n if n else None
    same = (told.value is None) == (mean is None) and told.n == n
    if same and (mean is None or abs(mean - (told.value or 0.0)) <= TOLERANCE):
        return ""
    return f"{_shown(told.value)} over {told.n}, its results come to {_shown(mean)} over {n}"


def _shown(value: float | None) -> str:
    return "no value" if value is None else f"{value:.4g}"
