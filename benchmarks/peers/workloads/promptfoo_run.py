"""promptfoo: its command line, a JavaScript provider that returns the expected answer, two assertions."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import measure
from measure import CONCURRENCY, ROWS, SLEEP

COMMAND = [str(Path(sys.argv[5], "node_modules", ".bin", "promptfoo"))]
PROVIDER = """
const fs = require('fs');
const answers = JSON.parse(fs.readFileSync(__dirname + '/answers.json', 'utf8'));
module.exports = class {
  id() { return 'table'; }
  async callApi(prompt) {
    if (%f) await new Promise(resolve => setTimeout(resolve, %f));
    return { output: answers[prompt] };
  }
};
"""


def run_command(*arguments: str) -> int:
    environment = os.environ | {
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
        "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
        "PROMPTFOO_CONFIG_DIR": str(Path("config").resolve()),
    }
    return subprocess.run([*COMMAND, *arguments], env=environment, capture_output=True).returncode


def run() -> dict:
    Path("provider.js").write_text(PROVIDER % (SLEEP, SLEEP * 1000), encoding="utf-8")
    Path("answers.json").write_text(json.dumps(measure.ANSWERS), encoding="utf-8")
    with Path("tests.jsonl").open("w", encoding="utf-8") as file:
        for row in ROWS:
            checks = [{"type": "equals", "value": row["expected"]}, {"type": "contains", "value": row["expected"]}]
            file.write(json.dumps({"vars": {"question": row["input"]}, "assert": checks}) + "\n")
    config = {"prompts": ["{{question}}"], "providers": ["file://provider.js"], "tests": "file://tests.jsonl"}
    Path("promptfooconfig.json").write_text(json.dumps(config), encoding="utf-8")
    run_command(
        *("eval", "-c", "promptfooconfig.json", "-j", str(CONCURRENCY), "--no-cache", "--no-progress-bar"),
        *("--no-table", "-o", "results.json"),
    )
    # It may crash in its logger after it has written the results.
    return json.loads(Path("results.json").read_text(encoding="utf-8"))["results"]["stats"]


measure.started()
before = resource.getrusage(resource.RUSAGE_CHILDREN)
run_command("--version")
after = resource.getrusage(resource.RUSAGE_CHILDREN)
measure._import_cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
measure.measure(run, lambda stats: stats["successes"])
