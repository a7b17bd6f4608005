"""A margin that equal results cannot pass is found before a run, and what fits is named."""

from __future__ import annotations

import pytest

from proctor.comparison.gates.decision import GateConfig, decide
from proctor.comparison.gates.margins import NarrowMargin, add_margin_notes, find_narrow_margins
from proctor.comparison.sides import Side
from proctor.records.formatting import format_estimate


def side(n: int, name: str = "main", clusters: int = 0) -> Side:
    """A baseline with one failure in ten, a score of 0.7, and a latency."""
    passes = {f"s{at}": float(at % 10 != 0) for at in range(n)}
    tables = {"pass_rate": passes, "strict_pass_rate": passes, "latency_ms.mean": dict.fromkeys(passes, 12.0)}
    groups = {name: f"c{at % clusters}" for at, name in enumerate(passes)} if clusters else None
    return Side(name, tables, {"judge": dict.fromkeys(passes, 0.7)}, clusters=groups, samples=tuple(passes))


@pytest.mark.parametrize(
    ("n", "margin", "smallest", "samples"),
    [
        # Bonett and Price with no flips: z * sqrt(2 / (n + 2)) / sqrt(n + 2) = 2.7718 / (n + 2).
        (50, 0.02, 2.7718 / 52, 137),
        (50, 0.06, None, None),
        (20, 0.10, 2.7718 / 22, 26),
        (200, 0.02, None, None),
        (200, 0.01, 2.7718 / 202, 276),
    ],
)
def test_the_smallest_margin_of_a_rate(n: int, margin: float, smallest: float | None, samples: int | None) -> None:
    """It is the worse end of the interval of two runs without any flip."""
    found = find_narrow_margins(side(n), GateConfig({"strict_pass_rate": margin}))
    if smallest is None:
        assert found == []
        return
    [narrow] = found
    assert (narrow.metric, narrow.n, narrow.samples) == ("strict_pass_rate", n, samples)
    assert narrow.smallest == pytest.approx(smallest, abs=1e-4)


def test_what_fits_does_pass() -> None:
    """Equal runs are inconclusive at the narrow margin, and pass at the margin and the number that are offered."""
    for n, margin, verdict in ((50, 0.02, "inconclusive"), (50, 0.06, "pass"), (137, 0.02, "pass")):
        result = decide([(side(n, "new"), side(n))], GateConfig({"strict_pass_rate": margin}))
        assert result.verdict == verdict


def test_only_the_samples_of_the_run_count() -> None:
    """A baseline of 500 samples helps nothing if the run has 50 of them."""
    config = GateConfig({"strict_pass_rate": 0.02})
    assert find_narrow_margins(side(500), config) == []
    [narrow] = find_narrow_margins(side(500), config, {f"s{at}" for at in range(50)})
    assert narrow.n == 50


def test_scores_are_checked_and_other_numbers_are_not() -> None:
    """Of 50 equal scores, 7.1% may be others (Wilson); nothing is known about the spread of latencies."""
    metrics = {"judge": 0.02, "latency_ms.mean": 0.0, "latency_ms.p95": 0.0, "unknown": 0.0}
    [narrow] = find_narrow_margins(side(50), GateConfig(metrics))
    assert narrow.metric == "judge"
    assert narrow.smallest == pytest.approx(0.0713, abs=1e-4)


def test_clusters_and_groups_need_wider_margins() -> None:
    """Ten clusters count like ten samples; two groups also differ by chance."""
    config = GateConfig({"strict_pass_rate": 0.02})
    [plain] = find_narrow_margins(side(50), config)
    [clustered] = find_narrow_margins(side(50, clusters=10), config)
    [grouped] = find_narrow_margins(side(50), GateConfig({"strict_pass_rate": 0.02}, unpaired=True))
    assert plain.smallest < clustered.smallest
    assert plain.smallest < grouped.smallest


def _describe_too_few(problem: str, loss: str, fix: str) -> str:
    reason = f"even if both runs had the same results, a true loss of {loss} would be possible"
    return f"{problem}: {reason}. Fix: {fix}"


NO_MARGIN = (
    "the margin of strict_pass_rate is 0, so only a run that is clearly better than its baseline can pass, "
    "however many samples there are. Fix: "
)


@pytest.mark.parametrize(
    ("narrow", "options", "text"),
    [
        (
            NarrowMargin("strict_pass_rate", 0.02, 50, 0.0533, 137),
            {},
            _describe_too_few(
                "50 samples are too few for a margin of 2 points (strict_pass_rate)",
                "about 6 points",
                "--margin 6%, or at least 140 samples",
            ),
        ),
        (
            NarrowMargin("strict_pass_rate", 0.01, 4, 0.462, more=276),
            {},
            _describe_too_few(
                "4 samples are too few for a margin of 1 point (strict_pass_rate)",
                "about 47 points",
                "about 280 more samples",
            ),
        ),
        (
            NarrowMargin("judge", 0.001, 500, 0.0055),
            {"is_only_metric": False, "early": True},
            _describe_too_few(
                "500 samples are too few for a margin of 0.1 points (judge)",
                "more than 0.6 points",
                "--metric judge=0.6%",
            ),
        ),
        (
            NarrowMargin("strict_pass_rate", 0.0, 50, 0.0533),
            {},
            f"{NO_MARGIN}--margin 6%, the smallest margin that an equally good run can pass with 50 samples",
        ),
        (
            NarrowMargin("strict_pass_rate", 0.0, 4, 0.462),
            {},
            f"{NO_MARGIN}a margin above 0, and more samples: no margin below 47 points can be met with 4 samples",
        ),
    ],
)
def test_the_sentence(narrow: NarrowMargin, options: dict[str, bool], text: str) -> None:
    """What is wrong, and the exact option to write."""
    assert narrow.describe(**options) == text


def test_an_inconclusive_gate_says_it_too() -> None:
    """As a note, once; a gate that decides has none."""
    config = GateConfig({"strict_pass_rate": 0.02})
    for n, notes in ((50, 1), (200, 0)):
        pairs = [(side(n, "new"), side(n))]
        result = add_margin_notes(decide(pairs, config), pairs, config)
        assert sum("too few for a margin" in note for note in result.notes) == notes


def test_an_undecided_gate_names_one_number_of_samples() -> None:
    """The note repeats the number of the answer; a gate that cannot pass for another reason has no note on margins."""
    ids = [f"s{at}" for at in range(10)]
    old = Side("main", {"strict_pass_rate": dict.fromkeys(ids, 1.0) | {"s0": 0.0}}, samples=tuple(ids))
    new = Side("new", {"strict_pass_rate": dict.fromkeys(ids, 1.0)}, samples=tuple(ids))
    config = GateConfig({"strict_pass_rate": 0.05})
    result = add_margin_notes(decide([(new, old)], config), [(new, old)], config)
    more = result.checks[0].more_samples
    assert more is not None
    assert result.answer.endswith(f"about {format_estimate(more)} more samples would decide it.")
    [note] = [note for note in result.notes if "too few for a margin" in note]
    assert note.endswith(f"Fix: about {format_estimate(more)} more samples")
    few = Side("new", {"strict_pass_rate": dict.fromkeys(ids[:5], 1.0)}, samples=tuple(ids[:5]))
    limited = add_margin_notes(decide([(few, old)], config), [(few, old)], config)
    assert "it cannot pass, because 5 of 10 samples of main are not in new" in limited.answer
    assert not any("too few for a margin" in note for note in limited.notes)
