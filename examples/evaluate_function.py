"""Evaluate a function on a list of samples, and read the numbers with their intervals.

Run: python evaluate_function.py
"""

from proctor import contains, evaluate

CAPITALS = {"France": "Paris", "Japan": "Tokyo", "Peru": "Lima", "Kenya": "Mombasa"}


def answer(country: str) -> str:
    return f"It is {CAPITALS[country]}."


def brief(output: str) -> bool:
    """An evaluator is a function; a boolean is enough."""
    return len(output.split()) <= 3


expected = {"France": "Paris", "Japan": "Tokyo", "Peru": "Lima", "Kenya": "Nairobi", "Italy": "Rome"}
dataset = [{"id": name, "input": name, "expected": city} for name, city in expected.items()]
report = evaluate(answer, dataset, [contains, brief], name="capitals")

for name in ("pass_rate", "strict_pass_rate", "brief.pass_rate"):
    metric = report.metrics[name]
    print(f"{name}: {metric.value:.0%} ({metric.interval[0]:.0%}–{metric.interval[1]:.0%}), n = {metric.n}")
for result in report.results:
    if result.outcome != "passed":
        print(result.sample_id, result.outcome, result.error or result.scores["contains"].reason)

# Output:
# pass_rate: 75% (30%–95%), n = 4
# strict_pass_rate: 60% (23%–88%), n = 5
# brief.pass_rate: 100% (51%–100%), n = 4
# Kenya failed missing: 'Nairobi'
# Italy error KeyError: 'Italy'
