"""Parse YAML from users' files, and refuse documents that unfold into something enormous.

An alias repeats a part of the document. A few lines of aliases of aliases describe billions of
values ("billion laughs"): parsing them is quick, and the first loop over the result never ends.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from proctor.errors import Problem

if TYPE_CHECKING:
    from yaml import SafeLoader
    from yaml.error import MarkedYAMLError
    from yaml.nodes import Node

MAX_VALUES = 200_000
MAX_DEPTH = 200
MAX_CHARACTERS = 10_000_000
_TOO_DEEP = f"the document is nested more than {MAX_DEPTH} levels deep"


def describe_yaml_error(error: MarkedYAMLError) -> Problem:
    """Explain a parser's error in words that help.

    >>> import yaml
    >>> try:
    ...     parse_yaml("a:\\n\\tb: 1")
    ... except yaml.MarkedYAMLError as error:
    ...     describe_yaml_error(error).what
    'the line is indented with a tab'
    """
    mark = error.problem_mark
    problem = str(error.problem)
    if "'\\t'" in problem:
        before = ""
        if mark is not None and mark.buffer is not None:
            before = mark.buffer[: mark.pointer].rpartition("\n")[2]
        where = "there is a tab" if before.strip() else "the line is indented with a tab"
        return Problem("", where, "replace tabs with spaces: YAML allows no tabs in indentation")
    return Problem("", problem, "put texts that contain : ? # , [ or { in quotes")


class YAMLRefused(ValueError):
    """The document is too large once its aliases are unfolded, or contains itself."""


def parse_yaml(text: str) -> tuple[Any, Node | None]:
    """Return the value of a YAML document, and its node tree with the line of every part.

    Raises `yaml.YAMLError` for what is not YAML, `YAMLRefused` for what is too large or too deep.

    >>> parse_yaml("a: [1, 2]")[0]
    {'a': [1, 2]}
    >>> parse_yaml("a: &a [*a]")
    Traceback (most recent call last):
    ...
    proctor.core.yaml_text.YAMLRefused: a part of the document contains itself
    """
    if len(text) > MAX_CHARACTERS:
        raise YAMLRefused(
            f"the document has {len(text):,} characters, at most {MAX_CHARACTERS:,} are allowed"
        )
    loader = _loader_class()(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, None
        _check_size(node)
        return loader.construct_document(node), node
    except RecursionError:
        raise YAMLRefused(_TOO_DEEP) from None
    finally:
        loader.dispose()


@functools.cache
def _loader_class() -> type[SafeLoader]:
    """Return a safe loader that refuses deep nesting while it scans the text.

    The scanner looks at every open bracket again for each token, so checking the depth of the
    parsed document comes too late.
    """
    # Imported on first use: most commands read no YAML.
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
                raise YAMLRefused(_TOO_DEEP)

    return DepthLimitedLoader


def load_yaml(text: str) -> Any:
    """Return the value of a YAML document.

    >>> load_yaml("[a, 1, true]")
    ['a', 1, True]
    """
    return parse_yaml(text)[0]


def _check_size(top: Node) -> None:
    """Count the values of the unfolded document; each node is visited once."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()

    def size_of(node: Any, depth: int) -> int:
        key = id(node)
        if key in sizes:
            return sizes[key]
        if key in open_nodes:
            raise YAMLRefused("a part of the document contains itself")
        total = 1
        if isinstance(node.value, list):
            if depth >= MAX_DEPTH:
                raise YAMLRefused(_TOO_DEEP)
            open_nodes.add(key)
            for child in node.value:
                for part in child if isinstance(child, tuple) else (child,):
                    total += size_of(part, depth + 1)
            open_nodes.discard(key)
        if total > MAX_VALUES:
            raise YAMLRefused(f"its aliases unfold into more than {MAX_VALUES:,} values")
        sizes[key] = total
        return total

    size_of(top, 0)
