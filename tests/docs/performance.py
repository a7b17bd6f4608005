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

# Commands without pipes, redirections and variables; a worker sets signal handlers.
SIMPLE = re.compile(r"proctor (?!worker)[^|&;<>$`*~#]*")
WIDTH = "100"
SECONDS = 180


class Performance:
    """One page in one folder: its Python blocks share a module, `cd` holds for what follows."""

    def __init__(
        self,
        page: str,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        instead: Mapping[str, str] | None = None,
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
        if SIMPLE.fullmatch(command):
            return self._in_process(shlex.split(command)[1:])
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

    def _in_process(self, arguments: list[str]) -> str:
        """Run a `proctor` command here: a new process would only import everything again."""
        for name, module in list(sys.modules.items()):
            if str(self._root) in str(getattr(module, "__file__", None)):
                del sys.modules[name]
        self._monkeypatch.chdir(self._folder)
        self._monkeypatch.setenv("NO_COLOR", "1")
        self._monkeypatch.setenv("COLUMNS", WIDTH)
        output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            run_cli(arguments)
        output.seek(0)
        return output.read()

    def _compare(self, line: int, output: str, printed: str) -> None:
        if not says(output, printed):
            pytest.fail(
                f"{self._page}:{line} shows\n\n{output}\n\nbut this was printed:\n\n{printed}", pytrace=False
            )
