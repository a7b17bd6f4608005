"""The front door: every public name is there, explained, and loaded only when it is used."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import proctor

HEAVY = ("rich", "httpx2", "yaml", "pydantic", "asyncio", "sqlite3", "msgspec", "click")


def fresh(code: str) -> str:
    """What a new Python prints, in which nobody measures coverage: that would load modules too."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env={name: value for name, value in os.environ.items() if not name.startswith("COV")},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    ).stdout


def names_for_type_checkers() -> dict[str, str]:
    """Name and module of every import under `if TYPE_CHECKING`."""
    assert proctor.__file__ is not None
    tree = ast.parse(Path(proctor.__file__).read_text(encoding="utf-8"))
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    return {
        alias.asname or alias.name: statement.module or ""
        for block in blocks
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


def test_importing_the_package_loads_nothing_heavy() -> None:
    """`import proctor` in a new process costs next to nothing."""
    code = f"import sys, proctor; print([n for n in {HEAVY} if n in sys.modules])"
    assert fresh(code) == "[]\n"


def test_the_records_load_neither_engine_nor_database() -> None:
    """Who only makes a sample waits for neither SQLite nor a display."""
    code = "import sys; from proctor import Sample, Score; Score(1.0, True); "
    code += (
        "print([n for n in ('rich', 'httpx2', 'sqlite3', 'proctor.engine') if n in sys.modules])"
    )
    assert fresh(code) == "[]\n"


@pytest.mark.parametrize("name", proctor.__all__)
def test_every_public_name_resolves_and_is_explained(name: str) -> None:
    """Each is found at its home and has a docstring."""
    found = getattr(proctor, name)
    assert found is not None
    if name not in ("__version__", "Rating"):  # a text, and a Literal: neither has a docstring
        assert (found.__doc__ or "").strip(), f"{name} has no docstring"
        home = importlib.import_module(f"proctor.{proctor._HOME_OF[name]}")
        assert getattr(home, name) is found
        assert getattr(proctor, name) is found


def test_the_three_lists_of_names_agree() -> None:
    """What a type checker sees, what is loaded, and what is public: one list."""
    seen = names_for_type_checkers()
    homes = {name: f"proctor.{home}" for name, home in proctor._HOME_OF.items()}
    assert seen == homes | {"__version__": "proctor.version"}
    assert sorted(seen) == sorted(proctor.__all__)
    assert len(set(proctor.__all__)) == len(proctor.__all__)
    assert dir(proctor) == sorted(proctor.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """As of any module."""
    with pytest.raises(AttributeError, match="module 'proctor' has no attribute 'evalute'"):
        proctor.evalute  # noqa: B018


def test_the_package_explains_itself() -> None:
    """Its docstring shows how to begin, and the version is a version."""
    assert "evaluate(" in (proctor.__doc__ or "")
    assert proctor.__version__[0].isdigit()
