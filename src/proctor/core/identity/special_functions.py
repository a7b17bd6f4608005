"""Functions of the standard library that reach modules, names and files by text."""

from __future__ import annotations

import sys
from typing import Any

MODULES = "modules whose names are computed"
CODE_FILES = "code files whose names are computed"
DATA = "package data whose name is computed"
FOLDERS = "folders whose names are computed"
FILES = "files whose names are computed"
CODE = "code that it runs from a string"
VARIABLES = "global variables whose names are computed"
DATABASE = "a database whose name is computed"
PLUGINS = "entry points of installed packages"

# The effect of each function, and the phrase for a call whose argument is not known.
_FUNCTIONS: dict[str, tuple[str, str]] = {
    "importlib.import_module": ("import", MODULES),
    "importlib.__import__": ("__import__", MODULES),
    "builtins.__import__": ("__import__", MODULES),
    "sys.modules": ("sys.modules", MODULES),
    "runpy.run_module": ("run_module", MODULES),
    "runpy.run_path": ("script", CODE_FILES),
    "importlib.util.spec_from_file_location": ("loader", CODE_FILES),
    "importlib.machinery.SourceFileLoader": ("loader", CODE_FILES),
    "pkgutil.resolve_name": ("unknown", MODULES),
    "pkgutil.iter_modules": ("unknown", MODULES),
    "pkgutil.walk_packages": ("unknown", MODULES),
    "inspect.getmodule": ("unknown", MODULES),
    "pkgutil.get_data": ("data", DATA),
    "importlib.resources.files": ("package", DATA),
    "importlib_resources.files": ("package", DATA),
    "importlib.resources.contents": ("package", DATA),
    **{
        f"importlib.resources.{name}": ("data", DATA)
        for name in ("read_text", "read_binary", "open_text", "open_binary", "path")
    },
    "importlib.metadata.files": ("distribution", PLUGINS),
    "importlib.metadata.distribution": ("distribution", PLUGINS),
    "importlib.metadata.entry_points": ("unknown", PLUGINS),
    "builtins.eval": ("unknown", CODE),
    "builtins.exec": ("unknown", CODE),
    "builtins.compile": ("unknown", CODE),
    "builtins.globals": ("globals", VARIABLES),
    "builtins.open": ("open", FILES),
    "io.open_code": ("open", FILES),
    "io.FileIO": ("open", FILES),
    "linecache.getline": ("open", FILES),
    "linecache.getlines": ("open", FILES),
    "fileinput.input": ("open", FILES),
    "zipfile.ZipFile": ("open", FILES),
    "sqlite3.connect": ("database", DATABASE),
    "sqlite3.dbapi2.connect": ("database", DATABASE),
    "aiosqlite.connect": ("database", DATABASE),
    "os.listdir": ("list", FOLDERS),
    "os.scandir": ("list", FOLDERS),
    "os.walk": ("walk", FOLDERS),
    "os.fwalk": ("walk", FOLDERS),
    "glob.glob": ("pattern", FOLDERS),
    "glob.iglob": ("pattern", FOLDERS),
}
# Methods of paths that list a folder, and attributes that return the globals of a function.
PATH_LISTERS = frozenset(["glob", "rglob", "iterdir"])
NAMESPACES = frozenset(["__globals__", "f_globals"])
_TOO_COMMON = frozenset(["path", "open", "read_text"])
NAMES = frozenset(path.rpartition(".")[2] for path in _FUNCTIONS) - _TOO_COMMON | PATH_LISTERS | NAMESPACES


class Special:
    """Lookup of the special functions by object, whatever name the code uses for them."""

    def __init__(self) -> None:
        self._by_object: dict[int, tuple[str, str]] = {}
        for path, meaning in _FUNCTIONS.items():
            module, _, name = path.rpartition(".")
            loaded = sys.modules.get(module)
            function = vars(loaded).get(name) if loaded is not None else None
            if function is not None:
                self._by_object[id(function)] = meaning

    def of_object(self, obj: Any) -> tuple[str, str] | None:
        """Return the effect of an object and the phrase for it; None for other objects."""
        return self._by_object.get(id(obj))

    def of_path(self, path: str) -> tuple[str, str] | None:
        """Return the same for the dotted name of a function in a module that is not loaded."""
        return _FUNCTIONS.get(path)
