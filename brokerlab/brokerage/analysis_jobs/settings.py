"""What gdpconfig keys make of a user task (analysis-job-brokerage.md 1.4)."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.engine.rule import setting
from brokerlab.brokerage.engine.settings import setting_or
from brokerlab.brokerage.engine.steps import Derived
from brokerlab.brokerage.production_jobs.settings import min_weight
from brokerlab.units import HOUR_S

COMPONENT = "anal_jobbroker"
HIGH_PRIORITY = 2000
"""Task priority from which locality is not asked for."""


def of_tasks() -> tuple[Derived, ...]:
    """Return what settings make of a task: ``t_min_weight``, and ``t_relaxed``, why its input is not asked for."""
    return (Derived({"t_min_weight": min_weight(), "t_relaxed": _relaxed()}),)


def _relaxed() -> pl.Expr:
    """Return the first reason not to ask for locality (4.1c); null: none."""
    io, cutoff = pl.col("t_iointensity"), setting_or("IO_INTENSITY_CUTOFF_USER", None)
    timeout_s = setting_or("DATA_CHECK_TIMEOUT_USER", None) * HOUR_S
    return (
        pl.when(pl.col("t_taskprio") >= HIGH_PRIORITY).then(pl.lit("priority"))
        .when((io != 0) & (io <= cutoff)).then(pl.lit("io_intensity"))
        .when(pl.col("t_frozen_s") > timeout_s).then(pl.lit("timeout"))
    )  # fmt: skip


def cap_of(unit: str) -> pl.Expr:
    """Return the cap on running jobs of the accounting unit, ``JOBS`` or ``CORES``; null: none."""
    of_user, of_group = (
        setting_or(f"CAP_RUNNING_{kind}_{unit}", None) for kind in ("USER", "GROUP")
    )
    return pl.when(pl.col("workinggroup").is_null()).then(of_user).otherwise(of_group)


def of_throttle() -> tuple[Derived, ...]:
    """Return what settings make of a task for the throttle: ``cap_jobs``, ``cap_cores``, ``threshold`` [running slots]."""
    caps = {f"cap_{unit.lower()}": cap_of(unit) for unit in ("JOBS", "CORES")}
    return (Derived({**caps, "threshold": setting("USER_USAGE_THRESHOLD_A")}),)
