"""The keys of gdpconfig that a synthetic archive's system has set, and what is planted among them in a lived world.

Most production keys have their defaults. Those of users are scaled to the size of the archive, where a few hundred
jobs of users run at a time, so that caps, thresholds and stabilizer bite now and then. Planted are settings that are wrong, and
some that are right, with what would be best: the history is made under them, and calibration never reads what is said of them here.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources

import polars as pl

from brokerlab.worlds.block import CPUTIME_RANK
from brokerlab.worlds.queues import conform
from brokerlab.worlds.settings import Planted, SynthSettings

TABLE = "gdpconfig.csv"
"""What is set in every archive; a key without a value has that of the settings, or of a rule."""
RANK, MARGIN = "SCOUT_RAMCOUNT_RANK", "SCOUT_RAMCOUNT_MARGIN"


@dataclass(frozen=True)
class Plant:
    """One key."""

    key: str  # of gdpconfig, without a scope
    component: str  # of gdpconfig
    # value in a world with wrong settings; equal to ``best`` for keys that are right
    planted: int
    best: int  # value in a world without
    lowest: float  # from this value on it is as good as the best ...
    highest: float | None  # ... and up to this one; null: no bound
    report: str  # which report judges it
    trades: str  # what goes wrong with the planted value


PLANTED = (
    Plant(
        MARGIN, "dbproxy", 0, 18, 14, 22, "scout-percentiles",
        "Without a margin above the scouts' percentile jobs are killed for memory and run again; a margin costs memory "
        "that is not used.",
    ),
    Plant(
        RANK, "dbproxy", 75, 75, 50, 99, "scout-percentiles",
        "One setting with the margin: with more of one less of the other is needed, and the loss is nearly the same.",
    ),
    Plant(
        "IO_INTENSITY_CUTOFF", "jobbroker", 200, 10_000, 5000, None, "thresholds",
        "Tasks with more input per second are bound to the few queues that have all of it, where they wait while others are idle.",
    ),
    Plant(
        "MAX_DISKIO_DEFAULT", "jobbroker", 2000, 2000, 2000, 2000, "thresholds",
        "Less leaves out queues for tasks with disk traffic; more changes no decision.",
    ),
    Plant(
        "NQUEUED_NUC_CAP_FOR_JOBS", "jobbroker", 2000, 50_000, 10_000, None, "thresholds",
        "Half of the nuclei have more than 2,000 files on their way to them, so that their tasks get no queue and starve until "
        "these have arrived.",
    ),
)  # fmt: skip
"""Sorted by report and key."""
FURTHER: dict[Planted, dict[str, int]] = {
    "wrong": {"NUM_CUTOFF_TO_MOVE_INPUT": 0},
    "none": {"NW_THRESHOLD": 0},
}
"""Further keys in force, of which nothing is said: no input of tasks over IO_INTENSITY_CUTOFF may be moved, which makes it matter (to let
it be moved gains less than to raise the cutoff, as limits on bytes stay); where links carry all that is sent, to leave slow ones
out costs 6 % of turnaround."""


def value_of(plant: Plant, planted: Planted) -> int:
    """Return the value in force."""
    return plant.planted if planted == "wrong" else plant.best


def drawn(planted: Planted) -> dict[str, int | float]:
    """Return what the draw of a world must know: the rule of its scouts."""
    values = {plant.key: value_of(plant, planted) for plant in PLANTED}
    return {"ram_rank": values[RANK], "ram_margin_pct": values[MARGIN]}


def config(settings: SynthSettings) -> pl.DataFrame:
    """Return ``gdpconfig``, with the values that made the requests; in a lived world with what is planted in force."""
    values: dict[str, int] = {
        "SCOUT_CPUTIME_RANK": CPUTIME_RANK,
        RANK: settings.ram_rank,
        MARGIN: settings.ram_margin_pct,
    }
    if settings.lived:
        values |= {plant.key: value_of(plant, settings.planted) for plant in PLANTED}
        values |= FURTHER[settings.planted]
    texts = {key: str(value) for key, value in values.items()}
    text = resources.files("brokerlab.worlds").joinpath(TABLE).read_bytes()
    table = pl.read_csv(text, infer_schema=False).with_columns(
        value=pl.col("key").replace_strict(texts, default=pl.col("value")),
        descr=pl.lit("synthetic"),
    )
    return conform("gdpconfig", table)


def truth(planted: Planted) -> pl.DataFrame:
    """Return ``truth/planted_settings``, one row per key of `PLANTED` by report and key; the columns are told in `brokerlab.worlds`."""
    rows = [
        (
            *(plant.key, plant.component, None, value_of(plant, planted) != plant.best),
            *(str(value_of(plant, planted)), str(plant.best), plant.lowest, plant.highest),
            *(plant.report, plant.trades),
        )
        for plant in PLANTED
    ]
    schema = {
        **dict.fromkeys(("key", "component", "scope"), pl.String),
        "wrong": pl.Boolean,
        **dict.fromkeys(("planted", "best"), pl.String),
        **dict.fromkeys(("best_lo", "best_hi"), pl.Float64),
        **dict.fromkeys(("report", "trades"), pl.String),
    }
    return pl.DataFrame(rows, schema=schema, orient="row").sort("report", "key")
