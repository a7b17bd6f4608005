"""Is the new one as good as the old, but for a margin? Yes, no, or not enough evidence.

A gate that asks "is the difference above 0" is red half of the time on equal systems. This one
names a margin: what the new one may be worse by without anybody minding.
"""

from __future__ import annotations

from typing import Literal

from proctor.statistics.differences import ROUNDING, Student
from proctor.statistics.intervals import Interval

Verdict = Literal["pass", "fail", "inconclusive"]
Better = Literal["higher", "lower"]
Sides = Literal[1, 2]


def non_inferiority(interval: Interval, margin: float, better: Better = "higher") -> Verdict:
    """Whether new minus old, known to lie in `interval`, is no worse than `margin`.

    It passes if the whole interval is at most the margin worse, fails if the whole interval is
    more than that worse, and is inconclusive if the margin lies inside. Both verdicts are as sure
    as one side of the interval: a 95 % interval falsely fails at most 2.5 % of the equal systems
    (far fewer with a margin), and falsely passes 2.5 % of those just worse than the margin.

    >>> non_inferiority((-0.015, 0.02), margin=0.02)
    'pass'
    >>> non_inferiority((-0.05, 0.01), margin=0.02)
    'inconclusive'
    >>> non_inferiority((-0.08, -0.03), margin=0.02)
    'fail'
    """
    if margin < 0:
        raise ValueError(f"a margin says how much worse is allowed and is not negative: {margin!r}")
    low, high = interval if better == "higher" else (-interval[1], -interval[0])
    # Equal runs have the interval 0 to 0, which a margin of 0 must let pass, rounded or not.
    line = -margin - ROUNDING * max(1.0, margin)
    if low >= line:
        return "pass"
    return "fail" if high < line else "inconclusive"


def interval_for_gate(found: Student, level: float = 0.05, sides: Sides = 2) -> Interval:
    """The interval of a difference to hold against a margin.

    With two sides (as for every other interval) it is the 1 - level one, 95 %: each verdict is
    wrong at most half the level, 2.5 %. With one side it is the narrower 1 - 2 * level one, 90 %:
    each verdict is wrong at most the whole level, 5 %, and fewer samples decide.

    >>> low, high = interval_for_gate(Student(-0.01, 0.01, 400))
    >>> round(low, 4), round(high, 4)
    (-0.0297, 0.0097)
    >>> low, high = interval_for_gate(Student(-0.01, 0.01, 400), sides=1)
    >>> round(low, 4), round(high, 4)
    (-0.0265, 0.0065)
    """
    return found.interval(1 - level if sides == 2 else 1 - 2 * level)


def p_of_inferiority(found: Student, margin: float, better: Better = "higher") -> float:
    """How likely a difference as good as this is, if the new one were worse by the margin.

    At most 2.5 % exactly where the two-sided 95 % interval passes, 5 % where the one-sided does.

    >>> round(p_of_inferiority(Student(-0.01, 0.01, 400), margin=0.02), 4)
    0.159
    """
    difference = found.difference if better == "higher" else -found.difference
    return Student(difference + margin, found.error, found.df).p("higher")
