"""Modules, globals and files that code accesses through strings, such as importlib.import_module("x").

Constant strings are resolved; for computed strings, `phrases` describes what the identity does not cover.
"""

from __future__ import annotations

import importlib.util
import os

from proctor.core.identity.code import CodeFacts, Import
from proctor.core.identity.file_calls import Expression, Use
from proctor.core.identity.locations import (
    ANYWHERE,
    Location,
    Names,
    find_effect,
    is_listing,
    resolve_listing,
    resolve_package,
    resolve_string,
    resolve_text,
)
from proctor.core.identity.modules import is_third_party
from proctor.core.identity.special_functions import (
    CODE_FILES,
    FOLDERS,
    FRAME_WRITERS,
    MODULES,
    NAMESPACES,
    PATH_WRITERS,
    VARIABLES,
)


class DynamicAccess:
    """The modules, globals and files that one function accesses through strings.

    `variables` are the globals of its module that it reads, `assigned_globals` the globals that it sets; with
    `whole_module` it may read all of them.
    """

    def __init__(self, facts: CodeFacts, names: Names) -> None:
        self.imports: list[Import] = []
        self.variables: set[str] = set()
        self.assigned_globals: set[str] = set()
        self.whole_module = False
        self.scripts: list[Location] = []
        self.reads: list[Location] = []
        self.writes: list[Location] = []
        self.phrases: set[str] = set()
        self._names = names
        for use in facts.uses:
            self._add(use)

    def _add(self, use: Use) -> None:
        node = use.node
        if use.kind == "attribute" and use.arguments[0].value in NAMESPACES:
            self.phrases.add(VARIABLES)
        elif self._is_namespace(node):
            self._add_variable(use)
        elif self._is_own_module(node):
            self._add_own_attribute(use)
        elif use.kind == "call" and is_listing(node, self._names):
            self._add_listing(use)
        elif (meaning := find_effect(node, self._names)) is not None:
            self._add_special(use, *meaning)
        elif use.kind == "call" and node.kind == "attribute":
            self._add_method(use)
        elif use.kind == "value" and is_listing(node, self._names):
            self.phrases.add(FOLDERS)

    def _add_method(self, use: Use) -> None:
        owner, name, first = use.node.parts[0], use.node.value, use.arguments[0] if use.arguments else None
        keyword = (PATH_WRITERS | FRAME_WRITERS).get(str(name))
        if keyword is not None:
            target = use.argument(0, keyword)
            path = resolve_text(target, self._names) if target is not None else None
            # A string and a column have methods of the same name: str.replace has two arguments.
            is_path = len(use.arguments) < 2 and resolve_text(owner, self._names) is not None
            self.writes += [path] if path is not None and (name in FRAME_WRITERS or is_path) else []
        elif name == "get" and self._is_namespace(owner):
            self._add_variable(Use("item", owner, use.arguments))
        elif name == "get" and self._has_effect(owner, "sys.modules"):
            self._add_loaded_module(first)

    def _has_effect(self, node: Expression, effect: str) -> bool:
        meaning = find_effect(node, self._names)
        return meaning is not None and meaning[0] == effect

    def _is_namespace(self, node: Expression) -> bool:
        """Return whether an expression is `globals()`."""
        return node.kind == "call" and self._has_effect(node.parts[0], "globals")

    def _is_own_module(self, node: Expression) -> bool:
        """Return whether a node is `sys.modules[__name__]` or an import of the code's own module."""
        key: Expression | None = None
        if node.kind == "item" and self._has_effect(node.parts[0], "sys.modules"):
            key = node.parts[1]
        elif node.kind == "call" and len(node.parts) > 1:
            callee = node.parts[0]
            is_get = callee.kind == "attribute" and callee.value == "get"
            if self._has_effect(callee, "import") or (is_get and self._has_effect(callee.parts[0], "sys.modules")):
                key = node.parts[1]
        return key is not None and self._is_own_name(resolve_string(key, self._names))

    def _is_own_name(self, name: str | None) -> bool:
        return name is not None and name == self._names.values.get("__name__")

    def _add_variable(self, use: Use) -> None:
        """Add the variable of `globals()["PROMPT"]`, or all variables if the key is unknown."""
        if use.kind == "attribute":
            if use.arguments[0].value != "get":
                self.whole_module = True
            return
        key = resolve_string(use.arguments[0], self._names) if use.arguments else None
        if use.kind == "store" and key is not None:
            self.assigned_globals.add(key)
        elif use.kind == "item" and key is not None:
            self.variables.add(key)
        else:
            self.whole_module = True

    def _add_own_attribute(self, use: Use) -> None:
        name = use.arguments[0].value if use.kind == "attribute" else None
        if isinstance(name, str) and not name.startswith("__"):
            self.variables.add(name)
        else:
            self.whole_module = True

    def _add_listing(self, use: Use) -> None:
        node = Expression("call", use.keywords, (use.node, *use.arguments))
        location = resolve_listing(node, self._names) or ANYWHERE
        if location.folder:
            self.reads.append(location)
        else:
            self.phrases.add(FOLDERS)

    def _add_special(self, use: Use, effect: str, phrase: str) -> None:
        if effect == "open" and use.node.value == "open":
            return  # Handled with the file calls.
        if effect == "sys.modules" and use.kind in ("item", "store", "attribute"):
            self._add_item_of_modules(use)
        elif effect == "globals" and use.kind == "call":
            return
        elif use.kind != "call" or effect == "unknown":
            self.phrases.add(phrase)
        elif effect in ("import", "__import__", "run_module"):
            self._add_import(use, effect)
        elif effect in ("script", "loader"):
            argument = use.argument(*((0, "path_name") if effect == "script" else (1, "location")))
            self._add_script(argument or use.keyword("path"))
        elif effect in ("data", "package"):
            self._add_data(use, effect, phrase)
        elif effect in ("open", "write", "database"):
            self._add_opened_file(use, effect, phrase)
        elif effect != "distribution" or not resolve_string(use.argument(0, "distribution_name"), self._names):
            # Only the name of an installed package is part of the identity.
            self.phrases.add(phrase)

    def _add_opened_file(self, use: Use, effect: str, phrase: str) -> None:
        if effect != "database":
            argument = use.argument(0, "file") if effect == "open" else use.argument(1, "dst")
            path = resolve_text(argument, self._names) if argument is not None else None
            (self.reads if effect == "open" else self.writes).append(path or ANYWHERE)
            return
        name = resolve_string(use.argument(0, "database"), self._names)
        if name not in ("", ":memory:"):
            self.phrases.add(phrase if name is None else f"the database {os.path.basename(name)}")

    def _add_item_of_modules(self, use: Use) -> None:
        if use.kind == "item":
            self._add_loaded_module(use.arguments[0])
        elif use.kind == "attribute" and use.arguments[0].value not in ("get", "pop"):
            self.phrases.add(MODULES)

    def _add_loaded_module(self, key: Expression | None) -> None:
        """Add the source of the module of `sys.modules["prompts"]`."""
        name = resolve_string(key, self._names)
        if name is None or (name == "__main__" and not self._is_own_name(name)):
            self.phrases.add(MODULES)
        elif not self._is_own_name(name):
            self.imports.append(Import(name, 0, ()))

    def _add_import(self, use: Use, effect: str) -> None:
        argument = use.argument(0, "mod_name" if effect == "run_module" else "name")
        name = resolve_string(argument, self._names)
        if name is None:
            self._add_computed_module(argument)
            return
        attributes: tuple[str, ...] = ()
        level = 0
        if effect == "run_module":
            attributes = ("__main__",)
        elif effect == "__import__":
            from_list, depth = _strings(use.argument(3, "fromlist")), use.argument(4, "level")
            level_value = 0 if depth is None else depth.value
            if from_list is None or not isinstance(level_value, int):
                self.phrases.add(MODULES)
            attributes, level = from_list or (), level_value if isinstance(level_value, int) else 0
        elif name.startswith("."):
            package = resolve_string(use.argument(1, "package"), self._names)
            try:
                name = importlib.util.resolve_name(name, package)
            except (ImportError, ValueError, TypeError):
                self.phrases.add(MODULES)
                return
        if level or not self._is_own_name(name):
            self.imports.append(Import(name, level, attributes))

    def _add_computed_module(self, argument: Expression | None) -> None:
        text = resolve_text(argument, self._names) if argument is not None else None
        package, dot, _ = text.start.partition(".") if text is not None else ("", "", "")
        if not (package and dot and is_third_party(package)):
            self.phrases.add(MODULES)

    def _add_script(self, argument: Expression | None) -> None:
        path = resolve_text(argument, self._names) if argument is not None else None
        if path is not None and path.complete:
            self.scripts.append(path)
        else:
            self.phrases.add(CODE_FILES)

    def _add_data(self, use: Use, effect: str, phrase: str) -> None:
        package = use.argument(0, "package") or use.keyword("anchor")
        folder = resolve_package(package, self._names)
        if folder is None:
            name = resolve_string(package, self._names)
            if name is None or not is_third_party(name):
                self.phrases.add(phrase)
        elif effect == "data":
            resource = use.argument(1, "resource")
            location = (resolve_text(resource, self._names) if resource is not None else None) or ANYWHERE
            self.reads.append(location._replace(start=os.path.join(folder.start, location.start)))


def _strings(node: Expression | None) -> tuple[str, ...] | None:
    """Return the strings of a constant list; None if the list is unknown."""
    if node is None:
        return ()
    if node.kind == "tuple" and all(part.kind == "constant" for part in node.parts):
        return tuple(str(part.value) for part in node.parts)
    if node.kind == "constant" and isinstance(node.value, tuple | None):
        return tuple(map(str, node.value or ()))
    return None
