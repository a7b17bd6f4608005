"""Comparisons and rankings for people: at 80 columns, in colours, as Markdown, with any data."""

from __future__ import annotations

import io
from typing import Any

import msgspec
import pytest

from proctor.records.comparison import Comparison, Flip, MetricDelta, RankedPlace, Ranking
from proctor.reports.comparison import (
    inspection_commands,
    render_comparison,
    render_markdown,
    render_ranking,
    show_comparisons,
    show_ranking,
)


def example(**changes: Any) -> Comparison:
    result = Comparison(
        "new",
        "main",
        "new is better than main: pass_rate 56.2% vs. 39.0%.",
        samples=1319,
        tests=4,
        a_run="20260102-090000-b",
        b_run="20260101-090000-a",
        metrics={
            "pass_rate": MetricDelta(
                "pass_rate", 0.5625, 0.3904, 0.1721, 44.1, 1319, (0.1431, 0.2007),
                (0.5356, 0.5891), (0.3644, 0.4171), 1e-9, 2e-9, 0.3149, 0.0147,
                "exact McNemar test", "better", kind="rate", higher_is_better=True,
            ),
            "latency_ms.mean": MetricDelta(
                "latency_ms.mean", 1234.56, 900.1, 334.46, 37.16, 1319, (300.0, 370.0),
                (1200.0, 1270.0), (880.0, 920.0), 1e-9, 2e-9, 0.5, 10.0, "paired t-test", "worse",
                percentage_interval=(33.3, 41.1),
            ),
            "cost.mean": MetricDelta(
                "cost.mean", 0.0, 0.0, 0.0, None, 1300, p=1.0, p_adjusted=1.0, effect=0.0,
            ),
        },
        scores={
            "judge": MetricDelta(
                "judge", 0.71, 0.705, 0.005, 0.71, 1310, (-0.006, 0.016), (0.69, 0.73),
                (0.68, 0.73), 0.4, 0.4, 0.02, 0.006, "paired t-test", more_samples=2345,
                kind="score", higher_is_better=True,
            ),
        },
        flips=(Flip("q 7", True, 0.0, 1.0), Flip("q2", True, None, 0.9), Flip("q3", False, 1, 0)),
        only_a=tuple(f"x{at}" for at in range(7)),
        only_b=("y",),
        missing_a=("old_metric",),
        notes=("the datasets are not the same: samples of one id may have other contents",),
    )  # fmt: skip
    return msgspec.structs.replace(result, **changes)


SHOWN = """\
new is better than main: pass_rate 56.2% vs. 39.0%.
new is run 20260102-090000-b; main is run 20260101-090000-a

Metric                  new        main       Difference    p, g Verdict
────────────────────────────────────────────────────────────────────────────────
pass_rate             56.2%       39.0%     +17.2 points <0.0001 better
                  53.6–58.9   36.4–41.7   +14.3 to +20.1 g +0.31
judge                 0.710       0.705           +0.005     0.4 not enough
                0.690–0.730 0.680–0.730 -0.006 to +0.016 g +0.02 evidence
                                                                 ≈ 2,400 more
latency_ms.mean       1,235         900           +37.2% <0.0001 worse
                1,200–1,270     880–920   +33.3 to +41.1 g +0.50
cost.mean             $0.00       $0.00            $0.00       1 not enough
                                                             g 0 evidence

2 samples passed only in main (lost), 1 only in new (won); score of main → new;
the worst 2:
  lost  q 7  1.00 → 0.00
  lost  q2   0.90 → –
  … and 1 more: proctor compare new main --flips 3
To inspect a sample:
  proctor show 20260102-090000-b --sample 'q 7'
  proctor show 20260101-090000-a --sample 'q 7'

7 samples only in new: x0, x1, x2, x3, x4, …
1 sample only in main: y
new has no old_metric
Note: the datasets are not the same: samples of one id may have other contents
Difference: new minus main; n = 1,300 to 1,319, paired by sample, p corrected
for 4 tests (Holm); 95% intervals below the numbers; g: difference in standard
deviations
≈ N more: samples that would decide if the difference stays near the one seen
"""


def test_a_percentage_without_an_interval_has_a_dash() -> None:
    """The interval of the difference divided by the baseline would ignore the baseline's own error."""
    latency = msgspec.structs.replace(example().metrics["latency_ms.mean"], percentage_interval=None)
    comparison = example(metrics={"latency_ms.mean": latency})
    assert "| +37.2% (–) |" in render_markdown(comparison)
    [row] = [line for line in render_comparison(comparison).splitlines() if "880–920" in line]
    assert row.split()[:3] == ["1,200–1,270", "880–920", "–"]


def test_eighty_columns() -> None:
    """The answer first, then the table, the flips, who is not matched, and how to read it."""
    result = render_comparison(example(), flips=2)
    assert result == SHOWN
    assert max(map(len, result.splitlines())) <= 80


def test_little_room_and_much() -> None:
    """Nothing is wider than the terminal, and long names are folded, not cut."""
    name = "a_very_long_name_of_a_metric_" * 3
    item = msgspec.structs.replace(example().metrics["pass_rate"], name=name)
    result = render_comparison(example(metrics={name: item}), 80)
    assert max(map(len, result.splitlines())) <= 80
    assert name in "".join(line[:15].strip() for line in result.splitlines()[3:30])
    assert "latency_ms.mean" in render_comparison(example(), 120)


