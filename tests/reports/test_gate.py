"""A gate's answer in the terminal and as Markdown, which no text can break."""

from __future__ import annotations

from markdown_it import MarkdownIt

from proctor.records.comparison import Comparison, Flip
from proctor.records.gate import Check, GateResult
from proctor.reports.format import escape_untrusted
from proctor.reports.gate import comment_marker, render_gate, render_markdown

RATE = Check(
    "strict_pass_rate", "fail", "it is worse", "", 0.9, 1.0, -0.1, (-0.142, -0.056), 0.02, 200,
    kind="rate",
)  # fmt: skip
LEAST = Check("pass_rate at least 0.8", "pass", "pass_rate is 0.9, at least 0.8", value=0.9)


def result(*ids: str, **changes: object) -> GateResult:
    flips = tuple(Flip(name, lost=True, a=0.25, b=1.0) for name in ids)
    won = Flip("won", lost=False, a=1.0, b=0.0)
    value: dict[str, object] = {
        "checks": (RATE, LEAST),
        "comparisons": (Comparison("new", "main", flips=(*flips, won)),) if ids else (),
        "name": "exam",
        **changes,
    }
    return GateResult("RUN", "main", "fail", "The gate fails: it is worse.", **value)  # type: ignore[arg-type]


def test_the_terminal_has_the_answer_first() -> None:
    """Then a line for each check, the lost samples, how to look at one, and notes."""
    text = render_gate(result("q 1", "q2", notes=("other data",)))
    assert text == (
        "The gate fails: it is worse.\n"
        "\n"
        "fail          strict_pass_rate 90.0% vs. 100.0%, -10.0 points (95% interval\n"
        "              -14.2 to -5.6), margin 2.0, 200 samples\n"
        "pass          pass_rate is 0.9, at least 0.8\n"
        "\n"
        "2 samples lost, 1 won\n"
        "  lost  q 1  1.00 → 0.25\n"
        "  lost  q2   1.00 → 0.25\n"
        "  won   won  0.00 → 1.00\n"
        "To inspect a sample: proctor show RUN --sample 'q 1'\n"
        "Note: other data\n"
    )


def test_no_more_than_five_samples_are_shown() -> None:
    """The worst, and that there are more."""
    text = render_gate(result(*(f"q{i}" for i in range(9))))
    assert "9 samples lost, 1 won; the 5 worst\n  lost  q0" in text
    assert "  won   won  0.00 → 1.00\n  … and 5 more\n" in text
    assert text.count("→") == 5


def test_lines_fit_and_no_control_character_gets_through() -> None:
    """A sample's name cannot move the cursor, nor run on for ever."""
    text = render_gate(result("\x1b[2J" + "x" * 500), width=60)
    assert "\x1b" not in text
    assert len(max(text.splitlines(), key=len)) < 150


def test_several_configurations_are_distinguished() -> None:
    """A check and a lost sample say which side they are of."""
    item, other = (Comparison(name, "main", flips=(Flip("q1", lost=True, a=0.0, b=1.0),)) for name in ("short", "long"))
    check = Check("exact", "fail", "bad", "long")
    text = render_gate(GateResult("RUN", "main", "fail", "No.", (check,), (item, other)))
    assert "fail          long: bad\n" in text
    assert "  lost  long: q1   1.00 → 0.00\n  lost  short: q1  1.00 → 0.00\n" in text
    page = render_markdown(GateResult("RUN", "main", "fail", "No.", (check,), (item, other)))
    assert "| exact (long) | fail |" in page
    assert "| long: q1 | lost | 1.00 → 0.00 |" in page


def test_markdown_is_a_comment_that_is_found_again() -> None:
    """The first line is the marker, and the heading contains the verdict."""
    page = render_markdown(result("q1", notes=("other data",)))
    assert page == (
        "<!-- proctor gate: exam -->\n"
        "## Gate failed: exam\n"
        "\n"
        "The gate fails: it is worse.\n"
        "\n"
        "| Check | Verdict | Run | Baseline | Difference (95% interval) | Margin | Samples |\n"
        "| :--- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        "| strict_pass_rate | fail | 90.0% | 100.0% | -10.0 points (-14.2 to -5.6) "
        "| 2.0 points | 200 |\n"
        "| pass_rate at least 0.8 | pass | 0.9 | – | – | – | 0 |\n"
        "\n"
        "<details><summary>1 sample lost, 1 won</summary>\n"
        "\n"
        "| Sample | Change | Score |\n"
        "| :--- | ---: | ---: |\n"
        "| q1 | lost | 1.00 → 0.25 |\n"
        "| won | won | 0.00 → 1.00 |\n"
        "\n"
        "</details>\n"
        "\n"
        "- other data\n"
        "\n"
        "Run `RUN` compared with `main`.\n"
    )


def test_without_a_baseline_none_is_named() -> None:
    """A gate with thresholds alone does not mention a baseline."""
    assert render_markdown(GateResult("RUN", "", "pass", "Yes.", (LEAST,))).endswith("\nRun `RUN`.\n")


NASTY = "<img src=x onerror=alert(1)> | @everyone `x` [a](http://evil) #12 www.evil.com --> \n- x"


def test_data_cannot_break_the_page_call_anybody_or_link_anywhere() -> None:
    """Rendered, it is the same text: no image, no link, no further row or list."""
    page = render_markdown(result(NASTY, notes=(NASTY,), name=NASTY))
    tokens = MarkdownIt("commonmark", {"linkify": False}).enable("table").parse(page)
    inside = [child for token in tokens for child in token.children or ()]
    assert {child.type for child in inside} <= {"text", "code_inline", "text_special"}
    assert sum(token.type == "tr_open" for token in tokens) == 3 + 3
    words = "img-src-x-onerror-alert-1-@everyone-x-a-http-evil-12-www.evil.com-x"
    html = [token.content for token in tokens if token.type == "html_block"]
    assert html == [
        f"<!-- proctor gate: {words} -->\n",
        "<details><summary>1 sample lost, 1 won</summary>\n",
        "</details>\n",
    ]
    for alive in ("@everyone", "http://evil", "www.evil", "#12"):
        assert alive not in page.partition("\n")[2]


def test_what_github_would_link_is_broken_up_and_still_readable() -> None:
    """A zero-width space splits mentions, addresses and issue numbers."""
    assert escape_untrusted("@a #1 GH-2 http://x www.x") == "@\u200ba \\#\u200b1 GH-\u200b2 http://\u200bx www.\u200bx"
    assert comment_marker("--><x>") == "<!-- proctor gate: x -->"
