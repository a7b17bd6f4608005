"""A page, performed: its files are written, its code is run, its commands are typed."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

import pytest

from proctor.cli.main import run_cli
from tests.docs.blocks import Block, commands_of, says

# Commands that need no shell: KEY=value proctor … 2>/dev/null; echo "exit code $?". A worker sets signal
# handlers, so it gets a process of its own.
SIMPLE = re.compile(
    r"(?P<variables>(?:[A-Z_]+=[\w.]+ )*)proctor (?!worker)(?P<arguments>[^|&;<>$`*~#]*?)"
    r"(?P<is_silent> 2>/dev/null)?(?P<shows_code>; echo \"exit code \$\?\")?"
)
WIDTH = "100"
SECONDS = 180


class Performance:
    """One page in one folder: its Python blocks share a module, `cd` holds for what follows."""

    def __init__(
        self, page: str, folder: Path, monkeypatch: pytest.MonkeyPatch, instead: Mapping[str, str] | None = None
    ) -> None:
        self._page = page
        self._instead = instead or {}
        self._root = self._folder = folder
        self._monkeypatch = monkeypatch
        self._module = ModuleType("page")
        monkeypatch.setitem(sys.modules, "page", self._module)

    def perform(self, block: Block) -> None:
        """Do what a block says, and hold what it prints against what the page shows."""
        block = block._replace(text=self._replace_addresses(block.text))
        acts: dict[str, Callable[[Block], None]] = {"python": self._run, "console": self._type}
        act = self._write if block.title else acts.get(block.language)
        if act is not None:
            act(block)

    def _replace_addresses(self, text: str) -> str:
        """The text with the addresses of servers that are there, not those of the reader's."""
        for usual, replacement in self._instead.items():
            text = text.replace(usual, replacement)
        return text

    def _write(self, block: Block) -> None:
        assert block.title is not None
        path = self._folder / block.title
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")

    def _run(self, block: Block) -> None:
        self._monkeypatch.chdir(self._folder)
        # Empty lines first, so that a traceback names the line of the page.
        code = compile("\n" * block.line + block.text, self._page, "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, self._module.__dict__)
        self._compare(block.line, block.shown or "", printed.getvalue())

    def _type(self, block: Block) -> None:
        for command in commands_of(block.text):
            if command.typed.startswith("cd "):
                self._folder /= command.typed.removeprefix("cd ")
            else:
                self._compare(block.line, command.shown, self._shell(command.typed))

    def _shell(self, command: str) -> str:
        if match := SIMPLE.fullmatch(command):
            return self._in_process(match)
        replacement = Path(sys.executable).parent
        search = f"{replacement}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            command,
            shell=True,
            cwd=self._folder,
            env=os.environ | {"PATH": search, "NO_COLOR": "1", "COLUMNS": WIDTH},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
        )
        return done.stdout

    def _in_process(self, command: re.Match[str]) -> str:
        """Run a `proctor` command here: a new process would only import everything again."""
        for name, module in list(sys.modules.items()):
            if str(self._root) in str(getattr(module, "__file__", None)):
                del sys.modules[name]
        output, hidden = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        errors = hidden if command["is_silent"] else output
        variables = dict(text.split("=") for text in command["variables"].split())
        with (
            self._monkeypatch.context() as patch,
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(errors),
        ):
            patch.chdir(self._folder)
            for name, value in {"NO_COLOR": "1", "COLUMNS": WIDTH, **variables}.items():
                patch.setenv(name, value)
            code = run_cli(shlex.split(command["arguments"]))
            if command["shows_code"]:
                print(f"exit code {code}")
        output.seek(0)
        return output.read()

    def _compare(self, line: int, output: str, printed: str) -> None:
        if not says(output, printed):
            pytest.fail(f"{self._page}:{line} shows\n\n{output}\n\nbut this was printed:\n\n{printed}", pytrace=False)
