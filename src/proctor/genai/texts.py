"""Join the texts of a message's parts into one text, as the API means them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

# Stands between two parts of which another part (a tool call, a thought, an image) stood.
BREAK: Final = object()


def separator_of(role: str) -> str:
    """What stands between adjacent texts of a message.

    An answer that arrives in several texts is one text: Anthropic splits it in the middle of a
    sentence where a citation begins, and Gemini and OpenAI split it as they stream. Their own
    clients join these texts without a separator, and so does this: a line end would change the
    answer. Users and tools send texts that were written separately (a document and a question), so
    each begins on its own line.
    What is neither (the parts of OpenTelemetry) is joined line by line too.

    >>> separator_of("assistant"), separator_of("user")
    ('', '\\n')
    """
    return "" if role == "assistant" else "\n"


def join_texts(texts: Iterable[Any], role: str) -> str:
    """One text of several; `BREAK` among them begins a new line, whoever speaks.

    >>> join_texts(["The capital is ", "Paris."], "assistant")
    'The capital is Paris.'
    >>> join_texts(["Let me look.", BREAK, "It is Paris."], "assistant")
    'Let me look.\\nIt is Paris.'
    """
    groups: list[list[str]] = [[]]
    for text in texts:
        if text is not BREAK:
            groups[-1].append(text)
        elif groups[-1]:
            groups.append([])
    return "\n".join(separator_of(role).join(group) for group in groups if group)
