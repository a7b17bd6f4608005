"""What a release says about itself: its version, its extras, and the files that explain it."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

from proctor.version import VERSION

ROOT = Path(__file__).parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_version_has_one_source() -> None:
    """The version is in version.py only: pyproject.toml reads it, and the installed metadata agrees."""
    assert PROJECT["dynamic"] == ["version"]
    assert "version" not in PROJECT
    assert importlib.metadata.version("proctor") == VERSION


def test_the_extra_all_has_every_extra() -> None:
    """`pip install "proctor[all]"` leaves none out."""
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    assert set(re.findall(r"[a-z]+", everything.partition("[")[2])) == extras.keys() - {"all"}


def test_supported_pythons_are_classified() -> None:
    """The classifiers name the versions that the tests run on."""
    text = (ROOT / "tools" / "every_python.py").read_text(encoding="utf-8")
    supported = re.findall(r'"(3\.\d+)"', text.partition("SUPPORTED = ")[2].partition("\n")[0])
    assert len(supported) >= 3
    assert {f"Programming Language :: Python :: {version}" for version in supported} <= {*PROJECT["classifiers"]}


def test_licence_files_exist() -> None:
    """Every pattern of licence files matches a file, so that the wheel contains it."""
    assert [pattern for pattern in PROJECT["license-files"] if not list(ROOT.glob(pattern))] == []
