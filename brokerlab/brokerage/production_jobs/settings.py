"""The gdpconfig keys that the production job brokerage reads (production-job-brokerage.md 1.7)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config

UNLIMITED_DISKIO = 10**10
"""Limit of disk traffic where MAX_DISKIO_DEFAULT is 0 or absent [kB/s per core]."""


def read(config: Config, key: str, component: str = "jobbroker", **scope: str) -> Any:
    """Return the value of a key of the brokerage, or its default."""
    return config.get(key, app="jedi", component=component, vo="atlas", **scope)


def place_of(key: str) -> str:
    """Return ``app/component`` in which the job brokerage looks a key up."""
    return "jedi/core" if key == "WORK_SHORTAGE" else "jedi/jobbroker"


@dataclass(frozen=True, kw_only=True)
class JobSettings:
    """Values in force; names are those of the keys, units in the field's name where they have one.

    Attributes:
        nqueued_sat_cap: NQUEUED_SAT_CAP [files].
        nqueued_nuc_cap: NQUEUED_NUC_CAP_FOR_JOBS [files].
        io_intensity_cutoff: IO_INTENSITY_CUTOFF [kB/s].
        size_cutoff_gb: SIZE_CUTOFF_TO_MOVE_INPUT [GB].
        num_cutoff: NUM_CUTOFF_TO_MOVE_INPUT [files].
        max_diskio: MAX_DISKIO_DEFAULT [kB/s per core].
        storage_min_free_gb: STORAGE_MIN_FREE_SIZE [GB].
        nw_active: NW_ACTIVE.
        nw_limit: NW_THRESHOLD x NW_WEIGHT_MULTIPLIER.
        max_prio_to_bootstrap: MAX_PRIO_TO_BOOTSTRAP.
        work_shortage: WORK_SHORTAGE.
    """

    nqueued_sat_cap: float
    nqueued_nuc_cap: float
    io_intensity_cutoff: float
    size_cutoff_gb: float
    num_cutoff: float
    max_diskio: float
    storage_min_free_gb: float
    nw_active: bool
    nw_limit: float
    max_prio_to_bootstrap: float
    work_shortage: bool

    @classmethod
    def of(cls, config: Config) -> JobSettings:
        """Read the settings.

        Raises:
            ConfigError: NQUEUED_SAT_CAP is 0, by which the network weight divides.
        """
        cap = read(config, "NQUEUED_SAT_CAP")
        if not cap:
            raise ConfigError(
                "gdpconfig jobbroker.NQUEUED_SAT_CAP=0: the network weight divides by it; set at least 1"
            )
        return cls(
            nqueued_sat_cap=cap,
            nqueued_nuc_cap=read(config, "NQUEUED_NUC_CAP_FOR_JOBS"),
            io_intensity_cutoff=read(config, "IO_INTENSITY_CUTOFF"),
            size_cutoff_gb=read(config, "SIZE_CUTOFF_TO_MOVE_INPUT"),
            num_cutoff=read(config, "NUM_CUTOFF_TO_MOVE_INPUT"),
            max_diskio=read(config, "MAX_DISKIO_DEFAULT") or UNLIMITED_DISKIO,
            storage_min_free_gb=read(config, "STORAGE_MIN_FREE_SIZE") or 200,
            nw_active=bool(read(config, "NW_ACTIVE")),
            nw_limit=read(config, "NW_THRESHOLD") * read(config, "NW_WEIGHT_MULTIPLIER"),
            max_prio_to_bootstrap=read(config, "MAX_PRIO_TO_BOOTSTRAP"),
            work_shortage=bool(read(config, "WORK_SHORTAGE", component="core")),
        )


def share_settings(config: Config, shares: Iterable[tuple[str | None, str | None]]) -> pl.DataFrame:
    """Return the settings that depend on label and share, for the pairs that occur.

    Args:
        config: The configuration.
        shares: (prodsourcelabel, gshare) of the tasks.

    Returns:
        One row per pair: ``prodsourcelabel, gshare``, ``t_queue_limit`` (NQUEUELIMITSITE_<gshare>, jobs),
        ``t_min_weight`` (MIN_WEIGHT_<label>_<gshare>, 0 = off).
    """
    rows = []
    for label, share in sorted(set(shares), key=lambda pair: (pair[0] or "", pair[1] or "")):
        limit = read(config, "NQUEUELIMITSITE_<gshare>", gshare=share or "")
        weight = read(
            config,
            "MIN_WEIGHT_<prodsourcelabel>[_<gshare>]",
            prodsourcelabel=label or "",
            gshare=share or "",
        )
        rows.append((label, share, float(limit or 20), float(weight or 0)))
    schema = {
        "prodsourcelabel": pl.String,
        "gshare": pl.String,
        "t_queue_limit": pl.Float64,
        "t_min_weight": pl.Float64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")
