"""Quick cases of `make simulations`; so few replicates only show large errors."""

from __future__ import annotations

import random
from functools import partial

import pytest
from benchmarks.simulations.__main__ import claims
from benchmarks.simulations.claim import UNDECIDED, Claim, Found, simulate
from benchmarks.simulations.deciding import early_alarm, early_red

from tests.tables import each_row

pytestmark = pytest.mark.no_cover

QUICK = (
    "A/A, scores of pairs, n = 200",
    "A/A, exact McNemar, the same",
    "A/A, pairs in 20 clusters of 5",
    "Wilson, n = 20, p = .9",
    "clustered mean, 10 x 5, ICC .4",
    "bootstrap of pairs, quantile 0.5, n = 30",
    "compare A/A, scores, n = 12",
    "labels: macro recall covers, n = 40",
    "gate red, equal, margin 2%, n = 500",
    "panel: rare errors of 2 judges, 30 labels",
)
CLAIMS = {claim.name: claim for claim in claims()}


@pytest.mark.parametrize("name", QUICK)
def test_claims_hold(name: str) -> None:
    """False alarms, coverage and gates are in the claimed range, up to 4 Monte Carlo errors.

    With 400 replicates, the cheap claims of 5% false alarms fail above 11%, those of 95% coverage below 89%. With 30,
    the two slow claims only show that coverage is not below 78%.
    """
    claim = CLAIMS[name]
    result = simulate(claim, replicates=400 if claim.cost < 5 else 30)
    low, high = claim.asked
    tolerance = 4 * (0.25 * (low + high) * (2 - low - high) / result.replicates) ** 0.5
    assert low - tolerance <= result.share <= high + tolerance


@each_row("claim", [claim for claim in CLAIMS.values() if claim.cost <= 2])
def test_every_claim_can_be_simulated(claim: Claim) -> None:
    assert 0 <= claim.trial(random.Random(1)) <= 1


@pytest.mark.parametrize(
    "claim",
    [
        Claim("looks", partial(early_alarm, n=15, share=0.3), (0.0, 0.05)),
        Claim("early gate", partial(early_red, n=15, margin=0.02, share=0.3), (0.0, 0.02)),
    ],
    ids=lambda claim: claim.name,
)
def test_a_test_after_every_sample_raises_no_false_alarms(claim: Claim) -> None:
    alarms = [claim.trial(random.Random(seed)) for seed in range(25)]
    assert sum(alarms) / len(alarms) <= claim.asked[1] + 0.1


def test_chance_does_not_refute_a_claim() -> None:
    """A share of .064 ± .022 does not refute at most .05; .064 ± .002 does."""
    claim = Claim("alarms", lambda chance: 0.0, (0.0, 0.05))
    assert Found(claim, 0.049, 0.02, 125, 0.0).verdict == "holds"
    assert Found(claim, 0.064, 0.022, 125, 0.0).verdict == UNDECIDED
    assert Found(claim, 0.064, 0.002, 16_000, 0.0).verdict == "DOES NOT HOLD"
