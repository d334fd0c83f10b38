"""Does the judge keep its promises where the truth is known: ``python -m benchmarks.truth --seed N``.

One synthetic archive without drift is the truth, a second one has drift; histories are tasks drawn from them with
replacement, in the order of time. Thresholds are planted in small grids whose history the grid simulator makes. Every line says what was measured, what is asked, and ``ok`` or ``short``; the exit
status is 1 where one is short. Everything here is synthetic: it shows what the judge adds or spoils, not that real tasks
are like these.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from scipy import stats

from benchmarks.recovery import TOLERATED, study
from brokerlab.calibrate.judge import Judgement, Limit, Outcomes, Question, cap_weights, judge
from brokerlab.calibrate.percentiles import backtest, current_setting, load
from brokerlab.intervals import bootstrap_totals, percentile_interval, studentise
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.worlds import synthesise
from tests.planted_grids import PLANTED

SIZES = (50, 200, 800)
"""Tasks of a history."""
POWER = {50: 0.4, 200: 0.9, 800: 0.95}
"""Part of the histories in which a better setting must be proposed: fifty tasks halve the power."""
GRID = tuple((rank, margin) for rank in range(50, 100, 2) for margin in range(0, 31, 2))
DEPLOYED = (75, 10)
LIMIT = 0.02
PARAMETER = "ramcount"


@dataclass(frozen=True)
class World:
    """All tasks of an archive under all settings of the grid: the truth, and what histories are drawn from.

    Attributes:
        values: Quantity to (n_tasks, n_settings), tasks in the order of time.
        sizes: (n_tasks,) core-hours of work.
        settings: Ranks and margins of the grid.
    """

    values: dict[str, FloatArray]
    sizes: FloatArray
    settings: tuple[tuple[int, int], ...]

    @classmethod
    def of_archive(cls, folder: Path, grid: tuple[tuple[int, int], ...] = GRID) -> World:
        """Replay the grid over all tasks of an archive."""
        data = load(folder)
        tried = backtest(
            data,
            PARAMETER,
            ranks={rank for rank, _ in grid},
            margins={margin for _, margin in grid},
            current=(*DEPLOYED, current_setting(data.config, PARAMETER).minimum_mb),
        )
        seen = tried.outcomes()
        values = seen.values(range(len(seen.settings)))
        work = dict(tried.works.iter_rows())
        sizes = np.array([work[task] for task in seen.units["unit"]])
        return cls(values, sizes, tuple(setting.pair for setting in seen.settings))

    @classmethod
    def drawn(
        cls,
        folder: Path,
        *,
        jobs: int,
        seed: int,
        drift: float,
        grid: tuple[tuple[int, int], ...] = GRID,
    ) -> World:
        """Make a synthetic archive and replay the grid over it."""
        synthesise(folder, jobs=jobs, days=60, seed=seed, drift=drift)
        return cls.of_archive(folder, grid)

    @property
    def n_tasks(self) -> int:
        """Tasks of the superpopulation."""
        return self.sizes.size

    def mean(self, name: str, tasks: slice = slice(None)) -> FloatArray:
        """Return the true mean of a quantity under every setting, with the judge's weights."""
        weights = cap_weights(self.sizes)[tasks]
        return np.asarray(weights @ self.values[name][tasks] / weights.sum())

    def history(
        self, rng: np.random.Generator, n: int, *, current: int, in_order: bool
    ) -> Outcomes:
        """Draw a history of n tasks; in order: its early half from the early tasks, its late half from the late ones."""
        half = self.n_tasks // 2
        parts = [rng.integers(0, half, n // 2), rng.integers(half, self.n_tasks, n - n // 2)]
        picked: IntArray = (
            np.sort(np.concatenate(parts)) if in_order else rng.integers(0, self.n_tasks, n)
        )
        start = np.datetime64("2026-01-01", "us")
        units = pl.DataFrame(
            {
                "unit": np.arange(n),
                "time": start + np.arange(n).astype("timedelta64[h]"),
                "weight": cap_weights(self.sizes[picked]),
            }
        )
        cut = {name: values[picked] for name, values in self.values.items()}
        return Outcomes(
            units=units,
            settings=self.settings,
            current=current,
            values=lambda places: {name: values[:, list(places)] for name, values in cut.items()},
        )


@dataclass(frozen=True)
class Line:
    """One figure: what was measured, between what it should lie."""

    what: str
    n: int
    of: int
    least: float = 0.0
    most: float = 1.0
    note: str = ""

    @property
    def ok(self) -> bool:
        """The exact 95 % interval of the measured part meets what is asked: chance alone does not fail a line."""
        low, high = stats.binomtest(self.n, self.of).proportion_ci(method="exact")
        return bool(high >= self.least and low <= self.most)

    def __str__(self) -> str:
        """Write the line."""
        asked = f"asked {100 * self.least:g} to {100 * self.most:g} %"
        part = f"{self.n} of {self.of} ({100 * self.n / max(self.of, 1):.1f} %)"
        note = f"; {self.note}" if self.note else ""
        return f"{self.what}: {part}, {asked}{note}: {'ok' if self.ok else 'short'}"


def question(limit: float, seed: int, *, n_boot: int) -> Question:
    """Ask what the scout report asks."""
    limits = (Limit(quantity="exceed_rate", most=limit),)
    return Question(limits=limits, n_boot=n_boot, seed=seed)


def judgements(
    world: World,
    n: int,
    *,
    current: int,
    limit: float,
    histories: int,
    seed: int,
    in_order: bool,
    n_boot: int,
) -> list[Judgement]:
    """Judge many histories of one size."""
    rng = np.random.default_rng([seed, n, current, round(1e6 * limit)])
    return [
        judge(
            world.history(rng, n, current=current, in_order=in_order),
            question(limit, place + 1, n_boot=n_boot),
        )
        for place in range(histories)
    ]


def best_within(world: World, limit: float) -> int:
    """Return the place of the setting of least true loss that keeps a limit in truth."""
    loss = np.where(world.mean("exceed_rate") <= limit, world.mean("loss"), np.inf)
    return int(np.argmin(loss))


def false_proposals(
    world: World, histories: int, seed: int, n_boot: int, sizes: Sequence[int] = SIZES
) -> Iterator[Line]:
    """Count proposals where the current setting is the best there is."""
    best = best_within(world, LIMIT)
    rate = float(world.mean("exceed_rate")[best])
    free = int(np.argmin(world.mean("loss")))
    cases = {
        "inside the limit": (best, 1.15 * rate),
        "exactly at the limit": (best, rate),
        "15 % above the limit": (best, rate / 1.15),
        "nothing to gain": (free, 1.5 * float(world.mean("exceed_rate")[free])),
    }
    for name, (current, limit) in cases.items():
        for n in sizes:
            found = judgements(
                world, n, current=current, limit=limit, histories=histories, seed=seed, in_order=False, n_boot=n_boot
            )  # fmt: skip
            acts = sum(one.kind in ("change", "improve") for one in found)
            yield Line(
                f"false proposals, best setting {name}, {n} tasks", acts, histories, most=0.05
            )


def power(
    worlds: dict[str, World],
    histories: int,
    seed: int,
    n_boot: int,
    sizes: Sequence[int] = SIZES,
) -> Iterator[Line]:
    """Count proposals where a better setting is there, and what they do in truth."""
    for place, (name, world) in enumerate(worlds.items()):
        in_order = name == "drift"
        later = slice(int(0.6 * world.n_tasks), None) if in_order else slice(None)
        loss, kills = world.mean("loss", later), world.mean("exceed_rate", later)
        for setting in (DEPLOYED, (50, 0)):
            now = world.settings.index(setting)
            for n in sizes:
                found = judgements(
                    world, n, current=now, limit=LIMIT, histories=histories, seed=seed + place, in_order=in_order, n_boot=n_boot
                )  # fmt: skip
                acts = [one for one in found if one.kind in ("change", "improve")]
                places = [world.settings.index(one.setting) for one in found]
                about = f"{setting[0]}/{setting[1]} deployed, {name}, {n} tasks"
                told = f"true loss {loss[now]:.4f} to {loss[places].mean():.4f}, kills {100 * kills[now]:.2f} to {100 * kills[places].mean():.2f} %"
                yield Line(f"acts, {about}", len(acts), histories, least=POWER[n], note=told)
                changed = [
                    world.settings.index(one.setting) for one in acts if one.kind == "change"
                ]
                if changed:
                    above = sum(kills[at] > LIMIT for at in changed)
                    yield Line(
                        f"changes above the limit in truth, {about}", above, len(changed), most=0.2
                    )
                improved = [
                    world.settings.index(one.setting) for one in acts if one.kind == "improve"
                ]
                if improved:
                    fewer = sum(kills[at] < kills[now] for at in improved)
                    yield Line(
                        f"fewer kills in truth where `improve` is said, {about}",
                        fewer,
                        len(improved),
                        least=0.95,
                    )


def fixed_coverage(
    world: World, histories: int, seed: int, n_boot: int, sizes: Sequence[int] = SIZES
) -> Iterator[Line]:
    """Count how often 95 % intervals of given settings hold the truth."""
    pairs = ((DEPLOYED, (90, 12)), (DEPLOYED, (82, 18)), ((78, 12), (86, 18)))
    weights = cap_weights(world.sizes)
    of: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
        "difference of the loss": lambda now, then: then - now,
        "difference of the kill rate": lambda now, then: then - now,
        "kill rate of the new setting": lambda _, then: then,
    }
    for n in sizes:
        rng = np.random.default_rng([seed, n])
        hits = {name: [0, 0, 0] for name in of}
        for now, then in pairs:
            places = world.settings.index(now), world.settings.index(then)
            for place in range(histories):
                picked = rng.integers(0, world.n_tasks, n)  # own ones: hits are independent
                w = cap_weights(world.sizes[picked])
                for name, formula in of.items():
                    values = world.values["loss" if "loss" in name else "exceed_rate"]
                    x = formula(*(values[:, at] for at in places))
                    truth = float(weights @ x / weights.sum())
                    _, low, high = studentise(x[picked], w, n_boot=n_boot, seed=place + 1)
                    hits[name][0 if truth < low else 2 if truth > high else 1] += 1
        for name, (below, inside, above) in hits.items():
            note = f"truth below {below}, above {above}"
            yield Line(
                f"coverage, given settings, {name}, {n} tasks",
                inside,
                len(pairs) * histories,
                0.93,
                0.97,
                note,
            )


def pooled_coverage(
    world: World, histories: int, seed: int, n_boot: int, sizes: Sequence[int] = SIZES
) -> Iterator[Line]:
    """Count the same for amounts pooled over all work, which decide nothing: measured, and nothing asked."""
    now, then = (world.settings.index(setting) for setting in (DEPLOYED, (90, 12)))
    gain = (world.values["loss"][:, then] - world.values["loss"][:, now]) * world.sizes
    truth = float(gain.sum() / world.sizes.sum())
    for n in sizes:
        rng = np.random.default_rng([seed, n, 7])
        inside = 0
        for place in range(histories):
            picked = rng.integers(0, world.n_tasks, n)
            totals = np.column_stack([gain[picked], world.sizes[picked]])
            drawn = bootstrap_totals(totals, n_boot=n_boot, seed=place + 1)
            ratios = (drawn[:, 0] / drawn[:, 1])[:, None]
            low, high = percentile_interval(ratios, 0.95, n_tasks=n)
            inside += low[0] <= truth <= high[0]
        yield Line(
            f"coverage, pooled amounts (they decide nothing), {n} tasks", int(inside), histories
        )


def chosen_coverage(
    world: World, histories: int, seed: int, n_boot: int, sizes: Sequence[int] = SIZES
) -> Iterator[Line]:
    """Count how often the intervals of a verdict hold the truth of the settings that were chosen."""
    now = world.settings.index(DEPLOYED)
    for n in sizes:
        found = judgements(
            world, n, current=now, limit=LIMIT, histories=histories, seed=seed + 1, in_order=False, n_boot=n_boot
        )  # fmt: skip
        for name, label in (("loss", "loss"), ("exceed_rate", "kill rate")):
            mean = world.mean(name)
            for key in ("diff", "after"):
                hits = [0, 0, 0]
                for one in found:
                    places, counts = np.unique(one.chosen[one.chosen >= 0], return_counts=True)
                    then = float(counts @ mean[places] / counts.sum())
                    truth = then - mean[now] if key == "diff" else then
                    row = one.quantity(name)
                    hits[
                        0 if truth < row[f"{key}_lo"] else 2 if truth > row[f"{key}_hi"] else 1
                    ] += 1
                about = "difference of the" if key == "diff" else "new"
                note = f"truth below {hits[0]}, above {hits[2]}"
                yield Line(
                    f"coverage, chosen settings, {about} {label}, {n} tasks",
                    hits[1],
                    histories,
                    0.93,
                    0.97,
                    note,
                )


def planted(seeds: Sequence[int], keys: Sequence[str] = tuple(PLANTED)) -> Iterator[Line]:
    """Count changes of thresholds in grids whose history was made under the best value, and under a wrong one."""
    for wrong in (False, True):
        acts, near = 0, 0
        for key in keys:
            for seed in seeds:
                _, found, _ = study((key, wrong, seed))
                judgement = found.result.judgement
                changed = judgement is not None and judgement.acts
                acts += changed
                near += changed and found.regret <= TOLERATED
        of = len(keys) * len(seeds)
        if wrong:
            what = f"thresholds, wrong value planted: changed to within {TOLERATED:.0%} of the best"
            yield Line(what, near, of, least=0.9, note=f"{acts} act")
        else:
            yield Line("thresholds, false proposals, best value", acts, of, most=0.05)


def main() -> None:
    """Make the worlds, print the lines."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=900_000, help="jobs of each superpopulation")
    parser.add_argument("--histories", type=int, default=200, help="histories of each line")
    parser.add_argument("--boot", type=int, default=600, help="bootstrap replicates")
    parser.add_argument("--planted", type=int, default=2, help="grids per planted threshold")
    parser.add_argument(
        "--archives", type=Path, nargs=2, help="archives made before: without drift, with drift"
    )
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if chosen.archives:
            still, drifting = (World.of_archive(path) for path in chosen.archives)
        else:
            still = World.drawn(
                Path(folder) / "still", jobs=chosen.jobs, seed=10 * chosen.seed, drift=0.0
            )
            drifting = World.drawn(
                Path(folder) / "drift", jobs=chosen.jobs, seed=10 * chosen.seed + 1, drift=0.03
            )
    print(
        f"synthetic: {still.n_tasks} tasks without drift, {drifting.n_tasks} with; {len(still.settings)} settings"
    )
    ask = (chosen.histories, chosen.seed, chosen.boot)
    short = 0
    for lines in (
        fixed_coverage(still, *ask),
        pooled_coverage(still, *ask),
        chosen_coverage(still, *ask),
        false_proposals(still, *ask),
        power({"no drift": still, "drift": drifting}, *ask),
        planted(range(chosen.seed, chosen.seed + chosen.planted)),
    ):
        for line in lines:
            print(line, flush=True)
            short += not line.ok
    print(f"{short} lines short" if short else "all lines ok")
    sys.exit(1 if short else 0)


if __name__ == "__main__":
    main()
