"""Your own evaluators: plain functions of the output and the expected value."""

import re


def right_number(output: str, expected: str, *, margin: float = 0.01) -> bool | None:
    """Passes if the number is within `margin`; skips samples without an expected number.

    >>> right_number("4.54 kg", "4.536 kg")
    True
    """
    expected_number, number = first_number(expected), first_number(output)
    if expected_number is None:
        return None
    return number is not None and abs(number - expected_number) <= margin * abs(expected_number)


def first_number(text: str) -> float | None:
    """Return the first number in a text."""
    match = re.search(r"-?\d+(\.\d+)?", text)
    return float(match[0]) if match else None
