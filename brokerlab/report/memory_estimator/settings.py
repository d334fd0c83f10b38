"""What the best allocations mean for settings: the nearest rank, margin and minimum of the scouts' rule."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import polars as pl

from brokerlab.archive.store import Archive
from brokerlab.calibrate.nearest_setting import Translation, stated_prices, translate
from brokerlab.errors import BrokerlabError
from brokerlab.estimators.allocation import amount_per_unit, cheapest
from brokerlab.numerics import FloatArray
from brokerlab.report.memory_estimator.jobs import MODEL, OURS, JobStudy
from brokerlab.units import HOUR_S


def translated(study: JobStudy, archive: Archive, *, n_boot: int, seed: int) -> Translation | str:
    """Translate the cheapest allocations of an archive's later tasks into a setting.

    The tasks that tested the estimators are divided in two by the time of their first decision: the setting is chosen on the
    earlier ones and proven on the later ones.

    Args:
        study: Of the archive.
        archive: The archive.
        n_boot: Replicates of the bootstrap over tasks.
        seed: Of the bootstrap.

    Returns:
        The translation; or why there is none.
    """
    records = study.main.records
    tasks = records["jeditaskid"].unique(maintain_order=True)
    starts = records.group_by("jeditaskid").agg(pl.col("decided_s").min())
    first = dict(starts.iter_rows())
    bounds = [first[tasks[place]] for place in (0, len(tasks) // 2)]
    last = float(records["decided_s"].max()) + 1  # type: ignore[arg-type]
    early, middle, late = (_instant(each) for each in (*bounds, last))
    allocations = pl.DataFrame({"pandaid": records["pandaid"], "allocated": _allocated(study)})
    try:
        return translate(
            archive,
            allocations,
            parameter="ramcount",
            name=OURS,
            calibration=(early, middle),
            proof=(middle, late),
            n_boot=n_boot,
            seed=seed,
        )
    except BrokerlabError as problem:
        return str(problem)


def _allocated(study: JobStudy) -> FloatArray:
    """Return the first allocations that cost least of the stated loss [MB]; infinite where nothing is known."""
    trial, wall = study.main, pl.col("wall_s")
    records, predicted = trial.records, trial.predicted[MODEL]
    usual = study.learnt.group_by("kind").agg(usual=wall.median())
    seconds = records.join(usual, on="kind", how="left", nulls_equal=True, maintain_order="left")[
        "usual"
    ].fill_null(study.learnt["wall_s"].median())
    wall_s, cores = seconds.to_numpy(), records["cores"].cast(pl.Float64).to_numpy()
    ladder, prices = stated_prices("ramcount")
    known = np.isfinite(predicted.bounds[:, 0])
    first = np.full(known.size, np.inf)
    first[known] = cheapest(
        predicted.bounds[known],
        levels=predicted.levels,
        ladder=ladder,
        prices=prices,
        amount=amount_per_unit("memory", wall_s=wall_s[known]),
        cores=cores[known],
        core_hours=(cores * wall_s / HOUR_S)[known],
    ).first
    return first


def _instant(seconds: float) -> datetime:
    """Return seconds since 1970 as UTC without zone, whole seconds."""
    return datetime.fromtimestamp(int(seconds), tz=UTC).replace(tzinfo=None)
