"""Read YAML with line numbers, and reject documents that expand into too many values.

An alias repeats a part of the document. A few lines of nested aliases describe billions of values ("billion laughs"):
they parse quickly, but a loop over the result never ends.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yaml import SafeLoader
    from yaml.error import MarkedYAMLError
    from yaml.nodes import Node

MAX_VALUES = 200_000
MAX_DEPTH = 200
MAX_CHARACTERS = 10_000_000
_TOO_DEEP = f"the document is nested more than {MAX_DEPTH} levels deep"


EntryPath = tuple[str | int, ...]


class InvalidYAML(ValueError):
    """An error in a YAML document, with its line if it is known."""

    def __init__(self, what: str, line: int | None = None, fix: str = "") -> None:
        super().__init__(what if line is None else f"{what} (line {line})")
        self.what, self.line, self.fix = what, line, fix

    def where(self, path: object) -> str:
        """Return the file and the line, for an error message."""
        return str(path) if self.line is None else f"{path}:{self.line}"


class SourceLines:
    """The line of each entry of a document, and duplicate keys with their lines.

    The path of an entry is the sequence of keys and indexes that leads to it.
    """

    def __init__(self, node: Node | None = None) -> None:
        self._lines: dict[EntryPath, int] = {}
        self.repeated: list[tuple[EntryPath, int]] = []
        if node is not None:
            self._visit(node, ())

    def _visit(self, node: Any, path: EntryPath) -> None:
        self._lines.setdefault(path, node.start_mark.line + 1)
        for index, child in enumerate(node.value if isinstance(node.value, list) else ()):
            if not isinstance(child, tuple):
                self._visit(child, (*path, index))
                continue
            key, value = child
            entry, line = (*path, str(key.value)), key.start_mark.line + 1
            is_repeated = entry in self._lines
            self._lines[entry] = line
            if is_repeated:
                self.repeated.append((entry, line))
            else:
                self._visit(value, entry)

    def find_line(self, entry: EntryPath) -> int | None:
        """Return the line of an entry, or of the nearest entry that contains it."""
        containers = (entry[:n] for n in range(len(entry), -1, -1))
        return next((self._lines[container] for container in containers if container in self._lines), None)

    def describe(self, entry: EntryPath, where: str) -> str:
        """Return the file, line and path of an entry, for an error message."""
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in entry)
        line = self.find_line(entry)
        location = f"{where}:{line}" if line is not None else ""
        return ", ".join(text for text in (location, path.lstrip(".")) if text)


def read_yaml(text: str) -> tuple[Any, SourceLines]:
    """Return the value of a YAML document and the line of every entry; raises `InvalidYAML`."""
    value, node = _parse(text)
    return value, SourceLines(node)


def read_lines(text: str) -> SourceLines:
    """Return the lines of a document that another parser reads, such as JSON; empty if it is invalid."""
    try:
        return read_yaml(text.replace("\t", " "))[1]
    except InvalidYAML:
        return SourceLines()


def load_yaml(text: str) -> Any:
    """Return the value of a YAML document; raises `InvalidYAML`."""
    return _parse(text)[0]


def _parse(text: str) -> tuple[Any, Node | None]:
    # Imported on first use: most commands read no YAML.
    import yaml

    if len(text) > MAX_CHARACTERS:
        raise InvalidYAML(f"the document has {len(text):,} characters, at most {MAX_CHARACTERS:,} are allowed")
    try:
        loader = _loader_class()(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None, None
            _check_size(node)
            return loader.construct_document(node), node
        finally:
            loader.dispose()
    except RecursionError:
        raise InvalidYAML(_TOO_DEEP) from None
    except InvalidYAML:
        raise
    except yaml.MarkedYAMLError as error:
        raise _explain(error) from None
    except (yaml.YAMLError, ValueError) as error:
        raise InvalidYAML(str(error).partition("\n")[0]) from None


# PyYAML's messages, and what they mean: {0} is the first group, {line} the line where the element starts.
_QUOTE = "put strings that contain : ? # , [ or { in quotes"
_MESSAGES = (
    (r"quoted scalar.*unexpected end of stream", "the quoted string that starts on line {line} is not closed",
     "add the closing quote"),
    (r"flow (?:sequence|mapping).*expected ',' or .*but got '\?'", "unexpected '?' in a list or mapping",
     "put the text with the ? in quotes"),
    (r"flow sequence.*expected ',' or '\]'", "the list that starts on line {line} is not closed, or a comma is missing",
     "add ] or the comma"),
    (r"flow mapping.*expected ',' or '\}'",
     "the mapping that starts on line {line} is not closed, or a comma is missing", "add } or the comma"),
    (r"expected the node content, but found '<stream end>'", "a list or mapping is not closed", "add ] or }"),
    (r"expected the node content, but found '(.+)'", "a value is missing before {0!r}", _QUOTE),
    (r"mapping values are not allowed here", "unexpected ':'", "correct the indentation, or put the string in quotes"),
    (r"expected <block end>, but found '([\]}])'", "unexpected {0!r}", "delete it, or put the string in quotes"),
    (r"unknown escape character '(.)'", "unknown escape '\\{0}'", "write \\\\ for a backslash, or use single quotes"),
    (r"expected <block end>, but found", "the indentation is wrong", "indent all keys of a mapping equally"),
    (r"could not find expected ':'", "a ':' is missing after a key", "write key: value, or put the string in quotes"),
    (r"character '(.+)' that cannot start any token", "a value cannot start with {0!r}", "put the string in quotes"),
    (r"found undefined alias '(.+)'", "unknown alias '*{0}'", "put the string in quotes"),
    (r"expected a single document", "the file contains several documents", "delete the line --- and what follows it"),
    (r"constructor for the tag '(.+)'", "unknown tag {0!r}", "delete the tag, or put the string in quotes"),
)  # fmt: skip


def _explain(error: MarkedYAMLError) -> InvalidYAML:
    mark, problem = error.problem_mark, str(error.problem)
    line = None if mark is None else mark.line + 1
    if "'\\t'" not in problem:
        start = error.context_mark.line + 1 if error.context_mark else line
        for pattern, what, fix in _MESSAGES:
            if match := re.search(pattern, f"{error.context} {problem}"):
                return InvalidYAML(what.format(*match.groups(), line=start), line, fix)
        return InvalidYAML(problem, line, _QUOTE)
    indentation = ""
    if mark is not None and mark.buffer is not None:
        indentation = mark.buffer[: mark.pointer].rpartition("\n")[2]
    what = "there is a tab" if indentation.strip() else "the line is indented with a tab"
    return InvalidYAML(what, line, "replace tabs with spaces: YAML allows no tabs in indentation")


@functools.cache
def _loader_class() -> type[SafeLoader]:
    """Return a safe loader that rejects deep nesting while it scans the text.

    For each token the scanner visits every open bracket, so a check of the parsed document would come too late.
    """
    import yaml

    class DepthLimitedLoader(yaml.SafeLoader):
        def fetch_flow_collection_start(self, token_class: Any) -> None:
            self._check_depth()
            super().fetch_flow_collection_start(token_class)

        def add_indent(self, column: int) -> bool:
            self._check_depth()
            return super().add_indent(column)

        def _check_depth(self) -> None:
            if self.flow_level + len(self.indents) > MAX_DEPTH:
                raise InvalidYAML(_TOO_DEEP)

    return DepthLimitedLoader


def _check_size(top: Node) -> None:
    """Reject a document whose aliases expand into too many values; each node is visited once."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()

    def size_of(node: Any, depth: int) -> int:
        key = id(node)
        if key in sizes:
            return sizes[key]
        if key in open_nodes:
            raise InvalidYAML("a part of the document contains itself")
        total = 1
        if isinstance(node.value, list):
            if depth >= MAX_DEPTH:
                raise InvalidYAML(_TOO_DEEP)
            open_nodes.add(key)
            for child in node.value:
                for part in child if isinstance(child, tuple) else (child,):
                    total += size_of(part, depth + 1)
            open_nodes.discard(key)
        if total > MAX_VALUES:
            raise InvalidYAML(f"the aliases expand into more than {MAX_VALUES:,} values")
        sizes[key] = total
        return total

    size_of(top, 0)
