import json
from pathlib import Path

rows = [{"id": f"q{n}", "input": str(n)} for n in range(80)]
Path("questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
