"""The context of a field for its evaluator: value, baseline, and the full result."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from proctor.errors import FieldMissing
from proctor.records.fields.path import Path, parse_path
from proctor.records.numbers import as_number

BASELINE = "baseline"
_PREFIX = "baseline_"


class Delta(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The difference of a number from its baseline; the percentage is None if the baseline is 0."""

    absolute: float
    percentage: float | None

    @classmethod
    def between(cls, value: float, baseline: float) -> Delta:
        """Compute the difference of a value from its baseline."""
        absolute = value - baseline
        percentage = 100.0 * absolute / abs(baseline) if baseline else None
        # The percentage of a tiny baseline may overflow.
        is_known = percentage is not None and math.isfinite(percentage)
        return cls(absolute, percentage if is_known else None)

    def __getitem__(self, name: str) -> float | None:
        if name not in self.__struct_fields__:
            raise KeyError(name)
        number: float | None = getattr(self, name)
        return number


def _make_property(path: str, doc: str) -> property:
    return property(lambda context: context.get(path), doc=doc)


def _make_baseline_property(path: str, doc: str) -> property:
    return property(lambda context: context._read_baseline(parse_path(path)), doc=doc)


class FieldContext:
    """One field of a result, with the full result.

    `result` is the full result: output, usage, latency_ms, configuration, and any recorded data. The baseline comes
    from the result itself (`baseline_output`, `baseline_usage`, or a mapping `baseline`), unless `baseline` is the
    result of another configuration. `epochs` are the field's values in all epochs of the sample, None for an epoch that
    failed or lacks the field.

    >>> context = FieldContext("tokens", {"usage": {"total_tokens": 450},
    ...     "baseline_usage": {"total_tokens": 500}}, path="usage.total_tokens")
    >>> context.value, context.baseline_value, context.delta.percentage
    (450, 500, -10.0)
    >>> context["usage.total_tokens"], context.field_exists("latency_ms")
    (450, False)
    """

    def __init__(
        self,
        field_name: str,
        result: Mapping[str, Any],
        *,
        path: str | None = None,
        baseline: Mapping[str, Any] | None = None,
        epochs: Sequence[Any] = (),
        baseline_epochs: Sequence[Any] = (),
        is_baseline: bool = False,
    ) -> None:
        self.field_name = field_name
        self.full_result = result
        self.epochs = tuple(epochs)
        self._baseline_epochs = tuple(baseline_epochs)
        self._is_baseline = is_baseline
        # True if an evaluator read the baseline of a result that is the baseline itself.
        self.looked_for_baseline = False
        self._path = parse_path(path or field_name)
        self._baseline = baseline

    def __repr__(self) -> str:
        return f"<FieldContext {self.field_name!r} of {', '.join(map(str, self.full_result))}>"

    @property
    def path(self) -> str:
        """The path of the field."""
        return self._path.text

    @property
    def value(self) -> Any:
        """The field's value, which may be null; a missing field raises `FieldMissing`."""
        return self._path.find(self.full_result)

    @property
    def baseline_value(self) -> Any:
        """The field's value in the baseline, or None if there is none."""
        return self._read_baseline(self._path, self.field_name)

    @property
    def baseline_epochs(self) -> tuple[Any, ...]:
        """The field's values in all epochs of the sample in the baseline."""
        self.looked_for_baseline = self._is_baseline
        return self._baseline_epochs

    @property
    def delta(self) -> Delta | None:
        """The difference from the baseline, if both are numbers, or both booleans (0, 1)."""
        value, baseline = self.value, self.baseline_value
        if as_number(value) is None or as_number(baseline) is None:
            return None
        is_same_type = isinstance(value, bool) is isinstance(baseline, bool)
        return Delta.between(value, baseline) if is_same_type else None

    def __getitem__(self, path: str) -> Any:
        return parse_path(path).find(self.full_result)

    def get(self, path: str, default: Any = None) -> Any:
        """Return any field by its path, or the default if it is missing."""
        try:
            return self[path]
        except FieldMissing:
            return default

    def field_exists(self, path: str) -> bool:
        """True if the result has this field, even if it is null."""
        return parse_path(path).exists(self.full_result)

    input = _make_property("input", "The input of the target.")
    expected = _make_property("expected", "The expected output, or None if it is unknown.")
    output = _make_property("output", "The output.")
    usage = _make_property("usage", "Tokens and cost, as a mapping.")
    latency_ms = _make_property("latency_ms", "The latency in milliseconds.")
    baseline_output = _make_baseline_property("output", "The output in the baseline.")
    baseline_usage = _make_baseline_property("usage", "Tokens and cost in the baseline.")
    baseline_latency_ms = _make_baseline_property("latency_ms", "The latency in the baseline.")

    @property
    def configuration(self) -> Mapping[str, Any]:
        """The name and the options of the configuration; empty if unknown."""
        configuration = self.get("configuration")
        if isinstance(configuration, Mapping):
            return configuration
        return {} if configuration is None else {"name": configuration}

    def _read_baseline(self, path: Path, name: str | None = None) -> Any:
        self.looked_for_baseline = self._is_baseline
        if self._baseline is not None:
            return _find_or_none(self._baseline, path)
        for recorded in _list_baseline_paths(path, name or path.text):
            if recorded.exists(self.full_result):
                return recorded.find(self.full_result)
        nested = self.full_result.get(BASELINE)
        return None if nested is None else _find_or_none(nested, path)


def _list_baseline_paths(path: Path, name: str) -> list[Path]:
    """List the paths where a result may record a field's baseline, the most specific first."""
    last = len(path.keys) - 1
    paths = [Path("", (_PREFIX + name,)), path.with_prefix(_PREFIX, 0)]
    if last:
        paths += [path.with_prefix(_PREFIX, last), Path("", (_PREFIX + path.keys[last],))]
    return paths


def _find_or_none(result: Any, path: Path) -> Any:
    try:
        return path.find(result)
    except FieldMissing:
        return None
