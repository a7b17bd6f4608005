"""Item analysis: planted wrong keys are found, good samples are not called broken."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from benchmarks.simulations.claim import AT_MOST, Chance, Claim
from proctor.validity.items import Verdicts, analyze_items

SAMPLES = 60


def analyzed() -> Iterator[Claim]:
    """Claims about `proctor items`."""
    for n in (8, 12, 20, 40):
        name = f"items: a good sample is called broken, {n} configurations"
        yield Claim(name, partial(false_alarm, n=n, wrong=0), AT_MOST, 40)
    yield Claim("items: share of false finds, unrelated samples, 20", partial(false_share, n=20), AT_MOST, 40)
    yield Claim("items: any claim from 5 configurations", partial(false_alarm, n=5, wrong=3), (0.0, 0.0), 40)
    yield Claim("items: wrong keys found, 30 configurations", partial(found_share, n=30), (0.65, 1.0), 40)
    yield Claim("items: wrong keys found, 50 configurations", partial(found_share, n=50), (0.85, 1.0), 40)
    yield Claim("items: wrong keys listed as suspicious, 12", partial(listed_share, n=12), (0.70, 1.0), 40)


def simulate_verdicts(chance: Chance, n: int, samples: int = SAMPLES, wrong: int = 0, noise: int = 0) -> Verdicts:
    """Simulate configurations of different skill; the first samples have a wrong key, the next are pure luck."""
    skills = [chance.gauss(0, 1.2) for _ in range(n)]
    difficulties = [chance.gauss(0, 1) for _ in range(samples)]
    slopes = [math.exp(chance.gauss(0.2, 0.3)) for _ in range(samples)]
    slopes[wrong : wrong + noise] = [0.0] * noise
    rows = []
    for skill in skills:
        pairs = zip(slopes, difficulties, strict=True)
        passed = [chance.random() < 1 / (1 + math.exp(-a * (skill - b))) for a, b in pairs]
        rows.append({f"s{i}": float(value != (i < wrong)) for i, value in enumerate(passed)})
    return Verdicts([f"c{c}" for c in range(n)], rows)


def false_alarm(chance: Chance, *, n: int, wrong: int) -> float:
    """Return 1 if a sample with the right key is called broken, or anything from too few configurations."""
    analysis = analyze_items(simulate_verdicts(chance, n, wrong=wrong))
    return float(any(int(item.sample_id[1:]) >= wrong for item in analysis.broken) or (n < 8 and analysis.decided))


def false_share(chance: Chance, *, n: int) -> float:
    """Return the share of false finds when five keys are wrong and twenty samples are pure luck."""
    broken = analyze_items(simulate_verdicts(chance, n, wrong=5, noise=20)).broken
    return sum(int(item.sample_id[1:]) >= 5 for item in broken) / max(1, len(broken))


def found_share(chance: Chance, *, n: int) -> float:
    """Return the share of three wrong keys that are called broken."""
    return len(analyze_items(simulate_verdicts(chance, n, wrong=3)).broken) / 3


def listed_share(chance: Chance, *, n: int) -> float:
    """Return the share of three wrong keys that are broken or suspicious."""
    analysis = analyze_items(simulate_verdicts(chance, n, wrong=3))
    return sum(int(item.sample_id[1:]) < 3 for item in (*analysis.broken, *analysis.suspicious)) / 3
