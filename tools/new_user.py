"""Play a new user in an empty environment, and write the transcript to docs/first-ten-minutes.md.

python tools/new_user.py                       use the wheel in dist/ (make release builds it)
python tools/new_user.py --wheel FILE --check  only check that every step works; write nothing

Every command must end with the exit code that the step names. `proctor view` is started, its page is fetched, and it is
stopped. CI is played by the commands of the workflow file, in a copy of the project without its history.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
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
TEST = """import pytest
from target import answer

MUST_PASS = [
    {"id": "km", "input": "How much is 3 km in m?", "expected": "3000 m"},
    {"id": "f", "input": "How much is 68 F in C?", "expected": "20 C"},
]


@pytest.mark.proctor(dataset=MUST_PASS, evaluators=["exact_match"])
def test_must_pass(sample):
    return answer(sample.input)


@pytest.mark.proctor(target=answer, dataset="dataset.jsonl", evaluators=["exact_match"], min_pass_rate="75%")
def test_pass_rate(): ...
"""
WORKFLOW_FILE = ".github/workflows/evals.yml"
WORKFLOW = """name: evals
on: [pull_request]
jobs:
  evals:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: {python-version: "3.12"}
      - run: pip install proctor pytest
      - run: pytest --proctor -q
      - run: proctor history import baseline.jsonl
      - run: proctor gate eval.yaml --baseline main --margin 25% --max-flips 0
"""
HEAD = """
What a new user types, and what they see: install, run, look, compare, gate, test, and check every pull request. A
script plays these commands in an empty environment before every release, so the output is real; only times and ids
differ on your machine.
"""
TAIL = """
Next: [choose an entry point](entry-points.md) for your own program, bring [your data](datasets.md), or see
[examples](examples.md). [Evals in CI](ci.md) has workflows that comment on pull requests and renew the baseline.
"""


class Step(NamedTuple):
    """A command, the sentence before it, the exit code it must have, and a file that the user edits before it.

    Without a command, CI runs the workflow. The contents replace a line of an existing file, or precede that line.
    """

    sentence: str
    command: str = ""
    exit_code: int = 0
    edited: str = ""
    contents: str = ""
    line: str = ""
    replaces: bool = False


STEPS = (
    Step(
        "Install Proctor and pytest into an environment of yours (from a clone: `pip install . pytest`).",
        "pip install proctor pytest",
    ),
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
        line="    if match is None",
    ),
    Step("Is the change better? Ten samples cannot tell, and the answer says so.", "proctor compare latest main"),
    Step(
        "The same question for CI. Exit code 4 means inconclusive: neither pass nor fail.",
        "proctor gate latest --baseline main --margin 5%",
        exit_code=4,
    ),
    Step(
        "Make tests of it: a test for each case that must never break, and one for the pass rate of the whole dataset. "
        "Plain `pytest` leaves evals out.",
        "pytest --proctor -q",
        edited="test_target.py",
        contents=TEST,
    ),
    Step(
        "Check every pull request. Write the baseline to a file, and commit it with the project and this workflow:",
        "proctor history export baseline.jsonl baseline:main",
        edited=WORKFLOW_FILE,
        contents=WORKFLOW,
    ),
    Step("CI runs these commands in a fresh checkout. The change of step 6 is green: no sample was lost."),
    Step(
        "A change that loses a sample is red (exit code 1), and the gate shows which. In `target.py`:",
        exit_code=1,
        edited="target.py",
        contents='    "mi": 1600.0,\n',
        line='    "mi": 1609.344,\n',
        replaces=True,
    ),
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
            edit(project / step.edited, step)
        command = step.command.replace("install proctor", f"install --quiet {wheel}").split()
        working_folder = project if project.is_dir() else folder
        play_step = view if command[:2] == ["proctor", "view"] else run if command else run_workflow
        code, output = play_step(command, working_folder, environment)
        if code != step.exit_code:
            sys.exit(f"{step.command or 'CI'} ended with {code} instead of {step.exit_code}:\n{output}")
        print(f"ok: {step.command or 'CI'} (exit code {code})", flush=True)
        outputs.append(output)
    return outputs


def edit(path: Path, step: Step) -> None:
    """Write a new file, or replace a line of an existing file, or put lines above it."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(step.contents, encoding="utf-8")
        return
    text = path.read_text(encoding="utf-8")
    position = text.index(step.line)
    end = position + (len(step.line) if step.replaces else 0)
    path.write_text(text[:position] + step.contents + text[end:], encoding="utf-8")


def run_workflow(_: list[str], folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    """Run the commands of the workflow, except the installation, in a checkout, until one fails."""
    output, code = "", 0
    with tempfile.TemporaryDirectory() as parent:
        checkout = Path(parent, folder.name)
        shutil.copytree(folder, checkout, ignore=shutil.ignore_patterns(".proctor", "__pycache__", ".pytest_cache"))
        for line in re.findall(r"- run: ((?!pip ).+)", (folder / WORKFLOW_FILE).read_text(encoding="utf-8")):
            code, printed = run(line.split(), checkout, environment)
            output += f"$ {line}\n{printed.rstrip()}\n\n"
            if code:
                break
    return code, output


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
            language = "yaml" if step.edited.endswith(".yml") else "py"
            parts.append(f'```{language} title="{step.edited}"\n{step.contents.rstrip()}\n```')
        if step.command:
            then = "\ncd evals" if " init " in step.command else ""
            parts.append(f"```sh\n{step.command}{then}\n```")
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
