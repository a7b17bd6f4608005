"""Binary data is described to a judge in short; everything else is unchanged."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import Message, Session, ToolCall
from proctor.evaluators.judges.transcript import render_transcript
from proctor.records import codec
from proctor.records import model as media
from proctor.records.model import summarize_data
from proctor.reports.transcript import render_transcript as for_people
from tests.tables import each_row

DATA = base64.b64encode(bytes(range(256)) * 12).decode()
URI = f"data:image/png;base64,{DATA}"


def in_text(value: Any) -> str:
    """As everybody calls it."""
    return media.render_value(value, codec.to_text)


@each_row(
    ("part", "told"),
    [
        (
            {"type": "image_url", "image_url": {"url": URI, "detail": "low"}},
            "(image, image/png, 4,118 characters)",
        ),
        ({"type": "input_image", "image_url": URI}, "(image, image/png, 4,118 characters)"),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg",
                                         "data": DATA}},
            "(image, image/jpeg, 4,096 characters)",
        ),
        (
            {"inlineData": {"mimeType": "image/webp", "data": DATA}},
            "(image, image/webp, 4,096 characters)",
        ),
        ({"type": "image", "image": DATA}, "(image, 4,096 characters)"),
        (
            {"type": "input_audio", "input_audio": {"data": DATA, "format": "wav"}},
            "(audio, 4,096 characters)",
        ),
        (
            {"type": "blob", "mime_type": "application/pdf", "content": DATA},
            "(file, application/pdf, 4,096 characters)",
        ),
        (
            {"type": "file", "file": {"filename": "a.pdf",
                                      "file_data": f"data:application/pdf;base64,{DATA}"}},
            (
                '{"type":"file","file":{"filename":"a.pdf","file_data":"(file, application/pdf, '
                '4,124 characters)"}}'
            ),
        ),
    ],
)  # fmt: skip
def test_media_of_every_kind_are_described(part: Any, told: str) -> None:
    """Kind, media type and length; other values, such as a name, stay."""
    assert in_text(part) == told
    assert render_transcript([Message("user", [{"type": "text", "text": "Look:"}, part])]) == (
        f"[1] user:\n    Look:\n    {told}"
    )
    said = [{"type": "text", "text": "Look:"}, part]
    assert for_people(Session([Message("user", said)])) == f"user:\n    Look:\n    {told}"


def test_images_of_tool_calls_are_described() -> None:
    """In results, in texts, in lists of parts, in arguments."""
    mcp = {"content": [{"type": "image", "data": DATA, "mimeType": "image/png"}]}
    told = render_transcript(
        [
            ToolCall("shoot", {}, result=f"Here it is: {URI}."),
            ToolCall("shoot", {}, result=mcp),
            ToolCall("show", {"picture": URI}, result="ok"),
        ]
    )
    assert told == (
        "[1] tool shoot({}) returned:\n"
        "    Here it is: (image, image/png, 4,118 characters).\n"
        "[2] tool shoot({}) returned:\n    (image, image/png, 4,096 characters)\n"
        '[3] tool show({"picture":"(image, image/png, 4,118 characters)"}) returned:\n    ok'
    )


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "https://example.com/" + "a" * 200}},
        {"type": "document", "source": {"media_type": "text/plain", "data": "a" * 200}},
        {"type": "document", "source": {"type": "text", "data": "Many words. " * 20}},
        {"type": "file", "content": "a" * 200},
        {"key": "a" * 200, "data": "a" * 200},
        "data:text/plain;base64," + "a" * 200,
    ],
)
def test_readable_content_is_unchanged(part: Any) -> None:
    """URLs, texts, and data that is not declared as media."""
    assert "characters)" not in in_text(part)
    assert "a" * 200 in in_text(part) or "Many words." in in_text(part)


WRAPPED = "\n".join(DATA[at : at + 76] for at in range(0, len(DATA), 76))


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({"image": DATA}, "(image, 4,096 characters)"),
        ({"ok": True, "shot": DATA}, '{"ok":true,"shot":"(data, 4,096 characters)"}'),
        (f'{{"shot": "{DATA}"}}', '{"shot": "(data, 4,096 characters)"}'),
        (f"Made:\n{DATA}==\nDone.", "Made:\n    (data, 4,098 characters)\n    Done."),
        (f"Made:\n{WRAPPED}\nDone.", "Made:\n    (data, 4,149 characters)\n    Done."),
    ],
)
def test_data_without_a_type_is_recognised_by_its_form(result: Any, told: str) -> None:
    """In the JSON and the texts of a tool, on one line or several; for judges and people."""
    call = ToolCall("shoot", {}, result=result)
    assert render_transcript([call]) == f"[1] tool shoot({{}}) returned:\n    {told}"
    assert for_people(Session([call])) == f"tool shoot()\n    {told}"


@pytest.mark.parametrize(
    "text",
    [
        "0123456789abcdef" * 100,
        "-" * 1000,
        "\n".join(["e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"] * 20),
        "/usr/lib/python3/Dist/" * 10,
        " ".join(["CamelCaseWords123"] * 100),
        "ACGT" * 500,
    ],
)
def test_long_text_is_unchanged(text: str) -> None:
    """Digests, rules, paths, names, sequences."""
    assert summarize_data(text) == text


def test_deeply_nested_content_is_rendered() -> None:
    """It never raises."""
    deep: Any = URI
    for _ in range(100_000):
        deep = [deep]
    assert isinstance(in_text(deep), str)


@given(st.text())
def test_text_without_data_is_unchanged(text: str) -> None:
    """Whatever they hold."""
    assert summarize_data(text) == text
