"""`module:attr` addresses: found, or told which part is wrong."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from proctor.core.imports import import_module, import_object
from proctor.errors import UsageError


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_module_of_the_current_folder_is_found(tmp_path: Path) -> None:
    """A module that lies in the folder one works in needs no installation."""
    (tmp_path / "my_answers.py").write_text("class Bot:\n    def ask(self): return 42\n")
    assert import_object("my_answers:Bot.ask")(None) == 42


def test_a_file_is_found_by_its_path_and_may_import_its_neighbours(tmp_path: Path) -> None:
    """`folder/file.py:attr` works from anywhere, with the modules beside the file."""
    folder = tmp_path / "evals"
    folder.mkdir()
    (folder / "beside_it.py").write_text("X = 'beside'\n")
    (folder / "my_eval.py").write_text("from beside_it import X\nNAME = __name__\n")
    assert import_object("evals/my_eval.py:X") == "beside"
    assert import_object(f"{folder}/my_eval.py:NAME") == "my_eval"


def test_a_file_is_read_anew_each_time(tmp_path: Path) -> None:
    """In a notebook a changed file must not answer as it did before."""
    file = tmp_path / "changing.py"
    file.write_text("X = 1\n")
    assert import_object("changing.py:X") == 1
    file.write_text("X = 'two'\n")
    assert import_object("changing.py:X") == "two"


def test_a_file_that_was_changed_within_a_second_is_not_taken_for_what_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the same length and time, as Python compares its own compiled files."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "quick.py"
    for number in (1, 2):
        file.write_text(f"X = {number}\n")
        os.utime(file, (1_000_000_000, 1_000_000_000))
        assert import_object(f"{file}:X") == number


def test_a_file_does_not_take_the_place_of_a_module_with_its_name(tmp_path: Path) -> None:
    """A user's `json.py` is loaded beside the standard one, not over it."""
    (tmp_path / "json.py").write_text("MINE = True\n")
    assert import_object("json.py:MINE") is True
    assert sys.modules["json"] is json
    del sys.modules["_json"]


@pytest.mark.parametrize("address", ["", "math", "math:", ":sqrt", ":"])
def test_what_is_no_address_is_refused(address: str) -> None:
    """An address has a module, a colon and an attribute."""
    with pytest.raises(UsageError) as caught:
        import_object(address)
    assert caught.value.what == f"{address!r} is not an address"
    assert caught.value.fix == "write it as module:attribute"


@pytest.mark.parametrize(
    ("address", "missing"),
    [
        ("no_such_module:x", "no_such_module"),
        ("json.no_such_part:x", "json.no_such_part"),
        ("no_such_package.part:x", "no_such_package"),
    ],
)
def test_a_missing_module_is_named(address: str, missing: str, tmp_path: Path) -> None:
    """The error names the part of the path that is not there, and the folder that was searched."""
    with pytest.raises(UsageError) as caught:
        import_object(address)
    assert caught.value.what == f"there is no module {missing!r}"
    assert str(tmp_path) in caught.value.fix


def test_a_relative_module_is_refused() -> None:
    """There is nothing that a leading dot could be relative to."""
    with pytest.raises(UsageError, match=r"'\.answers' is not a module's full name"):
        import_object(".answers:bot")


def test_a_missing_attribute_comes_with_the_nearest_one() -> None:
    """The error names what has no such attribute, and what was probably meant."""
    with pytest.raises(UsageError) as caught:
        import_object("math:sqrtt")
    assert caught.value.what == "'math' has no attribute 'sqrtt'"
    assert caught.value.where == "math:sqrtt"
    assert caught.value.fix == "did you mean 'sqrt'?"
    with pytest.raises(UsageError) as caught:
        import_object("json:JSONDecoder.decoed")
    assert caught.value.what == "'json:JSONDecoder' has no attribute 'decoed'"
    assert caught.value.fix == "did you mean 'decode'?"
    with pytest.raises(UsageError, match=r"'json:JSONDecoder\.decode' has no attribute 'x'"):
        import_object("json:JSONDecoder.decode.x")


def test_a_missing_file_is_said() -> None:
    """A path that leads nowhere is told as such."""
    with pytest.raises(UsageError, match=r"there is no file 'nowhere\.py'"):
        import_module("nowhere.py")


@pytest.mark.parametrize("name", ["broken_file.py", "broken_file"])
def test_a_file_that_is_not_python_is_told_by_its_line(name: str, tmp_path: Path) -> None:
    """A syntax error becomes an error about that file and line, by path and by name alike."""
    (tmp_path / "broken_file.py").write_text("x = 1\ny = = 2\n")
    with pytest.raises(UsageError) as caught:
        import_object(f"{name}:x")
    assert "broken_file.py, line 2, is not valid Python: invalid syntax" in caught.value.what
    assert "broken_file" not in sys.modules


@pytest.mark.parametrize("name", ["raises.py", "raises"])
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import surely_not_there", "No module named 'surely_not_there'"),
        ("raise SystemExit(0)", 'only under `if __name__ == "__main__":`'),
        ("import os; os.environ['SURELY_NOT_SET']", "KeyError: 'SURELY_NOT_SET'"),
    ],
)
def test_an_error_inside_a_module_is_told_with_its_line(
    name: str, code: str, said: str, tmp_path: Path
) -> None:
    """What a module raises while it is imported is told as one line, and no half module stays."""
    (tmp_path / "raises.py").write_text("x = 1\n" + code + "\n")
    with pytest.raises(UsageError) as caught:
        import_object(f"{name}:x")
    assert said in str(caught.value)
    assert "raises.py:2" in caught.value.where
    assert caught.value.__cause__ is not None
    assert "raises" not in sys.modules


def test_a_file_that_breaks_leaves_the_working_version_in_place(tmp_path: Path) -> None:
    """After a failed load the module that was there before is there again."""
    file = tmp_path / "worked_once.py"
    file.write_text("X = 1\n")
    first = import_module("worked_once.py")
    file.write_text("raise ValueError('not now')\n")
    with pytest.raises(UsageError, match="ValueError: not now"):
        import_module("worked_once.py")
    assert sys.modules["worked_once"] is first
