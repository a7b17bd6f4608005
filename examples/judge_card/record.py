"""Write 100 outputs with a judge that errs on 8% of them, and what a person says about all."""

import json
import random
from pathlib import Path

rng = random.Random(5)
with Path("questions.jsonl").open("w") as questions, Path("outputs.jsonl").open("w") as outputs:
    people = {f"q{i:03}": rng.random() < 0.7 for i in range(100)}
    for name, is_good in people.items():
        verdict = is_good if rng.random() < 0.92 else not is_good
        row = {"id": name, "input": f"Question {name}", "expected": "pass" if verdict else "fail"}
        questions.write(json.dumps(row) + "\n")
        outputs.write(json.dumps({"id": name, "output": f"Answer {name}"}) + "\n")
Path("people.json").write_text(json.dumps(people))
