import pytest

CAPITALS = {"France": "Paris", "Japan": "Tokyo"}
DATASET = [{"id": name, "input": name, "expected": city} for name, city in CAPITALS.items()]


def answer(country: str) -> str:
    return f"It is {CAPITALS[country]}."


@pytest.mark.proctor(target=answer, dataset=DATASET, evaluators=["contains"], min_pass_rate="90%", name="capitals")
def test_capitals() -> None: ...


@pytest.mark.proctor(dataset=DATASET, evaluators=["contains"], name="each capital")
def test_each_capital(sample) -> str:  # type: ignore[no-untyped-def]
    return answer(sample.input)
