"""The charts of the report: their frames, and titles that say what was found."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from brokerlab.charts import simulation as charts
from brokerlab.report.content import Picture
from brokerlab.report.replays import pictures as shared
from brokerlab.report.replays.pictures import Drawn
from brokerlab.report.simulation_validation.study import Study
from brokerlab.report.simulation_validation.tables import MEANING, reasons
from brokerlab.words import number, thin

PANELS = {50.0: "median wait", 90.0: "90th percentile of waits"}


def draw(study: Study, folder: Path) -> dict[str, Picture]:
    """Draw every chart that the study has numbers for, and save it.

    Args:
        study: The study.
        folder: Where the charts go.
    """
    return shared.draw(study, {"waits": waits, "reasons": broken}, folder)


def sample(study: Study) -> str:
    """Say how many jobs and queues there are."""
    queues = study.validation.queues
    return thin(
        f"n = {queues['n_jobs'].sum():,} jobs at {queues.height} queues; a point is a queue, the line is equality"
    )


def waits(study: Study) -> Drawn | None:
    """Draw simulated against observed percentiles by queue."""
    queues = study.validation.queues
    shown = study.validation.waits(tuple(PANELS)).select(
        "state",
        "observed_h",
        "simulated_h",
        panel=pl.col("rank").replace_strict(PANELS, return_dtype=pl.String),
        queue="panda_queue",
    )
    judged = queues.filter(pl.col("judged"))
    beyond = judged.filter(pl.col("fails") != "").height
    finding = f"{beyond} of {judged.height} queues with enough jobs are beyond a limit"
    return charts.waits_chart(shown, finding=finding, sample=sample(study)), finding


def broken(study: Study) -> Drawn | None:
    """Draw which limits are broken."""
    rows = reasons(study)
    if rows.is_empty():
        return None
    top = rows.row(0, named=True)
    finding = f"Most often: {MEANING[top['reason']]} ({_queues(top['queues'])})"
    words = [f"{_queues(row['queues'])}, {number(row['jobs'])} jobs" for row in rows.to_dicts()]
    frame = rows.with_columns(words=pl.Series(words, dtype=pl.String))
    judged = study.validation.queues["judged"].sum()
    said = f"n = {judged} queues judged; a queue may be beyond several limits"
    return charts.reasons_chart(frame, finding=finding, sample=said), finding


def _queues(count: int) -> str:
    return f"{number(count)} queue{'' if count == 1 else 's'}"
