"""Score outputs that exist already, then score them again with another evaluator without running anything.

Run: python recorded_outputs.py
"""

import json
from pathlib import Path

from proctor import RecordedTarget, evaluate, exact_match, rescore

dataset = [
    {"id": "fr", "input": "Capital of France?", "expected": "Paris"},
    {"id": "it", "input": "Capital of Italy?", "expected": "Rome"},
]
lines = [{"id": "fr", "output": "Paris"}, {"id": "it", "output": "It is Rome."}]
Path("outputs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

strict = evaluate(RecordedTarget("outputs.jsonl"), dataset, exact_match, name="strict")
relaxed = rescore(strict.metadata.run_id, ["contains"])
print(f"exact_match {strict.pass_rate:.0%}, contains {relaxed.pass_rate:.0%}, n = {strict.total}")

# Output:
# exact_match 50%, contains 100%, n = 2
