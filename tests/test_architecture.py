"""The layers of ARCHITECTURE.md hold: no upward import, no import between siblings, no cycle."""

from __future__ import annotations

import ast
import functools
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"

pytestmark = pytest.mark.no_cover  # nothing of the package runs here


def layers() -> dict[str, tuple[int, int]]:
    """Return the layer of each folder, and its step within the layer (higher steps import lower ones)."""
    block = re.search(r"```layers\n(.*?)```", (ROOT / "ARCHITECTURE.md").read_text(), re.DOTALL)
    assert block is not None
    steps: dict[str, tuple[int, int]] = {}
    for line in block[1].splitlines():
        number, _, *rest = line.split()
        for step, group in enumerate(reversed(" ".join(rest).split("<"))):
            steps |= {name: (int(number), step) for name in group.split()}
    return steps


def modules() -> dict[str, Path]:
    """Return every module of the package and its file."""
    names = {}
    for file in (SOURCE / "proctor").rglob("*.py"):
        if "templates" in file.parts:
            continue  # files that are copied into a user's project
        parts = file.relative_to(SOURCE).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return names


class Source(NamedTuple):
    """What the tests look at in a file; whole syntax trees of all files would fill the memory."""

    imports: list[ast.Import | ast.ImportFrom]
    functions: dict[str, int]


@functools.cache
def source(file: Path) -> Source:
    """Return the imports of a file, also those inside functions, and the lengths of its functions."""
    imports, functions = [], {}
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions[f"{node.name}:{node.lineno}"] = (node.end_lineno or 0) - node.lineno
    return Source(imports, functions)


def imports(file: Path, known: dict[str, Path]) -> set[str]:
    """Return what a file imports from the package, also inside functions."""
    imported = set()
    for node in source(file).imports:
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        else:
            assert node.level == 0, f"{file}: relative import"
            module = node.module or ""
            for alias in node.names:
                full = f"{module}.{alias.name}"
                imported.add(full if full in known else module)
    return {name for name in imported if name in known}


def folder(module: str) -> str:
    """Return the top-level folder or module of a module."""
    return module.split(".")[1] if "." in module else "__init__"


def test_every_folder_has_a_layer() -> None:
    """The block names every folder that exists, and no other."""
    assert {folder(name) for name in modules()} == set(layers()) | {"__init__"}


def test_no_import_goes_up_or_sideways() -> None:
    """A file imports lower layers, its own folder, and what its layer's line allows."""
    known, level = modules(), layers()
    wrong = [
        f"{name} imports {other}"
        for name, file in known.items()
        for other in imports(file, known)
        if folder(other) != folder(name) and not level[folder(other)] < level[folder(name)]
    ]
    assert wrong == []


def test_there_is_no_import_cycle() -> None:
    """Imports form no cycle, including those inside functions."""
    known = modules()
    graph = {name: imports(file, known) - {name} for name, file in known.items()}
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"an import cycle: {error.args[1]}")


def test_files_and_functions_stay_small() -> None:
    """Files have fewer than 600 lines and functions fewer than 60."""
    too_long = []
    for name, file in modules().items():
        text = file.read_text()
        if text.count("\n") >= 600:
            too_long.append(f"{name}: {text.count(chr(10))} lines")
        lengths = source(file).functions.items()
        too_long += [f"{name}.{function}: {length} lines" for function, length in lengths if length >= 60]
    assert too_long == []


def test_no_module_has_a_meaningless_name() -> None:
    """Nothing is called utils, common, base, helpers or manager."""
    empty_words = {"utils", "util", "common", "base", "helpers", "helper", "manager", "misc"}
    assert not [name for name in modules() if empty_words & set(name.split("."))]
