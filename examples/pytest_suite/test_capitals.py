from proctor import contains, evaluate

CAPITALS = {"France": "Paris", "Japan": "Tokyo"}


def test_capitals() -> None:
    dataset = [{"id": name, "input": name, "expected": city} for name, city in CAPITALS.items()]
    report = evaluate(lambda country: f"It is {CAPITALS[country]}.", dataset, contains, name="capitals")
    assert report.strict_pass_rate == 1.0, [result.score.reason for result in report.failed_samples()]
