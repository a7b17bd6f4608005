"""Play a new user in a bare environment, and write the transcript to docs/first-ten-minutes.md.

python tools/new_user.py                       use the wheel in dist/ (make release builds it)
python tools/new_user.py --wheel FILE --check  only check that every step works; write nothing

Every command must end with the exit code that the step names. `proctor view` is started, its page and its list of runs
are fetched, and it is stopped.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "first-ten-minutes.md"
NOTICE = "<!-- Written by tools/new_user.py, which runs these commands in an empty environment: `make new-user`. -->"
MAX_LINES = 32
FIX = """    if match is not None and match[2] == "F":
        return f"{round((float(match[1]) - 32) * 5 / 9, digits):g} C"
"""
TEST = """from proctor import evaluate, exact_match
from target import answer

CASES = [
    {"id": "km", "input": "How much is 3 km in m?", "expected": "3000 m"},
    {"id": "f", "input": "How much is 68 F in C?", "expected": "20 C"},
]


def test_conversions():
    report = evaluate(answer, CASES, exact_match, name="conversions")
    assert report.strict_pass_rate == 1.0, [result.score.reason for result in report.failed_samples()]
"""
HEAD = """
What a new user types, and what they see: install, run, look, compare, gate and test. A script plays these commands in
an empty environment before every release, so the output is real; only times and ids differ on your machine.
"""
TAIL = """
Next: [choose an entry point](entry-points.md) for your own program, bring [your data](datasets.md), or see
[examples](examples.md).
"""


class Step(NamedTuple):
    """A command, the sentence before it, the exit code it must have, and a file that the user edits before it."""

    sentence: str
    command: str
    exit_code: int = 0
    edited: str = ""
    contents: str = ""


STEPS = (
    Step("Install Proctor (and pytest for the last step) into an environment of yours.", "pip install proctor pytest"),
    Step(
        "Write a small project: a dataset, a target, an evaluator of your own and an eval file.", "proctor init evals"
    ),
    Step("Run it. Two of the ten samples fail on purpose.", "proctor run eval.yaml"),
    Step("Look at the run in a browser; stop the server with Ctrl-C.", "proctor view --port 8765"),
    Step("Keep this run as the baseline, before you change anything.", "proctor baseline set main latest"),
    Step(
        "Teach the converter Fahrenheit, and run again. In `target.py`, above `if match is None`:",
        "proctor run eval.yaml",
        edited="target.py",
        contents=FIX,
    ),
    Step("Is the change better? Ten samples cannot tell, and the answer says so.", "proctor compare latest main"),
    Step(
        "The same question for CI. Exit code 4 means inconclusive: neither pass nor fail.",
        "proctor gate latest --baseline main --margin 5%",
        exit_code=4,
    ),
    Step("Put the cases that must never break into a test.", "pytest -q", edited="test_target.py", contents=TEST),
)


def play(wheel: Path, folder: Path) -> list[str]:
    """Do all steps in an empty environment; return their outputs."""
    subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True)
    binaries = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PROCTOR_"))}
    environment |= {"PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1", "COLUMNS": "100"}
    outputs = []
    for step in STEPS:
        project = folder / "evals"
        if step.edited:
            edit(project / step.edited, step.contents)
        command = step.command.replace("install proctor", f"install --quiet {wheel}").split()
        working_folder = project if project.is_dir() else folder
        play_step = view if command[:2] == ["proctor", "view"] else run
        code, output = play_step(command, working_folder, environment)
        if code != step.exit_code:
            sys.exit(f"{step.command} ended with {code} instead of {step.exit_code}:\n{output}")
        print(f"ok: {step.command} (exit code {code})", flush=True)
        outputs.append(output)
    return outputs


def edit(path: Path, contents: str) -> None:
    """Write a new file, or put lines above the first test of an existing one."""
    if not path.exists():
        path.write_text(contents, encoding="utf-8")
        return
    text = path.read_text(encoding="utf-8")
    position = text.index("    if match is None")
    path.write_text(text[:position] + contents + text[position:], encoding="utf-8")


def run(command: list[str], folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    """Run a command, and return its exit code and what it printed."""
    process = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return process.returncode, "" if command[0] == "pip" and process.returncode == 0 else process.stdout


def view(command: list[str], folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    """Start the viewer, fetch its page and the list of runs, and stop it as Ctrl-C does."""
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if address := re.search(r"http://[\w.:]+/?", line):
            break
    else:
        return process.wait(), "".join(lines)
    with urllib.request.urlopen(address[0]) as response:
        page = response.read().decode()
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=60)
    if "<title>Proctor</title>" not in page:
        return -1, f"the page of the viewer is not there: {page[:200]}"
    return process.returncode, "".join(lines) + rest


def render(outputs: list[str]) -> str:
    """Return the page: sentences, commands and outputs."""
    parts = ["# The first ten minutes", NOTICE, HEAD.strip()]
    for number, (step, output) in enumerate(zip(STEPS, outputs, strict=True), start=1):
        parts.append(f"**{number}.** {step.sentence}")
        if step.edited:
            parts.append(f'```py title="{step.edited}"\n{step.contents.rstrip()}\n```')
        parts.append(f"```sh\n{step.command}{chr(10) + 'cd evals' if ' init ' in step.command else ''}\n```")
        lines = [line.rstrip() for line in output.rstrip().splitlines()]
        if len(lines) > MAX_LINES:
            lines = [*lines[:MAX_LINES], "…"]
        if lines:
            parts.append("```text\n" + "\n".join(lines) + "\n```")
    return "\n\n".join([*parts, TAIL.strip()]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--wheel", type=Path, help="the wheel to install; default: the one in dist/")
    parser.add_argument("--check", action="store_true", help="write no page")
    options = parser.parse_args()
    wheels = [options.wheel] if options.wheel else sorted((ROOT / "dist").glob("*.whl"))
    if not wheels:
        sys.exit("dist/ has no wheel\nFix: make release, or pass --wheel FILE")
    with tempfile.TemporaryDirectory() as folder:
        outputs = play(wheels[-1].absolute(), Path(folder))
    if not options.check:
        PAGE.write_text(render(outputs), encoding="utf-8")
        print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
