"""What packages offer under a name: entry points, the one road for built-ins and plugins."""

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

from proctor.errors import UsageError, nearest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def load(address: str) -> Any:
    """The object at `module:attr` (or `file.py:attr`), looked for in the current folder too.

    >>> load("math:sqrt")(16.0)
    4.0
    """
    module_name, colon, attributes = address.rpartition(":")
    if not (module_name and colon and attributes):
        raise UsageError(f"{address!r} is not an address", fix="write it as module:attribute")
    found: Any = module(module_name)
    place = module_name
    for attribute in attributes.split("."):
        try:
            found = getattr(found, attribute)
        except AttributeError:
            public = [name for name in dir(found) if not name.startswith("_")]
            raise UsageError(
                f"{place!r} has no attribute {attribute!r}", where=address, fix=nearest(attribute, public)
            ) from None
        place += f".{attribute}" if ":" in place else f":{attribute}"
    return found


def module(name: str) -> ModuleType:
    """A module by its dotted name or by the path of its file.

    >>> module("json").__name__
    'json'
    """
    if name.endswith(".py"):
        return _from_file(Path(name))
    if name.startswith("."):
        raise UsageError(f"{name!r} is not a module's full name", fix="leave out the leading dot")
    here = add_folder(Path.cwd())
    try:
        return importlib.import_module(name)
    except SyntaxError as error:
        raise _explained(error) from error
    except ModuleNotFoundError as error:
        if error.name is None or not (name + ".").startswith(error.name + "."):
            raise _failed(name, error) from error
        raise UsageError(
            f"there is no module {error.name!r}",
            where=name,
            fix=f"check the spelling, install it, or run from the folder that holds it ({here})",
        ) from None
    except (Exception, SystemExit) as error:
        raise _failed(name, error) from error


def add_folder(folder: Path) -> str:
    """Let modules be found in a folder too; gives the folder's full path."""
    full = str(folder.resolve())
    if full not in sys.path:
        sys.path.insert(0, full)
    return full


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"there is no file {str(path)!r}", fix="check the path")
    add_folder(path.parent)
    name = _name_for(path)
    before = sys.modules.get(name)
    spec = importlib.util.spec_from_file_location(name, path, loader=_AsItIs(name, str(path)))
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    try:
        spec.loader.exec_module(made)
    except BaseException as error:
        # Half a module must not be found by the next import.
        sys.modules.pop(name, None)
        if before is not None:
            sys.modules[name] = before
        if isinstance(error, SyntaxError):
            raise _explained(error) from error
        if isinstance(error, Exception | SystemExit):
            raise _failed(str(path), error) from error
        raise
    return made


class _AsItIs(SourceFileLoader):
    """Reads a file as it is now.

    What Python has kept compiled is told from the file by size and time, and that to the second: a
    file that a script changed just now would be run as it was before.
    """

    def get_code(self, fullname: str) -> CodeType | None:  # noqa: ARG002
        return self.source_to_code(self.get_data(self.path), self.path)


def _name_for(path: Path) -> str:
    """The file's own name, unless another module has it: `json.py` must not take json's place."""
    name = path.stem
    while name in sys.modules and not _is_file_of(path, sys.modules[name]):
        name = f"_{name}"
    return name


def _is_file_of(path: Path, loaded: ModuleType) -> bool:
    file = getattr(loaded, "__file__", None)
    return file is not None and Path(file).resolve() == path.resolve()


def _explained(error: SyntaxError) -> Exception:
    """A file that is not Python, told by its place; text that a module parses is its own affair."""
    if not (error.filename or "").endswith(".py"):
        return error
    return UsageError(
        f"{error.filename}, line {error.lineno}, is not valid Python: {error.msg}", fix="mend the line"
    )


def _failed(name: str, error: BaseException) -> UsageError:
    """What a module raised while it was imported, and on which line of the user's."""
    library, proctor = str(Path(traceback.__file__).parent), str(Path(__file__).parent)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(("<", library, proctor))
    ]
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else name
    what = f"{type(error).__name__}: {error}".rstrip(": ")
    fix = "see that it can be imported by itself"
    if isinstance(error, SystemExit):
        fix = 'let the file end the program only under `if __name__ == "__main__":`'
    return UsageError(f"{name!r} cannot be imported: {what}", where=where, fix=fix)


EVALUATORS = "proctor.evaluators"
PROVIDERS = "proctor.providers"
EMBEDDERS = "proctor.embedders"
MAILBOXES = "proctor.mailboxes"


def installed(group: str) -> Iterable[EntryPoint]:
    """All entry points of a group; where two packages take one name, Proctor's own comes first.

    >>> any(point.name == "matching" for point in installed(EVALUATORS))
    True
    """
    return _installed(group, tuple(sys.path))


@functools.cache
def _installed(group: str, _places: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    # Looking through all installed packages takes milliseconds, and a model may be named in every
    # call; the answer changes only with the places that are looked in.
    from importlib.metadata import entry_points

    return tuple(
        sorted(
            entry_points(group=group), key=lambda point: (not point.value.startswith("proctor."), point.name)
        )
    )


def names(group: str) -> list[str]:
    """The names that are taken in a group."""
    return [point.name for point in installed(group)]


def find(group: str, name: str) -> Any:
    """The object that a package offers under a name, or None."""
    for point in installed(group):
        if point.name == name:
            return point.load()
    return None
