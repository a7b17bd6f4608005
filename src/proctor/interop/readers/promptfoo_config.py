"""promptfoo configs and test files: tests become samples with their own evaluators.

A config names other files; only files below its own folder are read. Code (JavaScript, Python, transforms) is never
run, and what depends on it is listed as a warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from proctor.errors import suggest_name
from proctor.interop.files import damaged_file, read_json, read_json_lines, read_table, read_text, read_yaml
from proctor.interop.imported import ImportedFile
from proctor.interop.readers.promptfoo_assertions import (
    Checks,
    name_checks,
    parse_expected,
    translate_assertions,
    translate_model,
)
from proctor.interop.run_builder import clean_metadata, count_warnings
from proctor.records.numbers import is_number
from proctor.records.sample import Sample
from proctor.sessions.importers.json_values import as_list, as_mapping, as_text

NAME = "promptfoo"
MAX_SAMPLES = 100_000
_MAX_IDS = 3
_FILE = "file://"
_VARIABLE = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}")
_LOST_OPTIONS = ("transform", "postprocess", "transformVars", "prefix", "suffix")
_LOST_KEYS = {
    "assertScoringFunction": "assertScoringFunction is left out: all translated checks must pass now; write the rule "
    "as a function of your own: file.py:function",
    "prompts": "the prompts filter of a test is left out: every configuration runs the test",
    "providers": "the providers filter of a test is left out: every configuration runs the test",
    "provider": "the provider of a test is left out: every configuration runs the test",
}
_TEST_KEYS = frozenset((
    "vars", "assert", "threshold", "options", "metadata", "description", "provider", "providers", "providerOutput",
    "prompts", "assertScoringFunction", "id", "strategyId",
))  # fmt: skip
_CONFIG_KEYS = frozenset((
    "assertionTemplates", "commandLineOptions", "config", "defaultTest", "derivedMetrics", "description", "env",
    "evaluateOptions", "extensions", "metadata", "nunjucksFilters", "outputPath", "plugins", "prompts", "providers",
    "redteam", "scenarios", "sharing", "strategies", "tags", "targets", "tests", "tracing", "writeLatestResults",
))  # fmt: skip
_LOST_CONFIG_KEYS = ("derivedMetrics", "extensions", "nunjucksFilters", "redteam")
_UNESCAPED_COMMA = re.compile(r"(?<!\\),")
_EXPECTED_COLUMN = re.compile(r"__expected(\d*)$")
_ENVIRONMENT = re.compile(r"\{\{\s*env\.([A-Za-z_]\w*)\s*\}\}")
_JSON_TYPE = "application/json"
_CONFIG_COLUMN = re.compile(r"__config:__expected(\d*):(\w+)$")


class Config(NamedTuple):
    """A config with the folder of its files, what is left out, and what is not translated, with the id of its test."""

    fields: Mapping[str, Any]
    folder: Path
    warnings: list[str]
    untranslated: list[tuple[str, str]]

    def add_note(self, reason: str) -> None:
        """Add something that is not translated and belongs to no single test."""
        self.untranslated.append((reason, ""))


def describe_notes(notes: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return each reason once, with the number of times it occurred and the first tests.

    >>> describe_notes([("a", "test-1"), ("b", ""), ("a", "test-2")])
    ('a (2 times: test-1, test-2)', 'b')
    """
    groups: dict[str, list[str]] = {}
    for reason, test in notes:
        groups.setdefault(reason, []).append(test)
    texts = []
    for reason, tests in groups.items():
        ids = [test for test in dict.fromkeys(tests) if test]
        names = ", ".join([*ids[:_MAX_IDS], *(["…"] if len(ids) > _MAX_IDS else [])])
        count = f"{len(tests):,} times" if len(tests) > 1 else ""
        details = ": ".join(part for part in (count, names) if part)
        texts.append(f"{reason} ({details})" if details else reason)
    return tuple(texts)


