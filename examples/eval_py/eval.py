"""An eval file in Python: the same keys as variables, with objects instead of addresses."""

from proctor import exact_match

name = "squares"
dataset = [{"id": str(n), "input": n, "expected": n * n} for n in range(10)]
configurations = {"good": {"offset": 0}, "bad": {"offset": 1}}
baseline = "good"


def target(number: int, *, offset: int) -> int:
    return number * number + offset


def is_even_or_odd(output: int, expected: int) -> bool:
    return output % 2 == expected % 2


evaluators = [exact_match, is_even_or_odd]
