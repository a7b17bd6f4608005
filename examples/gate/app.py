import os

WRONG = int(os.environ.get("WRONG", "0"))  # how many answers the change breaks


def square(number: int) -> int:
    return number * number + (number < WRONG)