def read_config(path: Path, fields: Mapping[str, Any]) -> ImportedFile:
    """Read the tests of a config as samples, and its prompts and providers as a target with configurations."""
    config = Config(fields, path.parent, [], [])
    default = _resolve_reference(fields.get("defaultTest"), config)
    tests = [_merge_tests(default, test) for test in _list_tests(fields.get("tests"), config)]
    tests += [_merge_tests(default, test) for test in _list_scenario_tests(config)]
    # Without the key, promptfoo runs its prompts once.
    is_bare = fields.get("tests") is None and not fields.get("scenarios")
    samples = name_checks(make_samples([default] if is_bare else tests, config))
    if len(samples) >= MAX_SAMPLES:
        config.warnings.append(f"only the first {MAX_SAMPLES:,} combinations of variables are read")
    for key in sorted(key for key in map(str, fields) if key not in _CONFIG_KEYS and key[:1] not in "$_"):
        config.warnings.append(_describe_unknown(key, _CONFIG_KEYS))
    config.warnings.extend(f"{key} is left out" for key in _LOST_CONFIG_KEYS if fields.get(key))
    repeat = as_mapping(fields.get("evaluateOptions")).get("repeat")
    if isinstance(repeat, int) and repeat > 1:
        config.warnings.append(f"repeat is {repeat}; add --epochs {repeat}, or run: {{epochs: {repeat}}}")
    if not samples:
        reasons = "; ".join(config.warnings)
        what = "the config has no tests" + (f": {reasons}" if reasons else "")
        raise damaged_file(what, path, "add tests with vars, or correct the path of the file of tests")
    target, configurations = _read_targets(config)
    return ImportedFile(
        NAME,
        samples=samples,
        warnings=count_warnings(config.warnings),
        untranslated=describe_notes(config.untranslated),
        target=target,
        configurations=configurations,
        name=as_text(fields.get("description")) or "",
    )


def read_tests(path: Path) -> ImportedFile:
    """Read a file of tests: CSV, JSON, JSON Lines or YAML."""
    config = Config({}, path.parent, [], [])
    tests = [as_mapping(test) for test in _load_tests(path, config)]
    if not tests:
        raise damaged_file("the file has no tests", path)
    samples = name_checks(make_samples(tests, config))
    notes = count_warnings(config.warnings), describe_notes(config.untranslated)
    return ImportedFile(NAME, samples=samples, warnings=notes[0], untranslated=notes[1])


def make_samples(tests: Sequence[Mapping[str, Any]], config: Config) -> Iterator[Sample[Any, Any]]:
    """Yield a sample for each combination of variables, numbered as promptfoo numbers its tests."""
    number = 0
    for test in tests:
        for variables in _expand(as_mapping(test.get("vars")), as_mapping(test.get("options"))):
            number += 1
            if number > MAX_SAMPLES:
                return
            yield make_sample(f"test-{number}", {**test, "vars": variables}, config.fields, config.untranslated)


def make_sample(
    sample_id: str,
    test: Mapping[str, Any],
    config: Mapping[str, Any],
    untranslated: list[tuple[str, str]],
    fallback: Any = "",
) -> Sample[Any, Any]:
    """Return the sample of a test whose variables are single values; `fallback` is the input without variables."""
    variables = as_mapping(test.get("vars"))
    notes: list[str] = []
    checks = translate_assertions(Checks.of_test(test, config, variables), notes)
    metadata: dict[str, Any] = dict(as_mapping(test.get("metadata")))
    if description := as_text(test.get("description")):
        metadata.setdefault("description", description)
    options = as_mapping(test.get("options"))
    lost_options = [name for name in _LOST_OPTIONS if options.get(name)]
    notes += [f"the option {name!r} of a test is left out; do it in the target" for name in lost_options]
    notes += [reason for key, reason in _LOST_KEYS.items() if test.get(key)]
    notes += [_describe_unknown(key, _TEST_KEYS) for key in sorted(map(str, test)) if key not in _TEST_KEYS]
    untranslated += [(note, sample_id) for note in notes]
    value = dict(variables) if variables else fallback
    return Sample(sample_id, value, checks.expected, clean_metadata(metadata, NAME), checks.evaluators)


