"""Read the parts of the content of a message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proctor.sessions.genai.values import BREAK, join_texts
from proctor.sessions.importers.json_values import as_list, as_mapping, as_text

# Known types of content parts.
_PART_TYPES = frozenset((
    "text", "output_text", "input_text", "refusal", "document", "json", "search_result",
    "web_search_result", "web_fetch_result", "image", "image_url", "input_image", "image-data",
    "image-url", "media", "blob", "uri", "audio", "input_audio", "video", "video_url", "file",
    "input_file", "file-data",
))  # fmt: skip
_MEDIA_KEYS = frozenset(("text", "inlineData", "inline_data", "fileData", "file_data", "image_url"))


def plain_text(part: Any, types: Sequence[str] = ("text",)) -> str | None:
    """Return the text of a part that contains only text; with empty `types`, parts have no type."""
    fields = as_mapping(part)
    text = fields.get("text")
    is_plain = (len(fields) == 2 and fields.get("type") in types) if types else len(fields) == 1
    return text if is_plain and isinstance(text, str) else None


def join_parts(parts: Sequence[Any], role: str = "user", types: Sequence[str] = ("text",)) -> Any:
    """Return the content of a message: one string, or the list of parts if some are not text."""
    texts = [BREAK if part is BREAK else plain_text(part, types) for part in parts]
    if all(text is not None for text in texts):
        return join_texts(texts, role)
    return [part for part in parts if part is not BREAK]


def extract_text(content: Any, role: str = "user") -> str | None:
    """Return the text of the content of a message, or None."""
    if isinstance(content, str):
        return content or None
    texts = (as_text(as_mapping(part).get("text")) for part in as_list(content))
    return join_texts((text or BREAK for text in texts), role) or None


def find_unknown_parts(content: Any) -> list[Any]:
    """Return the parts of the content whose type is unknown."""
    return [part for part in as_list(content) if not _is_known_part(part)]


def _is_known_part(part: Any) -> bool:
    part_type = as_mapping(part).get("type")
    if part_type is None:
        return isinstance(part, str) or not _MEDIA_KEYS.isdisjoint(as_mapping(part))
    return isinstance(part_type, str) and part_type in _PART_TYPES
