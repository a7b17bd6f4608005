"""Texts that a program reads: JSON, YAML, TOML and Python."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from proctor.errors import EvaluatorError
from proctor.evaluators.formats import json_text
from proctor.evaluators.formats.fault import Fault, at
from proctor.evaluators.formats.terms import Terms

if TYPE_CHECKING:
    from yaml.nodes import Node

_PLACE = re.compile(r" ?\(at (?:line (\d+), column (\d+)|end of document)\)\Z")
_MERGE = "tag:yaml.org,2002:merge"
# The parsers of YAML and TOML take the square of the time for what is nested deeper than this.
_DEEPEST = 200
_LONGEST_LINE = 20_000
_BRACKETS = re.compile(r"[\[\]{}]")
_LONG_KEY = re.compile(rf"(?<![\w.-])(?:[\w-]++\.){{{_DEEPEST}}}")
_TOO_DEEP = Fault("it is nested too deep to be read")


def json(text: str, _: Terms) -> Fault | None:
    """JSON by RFC 8259."""
    return json_text.read(text).fault


def toml(text: str, _: Terms) -> Fault | None:
    """TOML 1.0, by the standard library's parser."""
    import tomllib

    if not text.strip():
        return Fault("the text is empty")
    if max(map(len, text.splitlines()), default=0) > _LONGEST_LINE:
        # The standard library's parser takes quadratic time for a long dotted key.
        raise EvaluatorError(f"a line in it has more than {_LONGEST_LINE:,} characters")
    if _LONG_KEY.search(text):
        raise EvaluatorError(f"a key in it has more than {_DEEPEST} parts")
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what = _PLACE.sub("", str(error))
        found = _PLACE.search(str(error))
        if found is None or found[1] is None:
            return at(text, len(text), what)
        return Fault(what, int(found[1]), int(found[2]))
    except RecursionError:
        return _TOO_DEEP
    return None


def yaml(text: str, _: Terms) -> Fault | None:
    """YAML 1.1 that builds plain data only, with a mapping or a list at the top.

    A single text is refused, since any prose is one; so are keys that repeat.
    """
    from yaml import SafeLoader, YAMLError, compose

    if _depth(text) > _DEEPEST:
        raise EvaluatorError(f"more than {_DEEPEST} brackets stand open in it at once")
    try:
        node = compose(text, Loader=SafeLoader)
        if node is None:
            return Fault("the text is empty")
        if not isinstance(node.value, list):
            return Fault("it is a single value, as any prose is, and neither a mapping nor a list")
        return next(_odd_nodes(node), None)
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = str(getattr(error, "problem", None) or error).partition("\n")[0]
        return Fault(what) if mark is None else Fault(what, mark.line + 1, mark.column + 1)
    except RecursionError:
        return _TOO_DEEP


def python(text: str, _: Terms) -> Fault | None:
    """Python that compiles, in the version that Proctor runs on; nothing is run."""
    import ast
    import warnings

    if not text.strip():
        return Fault("the text is empty")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return Fault(error.msg, error.lineno or 0, error.offset or 0)
    except (ValueError, RecursionError, MemoryError) as error:
        return _TOO_DEEP if not isinstance(error, ValueError) else Fault(str(error))
    return None


def _depth(text: str) -> int:
    """How many brackets stand open at most, those in quotation marks among them."""
    steps = (1 if match[0] in "[{" else -1 for match in _BRACKETS.finditer(text))
    return max(accumulate(steps), default=0)


def _odd_nodes(top: Node) -> Iterator[Fault]:
    """Tags that only code could build, and keys that a mapping has twice."""
    from yaml import MappingNode, SafeLoader, ScalarNode

    seen: set[int] = set()
    waiting: list[Any] = [top]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        line, column = node.start_mark.line + 1, node.start_mark.column + 1
        if node.tag not in SafeLoader.yaml_constructors and node.tag != _MERGE:
            yield Fault(f"the tag {node.tag} does not stand for plain data", line, column)
        if isinstance(node, MappingNode):
            keys = [key for key, _ in node.value if isinstance(key, ScalarNode)]
            yield from _repeated(keys)
        if not isinstance(node, ScalarNode):
            inner = [
                part for one in node.value for part in (one if isinstance(one, tuple) else (one,))
            ]
            waiting += reversed(inner)


def _repeated(keys: list[Any]) -> Iterator[Fault]:
    seen = set()
    for key in keys:
        named = (key.tag, key.value)
        if named in seen:
            place = key.start_mark
            yield Fault(f"the key {key.value!r} stands twice", place.line + 1, place.column + 1)
        seen.add(named)
