"""Batch logs as the page shows them: the comparison of `brokerlab.estimators.walltime.logs` with names of strata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.estimators.walltime.logs import (
    BOUND,
    EXPERIENCE,
    LEVEL,
    MANY_JOBS,
    MEDIAN,
    Log,
    compare_logs,
    read_logs,
)

__all__ = ["BOUND", "LEVEL", "MEDIAN", "Log", "LogStudy", "read_logs", "study_logs"]
NAMES = ("the first five of a user", "the next 45", "later ones")


@dataclass(frozen=True, kw_only=True, eq=False)
class LogStudy:
    """What logs showed: logs by name, and the frames of `LogComparison`, strata with their names."""

    logs: Mapping[str, Log]
    table: pl.DataFrame
    strata: pl.DataFrame
    campaigns: pl.DataFrame

    def of(self, log: str, method: str) -> dict[str, Any]:
        """Return the row of a method on a log."""
        return self.table.filter(log=log, method=method).row(0, named=True)

    def best(self, log: str) -> dict[str, Any]:
        """Return the row of the best simple rule on a log."""
        return self.of(log, self.table.filter(log=log)["best_peer"][0])


def study_logs(logs: Mapping[str, Log], *, n_boot: int, seed: int) -> LogStudy:
    """Compare all methods on every log, and name the strata."""
    compared = compare_logs(logs, n_boot=n_boot, seed=seed)
    named = dict(zip(EXPERIENCE, NAMES, strict=True))
    user = pl.format("user {}, the one missed most (of those with {} or more jobs)", "user", pl.lit(MANY_JOBS))  # fmt: skip
    stratum = pl.coalesce(user, pl.col("stratum").replace(named))
    return LogStudy(
        logs=logs,
        table=compared.methods,
        strata=compared.strata.with_columns(stratum=stratum),
        campaigns=compared.campaigns,
    )
