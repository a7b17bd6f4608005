"""JSON after the mark of a call, with any markup around it."""

from __future__ import annotations

import pytest

from proctor.evaluators.judges.fence import Fence, MarkedForm
from tests.tables import each_row

FENCE = Fence({"text": "[1]"})
FORM = MarkedForm(dict[str, int], FENCE)


@each_row(
    "answer_text",
    [
        'So.\nANSWER {}:\n{{"a": 2}}',
        'So.\nANSWER {}: {{"a": 2}}',
        'ANSWER {}: {{\n  "a": 2\n}}',
        '**ANSWER {}:** {{"a": 2}}',
        '**ANSWER {}:**\n\n{{"a": 2}}',
        '`ANSWER {}:`\n```json\n{{"a": 2}}\n```',
        'ANSWER {}: ```json\n{{"a": 2}}\n```',
        '"ANSWER {}:"\n{{"a": 2}}',
        'answer {0}\n{{"a": 1}}\nNo:\nANSWER {0}: {{"a": 2}}',
    ],
)
def test_the_json_is_on_the_line_of_the_mark_or_below_it(answer_text: str) -> None:
    """The last one counts."""
    assert FORM.read(answer_text.format(FENCE.delimiter), structured=False) == {"a": 2}


@pytest.mark.parametrize("answer", ["{{}}", "ANSWER: {{}}", "ANSWER {}0: {{}}", "An ANSWER {}: {{}}"])
def test_without_the_mark_there_is_no_answer(answer: str) -> None:
    """The mark must not be part of another word or in the middle of a line."""
    with pytest.raises(ValueError, match='it has no line "ANSWER'):
        FORM.read(answer.format(FENCE.delimiter), structured=False)
