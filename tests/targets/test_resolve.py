"""Functions, addresses, mappings and objects become targets."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from proctor.errors import TargetError
from proctor.ports import Target
from proctor.records.run import TargetSpec
from proctor.records.sample import Sample
from proctor.targets.command import CommandTarget
from proctor.targets.http import HttpTarget
from proctor.targets.recorded import RecordedTarget
from proctor.targets.resolve import as_target
from tests.tables import each_row

SAMPLE: Sample[str, str] = Sample("1", "hello")


def shout(text: str) -> str:
    return text.upper()


class Loop:
    def execute(self, text: str) -> str:
        return text


class Runner:
    def invoke(self, text: str) -> str:
        return text


class Both(Loop, Runner):
    def __call__(self, text: str) -> str:
        return text


class Callable_:  # noqa: N801
    def __call__(self, text: str) -> str:
        return text


READY: list[tuple[Any, str, str]] = [
    (shout, "function", "shout"),
    (Callable_(), "function", "Callable_"),
    (Loop(), "execute", "Loop"),
    (Runner(), "runnable", "Runner"),
    (Both(), "execute", "Both"),
    ("math:sqrt", "function", "sqrt"),
    ("http://localhost:1/a", "http", "localhost:1/a"),
    ("https://example.com/a", "http", "example.com/a"),
    ({"command": "cat"}, "command", "cat"),
    ({"command": ["cat", "-u"], "cwd": ".", "env": {"A": "b"}}, "command", "cat"),
    ({"http": "http://localhost:1", "headers": {"A": "b"}}, "http", "localhost:1"),
    ({"recorded": None}, "recorded", "recorded"),
    ({"recorded": {"1": "a"}, "name": "march"}, "recorded", "march"),
]


@each_row(("thing", "kind", "name"), READY)
def test_the_kind_is_settled_once(thing: Any, kind: str, name: str) -> None:
    """Functions, loops, runnables, addresses and mappings are each what they look like."""
    target = as_target(thing)
    assert (target.spec.kind, target.spec.name) == (kind, name)
    asyncio.run(target.close())


@each_row("thing", [thing for thing, _, _ in READY])
def test_name_and_version_can_be_given_to_every_kind(thing: Any) -> None:
    """A name replaces the name, and a version becomes part of the identity."""
    plain, labelled = as_target(thing), as_target(thing, name="mine", version="2")
    assert labelled.spec.essentials == ("mine", plain.spec.kind, f"{plain.spec.identity}@2")
    assert labelled.blocking == plain.blocking
    assert labelled.check_options({}) == plain.check_options({})
    assert "mine" in repr(labelled)
    asyncio.run(labelled.close())


def test_a_target_object_is_used_unchanged() -> None:
    """Our targets and any object that follows the protocol."""

    class Mine:
        spec = TargetSpec("mine", "function")
        blocking = True

        def call(self, sample: Sample[Any, Any], options: Mapping[str, Any], epoch: int = 0, /) -> Any:
            return sample.input

        def check_options(self, options: Mapping[str, Any]) -> list[str]:
            return []

        async def close(self) -> None: ...

    mine: Target = Mine()
    assert as_target(mine) is mine
    assert as_target(mine, version="2").call(SAMPLE, {}) == "hello"


def test_target_classes_can_be_used_in_python() -> None:
    """The three kinds that a file can name."""
    for target in (CommandTarget(["cat"]), HttpTarget("http://localhost:1"), RecordedTarget({"1": 1})):
        assert as_target(target) is target


def test_an_address_may_name_a_file(tmp_path: Path) -> None:
    """`file.py:attribute` is loaded, and named after the attribute."""
    (tmp_path / "my_bot_under_test.py").write_text("answer = lambda text: text * 2\n")
    target = as_target(f"{tmp_path}/my_bot_under_test.py:answer")
    assert target.spec.name == "answer"
    assert target.call(SAMPLE, {}) == "hellohello"


def test_an_address_may_name_a_ready_target(tmp_path: Path) -> None:
    """A target made in a file keeps the name it was given there."""
    (tmp_path / "my_targets_under_test.py").write_text(
        "from proctor.targets.recorded import RecordedTarget\n"
        "march = RecordedTarget({'1': 1}, name='the march run')\n"
        "words = 'no target'\n"
    )
    module = f"{tmp_path}/my_targets_under_test.py"
    assert as_target(f"{module}:march").spec.name == "the march run"
    with pytest.raises(TargetError, match="this is a string"):
        as_target(f"{module}:words")


def test_a_wrong_address_says_which_part_is_wrong() -> None:
    """The address, what is missing and what was probably meant are in the message."""
    with pytest.raises(TargetError) as caught:
        as_target("math:sqrtt")
    assert str(caught.value) == snapshot("""\
