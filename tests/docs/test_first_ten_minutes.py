"""The transcript of the new user is that of the script, in under ten commands that exist."""

from __future__ import annotations

import importlib
import re
from typing import Any

import click
import pytest

from proctor.cli.main import proctor
from tests.docs.blocks import ROOT, blocks_of


@pytest.fixture
def new_user(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("new_user")


def test_the_page_shows_the_commands_of_the_script(new_user: Any) -> None:
    """Page and script have the same commands and edits, in the same order; after a change run `make new-user`."""
    blocks = blocks_of(new_user.PAGE.read_text(encoding="utf-8"))
    shown = [block.text.splitlines()[0] for block in blocks if block.language == "sh"]
    assert shown == [step.command for step in new_user.STEPS if step.command]
    edits = [(block.title, block.text) for block in blocks if block.language in ("py", "yaml")]
    assert edits == [(step.edited, step.contents) for step in new_user.STEPS if step.edited]


def test_a_new_user_needs_fewer_than_ten_commands(new_user: Any) -> None:
    """Install, init, run, view, compare, gate and pytest are among them; a check in CI follows."""
    commands = [step.command for step in new_user.STEPS]
    assert commands.index("pytest --proctor -q") < 9
    for part in (
        "pip install",
        "proctor init",
        "proctor run",
        "proctor view",
        "proctor compare",
        "proctor gate",
        "pytest",
    ):
        assert any(command.startswith(part) for command in commands), part


def test_every_command_and_option_exists(new_user: Any) -> None:
    """Each `proctor` command of the page is one, and has the options that it is given."""
    context = click.Context(proctor, info_name="proctor")
    in_workflow = re.findall(r"- run: (.+)", new_user.WORKFLOW)
    for line in (*(step.command for step in new_user.STEPS), *in_workflow):
        words = line.split()
        if words[:1] != ["proctor"]:
            continue
        command = proctor.get_command(context, words[1])
        if isinstance(command, click.Group):
            command = command.get_command(context, words[2])
        assert command is not None, line
        known = {name for parameter in command.params for name in parameter.opts}
        assert set(re.findall(r"--[\w-]+", line)) <= known, line
