"""The steps of the CI files: gate a change, write one comment, renew the baseline. It needs only Python and Proctor.

    python proctor_ci.py gate --file eval.yaml --baseline main -- --margin 5%
    python proctor_ci.py comment
    python proctor_ci.py baseline --file eval.yaml --baseline main

`gate` exits with the code of `proctor gate`: 0 pass, 1 fail, 4 inconclusive. Without a baseline, it only runs the file.
`comment` creates the comment of a pull or merge request, or updates the one that it wrote before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

COMMENT, JUNIT, REPORTS = "gate.md", "gate.xml", "eval_results"
PER_PAGE = 100
MAX_BODY = 60_000
MAX_RUNS = 50
# The share of samples without a verdict above which a run does not become the baseline.
MAX_MISSING = "10%"


def gate(file: str, baseline: str, options: Sequence[str]) -> int:
    """Compare a run of the file with the baseline; without a baseline, run it and say how to get one."""
    commit = os.environ.get("GITHUB_SHA") or os.environ.get("CI_COMMIT_SHA") or "unknown"
    shared = ["--tag", f"commit={commit}", "--output", REPORTS]
    # The comment of an earlier job must not be sent again.
    Path(COMMENT).unlink(missing_ok=True)
    if baseline in read_json("proctor", "baseline", "list", "--json"):
        outputs = ["--markdown", COMMENT, "--junit", JUNIT]
        code = run("proctor", "gate", file, "--baseline", baseline, *shared, *outputs, *options)
        mark_comment(file, baseline)
        return code
    print(f"There is no baseline {baseline!r} yet, so nothing is compared.", flush=True)
    code = run("proctor", "run", file, *shared)
    text = "The evaluation did not run; see the log.\n"
    if code in (0, 1, 4):
        text = Path(REPORTS, "report.md").read_text(encoding="utf-8")
    note = f"There is no baseline `{baseline}` yet: the job on the default branch sets it."
    Path(COMMENT).write_text(f"{note}\n\n{text}", encoding="utf-8")
    mark_comment(file, baseline)
    return code


def mark_comment(file: str, baseline: str) -> None:
    """Put the marker that finds the comment again on its first line.

    It names the path of the eval file, not the run: the name in a file that cannot be read is unknown.
    """
    path = Path(COMMENT)
    text = (
        path.read_text(encoding="utf-8") if path.exists() else "## Gate not decided\n\nIt did not run; see the log.\n"
    )
    if text.startswith("<!--"):
        text = text.partition("\n")[2]
    root = os.environ.get("GITHUB_WORKSPACE") or os.environ.get("CI_PROJECT_DIR") or "."
    name = f"{os.path.relpath(file, root)}, baseline {baseline}".replace("\\", "/").replace(">", "")
    path.write_text(f"<!-- proctor gate: {name} -->\n{text}", encoding="utf-8")


def renew_baseline(file: str, baseline: str) -> int:
    """Run the file and make the run the baseline; delete old runs, so that the cached history stays small."""
    code = run("proctor", "run", file, "--output", REPORTS)
    if code not in (0, 1):
        print("The baseline stays as it was, because the run is not complete.", file=sys.stderr)
        return code
    # It refuses runs that are not complete, and runs in which more than a tenth of the samples have no verdict.
    code = run("proctor", "baseline", "set", baseline, "latest", "--max-missing", MAX_MISSING)
    if code:
        print("The baseline stays as it was; the message above says why.", file=sys.stderr)
    return code or run("proctor", "history", "prune", "--count", str(MAX_RUNS), "--yes")


def write_comment(environment: Mapping[str, str]) -> int:
    """Create or update the one comment of a pull request (GitHub) or merge request (GitLab)."""
    path = Path(COMMENT)
    if not path.exists():
        print(f"There is no {COMMENT}: the gate did not run.", file=sys.stderr)
        return 1
    body = path.read_text(encoding="utf-8")
    if len(body) > MAX_BODY:
        body = body[:MAX_BODY] + "\n\n… shortened; the complete report is an artifact of this job.\n"
    api = find_api(environment)
    if api is None:
        print("This is not a pull or merge request, so there is no comment.")
        return 0
    marker = body.partition("\n")[0]
    try:
        comment = find_comment(api, marker)
        if comment is None:
            send(api, "POST", api["comments"], {"body": body})
        else:
            send(api, api["update_method"], f"{api['update']}/{comment}", {"body": body})
    except urllib.error.HTTPError as error:
        # The token of a fork may not write comments; the text is in the log and in the summary of the step.
        print(
            f"The comment was not written: {error.code} {error.reason}. Fix: give the token write access.",
            file=sys.stderr,
        )
        print(body)
        return 0 if error.code in (401, 403, 404) else 1
    print("created the comment" if comment is None else f"updated comment {comment}")
    return 0


def find_api(environment: Mapping[str, str]) -> dict[str, str] | None:
    """Return the addresses of the comments of this request; None outside a request."""
    if environment.get("CI_MERGE_REQUEST_IID"):
        project = f"{environment['CI_API_V4_URL']}/projects/{environment['CI_PROJECT_ID']}"
        notes = f"{project}/merge_requests/{environment['CI_MERGE_REQUEST_IID']}/notes"
        token = environment.get("PROCTOR_COMMENT_TOKEN", "")
        return {"comments": notes, "update": notes, "update_method": "PUT", "header": "PRIVATE-TOKEN", "token": token}
    event = environment.get("GITHUB_EVENT_PATH")
    if event and (number := read_event(Path(event)).get("number")):
        base = environment.get("GITHUB_API_URL", "https://api.github.com")
        issues = f"{base}/repos/{environment['GITHUB_REPOSITORY']}/issues"
        token = f"Bearer {environment.get('GITHUB_TOKEN', '')}"
        return {
            "comments": f"{issues}/{number}/comments",
            "update": f"{issues}/comments",
            "update_method": "PATCH",
            "header": "Authorization",
            "token": token,
        }
    return None


def read_event(path: Path) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return event if "pull_request" in event else {}


def find_comment(api: Mapping[str, str], marker: str) -> int | None:
    """Return the id of the comment that starts with the marker."""
    page = 1
    while True:
        comments = send(api, "GET", f"{api['comments']}?per_page={PER_PAGE}&page={page}")
        for comment in comments:
            if str(comment["body"]).startswith(marker):
                return int(comment["id"])
        if len(comments) < PER_PAGE:
            return None
        page += 1


def send(api: Mapping[str, str], method: str, url: str, content: Any = None) -> Any:
    headers = {api["header"]: api["token"], "Content-Type": "application/json", "User-Agent": "proctor-ci"}
    data = None if content is None else json.dumps(content).encode()
    request = urllib.request.Request(url, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)


def run(*command: str) -> int:
    print("$", *command, flush=True)
    return subprocess.run(command, check=False).returncode


def read_json(*command: str) -> Any:
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout or "{}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["gate", "comment", "baseline"])
    parser.add_argument("--file", default="eval.yaml", help="the eval file (default: eval.yaml)")
    parser.add_argument("--baseline", default="main", help="the name of the baseline (default: main)")
    parser.epilog = "Options after -- are passed to `proctor gate`."
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    end = arguments.index("--") if "--" in arguments else len(arguments)
    parsed = parser.parse_args(arguments[:end])
    if parsed.step == "comment":
        return write_comment(os.environ)
    if parsed.step == "baseline":
        return renew_baseline(parsed.file, parsed.baseline)
    return gate(parsed.file, parsed.baseline, arguments[end + 1 :])


if __name__ == "__main__":
    sys.exit(main())
