"""Import objects by address and plugins by entry point."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from proctor.core.resources import suggest_file
from proctor.errors import UsageError, suggest_name

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints


def import_object(address: str) -> Any:
    """Import the object at `module:attribute` or `file.py:attribute`; modules may be in the working directory."""
    module_name, colon, attributes = address.rpartition(":")
    if not (module_name and colon and attributes):
        raise UsageError(f"{address!r} is not an address", fix="write module:attribute or file.py:attribute")
    value: Any = import_module(module_name)
    parent = module_name
    for attribute in attributes.split("."):
        try:
            value = getattr(value, attribute)
        except AttributeError:
            public = [
                name
                for name in dir(value)
                if not name.startswith("_") and not isinstance(getattr(value, name, None), ModuleType)
            ]
            raise UsageError(
                f"{parent!r} has no attribute {attribute!r}", where=address, fix=suggest_name(attribute, public)
            ) from None
        parent += f".{attribute}" if ":" in parent else f":{attribute}"
    return value


def import_module(name: str) -> ModuleType:
    """Import a module by its dotted name or by the path of its file."""
    if name.endswith(".py"):
        return _import_file(Path(name))
    if name.startswith("."):
        raise UsageError(f"{name!r} is a relative module name", fix="write the full name, without the leading dot")
    working_directory = add_folder(Path.cwd())
    try:
        return importlib.import_module(name)
    except SyntaxError as error:
        raise _explain_syntax_error(error) from error
    except ModuleNotFoundError as error:
        if error.name is None or not (name + ".").startswith(error.name + "."):
            raise _import_error(name, error) from error
        raise UsageError(
            f"no module is named {error.name!r}",
            where=name,
            fix=f"check the spelling, install it, or run Proctor from its folder (currently: {working_directory})",
        ) from None
    except (Exception, SystemExit) as error:
        raise _import_error(name, error) from error


def add_folder(folder: Path) -> str:
    """Add a folder to the import path and return its full path."""
    full = str(folder.resolve())
    if full not in sys.path:
        sys.path.insert(0, full)
    return full


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError("file not found", where=str(path), fix=suggest_file(path, (".py",)))
    add_folder(path.parent)
    name = _choose_module_name(path)
    previous = sys.modules.get(name)
    spec = importlib.util.spec_from_file_location(name, path, loader=_UncachedLoader(name, str(path)))
    assert spec is not None
    assert spec.loader is not None
    new_module = importlib.util.module_from_spec(spec)
    sys.modules[name] = new_module
    try:
        spec.loader.exec_module(new_module)
    except BaseException as error:
        # The next import must not find a partly executed module.
        sys.modules.pop(name, None)
        if previous is not None:
            sys.modules[name] = previous
        if isinstance(error, SyntaxError):
            raise _explain_syntax_error(error) from error
        if isinstance(error, Exception | SystemExit):
            raise _import_error(str(path), error) from error
        raise
    return new_module


class _UncachedLoader(SourceFileLoader):
    """Compile the file each time.

    Python's bytecode cache compares the size and the time in seconds, so it may return the old version of a
    file that has just been changed.
    """

    def get_code(self, fullname: str) -> CodeType | None:  # noqa: ARG002
        return self.source_to_code(self.get_data(self.path), self.path)


def _choose_module_name(path: Path) -> str:
    """Return the file's stem, with underscores if needed: `json.py` must not replace the module json."""
    name = path.stem
    while name in sys.modules and not _is_file_of(path, sys.modules[name]):
        name = f"_{name}"
    return name


def _is_file_of(path: Path, loaded: ModuleType) -> bool:
    file = getattr(loaded, "__file__", None)
    return file is not None and Path(file).resolve() == path.resolve()


def _explain_syntax_error(error: SyntaxError) -> Exception:
    # A module may also parse other source text and fail there.
    if not (error.filename or "").endswith(".py"):
        return error
    return UsageError(
        f"{error.filename}, line {error.lineno}, is not valid Python: {error.msg}", fix="correct this line"
    )


def _import_error(name: str, error: BaseException) -> UsageError:
    """Describe an error during an import, with the line of the user's code."""
    library, proctor = str(Path(traceback.__file__).parent), str(Path(__file__).parents[1])
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(("<", library, proctor))
    ]
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else name
    description = f"{type(error).__name__}: {error}".rstrip(": ")
    fix = f"make sure that Python can import {name} without Proctor"
    if isinstance(error, SystemExit):
        fix = 'call sys.exit() only under `if __name__ == "__main__":`'
    return UsageError(f"{name!r} cannot be imported: {description}", where=where, fix=fix)


EVALUATORS = "proctor.evaluators"
PROVIDERS = "proctor.providers"
EMBEDDERS = "proctor.embedders"
MAILBOXES = "proctor.mailboxes"
REPORTERS = "proctor.reporters"
DATASETS = "proctor.datasets"
METRICS = "proctor.metrics"


def entry_points(group: str) -> Iterable[EntryPoint]:
    """Return all entry points of a group; for equal names, Proctor's own comes first."""
    return _list_installed(group, tuple(sys.path))


@functools.cache
def _list_installed(group: str, paths: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    packages: dict[str, EntryPoints] = {}
    for path in paths:
        for name, points in _scan_folder(Path(path).absolute()):
            packages.setdefault(name, points)  # Python imports the first
    selected = [point for points in packages.values() for point in points.select(group=group)]
    return tuple(sorted(selected, key=lambda point: (not point.value.startswith("proctor."), point.name)))


@functools.cache
def _scan_folder(folder: Path) -> list[tuple[str, EntryPoints]]:
    """Return the packages in a folder that have entry points for Proctor."""
    # Reading the metadata of all packages takes as long as the rest of a short command.
    from importlib.metadata import distributions

    installed = [(package, package.entry_points) for package in distributions(path=[str(folder)])]
    return [
        (package.name, points)
        for package, points in installed
        if any(group.startswith("proctor.") for group in points.groups)
    ]


def plugin_names(group: str) -> list[str]:
    """Return the names of a group's entry points."""
    return [point.name for point in entry_points(group)]


def load_plugin(group: str, name: str) -> Any:
    """Return the object behind an entry point, or None."""
    for point in entry_points(group):
        if point.name == name:
            return point.load()
    return None
