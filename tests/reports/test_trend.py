"""Trends for the terminal and as a picture."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree as ET

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from proctor.records.metric import MetricKind, Trend, TrendPoint
from proctor.reports.trend import COLORS, INK, MAX_BARS, render_sparkline, render_svg, render_table

BEGAN = datetime(2026, 1, 3, 9, tzinfo=UTC)
SVG = "{http://www.w3.org/2000/svg}"


def a_trend(
    values: dict[str, list[float]],
    *,
    kind: MetricKind = "rate",
    unit: str = "",
    wide: float | None = 0.05,
    step: timedelta = timedelta(days=2),
    field: str = "pass_rate",
) -> Trend:
    points = [
        TrendPoint(
            BEGAN + index * step,
            f"run-{index}",
            name,
            value,
            200,
            None if wide is None else (value - wide, value + wide),
            "exam",
        )
        for name, result in values.items()
        for index, value in enumerate(result)
    ]
    return Trend(field, tuple(sorted(points, key=lambda point: point.date)), kind, unit)


def test_a_line_of_blocks_for_each_configuration() -> None:
    """One scale for all; first and last value, range and number of runs follow."""
    trend = a_trend({"small": [0.5, 0.55, 0.6, 0.58], "größer 🙂": [0.7, 0.75, 0.8, 0.9]})
    assert render_sparkline(trend) == snapshot("""\
pass_rate, 4 runs, 2026-01-03 to 2026-01-09
small      ▁▂▂▂  50.0% → 58.0%  min 50.0%  max 60.0%  4 runs
größer 🙂  ▄▆▇█  70.0% → 90.0%  min 70.0%  max 90.0%  4 runs\
""")
    assert render_sparkline(a_trend({"default": [1200.0]}, kind="quantile", unit="ms")) == snapshot("""\
pass_rate, 1 run, 2026-01-03
default  ▄  1,200 ms → 1,200 ms  min 1,200 ms  max 1,200 ms  1 run\
""")


def test_many_runs_are_drawn_together() -> None:
    """No line is longer than a terminal; its numbers are those of single runs."""
    trend = a_trend({"default": [number / 1000 for number in range(1000)]})
    heading, text = render_sparkline(trend).splitlines()
    assert heading.endswith("; each block is the mean of several runs")
    blocks = text.split()[1]
    assert len(blocks) == MAX_BARS
    assert (blocks[0], blocks[-1], list(blocks)) == ("▁", "█", sorted(blocks))
    assert "0.0% → 99.9%" in text


def test_a_table_has_every_point() -> None:
    """Date, run, configuration, value, interval and n."""
    trend = a_trend({"small": [0.5, 0.6], "large": [0.7]})
    assert render_table(trend) == snapshot("""\
