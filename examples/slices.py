"""Find the topic that an average hides: metrics by a metadata key.

Run: python slices.py
On the command line: proctor show latest --by topic
"""

from proctor import evaluate, exact_match


def classify(ticket: dict) -> str:
    return "low" if ticket["topic"] == "login" and ticket["number"] % 2 == 0 else ticket["urgency"]


dataset = [
    {
        "id": f"t{number}",
        "input": {"topic": topic, "number": number, "urgency": "high"},
        "expected": "high",
        "metadata": {"topic": topic},
    }
    for number, topic in enumerate(["billing", "login", "refunds"] * 30)
]
report = evaluate(classify, dataset, exact_match, name="tickets")
print(f"all: {report.pass_rate:.0%}, n = {report.total}")
for part in report.by("topic"):
    metric = part.metrics["default"]["pass_rate"]
    print(f"{part.label}: {metric.value:.0%} ({metric.interval[0]:.0%}–{metric.interval[1]:.0%}), n = {metric.n}")

# Output:
# all: 83%, n = 90
# billing: 100% (89%–100%), n = 30
# login: 50% (33%–67%), n = 30
# refunds: 100% (89%–100%), n = 30
