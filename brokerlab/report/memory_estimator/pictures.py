"""The charts of the memory-estimator report: their frames, and titles that say what was found."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from brokerlab.charts import memory as charts
from brokerlab.report.content import Picture
from brokerlab.report.memory_estimator import traces_sentences
from brokerlab.report.memory_estimator.study import Study
from brokerlab.report.memory_estimator.traces import OURS, TARGET, TraceStudy
from brokerlab.report.replays import pictures as shared
from brokerlab.report.replays.pictures import Drawn


def draw(study: Study, folder: Path) -> dict[str, Picture]:
    """Draw every chart that the study has numbers for, and save it.

    Args:
        study: The study.
        folder: Where the charts go.

    Returns:
        Pictures by chart.
    """
    return shared.draw(study, {"ratios": ratios}, folder)


def ratios(study: Study) -> Drawn | None:
    """Draw what every method wastes on traces over the best peer."""
    found = study.traces
    if found is None:
        return None
    finding = traces_sentences.finding(found)
    chart = charts.ratios_chart(
        _ratios(found), target=TARGET, finding=finding, sample=traces_sentences.sample(found)
    )
    return chart, finding


def _ratios(found: TraceStudy) -> pl.DataFrame:
    """Return one row per trace and method, and one for ours had it known all other runs."""
    summary = found.main.comparison.summary
    role = pl.when(pl.col("method") == OURS).then(pl.lit("ours")).otherwise(pl.lit("peer"))
    ends = (
        pl.when(pl.col("method") == OURS).then(pl.col(f"ratio_{end}")).alias(end)
        for end in ("lo", "hi")
    )
    columns = ("trace", "role", "method", "ratio", "lo", "hi")
    every = summary.with_columns(role.alias("role"), *ends).select(columns)
    nothing = pl.lit(None, dtype=pl.Float64)
    knowing = found.limits.select(
        "trace",
        role=pl.lit("knowing"),
        method=pl.lit(OURS),
        ratio=pl.col("knowing_gbh") / pl.col("best_gbh"),
        lo=nothing,
        hi=nothing,
    )
    return pl.concat([every, knowing])
