"""The gate itself, `gates.decision.decide`: how often equal systems fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from benchmarks.simulations.claim import Chance, Claim
from benchmarks.simulations.made_up import UNEQUAL, collapsing, flips, graded, in_clusters, named
from proctor.comparison.gates.decision import GateConfig, decide
from proctor.comparison.sides import TOKENS, Side
from proctor.records.gate import GateResult

Columns = tuple[list[float], list[float]]

RED = (0.0, 0.02)
# 2.5% by design, plus the Monte Carlo error of this number of replicates.
RED_WITHOUT_MARGIN = (0.0, 0.03)


def gated() -> Iterator[Claim]:
    """Equal systems fail in at most 2% with a margin of 2%, and in 2.5% without a margin."""
    for kind, n in (("yes/no", 500), ("yes/no", 60), ("scores", 200)):
        for metrics in (1, 5):
            for margin, request in ((0.02, RED), (0.0, RED_WITHOUT_MARGIN)):
                name = f"decide() red, equal, {kind}, n = {n}, {metrics} metrics, margin {margin}"
                trial = partial(is_red, kind=kind, n=n, metrics=metrics, margin=margin)
                yield Claim(name, trial, request, 2 * metrics)
    yield Claim(
        "decide() green, worse by the margin, yes/no, n = 500",
        partial(is_green, n=500, margin=0.02),
        RED_WITHOUT_MARGIN,
        2,
    )
    # The interval alone would fail 84% of both.
    for n, lost, margin, asked in ((60, 0.25, 0.0, (0.76, 0.83)), (200, 0.2, 0.05, (0.8, 0.88))):
        trial = partial(is_red_if_worse, n=n, won=0.05, lost=lost, margin=margin)
        yield Claim(f"decide() red, {lost:.0%} lost and 5% won, n = {n}, margin {margin}", trial, asked, 4)
    yield from gated_oddly()
    yield Claim(
        "decide() with as many samples as it asks for, decided",
        partial(decided_with_more, n=200, margin=0.03),
        (0.75, 0.85),
        4,
    )


def gated_oddly() -> Iterator[Claim]:
    """The same with rare drops to 0, unequal clusters, or a relative margin."""
    for margin, request in ((0.02, RED), (0.0, RED_WITHOUT_MARGIN)):
        yield Claim(
            f"decide() red, equal, 27 clusters of 2 to 60, margin {margin}",
            partial(is_red_in_clusters, sizes=UNEQUAL, margin=margin),
            request,
            2,
        )
    for n in (40, 100, 200, 500):
        yield Claim(
            f"decide() green, rare collapses worse by the margin, n = {n}",
            partial(is_green_though_collapsing, n=n, margin=0.02),
            RED_WITHOUT_MARGIN,
            2,
        )
    yield from gated_in_groups()
    for margin in (0.1, 0.9):
        yield Claim(
            f"decide() green, longer by just {margin:.0%}, n = 60",
            partial(is_green_though_longer, n=60, margin=margin),
            RED_WITHOUT_MARGIN,
            2,
        )


def gated_in_groups() -> Iterator[Claim]:
    """The same if run and baseline have no sample in common."""
    for kind in ("yes/no", "scores"):
        for margin, request in ((0.02, RED), (0.0, RED_WITHOUT_MARGIN)):
            yield Claim(
                f"decide() red, equal, two groups of 300, {kind}, margin {margin}",
                partial(is_red_in_groups, kind=kind, n=300, margin=margin),
                request,
                2,
            )
        yield Claim(
            f"decide() green, worse by the margin, two groups of 300, {kind}",
            partial(is_green_in_groups, kind=kind, n=300, margin=0.1),
            RED_WITHOUT_MARGIN,
            2,
        )
    for sizes in (([5] * 6, [1] * 60), ([5] * 12, [5] * 12), ([10] * 20, [1] * 100)):
        text = " and ".join(f"{len(side)} clusters of {side[0]}" for side in sizes)
        yield Claim(
            f"decide() green, worse by the margin, yes/no, {text}",
            partial(is_green_in_clustered_groups, sizes=sizes, margin=0.05),
            RED_WITHOUT_MARGIN,
            2,
        )


def is_green_in_clustered_groups(chance: Chance, sizes: tuple[Sequence[int], Sequence[int]], margin: float) -> float:
    """Return 1 if a gate passes a system that is worse by its margin, with samples in clusters."""
    sides = [
        _in_clusters(chance, name, centre, own)
        for name, centre, own in zip(("new", "old"), (0.9 - margin, 0.9), sizes, strict=True)
    ]
    return float(decide([(sides[0], sides[1])], GateConfig({"it": margin}, unpaired=True)).verdict == "pass")


def _in_clusters(chance: Chance, name: str, centre: float, sizes: Sequence[int]) -> Side:
    """Return pass or fail; the samples of a cluster are alike (intraclass correlation 0.3)."""
    scores: dict[str, float] = {}
    clusters: dict[str, str] = {}
    for number, size in enumerate(sizes):
        share = chance.betavariate(centre * 0.7 / 0.3, (1 - centre) * 0.7 / 0.3)
        for place in range(size):
            sample = f"{name} {number} {place}"
            scores[sample] = float(chance.random() < share)
            clusters[sample] = f"{name} {number}"
    values = clusters if max(sizes) > 1 else None
    return Side(name, scores={"it": scores}, clusters=values, samples=tuple(scores))


def is_red_in_groups(chance: Chance, kind: str, n: int, margin: float) -> float:
    return float(_of_groups(chance, kind, n, margin, 0.0) == "fail")


def is_green_in_groups(chance: Chance, kind: str, n: int, margin: float) -> float:
    return float(_of_groups(chance, kind, n, margin, margin) == "pass")


def _of_groups(chance: Chance, kind: str, n: int, margin: float, worse: float) -> str:
    """Return the verdict on two groups of different samples; the new group is worse by `worse` on average."""

    def drawn(centre: float) -> float:
        if kind == "yes/no":
            return float(chance.random() < centre)
        return centre + 0.2 * (chance.random() - 0.5)

    new, old = (
        Side(name, scores={"it": {f"{name}{at}": drawn(centre) for at in range(n)}},
             samples=tuple(f"{name}{at}" for at in range(n)))
        for name, centre in (("new", 0.8 - worse), ("old", 0.8))
    )  # fmt: skip
    return decide([(new, old)], GateConfig({"it": margin}, unpaired=True)).verdict


def is_red(chance: Chance, kind: str, n: int, metrics: int, margin: float) -> float:
    """Return 1 if a gate on equal systems fails; the metrics are independent."""
    drawn = [flips(chance, n, 0.1, 0.1) if kind == "yes/no" else graded(chance, n) for _ in range(metrics)]
    return float(_verdict(drawn, margin) == "fail")


def is_red_if_worse(chance: Chance, n: int, won: float, lost: float, margin: float) -> float:
    return float(_verdict([flips(chance, n, won, lost)], margin) == "fail")


def is_green(chance: Chance, n: int, margin: float, up: float = 0.1, down: float = 0.12) -> float:
    """Return 1 if a gate passes a worse system: by default, worse by exactly the margin."""
    return float(_verdict([flips(chance, n, up, down)], margin) == "pass")


def is_red_in_clusters(chance: Chance, sizes: Sequence[int], margin: float) -> float:
    new, old = ([0.5 + 0.2 * cluster for cluster in in_clusters(chance, sizes)] for _ in range(2))
    return float(_verdict([(new, old)], margin, named(sizes)) == "fail")


def is_green_though_collapsing(chance: Chance, n: int, margin: float) -> float:
    return float(_verdict([collapsing(chance, n, margin / 0.8)], margin) == "pass")


def is_green_though_longer(chance: Chance, n: int, margin: float) -> float:
    """Return 1 if a gate passes a system with more tokens by exactly the margin."""
    old, new = ([chance.gammavariate(2.78, 36) for _ in range(n)] for _ in range(2))
    longer, usual = (
        Side(name, {TOKENS: {str(at): v for at, v in enumerate(values)}}, samples=_ids(n))
        for name, values in (("new", [(1 + margin) * item for item in new]), ("old", old))
    )
    return float(decide([(longer, usual)], GateConfig({TOKENS: margin})).verdict == "pass")


def decided_with_more(chance: Chance, n: int, margin: float) -> float:
    """Repeat an inconclusive gate with the further samples that it suggests.

    Each trial draws a new true loss, because the suggestion cannot be right for every truth.
    """
    while True:
        lost = chance.uniform(0.0, 0.15)
        first = flips(chance, n, 0.05, lost)
        needed = _decided([first], margin).checks[0].more_samples
        if needed is not None:
            break
    more = flips(chance, needed, 0.05, lost)
    both = [*first[0], *more[0]], [*first[1], *more[1]]
    return float(_verdict([both], margin) != "inconclusive")


def _ids(n: int) -> tuple[str, ...]:
    return tuple(map(str, range(n)))


def _verdict(drawn: Sequence[Columns], margin: float, clusters: Sequence[str] | None = None) -> str:
    return _decided(drawn, margin, clusters).verdict


def _decided(drawn: Sequence[Columns], margin: float, clusters: Sequence[str] | None = None) -> GateResult:
    names = [f"metric_{place}" for place in range(len(drawn))]
    ids = _ids(len(drawn[0][0]))
    new, old = (
        Side(
            called,
            scores={name: dict(zip(ids, pair[which], strict=True)) for name, pair in zip(names, drawn, strict=True)},
            clusters=None if clusters is None else dict(zip(ids, clusters, strict=True)),
            samples=ids,
        )
        for which, called in enumerate(("new", "old"))
    )
    return decide([(new, old)], GateConfig(dict.fromkeys(names, margin)))
