"""The clock, optional packages, and files of the package."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from proctor.core import optional as extras
from proctor.core import resources
from proctor.core.clock import SystemClock
from proctor.errors import MissingExtra


def test_ruling_8_the_wall_clock_is_aware_utc_and_durations_are_monotonic() -> None:
    """Ruling 8: wall time is aware UTC; the monotonic clock never runs backwards."""
    clock = SystemClock()
    assert clock.now().tzinfo is UTC
    before = clock.monotonic()
    asyncio.run(clock.sleep(0.01))
    assert clock.monotonic() - before >= 0.009


def test_an_installed_optional_package_is_imported() -> None:
    """Also a nested module."""
    assert extras.require("json.decoder", extra="none", why="a test").__name__ == "json.decoder"


@pytest.mark.parametrize("module", ["no_such_package", "no_such_package.inner"])
def test_a_missing_package_names_the_extra_to_install(module: str) -> None:
    with pytest.raises(MissingExtra) as caught:
        extras.require(module, extra="langchain", why="a runnable target")
    assert caught.value.what == ("a runnable target needs the package 'no_such_package', which is not installed")
    assert caught.value.fix == 'pip install "proctor[langchain]"'


def test_a_missing_dependency_of_an_optional_package_is_not_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half_installed.py").write_text("import its_own_need\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError) as caught:
        extras.require("half_installed", extra="x", why="y")
    assert caught.value.name == "its_own_need"


def test_checking_for_a_loaded_package_does_not_import_it() -> None:
    assert extras.loaded_module("asyncio") is asyncio
    assert extras.loaded_module("antigravity") is None


def test_a_module_that_is_still_being_imported_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread may import numpy while a result is measured; half a module has no types to compare with."""
    module = ModuleType("half_imported")
    module.__spec__ = ModuleSpec("half_imported", None)
    monkeypatch.setitem(sys.modules, "half_imported", module)
    assert extras.loaded_module("half_imported") is module
    vars(module.__spec__)["_initializing"] = True
    assert extras.loaded_module("half_imported") is None


def test_files_of_the_package_are_read() -> None:
    assert resources.path("history", "migrations").is_dir()
    assert "CREATE TABLE runs" in resources.text("history", "migrations", "sqlite", "001_first.sql")
