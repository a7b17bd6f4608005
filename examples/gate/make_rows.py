import json
from pathlib import Path

rows = [{"id": f"q{n}", "input": n, "expected": n * n} for n in range(200)]
Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
