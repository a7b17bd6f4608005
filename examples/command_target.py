"""Evaluate a program in any language: it reads JSON from standard input and writes JSON to standard output.

Run: python command_target.py
In an eval file write `target: {command: [node, answer.js]}`.
"""

import sys
from pathlib import Path

from proctor import CommandTarget, evaluate, exact_match

PROGRAM = """
import json, sys
request = json.load(sys.stdin)
words = request["input"].split()
print(json.dumps({"output": len(words), "usage": {"output_tokens": 1}}))
"""

Path("count_words.py").write_text(PROGRAM)
target = CommandTarget([sys.executable, "count_words.py"])
dataset = [{"id": "two", "input": "hello world", "expected": 2}, {"id": "none", "input": "", "expected": 0}]
report = evaluate(target, dataset, exact_match, timeout=60)
print(f"{report.pass_rate:.0%} of {report.total} passed, {report.metrics['tokens.total'].value:.0f} tokens")

# Output:
# 100% of 2 passed, 2 tokens
