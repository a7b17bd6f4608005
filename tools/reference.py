"""Build the reference pages from the source: keys of eval files, errors, ports, records and examples."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from proctor import errors
from proctor.errors import ProctorError, RunInterrupted, UsageError
from proctor.wiring import eval_file

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "proctor"
# The records of a page, in the order of an evaluation.
RECORDS = {
    "Samples and scores": ("sample", "score"),
    "Sessions": ("session", "session_events"),
    "Trials and results": ("trial", "results", "metric", "progress"),
    "Runs": ("run",),
    "Comparisons and gates": ("comparison", "gate", "slices"),
    "Rubrics and labels": ("rubric", "label"),
    "Models": ("model",),
    "Mailboxes": ("mail",),
}
KEYS_HEAD = """
Every key of an eval file, read from the records that check it. [Eval files](../eval-files.md) explains them with
examples. `proctor init` writes a file that names the JSON Schema, so that editors complete and check the keys.
"""
ERRORS_HEAD = """
Every error that Proctor raises on purpose is a `ProctorError` from `proctor.errors`. It has `what` (one sentence),
`where` (a file, an option or a name), `fix` (what to type) and `problems` (if there are several). The command line
prints them and exits with the code in the table. An error of *your* code inside a trial is not raised: it is stored as
the error of its sample.
"""
PORTS_HEAD = """
Protocols that plugins and your own objects implement. A plain class with these methods is enough; nothing is inherited.
They are in `proctor.ports`.
"""
EXAMPLES_HEAD = """
Each example runs without an API key, in its own folder or in an empty one, and is executed by our tests. A script shows
its output at its end; a folder has a page with the commands.
"""
RECORDS_HEAD = """
The nouns of Proctor: frozen records that evaluators receive, reports contain and the history stores. A field with a
default may be left out. Import them from `proctor` or from the module in the heading.
"""


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table, without its column of meanings if that is empty."""
    if headings[-1] == "meaning" and not any(row[-1] for row in rows):
        headings, rows = headings[:-1], [row[:-1] for row in rows]
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def code(text: str) -> str:
    """Return code for the cell of a table, where a bar would end the cell."""
    return f"`{text}`".replace("|", "\\|")


def eval_file_keys_page(notice: str) -> str:
    """Return the page of the keys of an eval file, from its JSON Schema."""
    definitions = eval_file.build_schema()["$defs"]
    parts = ["# Keys of eval files", notice, KEYS_HEAD.strip()]
    first = {"EvalFile": "Top level", "DatasetEntry": "dataset", "FieldEntry": "fields", "RunOptions": "run"}
    for name in [*first, *(name for name in sorted(definitions) if name not in first)]:
        definition = definitions[name]
        if "properties" not in definition:
            continue
        required = set(definition.get("required", ()))
        rows = [_key_row(key, value, key in required) for key, value in definition["properties"].items()]
        parts += [f"## {first.get(name, name)}", " ".join(definition.get("description", "").split())]
        parts.append(table(("key", "type", "default", "meaning"), rows))
    return "\n\n".join(part for part in parts if part) + "\n"


def _key_row(key: str, value: dict[str, Any], required: bool) -> tuple[str, str, str, str]:
    default = "required" if required else code(json.dumps(value["default"])) if "default" in value else ""
    return code(key), _schema_type(value), default, " ".join(str(value.get("description", "")).split())


def _schema_type(value: dict[str, Any]) -> str:
    if "anyOf" in value:
        return ", ".join(dict.fromkeys(_schema_type(choice) for choice in value["anyOf"]))
    if "enum" in value:
        return ", ".join(code(str(choice)) for choice in value["enum"])
    if "$ref" in value:
        return str(value["$ref"]).rpartition("/")[2]
    kind = str(value.get("type", "anything"))
    low = [f"> {value['exclusiveMinimum']}"] if "exclusiveMinimum" in value else []
    low += [f"≥ {value['minimum']}"] if "minimum" in value else []
    return " ".join([kind, *low])


def errors_page(notice: str) -> str:
    """Return the page of errors, with their bases and exit codes."""
    classes = [
        value
        for value in vars(errors).values()
        if inspect.isclass(value) and issubclass(value, (ProctorError, RunInterrupted))
    ]
    rows = [
        (code(each.__name__), code(each.__bases__[0].__name__), _first_sentence(each.__doc__), _find_exit_code(each))
        for each in classes
    ]
    parts = ["# Errors", notice, ERRORS_HEAD.strip(), table(("error", "is a", "meaning", "exit code"), rows)]
    return "\n\n".join(parts) + "\n"


