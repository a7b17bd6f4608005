"""Describe in Proctor's words why msgspec could not convert a value."""

from __future__ import annotations

import re

from proctor.errors import join_location

TYPE_NAMES = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "a boolean",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}
_BOUNDS = {">=": ", {} or more", ">": " greater than {}", "<=": ", {} or less", "<": " less than {}"}
_AT = re.compile(r" - at (?:`key` in )?`\$\.?(?P<path>[^`]*)`$")
_EXPECTED = re.compile(r"Expected `(?P<types>[^`]+)`(?P<bound>.*?)(?:, got `?(?P<got>[^`]+)`?)?$")
_FIELD = re.compile(r"Object (?P<how>missing required|contains unknown) field `(?P<name>[^`]+)`")


def explain(error: Exception, subject: str = "") -> str:
    """Explain an error of msgspec in one line: "cost must be a number greater than 0".

    `subject` is the name of the converted value.
    """
    return join_location(*explain_parts(error, subject))


def explain_parts(error: Exception, subject: str = "") -> tuple[str, str]:
    """Return the path of an invalid value below `subject`, and what is wrong with it."""
    at = _AT.search(str(error))
    message = _AT.sub("", str(error))
    path = ".".join(part for part in (subject, at["path"] if at else "") if part).replace(".[", "[")
    if field := _FIELD.match(message):
        if field["how"] == "contains unknown":
            return path, f"unknown key {field['name']!r}"
        return ".".join(part for part in (path, field["name"]) if part), "is missing"
    if expected := _EXPECTED.match(message):
        actual = f", got {describe_types(expected['got'])}" if expected["got"] else ""
        types = expected["types"].removesuffix(" | null")
        return path or "it", f"must be {describe_types(types)}{describe_bound(expected['bound'])}{actual}"
    starts_with_word = message[1:2].islower() and "." not in message.partition(" ")[0]
    return path, message[:1].lower() + message[1:] if starts_with_word else message


def describe_types(types: str) -> str:
    """Describe msgspec's names of types: "int | null" is "an integer or null"."""
    return " or ".join(TYPE_NAMES.get(name, name) for name in types.split(" | "))


def describe_bound(bound: str) -> str:
    """Describe msgspec's bound of a number or a length: " >= 1" is ", 1 or more"."""
    match = re.fullmatch(r"(?P<of>.*?)\s*(?P<operator>[<>]=?) (?P<number>\S+)", bound)
    if match is None:
        return bound
    number = match["number"].removesuffix(".0")
    text = _BOUNDS[match["operator"]].format(number)
    return f"{match['of']}{text.lstrip(',') if match['of'] else text}"
