"""Readings: the numbers that a field or an evaluator gave, trial by trial."""

from __future__ import annotations

from typing import Any

import msgspec

from proctor.fields.numbers import as_number


class Reading(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One number of one trial: of which sample, in which epoch; None where there is none.

    >>> Reading("1", 0, 450.0).value
    450.0
    """

    sample_id: str
    epoch: int
    value: float | None = None

    @classmethod
    def of(cls, sample_id: str, epoch: int, value: Any) -> Reading:
        """A reading of any value: a boolean is 0 or 1, what is no finite number is missing.

        >>> Reading.of("1", 0, True).value, Reading.of("1", 0, "four").value
        (1.0, None)
        """
        return cls(sample_id, epoch, as_number(value))