def test_only_what_there_is() -> None:
    """Neither flips nor notes nor runs: neither lines nor gaps for them."""
    bare = Comparison("a", "b", "Nothing.", metrics={"x": MetricDelta("x")})
    assert render_comparison(bare).splitlines() == [
        "Nothing.",
        "",
        "Metric a b Difference p, g Verdict",
        "──────────────────────────────────────────────",
        "x      – –          –    – not enough evidence",
        "",
        "Difference: a minus b; n = 0, not paired; 95% intervals below the numbers; g:",
        "difference in standard deviations",
    ]
    assert "passed only in" not in render_comparison(example(), flips=0)
    same_run = example(b_run="20260102-090000-b")
    assert "Both configurations belong to run 20260102-090000-b" in render_comparison(same_run)


def test_clusters_and_too_few_of_them_are_mentioned() -> None:
    """How many there are, and where there are too few for a verdict."""
    item = example().metrics["pass_rate"]
    clustered = msgspec.structs.replace(item, clusters=40)
    assert "paired by sample, in 40 clusters" in " ".join(
        render_comparison(example(metrics={"pass_rate": clustered})).split()
    )
    judge = example().scores["judge"]
    none = {"interval": None, "p": None, "p_adjusted": None}
    few = msgspec.structs.replace(judge, clusters=3, method="fewer than 5 clusters", **none)
    result = " ".join(render_comparison(example(scores={"judge": few})).split())
    assert "judge: fewer than 5 clusters, so the difference may be chance" in result


def test_colours_only_on_a_terminal() -> None:
    """Better is green and worse red, where there are colours."""
    assert "\x1b[32mbetter" in render_comparison(example(), color=True)
    assert "\x1b[31mworse" in render_comparison(example(), color=True)
    out = io.StringIO()
    show_comparisons([example(), example()], out, flips=2)
    assert out.getvalue() == f"{SHOWN}\n{SHOWN}"


def test_what_samples_are_called_cannot_disturb() -> None:
    """Control characters, markup and shell characters are shown as they are, and quoted."""
    wild = Flip("[red]\x1b[31m; rm -rf *\n| x", True, 0.0, 1.0)
    result = render_comparison(example(flips=(wild,)), 100)
    assert "\x1b" not in result
    assert "[red]␛[31m; rm -rf *" in result
    assert inspection_commands(example(), wild)[0].startswith("proctor show 20260102-090000-b --sample '[red]")
    text = render_markdown(example(flips=(Flip("<b>|@someone", True, 0.0, 1.0),)))
    assert "\\<b>\\|" in text
    assert "@someone" not in text


def test_markdown() -> None:
    """The same facts, in tables that GitHub shows."""
    lines = render_markdown(example(), flips=1).splitlines()
    assert lines[0] == "## new compared with main"
    assert lines[4].startswith("| Metric | new | main | Difference (95%) | p | Effect | n |")
    assert lines[6] == (
        "| pass_rate | 56.2% (53.6–58.9) | 39.0% (36.4–41.7) | +17.2 points (+14.3 to +20.1) "
        "| \\<0.0001 | +0.31 | 1,319 | better |"
    )
    assert lines[7].endswith("| 0.4 | +0.02 | 1,310 | not enough evidence, ≈ 2,400 more |")
    assert "| q 7 | lost | 1.00 → 0.00 |" in lines
    assert "- 7 samples only in new: x0, x1, x2, x3, x4, …" in lines
    assert render_markdown(Comparison("a", "b", "Nothing.")) == "## a compared with b\n\nNothing.\n"


def test_rankings() -> None:
    """Value, interval, the places that the evidence allows, and how often each would be first."""
    ranking = Ranking(
        "pass_rate",
        "desc",
        (
            RankedPlace("a", 1, 0.9, 200, 0, (0.85, 0.93), (1, 1), 0.991),
            RankedPlace("b", 2, 0.7, 190, 10, None, (2, 3), 0.009),
            RankedPlace("c", 3),
        ),
    )
    result = render_ranking(ranking)
    lines = [" ".join(line.split()) for line in result.splitlines()]
    assert lines[0] == "a is first by pass_rate, beyond chance."
    assert lines[2] == "Rank Name pass_rate 95% interval n Ranks P(first)"
    assert lines[4:7] == ["1 a 90.0% 85.0–93.0 200 1 99%", "2 b 70.0% – 190 (10 missing) 2 to 3 1%", "– c – – 0 – –"]
    out = io.StringIO()
    show_ranking(ranking, out)
    assert out.getvalue() == result
    assert render_ranking(Ranking("x", "asc")) == "Fewer than two configurations have a value for x.\n"


@pytest.mark.parametrize("width", [40, 60, 100])
def test_any_width(width: int) -> None:
    """No line is wider than the given width."""
    assert max(map(len, render_comparison(example(), width).splitlines())) <= width


def test_won_samples_are_not_called_the_worst() -> None:
    """Where nothing was lost, those that are shown are only the first."""
    won = tuple(Flip(f"q{at}", False, 1.0, 0.0) for at in range(5))
    shown = render_comparison(example(flips=won), width=200, flips=2)
    assert "0 samples passed only in main (lost), 5 only in new (won); score of main → new; the first 2:" in shown


def test_what_has_no_difference_has_no_unit_either() -> None:
    """A dash, and not "– points"."""
    single = MetricDelta("pass_rate", 0.5, kind="rate")
    for text in (
        render_comparison(example(metrics={"pass_rate": single})),
        render_markdown(example(metrics={"p": single})),
    ):
        assert "– points" not in text


def test_each_layout_explains_itself() -> None:
    """The Markdown has its intervals in brackets, and a column of effects."""
    assert "below the numbers" not in render_markdown(example())
    assert "95% intervals in parentheses" in render_markdown(example())


def test_a_ranking_tells_its_note() -> None:
    """Such as that a run still goes on."""
    places = tuple(RankedPlace(name, at, 0.5, 9) for at, name in enumerate("ab", start=1))
    result = render_ranking(Ranking("pass_rate", "desc", places, note="b is not complete (running)"))
    assert result.count("b is not complete (running)") == 1
