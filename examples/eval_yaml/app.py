CAPITALS = {"France": "Paris", "Peru": "Lima", "Kenya": "Mombasa"}


def answer(question: str) -> str:
    return f"It is {CAPITALS[question.split()[-1].rstrip('?')]}."
