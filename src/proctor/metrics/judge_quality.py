"""How far the verdicts of local models agree with people: the counts, and the sentence about them.

`python -m benchmarks.quality local_judges` measures the counts. `proctor models`, the warnings of
a run and the documentation take their text from `MEASUREMENTS`, so that all show the same figures.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from proctor.statistics.intervals import Interval, wilson_interval

LOCAL = "local:"


class JudgeMeasurement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Verdicts of `llm_judge` on answers that people called right or wrong, as many of each.

    A verdict that could not be read passes nothing and fails nothing: it counts as a disagreement.
    As half of the answers are right, a constant verdict agrees with people on half of them.
    """

    data: str
    right: int
    right_passed: int
    right_unread: int
    wrong: int
    wrong_passed: int
    wrong_unread: int

    @property
    def n(self) -> int:
        """The number of answers."""
        return self.right + self.wrong

    @property
    def unread(self) -> int:
        """The number of verdicts that could not be read."""
        return self.right_unread + self.wrong_unread

    @property
    def agreed(self) -> int:
        """The number of right answers that passed and of wrong answers that failed."""
        return self.right_passed + self.wrong - self.wrong_passed - self.wrong_unread

    @property
    def interval(self) -> Interval:
        """The 95 % interval of the agreement."""
        return wilson_interval(self.agreed, self.n) or (0.0, 1.0)

    @property
    def beats_constant(self) -> bool:
        """Whether the agreement is above that of a constant verdict by more than chance."""
        return self.interval[0] > 0.5

    @property
    def summary(self) -> str:
        """The figures in words, with a conclusion that follows from the interval."""
        low, high = (100 * end for end in self.interval)
        conclusion = (
            "better than a constant verdict"
            if self.beats_constant
            else "not shown to be better than a constant verdict, so do not rely on its scores"
        )
        return (
            f"agrees with people on {self.agreed} of {self.n} answers of {self.data} "
            f"({100 * self.agreed / self.n:.0f} %, 95 % interval {low:.0f}–{high:.0f} %; "
            f"a constant verdict: 50 %): {conclusion}. "
            f"It passed {self.right_passed} of {self.right} right answers and {self.wrong_passed} "
            f"of {self.wrong} wrong ones; {self.unread} of {self.n} verdicts could not be read"
        )


MEASUREMENTS: Mapping[str, JudgeMeasurement] = {
    "smollm2": JudgeMeasurement("EVOUNA TQ", 7, 4, 2, 7, 2, 2),
    "qwen-judge": JudgeMeasurement("EVOUNA TQ", 7, 7, 0, 7, 4, 0),
}


def describe_judge(address: str) -> str:
    """What was measured of a local model as a judge; empty for every other model.

    >>> describe_judge("openai:gpt-4o-mini")
    ''
    """
    measurement = MEASUREMENTS.get(address.removeprefix(LOCAL))
    return "" if measurement is None or not address.startswith(LOCAL) else measurement.summary
