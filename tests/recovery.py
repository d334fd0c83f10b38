"""Is a threshold that was set wrong found again? An archive made under it, the whole pipeline, and the truth beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import brokerlab.archive
from brokerlab.archive import Archive
from brokerlab.calibrate import simulation, thresholds
from brokerlab.calibrate.thresholds import Calibration, Period
from brokerlab.calibrate.thresholds.archive_study import shares_of
from brokerlab.calibrate.thresholds.outcomes import GridWhatIf, of_archive
from brokerlab.gdpconfig import Config
from tests.planted_grids import BEGIN, PLANTED, Plan, settings_table, write
from tests.recorded import record

DAY = timedelta(days=1)
DAYS = 14
CALIBRATION = Period(BEGIN + DAY, BEGIN + 7 * DAY)
PROOF = Period(BEGIN + 7 * DAY, BEGIN + DAYS * DAY)
GRID: dict[str, Any] = {"cycle": "4h", "warm_up": "1d"}
FEW: dict[str, Any] = {"replications": 4, "most_replications": 8}
VALUES = {
    "NQUEUELIMITSITE_MC 16 simul": (1, 5, 20, 100, 500),
    "NQUEUED_SAT_CAP": (10, 30, 60, 100, 400, 1000),
    "IO_INTENSITY_CUTOFF": (0, 200, 700, 900, 3000),
    "SIZE_CUTOFF_TO_MOVE_INPUT": (1, 10, 60, 100, 300),
    "MAX_DISKIO_DEFAULT": (500, 1000, 3000, 10_000),
}
"""Values to try."""
RIGHT = {
    "NQUEUELIMITSITE_MC 16 simul": 1,
    "NQUEUED_SAT_CAP": 100,
    "IO_INTENSITY_CUTOFF": 900,
    "SIZE_CUTOFF_TO_MOVE_INPUT": 100,
    "MAX_DISKIO_DEFAULT": 10_000,
}
"""Best values of the planted grids."""
ALPHA = 0.05
ANY_COST: dict[str, float | None] = {"moved_pct": None, "lost_pct": None, "unfairness": None}
"""The truth is judged by turnaround alone, hence the choice, too."""
TRUTH_SEEDS = tuple(range(101, 109))


@dataclass(frozen=True)
class Recovery:
    """What came out.

    Attributes:
        key: The key.
        planted: Its value in the archive.
        result: What the pipeline says.
        acts: The value that rules after it: proposed, or the planted one.
        truth: Value to the true mean turnaround of the proof period's tasks [h].
    """

    key: str
    planted: int
    result: Calibration
    acts: int
    truth: dict[int, float]

    @property
    def regret(self) -> float:
        """By what part the true objective is above the best value's."""
        best = min(self.truth.values())
        return (self.truth[self.acts] - best) / best

    @property
    def regret_before(self) -> float:
        """The same, had nothing been changed."""
        best = min(self.truth.values())
        return (self.truth[self.planted] - best) / best


def history(folder: Path, plan: Plan, *, seed: int) -> tuple[Archive, Archive]:
    """Write a grid and what happened on it under the plan's settings: what is drawn, and what the system recorded."""
    base = write(folder / "base", plan, seed=seed)
    world = simulation.of_archive(
        base,
        start=BEGIN,
        end=BEGIN + DAYS * DAY,
        capacity=plan.capacity,
        rules=plan.rules,
        **GRID | {"warm_up": "0"},
    )
    record(world, base, folder / "seen", seed=seed)
    return base, brokerlab.archive.open(folder / "seen")


def recovered(folder: Path, key: str, planted: int, *, seed: int) -> Recovery:
    """Plant, calibrate, and ask the true grid about every value.

    Args:
        folder: For the archives.
        key: Of `PLANTED`; the pipeline may try its `VALUES`, and the truth is asked about them and about what acts in the
            end.
        planted: The value that rules in the archive.
        seed: Of everything.
    """
    plan = replace(PLANTED[key][0], days=DAYS, settings={key: planted})
    values = VALUES[key]
    base, seen = history(folder, plan, seed=seed)
    what_if = of_archive(
        seen, (CALIBRATION, PROOF), capacity=plan.capacity, rules=plan.rules, **GRID
    )
    options = thresholds.Options(
        keys=[key], limits=ANY_COST, rounds=0, alpha=ALPHA, n_boot=500, seed=seed, workers=1, **FEW
    )  # fmt: skip
    case = thresholds.case_of(
        Config.recorded(seen, CALIBRATION.end),
        options,
        calibration=CALIBRATION,
        proof=PROOF,
        created_at=datetime(2026, 4, 1),
        grids={key: sorted({planted, *values})},
        shares=shares_of(seen),
        rules=plan.rules,
    )
    validation = what_if.validate(CALIBRATION)
    result = thresholds.calibrate(case, what_if, validation=validation)
    acts = acting(result, key, planted)
    true = of_archive(base, (PROOF,), capacity=plan.capacity, rules=plan.rules, **GRID)
    asked = sorted({planted, acts, *values})
    return Recovery(
        key, planted, result, acts, {value: objective(true, key, value) for value in asked}
    )


def acting(result: Calibration, key: str, planted: int) -> int:
    """Return the value that rules once the proposal, if there is one, is applied."""
    return int(dict(result.setting.values).get(key, planted))


def objective(true: GridWhatIf, key: str, value: int) -> float:
    """Return the true mean turnaround of a task [h]."""
    config = Config.from_frame(settings_table({key: value}))
    (outcome,) = true([config], TRUTH_SEEDS, PROOF)
    return float(outcome.tasks["turnaround_s"].mean()) / 3600  # type: ignore[arg-type]
