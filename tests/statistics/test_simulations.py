"""What the statistics promise, in a short form of `python -m benchmarks.simulations`.

A few hundred replicates only show gross errors: a share may lie four Monte Carlo errors off.
"""

from __future__ import annotations

from functools import partial

import pytest
from benchmarks.simulations.__main__ import claims
from benchmarks.simulations.claim import Claim, simulate
from benchmarks.simulations.deciding import early_alarm, early_red

from proctor.core.stats.sequential import Betting

pytestmark = pytest.mark.no_cover

QUICK = [claim for claim in claims() if claim.cost == 1]


@pytest.mark.parametrize("claim", QUICK, ids=lambda claim: claim.name)
def test_promises_are_kept(claim: Claim) -> None:
    """False alarms, coverage, power and gates lie where they must, but for chance."""
    found = simulate(claim, replicates=200)
    low, high = claim.asked
    room = 4 * max(0.25 * (low + high) * (2 - low - high) / 200, 1e-4) ** 0.5
    assert low - room <= found.share <= high + room


@pytest.mark.parametrize(
    "claim",
    [
        Claim("looks", partial(early_alarm, kind=Betting, n=40, share=0.3), (0.0, 0.05)),
        Claim("early gate", partial(early_red, n=40, margin=0.02, share=0.3), (0.0, 0.02)),
    ],
    ids=lambda claim: claim.name,
)
def test_looking_after_every_sample_raises_no_false_alarms(claim: Claim) -> None:
    """Forty looks at equal systems, a hundred times over."""
    found = simulate(claim, replicates=100)
    assert found.share <= claim.asked[1] + 0.05
