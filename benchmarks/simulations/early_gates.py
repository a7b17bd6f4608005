"""Gates that stop a run early: false alarms, and how many of a thousand samples they need."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from functools import partial

from benchmarks.simulations.claim import AT_MOST, Chance, Claim
from proctor.comparison.gates.early import EarlyGate
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import EvalResult, Trial

SCORES = [{"exact": Score(value, value == 1.0)} for value in (0.0, 1.0)]
AT_ONCE, SLOW = 20, 50.0

# The name of a sample, its score in the baseline and its new score: 0 or 1.
Pair = tuple[str, int, int]


def early_gates(n: int = 1000) -> Iterator[Claim]:
    """Checked after every sample, a gate has at most 5% false alarms and needs fewer samples.

    Measured once with 40,000 replicates: 2.4% with 10% flips in each direction, 2.8% with 20%, 3.1% with 40%.
    """
    for share in (0.1, 0.4):
        yield Claim(
            f"early gate, A/A, margin 0, {n} looks, {share:.0%} + {share:.0%} flip",
            partial(alarm, n=n, share=share),
            AT_MOST,
            8,
        )
    yield Claim(
        f"early gate, A/A, {n} looks, what got worse is slow", partial(alarm, n=n, share=0.2, is_slow=True), AT_MOST, 8
    )
    yield Claim(
        "early gate, A/A, heard as finished (a warning)",
        partial(alarm, n=n, share=0.2, is_slow=True, as_finished=True),
        (0.2, 1.0),
        8,
    )
    yield Claim(
        "early gate green, worse by the margin of 5%",
        partial(ended, n=n, up=0.1, down=0.15, margin=0.05, verdict="pass"),
        (0.0, 0.025),
        8,
    )
    yield Claim(
        "early gate, share of 1000 run, 10% + 20% flip", partial(share_run, n=1000, up=0.1, down=0.2), (0.2, 0.45), 8
    )
    yield Claim(
        "early gate, share of 1000 run, 5% + 25% flip", partial(share_run, n=1000, up=0.05, down=0.25), (0.04, 0.12), 8
    )
    yield Claim(
        "early gate, share of 1000 run, equal, margin 5%, 5% + 5%",
        partial(share_run, n=1000, up=0.05, down=0.05, margin=0.05),
        (0.2, 0.8),
        8,
    )


def pairs(chance: Chance, n: int, up: float, down: float) -> list[Pair]:
    """Return pass or fail before and after: the shares `up` and `down` flip, the rest stay."""
    values = []
    for number in range(n):
        draw = chance.random()
        old = int(chance.random() < 0.5)
        flips = draw < up or draw > 1 - down
        values.append((f"s{number}", int(draw > 1 - down) if flips else old, int(draw < up) if flips else old))
    return values


def run(gate: EarlyGate, order: Iterable[tuple[int, Pair]]) -> EarlyGate:
    """Pass results to a gate until it has decided."""
    for turn, (name, _, new) in order:
        if gate.add_result(turn, EvalResult(Trial(Sample(name, "?")), SCORES[new])) is not None:
            break
    return gate


def gate_of(made: list[Pair], margin: float = 0.0) -> EarlyGate:
    return EarlyGate({name: float(old) for name, old, _ in made}, margin=margin)


def finished(made: list[Pair]) -> list[tuple[int, Pair]]:
    """Return the order in which twenty workers finish if samples that got worse take fifty times as long."""
    busy: list[tuple[float, int]] = []
    order = []
    for turn, (_, old, new) in enumerate(made):
        now = 0.0
        if len(busy) == AT_ONCE:
            now, ended = heapq.heappop(busy)
            order.append(ended)
        heapq.heappush(busy, (now + (SLOW if new < old else 1.0), turn))
    order += [ended for _, ended in sorted(busy)]
    return [(turn, made[turn]) for turn in order]


def alarm(chance: Chance, n: int, share: float, is_slow: bool = False, as_finished: bool = False) -> float:
    """Return 1 if equal systems are called different at any of n looks."""
    trial_pairs = pairs(chance, n, share, share)
    order = finished(trial_pairs) if is_slow else list(enumerate(trial_pairs))
    if as_finished:
        order = [(place, pair) for place, (_, pair) in enumerate(order)]
    return float(run(gate_of(trial_pairs), order).verdict != "inconclusive")


def ended(chance: Chance, n: int, up: float, down: float, margin: float, verdict: str) -> float:
    """Return 1 if a run ends with this verdict."""
    trial_pairs = pairs(chance, n, up, down)
    return float(run(gate_of(trial_pairs, margin), enumerate(trial_pairs)).verdict == verdict)


def share_run(chance: Chance, n: int, up: float, down: float, margin: float = 0.0) -> float:
    """Return the share of n samples that was run before the gate decided."""
    trial_pairs = pairs(chance, n, up, down)
    return run(gate_of(trial_pairs, margin), enumerate(trial_pairs)).n / n
