import random

chance = random.Random(7)


def answer(question: str) -> str:
    """A stand-in for an agent: right more often on small numbers."""
    return "right" if chance.random() < 1 - int(question) / 100 else "wrong"


def right(output: str) -> bool:
    return output == "right"
