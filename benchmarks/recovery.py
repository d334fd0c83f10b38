"""How often is a threshold that was set wrong found, and a right one left alone: ``python -m benchmarks.recovery``.

For every key of ``tests/planted_grids`` and every seed a grid is drawn, simulated under the wrong (or the right) value
and written as an archive; the whole pipeline looks at that archive (its worlds, validation, sweep, choice, proof), and
the grid it came from says what every value would have done in the proof period. Every archive is synthetic, and its
waits are the simulator's own: this tells what the pipeline adds to a simulation that is right, not whether it is.

A study takes half a minute of one core, so few seeds are the default; it is not part of ``python -m benchmarks``.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy import stats

from tests.planted_grids import PLANTED
from tests.recovery import ALPHA, RIGHT, Recovery, recovered

TOLERATED = 0.05
Case = tuple[str, bool, int]


def study(case: Case) -> tuple[Case, Recovery, float]:
    """Make one archive and look at it."""
    key, wrong, seed = case
    planted = PLANTED[key][1] if wrong else RIGHT[key]
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = recovered(Path(folder), key, planted, seed=seed)
    return case, found, time.process_time() - began


def told(case: Case, found: Recovery, seconds: float) -> str:
    """Say what came of one archive."""
    key, wrong, seed = case
    told = f"{'wrong' if wrong else 'right'} {key} = {found.planted}, seed {seed}: {found.result.verdict.kind}"
    now = f"{found.acts}: {found.truth[found.acts]:.2f} h"
    best = min(found.truth, key=lambda value: found.truth[value])
    return f"{told}, {now} ({100 * found.regret:+.1f} % of {best}: {found.truth[best]:.2f} h), {seconds:.0f} s"


def rate(n: int, of: int) -> str:
    """Return a part with its exact 95 % interval."""
    low, high = stats.binomtest(n, of).proportion_ci(method="exact")
    return f"{n} of {of} ({100 * low:.1f} to {100 * high:.1f} %)"


def main() -> None:
    """Run the studies and print them, then the rates."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2, help="archives per key, wrong and right")
    parser.add_argument("--first", type=int, default=11, help="first seed")
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    seeds = range(asked.first, asked.first + asked.seeds)
    cases = [(key, wrong, seed) for seed in seeds for key in PLANTED for wrong in (True, False)]
    found: dict[bool, list[Recovery]] = {True: [], False: []}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(asked.workers, mp_context=context) as pool:
        for case, result, seconds in pool.map(study, cases):
            print(told(case, result, seconds), flush=True)
            found[case[1]].append(result)
    wrong, right = found[True], found[False]
    near = sum(one.regret <= TOLERATED for one in wrong)
    false = sum(one.result.verdict.kind == "change" for one in right)
    before, after = (
        np.array([getattr(one, name) for one in wrong]) for name in ("regret_before", "regret")
    )
    print(f"within {TOLERATED:.0%} of the best value: {rate(near, len(wrong))}")
    print(
        f"above the best value: {100 * before.mean():.1f} % before, {100 * after.mean():.1f} % after (means)"
    )
    print(f"right values changed: {rate(false, len(right))}, asked for at most {ALPHA:.0%}")


if __name__ == "__main__":
    main()
