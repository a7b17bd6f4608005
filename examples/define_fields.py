"""Check tokens and text of a result with `define`, and compare two configurations with a baseline.

Run: python define_fields.py
"""

from proctor import Reply, Usage, define


def agent(question: str, *, style: str = "short") -> Reply:
    text = "Paris" if style == "short" else "The capital of France is, as far as I know, Paris."
    return Reply(text, usage=Usage(output_tokens=len(text.split())))


checks = define("capitals").select("usage.output_tokens", as_="tokens").baseline("short")
checks.evaluate_field("output").evaluate_with("contains")
checks.evaluate_field("tokens").evaluate_with("token_regression", max_pct=10)

sample = {"id": "fr", "input": "Capital of France?", "expected": "Paris"}
styles = {"short": {"style": "short"}, "long": {"style": "long"}}
result = checks.evaluate(sample, target=agent, configurations=styles)

print("best by tokens:", result.rank_by("tokens").best)
print("long against short:", result.compare("long", "short").deltas["tokens"])
print("all checks passed:", result.passed)

# Output:
# best by tokens: short
# long against short: {'absolute': 10.0, 'percentage': 1000.0}
# all checks passed: False
