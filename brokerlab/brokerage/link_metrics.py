"""The newest metrics of links into nuclei at many instants, in one query per metric.

Source: network-weight.md 2.
"""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import polars as pl

from brokerlab.brokerage.inputs.frames import SNAPSHOT, Schema, read
from brokerlab.brokerage.inputs.numbers import packed
from brokerlab.brokerage.inputs.valid import at_snapshots

WINDOW = timedelta(minutes=60)
"""Age limit of every metric."""
ANY_AGE = -(2**63)

CLOSENESS_KEY = "AGIS_closeness"
QUEUED_KEYS = {False: "Production Output_queued", True: "Express_queued"}
THROUGHPUT_KEYS = {"1h": "dashb_mbps_1h", "1d": "dashb_mbps_1d", "1w": "dashb_mbps_1w"}

_COLUMNS = {
    CLOSENESS_KEY: "closeness",
    QUEUED_KEYS[False]: "queued",
    QUEUED_KEYS[True]: "queued_express",
    **{key: f"mbps_{window}" for window, key in THROUGHPUT_KEYS.items()},
}

_METRICS = tuple(_COLUMNS.values())
TIME = pl.Datetime("us")
MATRIX: Schema = {
    "src": pl.String,
    "dst": pl.String,
    "key": pl.String,
    "value": pl.Float64,
    "ts": TIME,
}


def link_metrics(
    network_matrix: pl.DataFrame | None,
    *,
    instants: pl.DataFrame | None = None,
    nuclei: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return the newest value of each metric of every link into a nucleus at every instant; see :func:`.network_weight.links`.

    Returns:
        One row per ``snapshot, nucleus, src`` with any metric inside the window [min]: ``closeness``, ``queued``,
        ``queued_express`` [files], ``mbps_1h``, ``mbps_1d``, ``mbps_1w`` [MB/s], f64; null = missing.
    """
    # an absent table is one instant without time
    given = {"snapshot": [None], "at": [None]} if instants is None else instants
    moments = read("instants", pl.DataFrame(given), {}, {**SNAPSHOT, "at": TIME}).unique(
        "snapshot", keep="first", maintain_order=True
    )
    asked = None if nuclei is None else _asked(nuclei, moments)
    rows, snapshot = at_snapshots(_fetch(network_matrix, moments, asked), moments)
    ends = [*snapshot, "dst", "src"]
    link = packed(pl.DataFrame({"link": packed(rows.select(ends))}))  # so it stays below 2**31
    rows = rows.with_columns(link=pl.Series(link))
    known = rows.select(*ends, "link")[rows["link"].arg_unique()].sort("link")
    if asked is None:
        wanted = (
            moments.join(known, on=snapshot, how="inner")
            if snapshot
            else moments.join(known, how="cross")
        )
    else:
        needed = asked.select("snapshot", dst="nucleus").unique()
        wanted = needed.join(moments, on="snapshot", how="inner", nulls_equal=True).join(
            known, on=[*snapshot, "dst"], how="inner"
        )
    return _newest(rows, wanted.rename({"dst": "nucleus"}))


def _asked(nuclei: pl.DataFrame, moments: pl.DataFrame) -> pl.DataFrame:
    """Return the ``snapshot``, ``nucleus`` that are needed."""
    dated = SNAPSHOT if "snapshot" in nuclei.columns else {}
    rows = read("nuclei", nuclei, {"nucleus": pl.String}, dated).drop_nulls("nucleus").unique()
    return rows if dated else moments.select("snapshot").join(rows, how="cross")


def _fetch(
    network_matrix: pl.DataFrame | None, moments: pl.DataFrame, asked: pl.DataFrame | None
) -> pl.DataFrame:
    """Return the rows that can count at all."""
    counts = pl.col("key").is_in([*_COLUMNS]) & pl.col("value").is_not_nan()
    if asked is not None:
        counts &= pl.col("dst").is_in(asked["nucleus"].unique().implode())
    if moments.height and not moments["at"].has_nulls():
        first, last = (pl.lit(end, TIME) for end in (moments["at"].min(), moments["at"].max()))
        counts &= (pl.col("ts") > first - WINDOW) & (pl.col("ts") <= last)
    rows = read("network_matrix", network_matrix, MATRIX, SNAPSHOT).filter(counts)
    return rows.drop_nulls(["src", "dst", "key", "value", "ts"])


def _newest(matrix: pl.DataFrame, wanted: pl.DataFrame) -> pl.DataFrame:
    """Add the newest value of each metric inside the window; links without any are left out.

    The matrix is sorted once by link, metric and time, all in one whole number, in which every link and instant then is
    searched: the memory stays at the size of the result.
    """
    times = matrix["ts"].unique().sort()
    width = len(times) + 1  # place 0 stands for before all of them
    metric = matrix["key"].cast(pl.Enum([*_COLUMNS])).to_physical().cast(pl.Int64)
    place = times.search_sorted(matrix["ts"]) + 1
    number = (matrix["link"] * len(_METRICS) + metric) * width + place.cast(pl.Int64)
    rows = matrix.select("ts", "value", number=number).sort("number", "value")
    numbers, values = rows["number"].to_numpy(), rows["value"].to_numpy()
    ages = rows["ts"].to_physical().to_numpy()
    oldest = (wanted["at"] - WINDOW).to_physical().fill_null(ANY_AGE).to_numpy()
    last = times.search_sorted(wanted["at"], side="right").set(wanted["at"].is_null(), len(times))
    first = wanted["link"].to_numpy() * len(_METRICS) * width + last.to_numpy()
    found = {}
    for nth, name in enumerate(_METRICS):
        asked = first + nth * width
        newest = np.searchsorted(numbers, asked, "right") - 1
        at = np.flatnonzero(newest >= 0)
        row = newest[at]
        fresh = (numbers[row] // width == asked[at] // width) & (ages[row] > oldest[at])
        column = np.full(len(asked), np.nan)
        column[at[fresh]] = values[row[fresh]]
        found[name] = pl.Series(column).fill_nan(None)
    something = pl.any_horizontal(pl.col(name).is_not_null() for name in _METRICS)
    return (
        wanted.with_columns(**found)
        .filter(something)
        .select("snapshot", "nucleus", "src", *_METRICS)
    )
