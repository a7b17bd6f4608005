"""Evaluate inside your own services: requests arrive in a mailbox, an `EvalLoop` scores them, results go to another.

Run: python eval_loop_mailbox.py
With `RedisMailbox` or `SQSMailbox` instead of `InMemoryMailbox`, loop and client are programs on different machines.
"""

from proctor import EvalLoop, InMemoryMailbox, collect_results, exact_match, submit_dataset

CAPITALS = {"France": "Paris", "Italy": "Rome", "Spain": "Lisbon"}
dataset = [
    {"id": "fr", "input": "France", "expected": "Paris"},
    {"id": "it", "input": "Italy", "expected": "Rome"},
    {"id": "es", "input": "Spain", "expected": "Madrid"},
]

requests, results = InMemoryMailbox(name="requests"), InMemoryMailbox(name="results")
loop = EvalLoop(loop=CAPITALS.__getitem__, evaluator=exact_match, requests=requests, results=results)

submission = submit_dataset(dataset, requests)
loop.run(until_empty=True)
report = collect_results(results, submission)

print(f"{report.pass_rate:.0%} of {report.total} passed")
for result in report.failed_samples():
    print(result.sample_id, result.score.reason)

# Output:
# 67% of 3 passed
# es expected 'Madrid', got 'Lisbon'