math:sqrtt: the target cannot be used: 'math' has no attribute 'sqrtt'
Fix: did you mean 'sqrt'?\
""")
    with pytest.raises(TargetError, match="'answer' is not a target address"):
        as_target("answer")


def test_a_class_is_refused_with_what_to_do() -> None:
    """A class is not yet a target: an instance of it is."""
    with pytest.raises(TargetError) as caught:
        as_target(Loop)  # type: ignore[arg-type]
    assert str(caught.value) == snapshot("""\
Loop: a class is not a target
Fix: pass an instance, such as Loop()\
""")
    with pytest.raises(TargetError, match=r"Fix: pass a function, such as lambda text: str\(text\)"):
        as_target(str)


def test_an_object_that_cannot_be_called_is_refused() -> None:
    """The error says what is accepted."""
    with pytest.raises(TargetError) as caught:
        as_target(7)  # type: ignore[arg-type]
    assert str(caught.value) == snapshot("""\
target: a number is not a target
Fix: pass a function, an agent, an object with execute or invoke, an address or a mapping\
""")


def test_unknown_keys_come_with_the_nearest_known() -> None:
    """Every key that means nothing is told, with what was probably meant."""
    with pytest.raises(TargetError) as caught:
        as_target({"command": ["cat"], "cdw": ".", "shell": True})
    assert str(caught.value) == snapshot("""\
target: some keys are unknown
  - cdw: did you mean 'cwd'?
  - shell: choose one of: command, cwd, env, name, version
Fix: correct or delete these keys\
""")


@pytest.mark.parametrize(
    ("written", "message", "fix"),
    [
        ({}, "got none", 'write {"model": "openai:gpt-4o"}, for example'),
        ({"comand": ["cat"]}, "got comand", "comand: did you mean 'command'?"),
        ({"command": "cat", "http": "http://a"}, "got command, http", "keep only command"),
    ],
)
def test_a_mapping_names_exactly_one_kind(written: dict[str, Any], message: str, fix: str) -> None:
    """None and two kinds are refused, and a misspelt one is recognised."""
    with pytest.raises(TargetError) as caught:
        as_target(written)
    assert message in str(caught.value)
    assert caught.value.fix == fix


def test_a_function_has_its_address_under_uses() -> None:
    """With a name and a version; a misspelled key is compared with these, and a known one is not called a mistake."""
    target = as_target({"uses": f"{__name__}:shout", "version": "v2", "name": "loud"})
    assert (target.spec.name, target.spec.identity[-3:]) == ("loud", "@v2")
    assert as_target({"uses": f"{__name__}:shout"}).spec == as_target(f"{__name__}:shout").spec
    with pytest.raises(TargetError, match="did you mean 'version'") as caught:
        as_target({"uses": f"{__name__}:shout", "versoin": "v2"})
    assert "conversation" not in str(caught.value)
    with pytest.raises(TargetError, match="Fix: use: did you mean 'uses'") as caught:
        as_target({"use": f"{__name__}:shout", "version": "v2"})
    assert "version: did you mean" not in str(caught.value)


def test_the_version_in_a_mapping_may_be_a_number() -> None:
    """YAML makes numbers of versions; they are kept as text."""
    assert as_target({"command": "cat", "version": 2}).spec.identity.endswith("@2")
    assert as_target({"command": "cat", "version": 2}, version="3").spec.identity.endswith("@3")
