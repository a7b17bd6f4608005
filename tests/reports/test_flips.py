"""Flipped samples with their texts: in the terminal, as Markdown, and as one line; no text can break them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from proctor.records.comparison import Comparison, Flip, FlipResult
from proctor.records.gate import GateResult
from proctor.records.score import Score
from proctor.reports.comparison import render_comparison
from proctor.reports.comparison import render_markdown as comparison_markdown
from proctor.reports.flips import describe_flip, list_flips
from proctor.reports.format import cell_width, fold_text, shorten_lines
from proctor.reports.gate import render_gate
from proctor.reports.gate import render_markdown as gate_markdown
from tests.tables import each_row

LONG = (
    "Paris has been the capital of France for most of its history, except for some years in which the government "
    "was in Bordeaux, Vichy, Versailles or Tours. "
)
PASSED = FlipResult("passed", LONG + "The answer is Paris.", scores={"exact": Score(1.0, True, "equal")})
FAILED = FlipResult(
    "failed",
    LONG + "The answer is Lyon.",
    scores={
        "exact": Score(0.0, False, "expected 'Paris', found 'Lyon'"),
        "judge": Score(0.2, False),
        "polite": Score(1.0, True, "thanks"),
        "length": Score.skipped("no limit"),
    },
)
LOST = Flip("q1", True, 0.4, 1.0, "Capital of France?", "Paris", FAILED, PASSED)
WON = Flip(
    "q2", False, 1.0, None, {"city": "Roma"}, None,
    FlipResult("passed", "Italy"), FlipResult("error", error="TimeoutError: no answer after 30 s"),
)  # fmt: skip


def compared(*flips: Flip, a: str = "new", b: str = "main", evaluator: str = "") -> Comparison:
    return Comparison(a, b, "Nothing.", a_run="RUN-B", b_run="RUN-A", flips=flips, flips_of=evaluator)


TERMINAL = """\
Nothing.
new is run RUN-B; main is run RUN-A

1 sample passed only in main (lost), 1 only in new (won); score of main → new:
  lost  q1  1.00 → 0.40
    input     Capital of France?
    expected  Paris
    main      … Vichy, Versailles or Tours. The answer is Paris.
    new       … Vichy, Versailles or Tours. The answer is Lyon.
    reason    expected 'Paris', found 'Lyon' (exact)
    reason    it did not pass (judge)
  won   q2  – → 1.00
    input  {"city":"Roma"}
    main   error: TimeoutError: no answer after 30 s
    new    Italy
To inspect a sample:
  proctor show RUN-B --sample q1
  proctor show RUN-A --sample q1
"""


def test_the_terminal_shows_what_both_sides_answered() -> None:
    """Long equal starts are left out, and only the reasons of the side that did not pass are shown."""
    text = render_comparison(compared(LOST, WON))
    assert text == TERMINAL
    assert max(map(cell_width, text.splitlines())) <= 80


def test_a_gate_shows_them_too() -> None:
    """The same lines, below the checks."""
    text = render_gate(GateResult("RUN-B", "main", "fail", "No.", (), (compared(LOST, WON),)))
    lines = TERMINAL.split("(won); score of main → new:\n")[1].split("To inspect")[0]
    assert text == f"No.\n\n\n1 sample lost, 1 won\n{lines}To inspect a sample: proctor show RUN-B --sample q1\n"


MARKDOWN = """\
#### Lost: q1 (1.00 → 0.40)

- **input**: Capital of France?
- **expected**: Paris
- **main**: … Vichy, Versailles or Tours. The answer is Paris.
- **new**: … Vichy, Versailles or Tours. The answer is Lyon.
- **reason**: expected 'Paris', found 'Lyon' (exact)
- **reason**: it did not pass (judge)

#### Won: q2 (– → 1.00)