def _find_exit_code(error: type[BaseException]) -> str:
    if issubclass(error, RunInterrupted):
        return "130"
    return "2" if issubclass(error, UsageError) else "3"


def _first_sentence(text: str | None) -> str:
    return " ".join((text or "").strip().partition("\n\n")[0].split())


def ports_page(notice: str) -> str:
    """Return the page of protocols, with their methods."""
    parts = ["# Ports", notice, PORTS_HEAD.strip()]
    for file in ("ports/__init__.py", "ports/mail.py"):
        for node in _list_classes(SOURCE / file):
            if any("Protocol" in ast.unparse(base) for base in node.bases):
                parts += [f"## {node.name}", *_list_paragraphs(node)]
                rows = [row for child in node.body if (row := _member_row(child))]
                if rows:
                    parts.append(table(("member", "meaning"), rows))
    return "\n\n".join(parts) + "\n"


def _member_row(node: ast.stmt) -> tuple[str, str] | None:
    if isinstance(node, ast.AnnAssign):
        return code(f"{ast.unparse(node.target)}: {ast.unparse(node.annotation)}"), ""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    is_property = any(ast.unparse(item) == "property" for item in node.decorator_list)
    prefix = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    arguments = "" if is_property else f"({ast.unparse(node.args).removeprefix('self').removeprefix(', ')})"
    text = f"{prefix}{node.name}{arguments}{returns}"
    return code(text.replace("(/, ", "(")), _first_sentence(ast.get_docstring(node))


def records_page(notice: str) -> str:
    """Return the page of records, with their fields."""
    parts = ["# Records", notice, RECORDS_HEAD.strip()]
    for heading, modules in RECORDS.items():
        parts.append(f"## {heading}")
        for module in modules:
            for node in _list_classes(SOURCE / "records" / f"{module}.py"):
                rows = [_field_row(child) for child in node.body if isinstance(child, ast.AnnAssign)]
                if rows and not node.name.startswith("_"):
                    parts += [f"### {node.name} (proctor.records.{module})", *_list_paragraphs(node)]
                    parts.append(table(("field", "type", "default", "meaning"), rows))
    return "\n\n".join(parts) + "\n"


def _list_classes(path: Path) -> Iterator[ast.ClassDef]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    yield from (node for node in tree.body if isinstance(node, ast.ClassDef))


def _list_paragraphs(node: ast.ClassDef) -> Iterator[str]:
    """Yield the paragraphs of a docstring, its examples as blocks."""
    for paragraph in (ast.get_docstring(node) or "").split("\n\n"):
        if paragraph.startswith(">>>"):
            yield f"```pycon\n{paragraph}\n```"
        elif paragraph:
            yield paragraph


def _field_row(node: ast.AnnAssign) -> tuple[str, str, str, str]:
    annotation, meaning = node.annotation, ""
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Annotated":
        assert isinstance(annotation.slice, ast.Tuple)
        annotation, *notes = annotation.slice.elts
        texts = [n.value for note in notes for n in ast.walk(note) if isinstance(n, ast.Constant)]
        meaning = " ".join(text for text in texts if isinstance(text, str))
    default = "required" if node.value is None else code(ast.unparse(node.value))
    return code(ast.unparse(node.target)), code(ast.unparse(annotation)), default, meaning


def examples_page(notice: str) -> str:
    """Return the table of examples: what each shows, from its docstring or its page."""
    folder = ROOT / "examples"
    rows = []
    for script in sorted(folder.glob("*.py")):
        docstring = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
        rows.append((f"[{script.name}]({script.name})", _first_sentence(docstring)))
    for page in sorted(folder.glob("*/README.md")):
        _, first, *_ = page.read_text(encoding="utf-8").split("\n\n")
        rows.append((f"[{page.parent.name}/]({page.parent.name}/README.md)", " ".join(first.split())))
    parts = ["# Examples", notice, EXAMPLES_HEAD.strip(), table(("example", "shows"), rows)]
    return "\n\n".join(parts) + "\n"


PAGES = {
    "examples/README.md": examples_page,
    "docs/reference/eval-file-keys.md": eval_file_keys_page,
    "docs/reference/errors.md": errors_page,
    "docs/reference/ports.md": ports_page,
    "docs/reference/records.md": records_page,
}
