"""The charts of the walltime-estimator report: their frames, and titles that say what was found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from brokerlab.charts import walltime as charts
from brokerlab.report.content import Picture
from brokerlab.report.replays import pictures as shared
from brokerlab.report.replays.pictures import Drawn
from brokerlab.report.walltime_estimator import logs_sentences as of_logs
from brokerlab.report.walltime_estimator import power_sentences as of_power
from brokerlab.report.walltime_estimator.logs import BOUND, LEVEL, MEDIAN
from brokerlab.report.walltime_estimator.study import Study

PANELS = 4
"""Tasks and times that are drawn, those of most queues."""
BOUNDS = "conformal"
"""Part of the names of simple rules that are bounds."""


def draw(study: Study, folder: Path) -> dict[str, Picture]:
    """Draw every chart that the study has numbers for, and save it.

    Args:
        study: The study.
        folder: Where the charts go.

    Returns:
        Pictures by chart.
    """
    drawers = {"errors": errors, "misses": misses, "power": power}
    return shared.draw(study, drawers, folder)


def errors(study: Study) -> Drawn | None:
    """Draw the mean error of every guess on every log over that of the best simple rule."""
    found = study.logs
    if found is None:
        return None
    role = (
        pl.when(pl.col("method") == MEDIAN)
        .then(pl.lit("ours"))
        .when(pl.col("method") == pl.col("best_peer"))
        .then(pl.lit("best"))
        .otherwise(pl.lit("other"))
    )
    guesses = (pl.col("method") != BOUND) & ~pl.col("method").str.contains(BOUNDS)
    place = pl.DataFrame({"log": list(found.logs)}).with_row_index("place")
    rows = found.table.filter(guesses).join(place, on="log").sort("place", "ratio", "method")
    frame = rows.select("log", "method", role.alias("role"), "ratio", lo="ratio_lo", hi="ratio_hi")
    finding = of_logs.finding(found)
    return charts.errors_chart(frame, finding=finding, sample=of_logs.sample(found)), finding


def misses(study: Study) -> Drawn | None:
    """Draw how often bounds of the same level are exceeded."""
    found = study.logs
    if found is None:
        return None
    wanted = f"last two x {BOUNDS} {100 * LEVEL:g} %"
    rows = found.table.filter(pl.col("method").is_in([BOUND, wanted, "requested"]))
    rows = rows.with_columns(ours=pl.col("method") == BOUND)
    frame = rows.select(
        name=pl.col("log") + ": " + pl.col("method"),
        role=pl.when("ours").then(pl.lit("ours")).otherwise(pl.lit("other")),
        missed_pct=100 * pl.col("under"),
        lo=100 * pl.col("under_lo"),
        hi=100 * pl.col("under_hi"),
    )
    finding = of_logs.misses_finding(found)
    chart = charts.misses_chart(
        frame, promised_pct=100 * (1 - LEVEL), finding=finding,
        sample=f"{of_logs.sample(found)} Blue: ours; red dashes: what was promised.",
    )  # fmt: skip
    return chart, finding


def power(study: Study) -> Drawn | None:
    """Draw time per event against core power."""
    found = study.power
    if found is None or found.queues.is_empty():
        return None
    slopes = found.slopes.filter(pl.col("slope").is_not_null())
    chosen = slopes.sort("queues", "jeditaskid", "time", descending=[True, False, False]).head(PANELS)  # fmt: skip
    if chosen.is_empty():
        return None
    panel = pl.format("task {}, {} time", "jeditaskid", "time").alias("panel")
    queues = chosen.join(found.queues, on=["jeditaskid", "time"], maintain_order="left")
    frame = queues.select(panel, "queue", "corepower", jobs="jobs_right", factor=pl.col("per_event").exp())  # fmt: skip
    finding = of_power.finding(found)
    lines = pl.concat([_lines(rows) for _, rows in queues.group_by("jeditaskid", "time", maintain_order=True)])  # fmt: skip
    chart = charts.power_chart(
        frame, lines.select(panel, "kind", "corepower", "factor"), finding=finding, sample=of_power.sample(found)
    )  # fmt: skip
    return chart, finding


def _lines(rows: pl.DataFrame) -> pl.DataFrame:
    """Return two ends of the fitted line and of that of the rule, through the middle of the points."""
    x = np.log(rows["corepower"].to_numpy())
    ends = np.array([x.min(), x.max()])
    parts = [
        pl.DataFrame(
            {
                "jeditaskid": rows["jeditaskid"].head(1).extend_constant(rows["jeditaskid"][0], 1),
                "time": [rows["time"][0]] * 2,
                "kind": [kind] * 2,
                "corepower": np.exp(ends),
                "factor": np.exp(slope * (ends - x.mean())),
            }
        )
        for kind, slope in (("fitted", rows["slope"][0]), ("rule", -1.0))
    ]
    return pl.concat(parts)