- **input**: {"city":"Roma"}
- **main**: error: TimeoutError: no answer after 30 s
- **new**: Italy
"""


def test_markdown_has_a_section_for_each() -> None:
    """In a comparison, and folded in the comment of a gate."""
    assert MARKDOWN in comparison_markdown(compared(LOST, WON))
    comment = gate_markdown(GateResult("RUN-B", "main", "fail", "No.", (), (compared(LOST, WON),)))
    assert f"<details><summary>1 sample lost, 1 won</summary>\n\n{MARKDOWN}\n</details>\n" in comment


def test_the_rest_is_counted_with_the_command_that_lists_it() -> None:
    """Three lost samples, two that were won, and how to see all 20."""
    lost = [Flip(f"l{at:02}", True, 0.0, 1.0) for at in range(12)]
    won = [Flip(f"w{at}", False, 1.0, 0.0) for at in range(8)]
    text = render_comparison(compared(*lost, *won))
    assert [line.split()[1] for line in text.splitlines() if "→ 0.00" in line or "→ 1.00" in line] == [
        "l00", "l01", "l02", "w0", "w1",
    ]  # fmt: skip
    assert "  … and 15 more: proctor compare new main --flips 20\n" in text
    same_run = Comparison("a b", "c", a_run="R", b_run="R", flips=tuple(lost), flips_of="judge")
    command = "… and 7 more: proctor compare 'a b' c --run R --metric judge --flips 12"
    assert command in " ".join(render_comparison(same_run).split())
    assert command in comparison_markdown(same_run)
    assert "… and 7 more\n" in render_comparison(Comparison("a", "b", flips=tuple(lost)))


def test_flips_of_one_evaluator_are_called_so() -> None:
    """The heading names the evaluator, and only its reason is shown."""
    text = render_comparison(compared(LOST, evaluator="judge"))
    assert "1 sample passed judge only in main (lost)" in text
    assert "it did not pass (judge)" in text
    assert "(exact)" not in text


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (("latest@small", "main@small"), ("main@small", "latest@small")),
        (("a" * 21, "main"), ("reference", "new")),
        (("input", "main"), ("reference", "new")),
    ],
)
def test_sides_are_called_by_their_names_if_those_are_short(names: tuple[str, str], labels: tuple[str, str]) -> None:
    """Otherwise by the words of the command line."""
    text = render_comparison(compared(LOST, a=names[0], b=names[1]))
    for label in labels:
        assert re.search(rf"^    {label}  +…", text, re.MULTILINE)


def test_long_texts_are_folded_and_keep_their_end() -> None:
    """Three lines in the terminal, eight in Markdown; the answer is often in the last words."""
    story = " ".join(f"word{number}" for number in range(500)) + " The End."
    lines = fold_text(story, 60, 3)
    assert len(lines) == 3
    assert lines[0].startswith("word0 word1")
    assert lines[1] == "word10 word11 word12 word13 word14 … (≈ 3,800 characters) …"
    assert lines[2].endswith("word499 The End.")
    assert fold_text("short", 60, 3) == ["short"]
    assert shorten_lines("\n".join(map(str, range(30))), 600, 8).split("\n") == [
        "0", "1", "2", "3", "4", "5", "… (22 lines) …", "28", "29",
    ]  # fmt: skip
    assert shorten_lines("a" * 1000, 600, 8) == f"{'a' * 400}\n… (400 characters) …\n{'a' * 200}"


@given(st.text(), st.integers(20, 90), st.integers(2, 4))
def test_folded_texts_fit(text: str, width: int, lines: int) -> None:
    """No more lines and no wider lines than there is room for, and no control characters."""
    folded = fold_text(text * 20, width, lines)
    assert len(folded) <= lines
    assert all(cell_width(line) <= width for line in folded)
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", "".join(folded))


HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</details><h1>owned</h1>",
    "<!-- -->",
    "[click](javascript:alert(1))",
    "![x](http://evil/x.png)",
    "http://evil www.evil.com @everyone #12 GH-3",
    "| a | b |",
    "**bold** _it_ ~~no~~ `code` $x$",
    "&lt;script&gt; &#60;",
    "```\n</details>\n<script>alert(1)</script>\n```",
    "~~~~\n# heading\n- item\n> quote\n~~~~",
    "# heading\n\n    code\n\n1. item\n\n---\n<svg/onload=alert(1)>",
    "\x1b[31m\x07\r\u202e\nreversed",
]


@each_row("text", HOSTILE)
def test_texts_of_models_are_never_markup(text: str) -> None:
    """In every field: the page has the same structure as with harmless texts, and no link, image or HTML of theirs."""

    def tokens(data: str) -> tuple[list[str], set[str], str]:
        result = FlipResult("failed", data, scores={data: Score(0.0, False, data)})
        error = FlipResult("error", error=data)
        flips = (Flip(data, True, 0.0, 1.0, data, data, result, error), Flip("x", False, 1.0, 0.0, data, data, error))
        shown = compared(*flips, a=data, b=data, evaluator="")
        page = gate_markdown(GateResult("R", "b", "fail", "No.", (), (shown,))) + comparison_markdown(shown)
        parsed = MarkdownIt("commonmark").enable("table").parse(page)
        inside = {child.type for token in parsed for child in token.children or ()}
        html = "".join(token.content for token in parsed if token.type == "html_block")
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", render_comparison(shown))
        for live in ("@everyone", "http://evil", "www.evil", "#12"):
            code = "".join(token.content for token in parsed if token.type == "fence")
            assert page.count(live) == code.count(live)
        return [token.type for token in parsed], inside, html

    structure, inside, html = tokens(text)
    harmless = tokens("one\ntwo" if "\n" in text else "one")
    assert structure == harmless[0]
    assert inside <= {"text", "code_inline", "text_special", "strong_open", "strong_close", "softbreak"}
    assert html == harmless[2]


def test_one_line_for_a_log() -> None:
    """Everything on one line."""
    comparison = compared(LOST, WON)
    assert [describe_flip(shown) for shown in list_flips(comparison, comparison.flips)][1] == (
        'won: q2 (input: {"city":"Roma"}; main: error: TimeoutError: no answer after 30 s; new: Italy)'
    )
