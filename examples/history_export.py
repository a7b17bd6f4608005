"""Leave at any time: export every run as JSON lines, import it elsewhere, and read it as a table.

Run: python history_export.py
On the command line: proctor history export runs.jsonl, proctor history import runs.jsonl
"""

import json
from pathlib import Path

from proctor import SQLiteHistory, evaluate, exact_match
from proctor.cli.main import run_cli

dataset = [{"id": word, "input": word, "expected": word.upper()} for word in ("yes", "no")]
evaluate(str.upper, dataset, exact_match, name="first")
evaluate(str.title, dataset, exact_match, name="second")

run_cli(["history", "export", "runs.jsonl"])
run_cli(["history", "import", "runs.jsonl", "--history", "copy.db"])
copy = SQLiteHistory("copy.db")
for run in copy.runs():
    report = copy.report(run.run_id)
    print(run.name, f"{report.pass_rate:.0%} of {report.total}")
copy.close()
lines = [json.loads(line) for line in Path("runs.jsonl").read_text().splitlines()]
print(f"{len(lines)} lines of JSON")

# Output:
# wrote 2 runs to runs.jsonl
# imported run … (first), 2 results
# imported run … (second), 2 results
# second 0% of 2
# first 100% of 2
# 8 lines of JSON
