"""Functions of the standard library that access modules, globals and files through strings."""

from __future__ import annotations

import sys
from typing import Any

MODULES = "modules whose names are computed"
CODE_FILES = "code files whose names are computed"
DATA = "package data whose name is computed"
FOLDERS = "folders whose names are computed"
FILES = "files whose names are computed"
CODE = "code in strings"
VARIABLES = "global variables whose names are computed"
DATABASE = "a database whose name is computed"
PLUGINS = "entry points of installed packages"

# The functions with an effect, and the phrase for a call whose argument is unknown.
_EFFECTS = (
    ("import", MODULES, "importlib.import_module"),
    ("__import__", MODULES, "importlib.__import__ builtins.__import__"),
    ("sys.modules", MODULES, "sys.modules"),
    ("run_module", MODULES, "runpy.run_module"),
    ("unknown", MODULES, "pkgutil.resolve_name pkgutil.iter_modules pkgutil.walk_packages inspect.getmodule"),
    ("script", CODE_FILES, "runpy.run_path"),
    ("loader", CODE_FILES, "importlib.util.spec_from_file_location importlib.machinery.SourceFileLoader"),
    ("package", DATA, "importlib.resources.files importlib_resources.files importlib.resources.contents"),
    ("data", DATA, "pkgutil.get_data importlib.resources.read_text importlib.resources.read_binary"),
    ("data", DATA, "importlib.resources.open_text importlib.resources.open_binary importlib.resources.path"),
    ("distribution", PLUGINS, "importlib.metadata.files importlib.metadata.distribution"),
    ("unknown", PLUGINS, "importlib.metadata.entry_points"),
    ("unknown", CODE, "builtins.eval builtins.exec builtins.compile"),
    ("globals", VARIABLES, "builtins.globals"),
    ("open", FILES, "builtins.open io.open_code io.FileIO linecache.getline linecache.getlines"),
    ("open", FILES, "fileinput.input zipfile.ZipFile"),
    ("write", FILES, "os.replace os.rename os.renames shutil.move shutil.copy shutil.copy2 shutil.copyfile"),
    ("write", FILES, "shutil.copytree"),
    ("database", DATABASE, "sqlite3.connect sqlite3.dbapi2.connect aiosqlite.connect"),
    ("list", FOLDERS, "os.listdir os.scandir"),
    ("walk", FOLDERS, "os.walk os.fwalk"),
    ("pattern", FOLDERS, "glob.glob glob.iglob"),
)
_FUNCTIONS = {path: (effect, phrase) for effect, phrase, paths in _EFFECTS for path in paths.split()}
# Methods of paths that list a folder, and attributes that return the globals of a function.
PATH_LISTERS = frozenset(["glob", "rglob", "iterdir"])
NAMESPACES = frozenset(["__globals__", "f_globals"])
# Methods of paths and of data frames that write the file that is their first argument, and the name of that argument.
PATH_WRITERS = {"replace": "target", "rename": "target"}
FRAME_WRITERS = {"to_csv": "path_or_buf", "to_json": "path_or_buf", "to_parquet": "path", "to_pickle": "path"}
FRAME_WRITERS |= {"to_excel": "excel_writer"}
FRAME_WRITERS |= dict.fromkeys(["write_csv", "write_json", "write_ndjson", "write_parquet"], "file")
_TOO_COMMON = frozenset(["path", "open", "read_text"])
NAMES = frozenset(path.rpartition(".")[2] for path in _FUNCTIONS) - _TOO_COMMON
NAMES |= PATH_LISTERS | PATH_WRITERS.keys() | FRAME_WRITERS.keys() | NAMESPACES


class SpecialFunctions:
    """Finds special functions by object, whatever name the code uses for them."""

    def __init__(self) -> None:
        self._by_object: dict[int, tuple[str, str]] = {}
        for path, meaning in _FUNCTIONS.items():
            module, _, name = path.rpartition(".")
            loaded = sys.modules.get(module)
            function = vars(loaded).get(name) if loaded is not None else None
            if function is not None:
                self._by_object[id(function)] = meaning

    def find_object(self, obj: Any) -> tuple[str, str] | None:
        """Return the effect of an object and the phrase for it; None for other objects."""
        return self._by_object.get(id(obj))

    def find_path(self, path: str) -> tuple[str, str] | None:
        """Return the effect and phrase for the dotted name of a function in a module that is not loaded."""
        return _FUNCTIONS.get(path)
