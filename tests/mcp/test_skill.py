"""The agent skill names only commands and options that exist."""

from __future__ import annotations

import re
import shlex

import click
import yaml

from proctor.cli.main import proctor
from tests.support import ROOT

TEXT = (ROOT / "skills" / "proctor" / "SKILL.md").read_text(encoding="utf-8")


def test_the_frontmatter_names_and_describes_the_skill() -> None:
    """Agents load a skill by these two fields; a name has up to 64 characters, a description up to 1,024."""
    fields = yaml.safe_load(TEXT.split("---")[1])
    assert fields.keys() == {"name", "description"}
    assert fields["name"] == "proctor"
    assert len(fields["description"]) <= 1_024


def test_every_command_of_the_skill_exists_with_its_options() -> None:
    lines = re.findall(r"^proctor .*$|`(proctor [^`]+)`", TEXT, re.M)
    written = [*re.findall(r"^proctor .*$", TEXT, re.M), *(line for line in lines if line)]
    assert len(written) >= 12
    for line in written:
        _, name, *arguments = shlex.split(line, comments=True)
        command = proctor.get_command(click.Context(proctor), name)
        assert command is not None, line
        if isinstance(command, click.Group):
            command = command.get_command(click.Context(command), arguments[0])
        assert command is not None, line
        options = {option for parameter in command.params for option in parameter.opts}
        assert {argument for argument in arguments if argument.startswith("--")} <= options, line
