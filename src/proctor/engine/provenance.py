"""Where a run comes from: the commit, the installed packages, the command line.

The name of the machine is left out, because it often identifies a person. Only the names of environment variables and
the job ids of CI services are recorded.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from proctor.core.redaction.findings import is_secret_name
from proctor.core.redaction.redact import Redaction, make_marker
from proctor.records.run import Provenance

GIT_SECONDS = 1.0
MAX_ARGUMENTS, MAX_ARGUMENT_LENGTH = 100, 500

# The dependencies of Proctor, and libraries that may influence the outputs of a target.
PACKAGES = (
    *("msgspec", "click", "rich", "pyyaml", "httpx2", "jsonschema-rs", "nupunkt", "markdown-it-py"),
    *("openai", "openai-agents", "anthropic", "google-genai", "google-generativeai", "mistralai"),
    *("cohere", "ollama", "litellm", "boto3", "langchain", "langchain-core", "langgraph", "dspy"),
    *("llama-index-core", "haystack-ai", "pydantic", "pydantic-ai", "crewai", "smolagents"),
    *("instructor", "weakincentives", "transformers", "sentence-transformers", "tokenizers"),
    *("torch", "vllm", "tiktoken", "numpy", "ray", "opentelemetry-sdk"),
)
_VARIABLE = re.compile(r"PROCTOR_\w+|\w+_(?:API_KEY|BASE_URL|API_BASE)")
CI_IDS = (
    *("GITHUB_SHA", "GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT", "GITHUB_REF_NAME"),
    *("CI_COMMIT_SHA", "CI_PIPELINE_ID", "CI_JOB_ID", "CI_COMMIT_REF_NAME"),
    *("CIRCLE_SHA1", "CIRCLE_WORKFLOW_ID", "BUILDKITE_COMMIT", "BUILDKITE_BUILD_ID"),
    *("BUILD_SOURCEVERSION", "BUILD_BUILDID", "GIT_COMMIT", "BUILD_NUMBER"),
)
# A value of `-p` that is not a port, path, option or sentence.
_PASSWORD = re.compile(r"(?!\d{1,5}\Z)[^-/.~\s][^/\s]*")
_ID = re.compile(r"[\w./+-]{1,200}")


def collect_provenance(
    folder: str | os.PathLike[str] = ".",
    environment: Mapping[str, str] | None = None,
    command: Sequence[str] | None = None,
) -> Provenance:
    """Collect the provenance of a run that starts now in this folder; unknown parts are left out.

    >>> collect_provenance(environment={"OPENAI_API_KEY": "sk-1", "HOME": "/"}, command=["eval.py"]).variables
    ('OPENAI_API_KEY',)
    """
    environment = os.environ if environment is None else environment
    code = read_git_state(Path(folder).absolute())
    ids = {name: environment[name] for name in CI_IDS if _ID.fullmatch(environment.get(name, ""))}
    return Provenance(
        code.commit,
        code.branch,
        code.dirty,
        redact_command(sys.argv if command is None else command),
        package_versions(),
        tuple(sorted(name for name in environment if _VARIABLE.fullmatch(name))),
        Redaction().value(ids),
    )


def redact_command(command: Sequence[str]) -> tuple[str, ...]:
    """Remove secrets and the folder of the program from a command line.

    >>> redact_command(["/home/ann/bin/evals", "--api-key", "abc", "--limit=3"])
    ('evals', '--api-key', '[secret: assigned secret]', '--limit=3')
    """
    if not command:
        return ()
    marker = make_marker("assigned_secret")
    words, redaction, is_secret = [Path(command[0]).name], Redaction(), False
    for before, word in itertools.pairwise(command[:MAX_ARGUMENTS]):
        name, equals, value = word.partition("=")
        is_password = before == "-p" and _PASSWORD.fullmatch(word)
        if is_password or (is_secret and not word.startswith("--")):
            words.append(marker)
        elif equals and value and is_secret_name(name):
            words.append(f"{name}={marker}")
        else:
            words.append(redaction.text(word)[:MAX_ARGUMENT_LENGTH])
        is_secret = word.startswith("-") and not equals and is_secret_name(word)
    return tuple(words)


@functools.cache
def package_versions() -> dict[str, str]:
    """Return the installed versions of `PACKAGES`, read from folder names, because opening every package takes too
    long.

    >>> "msgspec" in package_versions()
    True
    """
    versions: dict[str, str] = {}
    for folder in sys.path:
        with contextlib.suppress(OSError), os.scandir(folder or ".") as entries:
            for entry in entries:
                if entry.name.endswith(".dist-info"):
                    package, _, version = entry.name.removesuffix(".dist-info").partition("-")
                    versions.setdefault(package.lower().replace("_", "-"), version)
    return {name: versions[name] for name in sorted(PACKAGES) if name in versions}


@functools.cache
def read_git_state(folder: Path) -> Provenance:
    """Read the commit and branch of a folder, and whether files differ from the commit.

    Cached: imported code does not change when files do.
    """
    if not any((above / ".git").exists() for above in (folder, *folder.parents)):
        return Provenance()
    # Takes no lock, and starts no program from the settings of the folder.
    options = ("--porcelain=v2", "--branch", "--untracked-files=no", "--ignore-submodules")
    try:
        process = subprocess.run(
            ("git", "--no-optional-locks", "-c", "core.fsmonitor=false", "status", *options),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return Provenance()
    return _parse_status(process.stdout.decode(errors="replace"))


def _parse_status(status: str) -> Provenance:
    """Parse the output of `git status --porcelain=v2 --branch`.

    >>> _parse_status("# branch.oid 0d1f\\n# branch.head main\\n1 .M N... 100644 app.py\\n").code
    '0d1f on main, with changes'
    """
    lines = status.splitlines()
    head = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# branch."))
    commit, branch = head.get("branch.oid"), head.get("branch.head")
    return Provenance(
        None if commit == "(initial)" else commit,
        None if branch == "(detached)" else branch,
        any(not line.startswith("#") for line in lines),
    )
