"""Run one target in two configurations, rank them, and ask whether they differ.

Run: python compare_configurations.py
"""

from proctor import evaluate, exact_match


def answer(number: int, *, model: str) -> int:
    """A stand-in for two models: the small one fails on every fifth number."""
    return -1 if model == "small" and number % 5 == 0 else number * number


dataset = [{"id": str(n), "input": n, "expected": n * n} for n in range(100)]
models = {"small": {"model": "small"}, "large": {"model": "large"}}
report = evaluate(answer, dataset, exact_match, configurations=models, name="models")

comparison = report.compare("large", "small")
print(comparison.answer)
print("won:", len(comparison.won), "lost:", len(comparison.lost))

# Output:
# large is better than small: pass_rate 100.0% vs. 80.0%, +20.0 points (n = 100, 95% interval …, p < 0.0001 …).
# won: 20 lost: 0
