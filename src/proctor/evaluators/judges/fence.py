"""Separate the judged texts from the prompt by a delimiter that they cannot contain."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from proctor.evaluators.judges.quoted_json import repeats_object
from proctor.models.answer_format import JsonFormat
from proctor.records import codec

MARK_LENGTH = 16
_CODE_BLOCK = re.compile(r"(?is)```(?:json)?[ \t]*\n(.*)\n[ \t]*```")


class Fence:
    """The delimiter of one call, and the texts of the call between two lines with the delimiter.

    The delimiter is a digest of all texts, so that no text can contain it, and the same call always has the same
    delimiter: a cache or a cassette can find it. If a text contains it anyway, another delimiter is used.
    """

    def __init__(self, texts: Mapping[str, str], length: int = MARK_LENGTH) -> None:
        self._texts = {name: replace_surrogates(text) for name, text in texts.items()}
        folded_texts = [text.casefold() for text in self._texts.values()]
        candidates = (codec.digest("fence", attempt, self._texts)[:length] for attempt in count())
        self.delimiter = next(
            candidate for candidate in candidates if not any(candidate in text for text in folded_texts)
        )

    def block(self, name: str) -> str:
        label = name.upper().replace("_", " ")
        return f"<<<{label} {self.delimiter}\n{self._texts[name]}\n{self.delimiter} {label}>>>"

    def blocks(self) -> dict[str, str]:
        return {name: self.block(name) for name in self._texts}

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(self._texts.values())

    def contains(self, text: str) -> bool:
        """Return whether a text occurs in one of the fenced texts, ignoring whitespace.

        JSON is compared by its content.
        """
        compact = "".join(text.split())
        return bool(compact) and any(
            compact in "".join(fenced_text.split()) or repeats_object(text, fenced_text)
            for fenced_text in self._texts.values()
        )


def replace_surrogates(text: str) -> str:
    """Replace unpaired surrogates, which cannot be encoded."""
    return text.encode("utf-8", "replace").decode("utf-8")


class MarkedForm:
    """Asks for JSON of one type, and separates it from JSON that is quoted from the judged texts.

    A model with structured output answers only in JSON. Any other model writes a line `ANSWER delimiter:` before the
    JSON; only the JSON after the last such line counts, and nothing may follow it. `check` raises a ValueError if
    required content is missing. `prefer` raises a ValueError if optional content is missing: the judge is reminded
    once, then the better answer counts.
    """

    def __init__(
        self,
        output_type: Any,
        fence: Fence,
        check: Callable[[Any], object] | None = None,
        prefer: Callable[[Any], object] | None = None,
    ) -> None:
        self.delimiter = fence.delimiter
        self._json = JsonFormat(output_type)
        self.schema = self._json.schema
        self._fence, self._check, self._prefer = fence, check, prefer
        self._was_read = False
        self._fallback: Any = None
        self._prefix = f"ANSWER {fence.delimiter}:"
        # Accepts any Markdown around the prefix, up to the start of JSON or a code block.
        self._line = re.compile(
            rf"(?im)^[^\w\n]*ANSWER[^\w\n]+{fence.delimiter}(?!\w)"
            r"""(?:(?!```)[^\w\n{\["-])*(?:"[ \t]*$)?"""
        )

    @property
    def instructions(self) -> str:
        """The instructions for a model without structured output."""
        schema = codec.encode(self.schema).decode()
        return (
            "End with this line, exactly as it stands here:\n"
            f"{self._prefix}\n"
            "After it give JSON, and nothing else, that fits this JSON Schema:\n"
            f"{schema}"
        )

    def read(self, text: str, *, structured: bool) -> Any:
        """Return the answer in its type, or raise a ValueError that explains why there is none."""
        is_first, self._was_read = not self._was_read, True
        try:
            answer = self._parse(text, structured)
        except ValueError:
            if self._fallback is None:
                raise
            return self._fallback
        if self._prefer is not None and is_first:
            self._fallback = answer
            self._prefer(answer)
        return answer

    def _parse(self, text: str, structured: bool) -> Any:
        if structured:
            if self._fence.contains(text):
                raise ValueError("it is a copy from the judged texts, not an answer")
        else:
            lines = list(self._line.finditer(text))
            if not lines:
                raise ValueError(f'it has no line "{self._prefix}" before its JSON')
            text = text[lines[-1].end() :].strip()
            if block := _CODE_BLOCK.fullmatch(text):
                text = block[1]
        answer = self._json.read(text, structured=True)
        if self._check is not None:
            self._check(answer)
        return answer
