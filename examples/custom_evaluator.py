"""Write evaluators: a function, one with options, and one that reads the tool calls of a session.

Run: python custom_evaluator.py
"""

from functools import partial

from proctor import Score, ToolCall, evaluate, record

PRICES = {"apple": 2, "pear": 3}


def shop(order: str) -> str:
    total = 0
    for fruit in order.split(" and "):
        price = PRICES.get(fruit)
        record(ToolCall("look_up", {"fruit": fruit}, result=price, error=None if price else f"no price for {fruit}"))
        total += price or 0
    return f"{total} euros"


def mentions_currency(output: str) -> bool:
    return "euro" in output


def at_most(output: str, *, euros: int) -> Score:
    """Parameters after the star are options."""
    amount = int(output.split()[0])
    return Score(min(1.0, euros / max(amount, 1)), amount <= euros, f"{amount} of {euros} euros")


def tools_succeeded(output, expected, session) -> Score:
    """A third parameter receives what happened during the trial."""
    errors = [call.error for call in session[ToolCall] if call.error]
    return Score(float(not errors), not errors, "; ".join(errors))


dataset = [
    {"id": "both", "input": "apple and pear", "expected": "5 euros"},
    {"id": "unknown", "input": "apple and kiwi", "expected": "2 euros"},
]
report = evaluate(shop, dataset, [mentions_currency, partial(at_most, euros=4), tools_succeeded])
for result in report.results:
    print(result.sample_id, result.outcome, {name: score.passed for name, score in result.scores.items()})

# Output:
# both failed {'mentions_currency': True, 'at_most': False, 'tools_succeeded': True}
# unknown failed {'mentions_currency': True, 'at_most': True, 'tools_succeeded': False}
