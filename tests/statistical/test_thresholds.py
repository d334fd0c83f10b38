"""Threshold calibration keeps what it promises: intervals hold, the best is kept, planted optima are found.

The simulation is one in closed form, whose optimum is known; `tests/unit/calibrate/threshold_toys.py`.
"""

import pytest
from scipy import stats

from brokerlab.calibrate import thresholds
from brokerlab.calibrate.thresholds.outcomes import Period
from brokerlab.calibrate.thresholds.settings import NOW, Setting, space_of
from brokerlab.calibrate.thresholds.simulations import Block, Runs, Simulations
from brokerlab.gdpconfig import Config
from tests.unit.calibrate.threshold_toys import CAP, CUTOFF, EARLY, Toy, calibrate_toy

CONFIG = Config.empty()
QUICK = {
    "n_boot": 100,
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


SPREADS = [(15, 3, (0.3, 0.0)), (60, 3, (0.05, 0.05)), (40, 8, (0.2, 0.02))]
"""Tasks, simulations, and the noise between the ones and the others."""


@pytest.mark.parametrize(
    ("n_tasks", "n_seeds", "noise", "n"),
    [
        (*SPREADS[0], 20),
        *(pytest.param(*spread, 80, marks=pytest.mark.long) for spread in SPREADS),
    ],
)
def test_intervals_hold_the_true_difference(n_tasks, n_seeds, noise, n):
    """Between tasks, between simulations, and both: at least as often as promised."""
    setting = Setting.of({CAP: 300})
    toy = Toy(best={CAP: 150.0}, depth=0.0, n_tasks=n_tasks, noise=noise)
    options = thresholds.Options(keys=[CAP], alpha=0.1, n_boot=200)
    missed, silent = 0, 0
    for world in range(n):
        seeds = tuple(range(1000 * world, 1000 * world + n_seeds))
        simulations = Simulations(
            space_of(CONFIG, [CAP]),
            options,
            Runs(toy.other(world)),
            (Block(Period(*EARLY), seeds),),
        )
        simulations.among([setting])
        row = simulations.compare(NOW, setting).row(0, named=True)
        if row["diff_lo"] is None:
            silent += 1  # tasks in too few spans of time
        else:
            missed += not row["diff_lo"] <= 0 <= row["diff_hi"]
    assert silent <= n // 4
    assert at_most(missed, n - silent, 0.1)


@pytest.mark.long
def test_false_proposals_are_rare():
    """Nothing is better than what is now: proposed at most with the rate alpha, among several keys and values."""
    flat = Toy(best={CAP: 150.0, CUTOFF: 10.0}, depth=0.0, noise=(0.25, 0.03))
    n, alpha = 30, 0.2
    kinds = [
        calibrated(flat.other(world), world, alpha=alpha, relevant=0.001, grids={CAP: [50, 500], CUTOFF: [1, 100]}).verdict.kind
        for world in range(n)
    ]  # fmt: skip
    assert set(kinds) <= {"keep", "change", "no_answer"}
    assert at_most(kinds.count("change"), n, alpha)


PLANTED = {
    CAP: 800.0,
    CUTOFF: 60.0,
    IMPORTANCE: 0.15,
    LIMIT: 120.0,
    NUCLEUS: 1500.0,
}
"""Five keys, and where the least turnaround is."""


@pytest.mark.long
@pytest.mark.parametrize("key", PLANTED)
def test_planted_optima_are_found(key):
    """The value that is proposed is within 5 % of the least turnaround there is, nearly always."""
    good, n = 0, 5
    for world in range(n):
        toy = Toy(best={key: PLANTED[key]}, depth=0.08, world=world)
        found = calibrated(toy, world)
        excess = toy.excess(found.case.space.configured(found.setting))
        good += found.verdict.kind == "change" and excess <= 0.05
    assert good >= n - 1


@pytest.mark.long
def test_the_verdict_is_not_drawn_to_lucky_values():
    """On flat ground nothing is changed though ten others are tried, of which one is lucky."""
    flat = Toy(best={CAP: 150.0}, depth=0.0, noise=(0.25, 0.03))
    acts = [calibrated(flat.other(100 + w), w, points=8).judgement.acts for w in range(20)]
    assert at_most(sum(acts), 20, 0.05)
