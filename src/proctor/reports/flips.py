"""Flipped samples with their texts: input, expected value, both outputs, and the reasons."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from proctor.records.comparison import Comparison, Flip, FlipResult
from proctor.records.formatting import DASH, format_count
from proctor.reports.format import (
    cell_width,
    disable_links,
    escape_untrusted,
    fold_text,
    hanging_lines,
    markdown_bullet,
    markdown_table,
    shorten_lines,
    single_line,
    to_text,
    wrap_lines,
)

FOLDED_LINES, MARKDOWN_LINES = 3, 8
LINE_LIMIT, MARKDOWN_LIMIT, ID_LIMIT, NAME_LIMIT = 1000, 600, 60, 100
REASONS_SHOWN = 3
# Longer names of sides are replaced by the words of the command line.
MAX_LABEL = 20
# Texts whose first difference lies further behind start shortly before it.
MAX_EQUAL_START, CONTEXT = 120, 40


class ShownFlip(NamedTuple):
    """A flip with the names of its sides; `heading` is its sample, with its configuration if there are several."""

    flip: Flip
    new_name: str
    old_name: str
    heading: str
    evaluator: str = ""


def list_flips(comparison: Comparison, flips: Iterable[Flip], *, prefix: str = "") -> list[ShownFlip]:
    """Return flips of a comparison with the names of its sides."""
    return [ShownFlip(flip, comparison.a, comparison.b, prefix + flip.sample_id, comparison.flips_of) for flip in flips]


def format_scores(flip: Flip) -> str:
    """Return the score of the old side and of the new side."""
    return " → ".join(DASH if score is None else f"{score:.2f}" for score in (flip.b, flip.a))


def flip_lines(flips: Sequence[ShownFlip], width: int) -> Iterator[tuple[str, str]]:
    """Yield the lines of flips for the terminal, each with its style; long texts are folded to a few lines."""
    headings = [single_line(shown.heading, ID_LIMIT) for shown in flips]
    heading_width = min(ID_LIMIT, max(map(len, headings), default=0))
    for shown, heading in zip(flips, headings, strict=True):
        direction = "lost" if shown.flip.lost else "won"
        has_texts = shown.flip.a_result is not None
        text = f"  {direction:<4}  {heading:<{heading_width}}  {format_scores(shown.flip)}"
        yield text, "bold" if has_texts else ""
        facts = list(_flip_facts(shown))
        label_width = max((len(label) for label, _ in facts), default=0)
        for label, value in facts:
            start = f"    {label:<{label_width}}  "
            lines = fold_text(value, max(20, width - cell_width(start)), FOLDED_LINES)
            yield from ((line, "") for line in hanging_lines(start, lines))


def flip_blocks(flips: Sequence[ShownFlip]) -> list[str]:
    """Return flips as blocks of Markdown: a heading and a list for each, or one table if there are no texts."""
    if not flips:
        return []
    if all(shown.flip.a_result is None for shown in flips):
        return [_flip_table(flips)]
    blocks = []
    for shown in flips:
        direction = "Lost" if shown.flip.lost else "Won"
        heading = escape_untrusted(single_line(shown.heading, ID_LIMIT))
        blocks.append(f"#### {direction}: {heading} ({format_scores(shown.flip)})")
        bullets = [_bullet(label, value) for label, value in _flip_facts(shown)]
        blocks += ["\n".join(bullets)] if bullets else []
    return blocks


def describe_flip(shown: ShownFlip) -> str:
    """Return a flip as plain text on one line, for a log."""
    facts = "; ".join(f"{label}: {single_line(value, MARKDOWN_LIMIT)}" for label, value in _flip_facts(shown))
    direction = "lost" if shown.flip.lost else "won"
    return f"{direction}: {shown.heading}{f' ({facts})' if facts else ''}"


def more_lines(text: str, width: int) -> list[str]:
    """Return the line about the flips that are not shown, wrapped below the flips."""
    return hanging_lines("  ", wrap_lines(text, max(20, width - 2)))


def more_flips(comparison: Comparison, hidden_count: int) -> str:
    """Return the sentence about the flips that are not shown, with the command that shows them."""
    command = compare_command(comparison)
    return f"… and {hidden_count:,} more{f': {command}' if command else ''}"


def compare_command(comparison: Comparison) -> str:
    """Return the command that lists all flips of a comparison; empty if its runs are not stored."""
    if not comparison.a_run or not comparison.b_run:
        return ""
    names = f"{shlex.quote(comparison.a)} {shlex.quote(comparison.b)}"
    run = f" --run {shlex.quote(comparison.a_run)}" if comparison.a_run == comparison.b_run else ""
    metric = f" --metric {shlex.quote(comparison.flips_of)}" if comparison.flips_of else ""
    return single_line(f"proctor compare {names}{run}{metric} --flips {len(comparison.flips)}", LINE_LIMIT)


def _flip_table(flips: Sequence[ShownFlip]) -> str:
    rows = [
        [single_line(shown.heading, ID_LIMIT), "lost" if shown.flip.lost else "won", format_scores(shown.flip)]
        for shown in flips
    ]
    return disable_links(markdown_table(("Sample", "Change", "Score"), rows))


def _bullet(label: str, value: Any) -> str:
    text = shorten_lines(value, MARKDOWN_LIMIT, MARKDOWN_LINES)
    if "\n" in text:
        # Code blocks have no links.
        return markdown_bullet(disable_links(label), text)
    return disable_links(markdown_bullet(label, text))


def _flip_facts(shown: ShownFlip) -> Iterator[tuple[str, str]]:
    """Yield the labelled texts of a flip; empty if only its id is known."""
    flip = shown.flip
    if flip.a_result is None or flip.b_result is None:
        return
    yield "input", to_text(flip.input)
    if flip.expected is not None:
        yield "expected", to_text(flip.expected)
    old, new = _start_near_difference(_answer(flip.b_result), _answer(flip.a_result))
    old_label, new_label = _side_labels(shown)
    yield old_label, old
    yield new_label, new
    reasons = list(_reasons(flip.a_result if flip.lost else flip.b_result, shown.evaluator))
    for reason in reasons[:REASONS_SHOWN]:
        yield "reason", reason
    if len(reasons) > REASONS_SHOWN:
        yield "reason", f"… and {format_count(len(reasons) - REASONS_SHOWN, 'more evaluator')}"


def _side_labels(shown: ShownFlip) -> tuple[str, str]:
    names = single_line(shown.old_name, NAME_LIMIT), single_line(shown.new_name, NAME_LIMIT)
    reserved = {"input", "expected", "reason"}
    return ("reference", "new") if max(map(len, names)) > MAX_LABEL or reserved & {*names} else names


def _answer(result: FlipResult) -> str:
    return f"error: {result.error}" if result.error else to_text(result.output) or "(empty)"


def _reasons(result: FlipResult, evaluator: str) -> Iterator[str]:
    """Yield why the side did not pass: the reason of each score that decided it."""
    for name, score in result.scores.items():
        if not score.passed and score.status != "skipped" and evaluator in ("", name):
            yield f"{score.reason or 'it did not pass'} ({name})"


def _start_near_difference(old: str, new: str) -> tuple[str, str]:
    """Leave out a long equal start of two texts, which would hide their difference."""
    equal = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    if equal <= MAX_EQUAL_START:
        return old, new
    start = equal - CONTEXT
    boundary = max(old.rfind(" ", start - CONTEXT, start), old.rfind("\n", start - CONTEXT, start))
    start = start if boundary < 0 else boundary + 1
    return f"… {old[start:]}", f"… {new[start:]}"