date              run    configuration  value  95% interval    n
2026-01-03 09:00  run-0  small          50.0%    45.0–55.0%  200
2026-01-03 09:00  run-0  large          70.0%    65.0–75.0%  200
2026-01-05 09:00  run-1  small          60.0%    55.0–65.0%  200\
""")


def test_nothing_in_a_name_reaches_the_terminal_as_a_command() -> None:
    """Control characters are shown, line ends too."""
    output = render_sparkline(a_trend({"a\x1b[31m\nb": [0.5]}, field="x\x07"))
    assert "\x1b" not in output
    assert "\x07" not in output
    assert len(output.splitlines()) == 2


def parsed(trend: Trend) -> ET.Element:
    return ET.fromstring(render_svg(trend))


def test_the_picture_says_what_it_shows() -> None:
    """A title and a description for those who do not see it, and a legend for those who do."""
    trend = a_trend({"small": [0.5, 0.6], "large": [0.7, 0.8]})
    root = parsed(trend)
    assert (root.get("role"), root.get("aria-labelledby")) == ("img", "title desc")
    assert root.findtext(f"{SVG}title") == "pass_rate over time"
    assert root.findtext(f"{SVG}desc") == (
        "small: 50.0% on 2026-01-03, 60.0% on 2026-01-05, 2 runs. "
        "large: 70.0% on 2026-01-03, 80.0% on 2026-01-05, 2 runs. "
        "Bars are 95% intervals. Dates are in UTC."
    )
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert texts[0] == "pass_rate"
    assert texts[-2:] == ["small", "large"]
    assert {"2026-01-03", "2026-01-05", "40.0%", "80.0%"} <= set(texts)
    assert len(root.findall(f".//{SVG}polyline")) == 2


def test_every_point_and_interval_is_where_its_number_is() -> None:
    """Higher numbers lie higher, later runs further right, and the bars around their points."""
    root = parsed(a_trend({"default": [0.2, 0.8, 0.5]}))
    line = root.find(f".//{SVG}polyline")
    assert line is not None
    places = [tuple(map(float, pair.split(","))) for pair in str(line.get("points")).split()]
    (x1, y1), (x2, y2), (x3, y3) = places
    assert x1 < x2 < x3
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.2)
    assert y2 < y3 < y1
    assert (y1 + y2) / 2 == pytest.approx(y3, abs=0.2)
    bars = [str(path.get("d")) for path in root.iter(f"{SVG}path") if "V" in str(path.get("d"))]
    for bar, (x, y) in zip(bars, places, strict=True):
        result = re.match(r"M([\d.]+) ([\d.]+)V([\d.]+)", bar)
        assert result is not None
        assert (float(result[1]), float(result[3]) < y < float(result[2])) == (x, True)


def test_texts_cannot_break_out_of_the_picture() -> None:
    """Names of metrics and configurations are texts, whatever they hold; nothing can run."""
    evil = '"><script>alert(1)</script><a href="javascript:x">&amp;\x00\uffff\ud800'
    root = parsed(a_trend({evil: [0.5], "b": [0.6]}, field=evil))
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert tags == {"svg", "title", "desc", "text", "line", "g", "path", "polyline"}
    attributes = {name for element in root.iter() for name in element.attrib}
    assert not [name for name in attributes if name.startswith("on") or "href" in name]
    assert "http" not in render_svg(a_trend({"a": [0.5]})).replace("http://www.w3.org/2000/svg", "")


@settings(max_examples=20)
@given(
    st.dictionaries(
        st.text(max_size=5), st.lists(st.floats(-1e9, 1e9, allow_nan=False), min_size=1, max_size=5), max_size=8
    ),
    st.sampled_from(["rate", "mean", "number", "count"]),
    st.floats(0, 1e6),
)
def test_any_numbers_can_be_drawn(values: dict[str, list[float]], kind: MetricKind, seconds: float) -> None:
    """Equal, negative and large values, one value, or none: all are inside the picture."""
    trend = a_trend(values, kind=kind, wide=None, step=timedelta(seconds=seconds))
    root = parsed(trend)
    render_sparkline(trend)
    width, height = float(root.get("width") or 0), float(root.get("height") or 0)
    for line in root.iter(f"{SVG}polyline"):
        if kind == "rate":
            continue  # a share beyond 0 and 1 is none
        for pair in str(line.get("points")).split():
            x, y = map(float, pair.split(","))
            assert 0 <= x <= width
            assert 0 <= y <= height


def test_runs_within_a_day_have_times() -> None:
    """The ticks show times, because the dates would all be equal."""
    texts = [t.text for t in parsed(a_trend({"a": [0.5, 0.6]}, step=timedelta(hours=4))).iter(f"{SVG}text")]
    assert "2026-01-03 09:00" in texts
    assert "2026-01-03 13:00" in texts


@pytest.mark.parametrize(
    ("step", "output"),
    [
        (timedelta(seconds=10), ["09:00:00", "09:00:05", "09:00:10", "09:00:15", "09:00:20"]),
        (timedelta(milliseconds=4), ["09:00:00.000000", "09:00:00.002000"]),
    ],
)
def test_runs_within_a_minute_have_ticks_of_their_own(step: timedelta, output: list[str]) -> None:
    """The ticks show seconds, because the minutes would all be equal; the day is above."""
    root = parsed(a_trend({"a": [0.5, 0.6, 0.7]}, step=step))
    texts = [str(text.text) for text in root.iter(f"{SVG}text")]
    assert [text for text in texts if text.startswith("09:00:")][: len(output)] == output
    assert "3 runs on 2026-01-03; bars: 95% intervals; times in UTC" in texts
    item = [str(text.text) for text in parsed(a_trend({"a": [0.5]})).iter(f"{SVG}text")]
    assert "2026-01-03 09:00" in item


def test_runs_that_left_trials_out_are_marked() -> None:
    """In the heading of the blocks, in a column of the table, as hollow marks in the picture."""
    full = a_trend({"a": [0.5, 0.6]})
    cut = msgspec.structs.replace(full.points[0], unfinished="stopped early")
    trend = Trend("pass_rate", (cut, full.points[1]), "rate")
    assert render_sparkline(trend).splitlines()[0] == snapshot(
        "pass_rate, 2 runs, 2026-01-03 to 2026-01-05; 1 of them did not complete their plan"
    )
    rows = render_table(trend).splitlines()
    assert [row.rstrip().endswith("stopped early") for row in rows] == [False, True, False]
    assert rows[0].endswith("not complete")
    assert "not complete" not in render_table(full)
    paths = parsed(trend).iter(f"{SVG}path")
    marks = [path for path in paths if path.find(f"{SVG}title") is not None]
    assert [mark.get("fill") for mark in marks] == ["none", COLORS[0]]
    assert str(marks[0].findtext(f"{SVG}title")).endswith(", stopped early")
    assert "hollow: not complete" in render_svg(trend)
    assert "ollow" not in render_svg(full)


def light(color: str) -> float:
    parts = [int(color[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("ground", ["#ffffff", "#0d1117", "#000000"])
def test_it_can_be_read_on_light_and_dark_ground(ground: str) -> None:
    """Contrasts as WCAG counts them: 3 for lines, 4 for text."""
    for color, least in [*((color, 3.0) for color in COLORS), (INK, 4.0)]:
        pair = sorted((light(color), light(ground)))
        assert (pair[1] + 0.05) / (pair[0] + 0.05) >= least, color
