"""The system to evaluate. Replace it with yours: any function from an input to an output."""

import re

# Each unit in metres, kilograms or litres.
UNITS = {
    "cm": 0.01,
    "m": 1.0,
    "km": 1000.0,
    "ft": 0.3048,
    "mi": 1609.344,
    "g": 0.001,
    "kg": 1.0,
    "lb": 0.45359237,
    "ml": 0.001,
    "l": 1.0,
}


def answer(question: str, *, digits: int = 2) -> str:
    """Convert a quantity from one unit to another.

    >>> answer("How much is 3 km in m?")
    '3000 m'
    """
    match = re.search(r"([\d.]+) (\w+) in (\w+)", question)
    if match is None or match[2] not in UNITS or match[3] not in UNITS:
        return "I don't know"
    number = float(match[1]) * UNITS[match[2]] / UNITS[match[3]]
    return f"{round(number, digits):g} {match[3]}"
