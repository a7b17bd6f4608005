def square(number: int) -> int:
    return number * number
