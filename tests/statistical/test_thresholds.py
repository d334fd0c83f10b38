"""Threshold calibration keeps what it promises: intervals hold, the best is kept, planted optima are found.

The simulation is one in closed form, whose optimum is known; `tests/unit/calibrate/threshold_toys.py`.
"""

import numpy as np
import pytest
from scipy import stats

from brokerlab.calibrate import thresholds
from brokerlab.calibrate.thresholds.intervals import Draw, Pair, compared
from brokerlab.calibrate.thresholds.outcomes import Outcome, Period
from brokerlab.calibrate.thresholds.runs import Runs
from brokerlab.calibrate.thresholds.settings import Setting, space_of
from brokerlab.calibrate.thresholds.sweep import Replications, Sweep
from brokerlab.gdpconfig import Config
from tests.unit.calibrate.threshold_toys import CAP, CUTOFF, EARLY, LATE, Toy, calibrate_toy

pytestmark = pytest.mark.slow
CONFIG = Config.empty()
QUICK = {
    "n_boot": 100,
    "trials": 0,
    "rounds": 2,
    "replications": 3,
    "most_replications": 3,
    "points": 9,
    "workers": 1,
}
IMPORTANCE, LIMIT, NUCLEUS = (
    "NW_QUEUE_IMPORTANCE",
    "NQUEUELIMITSITE_Express",
    "NQUEUED_NUC_CAP_FOR_JOBS",
)


def at_most(seen: int, n: int, rate: float) -> bool:
    """Tell whether a rate is not refuted by what was seen: less than once in a thousand."""
    return stats.binom.sf(seen - 1, n, rate) > 1e-3


def calibrated(toy: Toy, seed: int, **more):
    return calibrate_toy(toy, **{"keys": list(toy.best), "seed": seed, **QUICK, **more})


@pytest.mark.parametrize(
    ("n_tasks", "n_seeds", "noise"),
    [(15, 3, (0.3, 0.0)), (60, 3, (0.05, 0.05)), (40, 8, (0.2, 0.02))],
)
def test_intervals_hold_the_true_difference(n_tasks, n_seeds, noise):
    """Between tasks, between simulations, and both: at least as often as promised."""
    other = CONFIG.with_values({CAP: 300})
    toy = Toy(best={CAP: 150.0}, depth=0.0, n_tasks=n_tasks, noise=noise)
    missed, n = 0, 80
    for world in range(n):
        seeds = tuple(range(1000 * world, 1000 * world + n_seeds))
        pair = Pair.of(
            *(
                Outcome.of(toy.other(world)(config, seeds, Period(*EARLY)))
                for config in (CONFIG, other)
            )
        )
        row = compared(pair, Draw(alpha=0.1, n_boot=200)).row(0, named=True)
        missed += not row["diff_lo"] <= 0 <= row["diff_hi"]
    assert at_most(missed, n, 0.1)


def test_false_proposals_are_rare():
    """Nothing is better than what is now: proposed at most with the rate alpha, among several keys and values."""
    flat = Toy(best={CAP: 150.0, CUTOFF: 10.0}, depth=0.0, noise=(0.25, 0.03))
    n, alpha = 30, 0.2
    kinds = [
        calibrated(flat.other(world), world, alpha=alpha, relevant=0.0, grids={CAP: [50, 500], CUTOFF: [1, 100]}).verdict.kind
        for world in range(n)
    ]  # fmt: skip
    assert set(kinds) <= {"keep", "change"}
    assert at_most(kinds.count("change"), n, alpha)


def test_a_proof_alone_is_wrong_at_most_as_often_as_it_says():
    """Without the choice before it: a value that is no better, proven at the rate alpha at most."""
    from brokerlab.calibrate.thresholds.proof import prove

    n, alpha, proven = 50, 0.2, 0
    setting = Setting.of({CAP: 500})
    for world in range(n):
        toy = Toy(depth=0.0, noise=(0.25, 0.03), world=world)
        sweep = Sweep(
            space_of(CONFIG, [CAP]), Runs(toy), Period(*LATE), "turnaround_h", Replications(3, 3, 1),
            Draw(alpha=alpha, n_boot=100), seed=7,
        )  # fmt: skip
        proven += prove(sweep, [setting], thresholds.Limits(), relevant=0.0)[0].status == "proven"
    assert at_most(proven, n, alpha)


PLANTED = {
    CAP: 800.0,
    CUTOFF: 60.0,
    IMPORTANCE: 0.15,
    LIMIT: 120.0,
    NUCLEUS: 1500.0,
}
"""Five keys, and where the least turnaround is."""


@pytest.mark.parametrize("key", PLANTED)
def test_planted_optima_are_found(key):
    """The value that is proposed is within 5 % of the least turnaround there is, nearly always."""
    good, n = 0, 5
    for world in range(n):
        toy = Toy(best={key: PLANTED[key]}, depth=0.08, world=world)
        found = calibrated(toy, world)
        excess = toy.excess(found.space.configured(found.verdict.setting))
        good += found.verdict.kind == "change" and excess <= 0.05
    assert good >= n - 1


def test_the_choice_is_not_drawn_to_lucky_values():
    """On flat ground the current value is kept though ten others are tried: on the choice alone, too."""
    flat = Toy(best={CAP: 150.0}, depth=0.0, noise=(0.25, 0.03))
    kept = [
        calibrated(flat.other(100 + w), w, points=8, relevant=0.02).choices[0].status
        for w in range(20)
    ]
    assert np.mean([status == "keep" for status in kept]) >= 0.8
