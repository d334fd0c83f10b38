"""Load what the waiting of a period is judged by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl

from brokerlab.archive.store import open_archive
from brokerlab.brokerage.replay.counts import Counts
from brokerlab.brokerage.replay.plan import time_of
from brokerlab.lifecycle.waiting import Waiting, read_waiting
from brokerlab.lifecycle.waiting.fast import PLACE
from brokerlab.lifecycle.waiting.period import Unit
from brokerlab.report.replays.odd import noted

ALWAYS = (0.5, 1.0, 2.0)
"""Scales of limits that are looked at whatever was asked: halved, as set, doubled."""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What one study is made from.

    Attributes:
        waiting: The waiting of the period.
        scales: How many times as long limits are made, ascending.
        odd: What was odd in the settings, each said once.
    """

    waiting: Waiting
    scales: tuple[float, ...]
    odd: tuple[str, ...]

    @property
    def window(self) -> tuple[datetime, datetime]:
        """The period: rules that fire from its first instant on, before its last."""
        return self.waiting.start, self.waiting.end

    def counts(self, instants: pl.DataFrame) -> pl.DataFrame:
        """Count jobs by queue, share and status at instants."""
        archive = self.waiting.archive
        log = archive.job_status_log if archive.has("job_status_log") else None
        return Counts.of(archive.jobs, log, instants).table(*PLACE, "jobstatus")


def load(
    archive: str | Path,
    *,
    start: str = "",
    end: str = "",
    rules: str = "document",
    scales: Sequence[float] = ALWAYS,
    soon_h: float = 1.0,
    unit: Unit = "queue",
) -> Inputs:
    """Read the waiting of a period; the arguments are those of the notebook.

    Raises:
        ConfigError: A time that is not ISO 8601, or an unknown rule set.
        DataError: The archive cannot be read.
        InsufficientDataError: It has no jobs, or none in the period.
    """
    steps = tuple(sorted({*(float(scale) for scale in scales), *ALWAYS}))
    with noted() as odd:
        waiting = read_waiting(
            open_archive(archive),
            start=time_of(start or None, "start"),
            end=time_of(end or None, "end"),
            rules=rules,
            least=steps[0],
            soon_h=soon_h,
            unit=unit,
        )
    return Inputs(waiting=waiting, scales=steps, odd=tuple(dict.fromkeys(odd)))
