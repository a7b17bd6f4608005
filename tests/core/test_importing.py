"""Addresses such as `module:attribute`: imported, or reported with the part that is wrong."""

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
    (tmp_path / "my_answers.py").write_text("class Bot:\n    def ask(self): return 42\n")
    assert import_object("my_answers:Bot.ask")(None) == 42


def test_a_file_is_imported_by_path_and_may_import_its_neighbours(tmp_path: Path) -> None:
    folder = tmp_path / "evals"
    folder.mkdir()
    (folder / "beside_it.py").write_text("X = 'beside'\n")
    (folder / "my_eval.py").write_text("from beside_it import X\nNAME = __name__\n")
    assert import_object("evals/my_eval.py:X") == "beside"
    assert import_object(f"{folder}/my_eval.py:NAME") == "my_eval"


def test_a_file_is_read_again_each_time(tmp_path: Path) -> None:
    """A notebook must see changes."""
    file = tmp_path / "changing.py"
    file.write_text("X = 1\n")
    assert import_object("changing.py:X") == 1
    file.write_text("X = 'two'\n")
    assert import_object("changing.py:X") == "two"


def test_a_file_changed_within_a_second_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's bytecode cache would not notice if the size is the same."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "quick.py"
    for number in (1, 2):
        file.write_text(f"X = {number}\n")
        os.utime(file, (1_000_000_000, 1_000_000_000))
        assert import_object(f"{file}:X") == number


def test_a_file_does_not_replace_a_module_of_the_same_name(tmp_path: Path) -> None:
    """A user's `json.py` is loaded in addition to the standard module."""
    (tmp_path / "json.py").write_text("MINE = True\n")
    assert import_object("json.py:MINE") is True
    assert sys.modules["json"] is json
    del sys.modules["_json"]


@pytest.mark.parametrize("address", ["", "math", "math:", ":sqrt", ":"])
def test_an_invalid_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError) as caught:
        import_object(address)
    assert caught.value.what == f"{address!r} is not an address"
    assert caught.value.fix == "write module:attribute or file.py:attribute"


@pytest.mark.parametrize(
    ("address", "missing"),
    [
        ("no_such_module:x", "no_such_module"),
        ("json.no_such_part:x", "json.no_such_part"),
        ("no_such_package.part:x", "no_such_package"),
    ],
)
def test_a_missing_module_is_named(address: str, missing: str, tmp_path: Path) -> None:
    """With the folder that was searched."""
    with pytest.raises(UsageError) as caught:
        import_object(address)
    assert caught.value.what == f"no module is named {missing!r}"
    assert str(tmp_path) in caught.value.fix


def test_a_relative_module_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'\.answers' is a relative module name"):
        import_object(".answers:bot")


def test_a_missing_attribute_has_a_suggestion() -> None:
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


def test_a_missing_file_is_reported() -> None:
    with pytest.raises(UsageError, match=r"file not found: nowhere\.py"):
        import_module("nowhere.py")


@pytest.mark.parametrize("name", ["broken_file.py", "broken_file"])
def test_a_syntax_error_is_reported_with_its_line(name: str, tmp_path: Path) -> None:
    """By path and by name."""
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
def test_an_error_during_import_is_reported_with_its_line(name: str, code: str, said: str, tmp_path: Path) -> None:
    """No partly imported module remains."""
    (tmp_path / "raises.py").write_text("x = 1\n" + code + "\n")
    with pytest.raises(UsageError) as caught:
        import_object(f"{name}:x")
    assert said in str(caught.value)
    assert "raises.py:2" in caught.value.where
    assert caught.value.__cause__ is not None
    assert "raises" not in sys.modules


def test_an_error_inside_proctor_is_reported_at_the_users_line(tmp_path: Path) -> None:
    (tmp_path / "misuses.py").write_text("from proctor.records.metric import MetricValue\nMetricValue.nothing()\n")
    (tmp_path / "prices.py").write_text("from proctor.models.prices import Prices\nPrices.load('nowhere.yaml')\n")
    for name in ("misuses", "prices"):
        with pytest.raises(UsageError) as caught:
            import_module(name)
        assert caught.value.where.endswith(f"{name}.py:2")


def test_a_failed_import_leaves_the_previous_module(tmp_path: Path) -> None:
    file = tmp_path / "worked_once.py"
    file.write_text("X = 1\n")
    first = import_module("worked_once.py")
    file.write_text("raise ValueError('not now')\n")
    with pytest.raises(UsageError, match="ValueError: not now"):
        import_module("worked_once.py")
    assert sys.modules["worked_once"] is first
