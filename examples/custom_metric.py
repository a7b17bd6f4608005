"""Write a metric: a function of all results that is stored, compared and gated like the built-in ones.

Run: python custom_metric.py
"""

from proctor import evaluate, exact_match


def longest_answer(results) -> int:
    """The length of the longest output in words."""
    return max(len(result.output.split()) for result in results if result.success)


class Outcomes:
    """A metric with several numbers: they are stored as `outcomes.short` and `outcomes.long`."""

    name = "outcomes"

    def compute(self, results):
        lengths = [len(result.output.split()) for result in results if result.success]
        short = sum(length <= 2 for length in lengths)
        return {"short": short, "long": len(lengths) - short} if lengths else None


dataset = [{"id": str(n), "input": n, "expected": " ".join(["word"] * n)} for n in (1, 2, 5)]
report = evaluate(lambda n: " ".join(["word"] * n), dataset, exact_match, metrics=[longest_answer, Outcomes()])
for name in ("longest_answer", "outcomes.short", "outcomes.long"):
    print(name, report.metrics[name].value, f"n = {report.metrics[name].n}")

# Output:
# longest_answer 5.0 n = 3
# outcomes.short 2.0 n = 3
# outcomes.long 1.0 n = 3