def _describe_unknown(key: str, known: Iterable[str]) -> str:
    hint = suggest_name(key, known)
    return f"the key {key!r} is left out: {hint if hint.startswith('did you mean') else 'promptfoo has no such key'}"


def _expand(variables: Mapping[str, Any], options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield all combinations of the variables that have a list of values; the last variable changes first."""
    if options.get("disableVarExpansion"):
        yield dict(variables)
        return
    choices = [value if isinstance(value, list) and value else [value] for value in variables.values()]
    for values in product(*choices):
        yield dict(zip(variables, values, strict=True))


def _merge_tests(default: Mapping[str, Any], test: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**default, **test}
    for key in ("vars", "metadata", "options"):
        merged[key] = {**as_mapping(default.get(key)), **as_mapping(test.get(key))}
    is_alone = as_mapping(test.get("options")).get("disableDefaultAsserts")
    merged["assert"] = [*(() if is_alone else as_list(default.get("assert"))), *as_list(test.get("assert"))]
    return merged


def _list_scenario_tests(config: Config) -> Iterator[dict[str, Any]]:
    for scenario in as_list(config.fields.get("scenarios")):
        fields = _resolve_reference(scenario, config)
        for data in as_list(fields.get("config")):
            for test in _list_tests(fields.get("tests") or [{}], config):
                yield _merge_tests(as_mapping(data), test)


def _resolve_reference(value: Any, config: Config) -> Mapping[str, Any]:
    """Return a mapping, or the content of the file that is named instead."""
    if isinstance(value, str) and (path := _find_file(value, config)) is not None:
        return as_mapping(read_json(path) if path.suffix == ".json" else read_yaml(path))
    return as_mapping(value)


def _list_tests(entry: Any, config: Config) -> Iterator[Mapping[str, Any]]:
    """Yield the tests of an entry: a list of tests and files, or one file."""
    for item in entry if isinstance(entry, list) else [entry]:
        source = item.get("path") if isinstance(item, dict) and "vars" not in item and "path" in item else item
        if isinstance(source, str):
            if (path := _find_file(source, config)) is not None:
                yield from map(as_mapping, _load_tests(path, config))
        elif isinstance(item, dict):
            yield item


def _find_file(source: str, config: Config) -> Path | None:
    """Return the path of a named file below the config's folder; None, with a warning, if it cannot be used."""
    folder = config.folder.resolve()
    try:
        path = (folder / source.removeprefix(_FILE)).resolve()
        if path.is_relative_to(folder) and path.is_file():
            return path
        reason = "it is not a file" if path.is_relative_to(folder) else "it is outside the folder of the config"
    except (OSError, ValueError) as error:
        reason = str(error)
    config.warnings.append(f"{source[:200]!r} is left out: {reason}")
    return None


def _load_tests(path: Path, config: Config) -> Sequence[Any]:
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return list(_read_rows(path))
    if suffix in (".jsonl", ".ndjson"):
        return [value for _, value in read_json_lines(path)]
    if suffix in (".json", ".yaml", ".yml"):
        value = read_json(path) if suffix == ".json" else read_yaml(path)
        return as_list(value) or [value]
    config.warnings.append(f"{path.name!r} is left out: save the tests as CSV (in a spreadsheet: File > Save as)")
    return []


def _read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a CSV file as tests; columns that start with two underscores configure the test."""
    header, rows = read_table(path)
    for number, row in enumerate(rows, start=2):
        cells = dict(zip(header, row, strict=False))
        settings = {(m[1], m[2]): cells[name] for name in header if (m := _CONFIG_COLUMN.match(name))}
        assertions = []
        for name in header:
            column = _EXPECTED_COLUMN.match(name)
            if column is None or not cells[name].strip():
                continue
            assertion = parse_expected(cells[name])
            # `__expected` and `__expected1` are the same column.
            index = column[1] if column[1] != "1" else ""
            for (place, key), text in settings.items():
                if (place if place != "1" else "") == index:
                    assertion[key] = _parse_number(text, f"{path}:{number}, {key}")
            if cells.get("__metric"):
                assertion["metric"] = cells["__metric"]
            assertions.append(assertion)
        test: dict[str, Any] = {"vars": {name: cells[name] for name in header if not name.startswith("__")}}
        test |= {"assert": assertions, "metadata": _read_metadata(cells)}
        if cells.get("__description"):
            test["description"] = cells["__description"]
        if cells.get("__threshold"):
            test["threshold"] = _parse_number(cells["__threshold"], f"{path}:{number}, __threshold")
        test["options"] = {key: cells[f"__{key}"] for key in ("prefix", "suffix") if cells.get(f"__{key}")}
        yield test


def _parse_number(text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = None
    if not is_number(number):
        raise damaged_file(f"must be a number, got {text[:80]!r}", where, "write a number, or delete the column")
    return float(text)


def _read_metadata(cells: Mapping[str, str]) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for name, text in cells.items():
        key = name.removeprefix("__metadata:")
        if key != name and text:
            items = [item.strip().replace("\\,", ",") for item in _UNESCAPED_COMMA.split(text)]
            metadata[key.removesuffix("[]")] = items if key.endswith("[]") else text
    return metadata


def _read_targets(config: Config) -> tuple[dict[str, Any] | None, dict[str, dict[str, Any]]]:
    """Return the models and prompts as a target and its configurations; None if none can be translated."""
    entries = config.fields.get("providers") or config.fields.get("targets")
    entries = entries if isinstance(entries, list) else [entries]
    models = dict(_list_models(entries, config))
    prompts = dict(_list_prompts(config))
    if not models or not prompts:
        providers = [_read_provider(entry) for entry in entries]
        endpoints = [
            translate_endpoint(address or "", as_mapping(fields.get("config"))) for address, fields in providers
        ]
        return endpoints[0] if len(endpoints) == 1 else None, {}
    options = {
        f"{label} {name}" if len(models) > 1 and len(prompts) > 1 else (label if len(models) > 1 else name): {
            "model": model,
            "prompt": prompt,
        }
        for (label, model), (name, prompt) in product(models.items(), prompts.items())
    }
    first = next(iter(options.values()))
    return dict(first), options if len(options) > 1 else {}


def _list_models(entries: Sequence[Any], config: Config) -> Iterator[tuple[str, str]]:
    for entry in entries:
        address, fields = _read_provider(entry)
        if address is None or translate_endpoint(address, as_mapping(fields.get("config"))) is not None:
            continue
        if (model := translate_model(address)) is None:
            config.add_note(f"the provider {address!r} is not a model address; name your program with --target")
            continue
        if settings := ", ".join(map(str, as_mapping(fields.get("config")))):
            config.add_note(
                f"the settings of the provider {address!r} are left out: {settings}; set them in your program"
            )
        yield as_text(fields.get("label")) or model, model


def _read_provider(entry: Any) -> tuple[str | None, Mapping[str, Any]]:
    """Return the address of a provider and its other keys."""
    fields = as_mapping(entry)
    if isinstance(entry, dict) and "id" not in entry and len(entry) == 1:
        address = str(next(iter(entry)))
        fields = {"id": address, **as_mapping(entry[address])}
    return entry if isinstance(entry, str) else as_text(fields.get("id")), fields


def translate_endpoint(address: str, settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the target of an HTTP provider; None if it has more than a body, headers and a plain response path.

    >>> settings = {"body": {"q": "{{question}}"}, "transformResponse": "json.choices[0].text"}
    >>> translate_endpoint("https://example.com/chat", settings)["http"]
    {'url': 'https://example.com/chat', 'body': {'q': '$question'}, 'response': 'choices[0].text'}
    """
    url = settings.get("url", address) if address in ("http", "https") else address
    body, path = settings.get("body"), settings.get("transformResponse", settings.get("responseParser"))
    response = re.fullmatch(r"json\.([A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[\d+\])*)", path) if isinstance(path, str) else None
    method = str(settings.get("method", "POST" if body else "GET")).upper()
    known = {"url", "method", "body", "headers", "transformResponse", "responseParser"}
    is_plain = isinstance(url, str) and url.startswith(("http://", "https://")) and "{{" not in url
    if not is_plain or response is None or not isinstance(body, dict) or method not in ("POST", "PUT", "PATCH"):
        return None
    headers = {str(key): str(value) for key, value in as_mapping(settings.get("headers")).items()}
    headers = {key: value for key, value in headers.items() if key.lower() != "content-type" or value != _JSON_TYPE}
    texts = [_translate_header(value) for value in headers.values()]
    translated = _translate_body(body)
    if set(settings) - known or None in texts or translated is None:
        return None
    target: dict[str, Any] = {"url": url, "body": translated, "response": response[1]}
    target |= {"method": method} if method != "POST" else {}
    return {"http": target | ({"headers": dict(zip(headers, texts, strict=True))} if headers else {})}


def _translate_header(text: str) -> str | None:
    """Return a header with $NAME for environment variables, or None if it has another template."""
    header = _ENVIRONMENT.sub(lambda match: f"${match[1]}", text.replace("$", "$$"))
    return None if "{{" in header or "{%" in header else header


def _translate_body(value: Any) -> Any:
    """Return a body with Proctor's placeholders, or None if a template has more than variables of the test."""
    if isinstance(value, dict | list):
        values = list(value.values() if isinstance(value, dict) else value)
        items = [_translate_body(item) for item in values]
        if any(item is None and text is not None for item, text in zip(items, values, strict=True)):
            return None
        return dict(zip(value, items, strict=True)) if isinstance(value, dict) else items
    if not isinstance(value, str):
        return value
    # `prompt` is the text of the rendered prompt, which no variable of the sample holds.
    return None if "prompt" in _VARIABLE.findall(value) else _translate_prompt(value)


def _list_prompts(config: Config) -> Iterator[tuple[str, str]]:
    entries = config.fields.get("prompts")
    number = 0
    for entry in entries if isinstance(entries, list) else [entries]:
        fields = as_mapping(entry)
        text = entry if isinstance(entry, str) else fields.get("raw") or fields.get("id")
        if not isinstance(text, str):
            continue
        texts = [text]
        if text.startswith(_FILE):
            if not text.endswith((".txt", ".md")):
                config.add_note(f"the prompt {text!r} is left out: only .txt and .md files are read")
                continue
            path = _find_file(text, config)
            texts = [] if path is None else re.split(r"(?m)^---\s*$", read_text(path))
        for part in texts:
            number += 1
            prompt = _translate_prompt(part.strip())
            if prompt is None:
                config.add_note("a prompt is left out: it uses more of its template language than {{variables}}")
            elif "$" not in prompt.replace("$$", ""):
                config.add_note(f"the prompt {prompt[:40]!r} is left out: it is fixed, the same for all tests")
            else:
                yield as_text(fields.get("label")) or f"prompt-{number}", prompt


def _translate_prompt(text: str) -> str | None:
    """Return a prompt with Proctor's placeholders, or None if its template has more than variables."""
    prompt = _VARIABLE.sub(r"$\1", text.replace("$", "$$"))
    return None if re.search(r"\{\{|\{%|\{#", prompt) else prompt
