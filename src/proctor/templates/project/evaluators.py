"""Your own evaluators: plain functions of an output and what was expected."""

import re


def right_number(output: str, expected: str, *, margin: float = 0.01) -> bool | None:
    """Passes if the number is right, give or take a margin; says nothing where none is expected.

    >>> right_number("4.54 kg", "4.536 kg")
    True
    """
    wanted, given = number_in(expected), number_in(output)
    if wanted is None:
        return None
    return given is not None and abs(given - wanted) <= margin * abs(wanted)


def number_in(text: str) -> float | None:
    """The first number in a text."""
    found = re.search(r"-?\d+(\.\d+)?", text)
    return float(found[0]) if found else None
