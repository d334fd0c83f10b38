"""The network weight of links: how quickly outputs of a satellite are gathered at the nucleus.

Source: network-weight.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

import numpy as np
import polars as pl

from brokerlab.brokerage.inputs.frames import (
    SNAPSHOT,
    Schema,
    at_snapshots,
    in_order,
    packed,
    read,
    run,
)
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config
from brokerlab.numerics import FloatArray


def _refuse(problems: Sequence[str]) -> None:
    if problems:
        raise ConfigError("throughput curve: " + "; ".join(problems))


@dataclass(frozen=True)
class ThroughputCurve:
    """Steps of the throughput weight: intervals open on the left, closed on the right.

    Attributes:
        mbps_above: Left edges, ascending [MB/s].
        weight: Weight above each edge, up to and with the next one.
        lowest: Weight at and below the first edge.

    Raises:
        ConfigError: Edges that do not ascend, numbers that are not finite, no edge, unequal lengths.

    Source: docs/rules/network-weight.md 1.
    """

    COLUMNS: ClassVar = ("mbps_above", "weight")

    mbps_above: tuple[float, ...]
    weight: tuple[float, ...]
    lowest: float

    def __post_init__(self) -> None:
        edges, weights = self.mbps_above, (*self.weight, self.lowest)
        problems = [
            f"{column} has {value!r}: allowed are finite numbers"
            for column, values in (("mbps_above", edges), ("weight", weights))
            for value in values
            if not math.isfinite(value)
        ]
        problems += [
            f"mbps_above: {b!r} stands after {a!r}; allowed is ascending order without repeats"
            for a, b in itertools.pairwise(edges)
            if not a < b
        ]
        if len(edges) != len(self.weight):
            problems.append(f"{len(edges)} edges, {len(self.weight)} weights")
        if not edges:
            problems.append("no step")
        _refuse(problems)

    @classmethod
    def from_frame(cls, frame: pl.DataFrame) -> ThroughputCurve:
        """Read a table ``mbps_above`` [MB/s], ``weight``; the first row, with null, is the lowest step.

        Raises:
            ConfigError: See the class; or the first row alone must have null ``mbps_above``.
        """
        given = frame.schema
        problems = [f"column {name} is missing" for name in cls.COLUMNS if name not in given]
        problems += [
            f"column {name} is {given[name]}, not a number"
            for name in cls.COLUMNS
            if name in given and not given[name].is_numeric()
        ]
        _refuse(problems)
        edges, weights = (frame[name].cast(pl.Float64).to_list() for name in cls.COLUMNS)
        problems = [] if edges[:1] == [None] else ["the first row must have mbps_above null"]
        if None in edges[1:]:
            problems.append("mbps_above is null below the first row")
        if None in weights:
            problems.append("weight is null")
        _refuse(problems)
        return cls(tuple(edges[1:]), tuple(weights[1:]), weights[0])

    def frame(self) -> pl.DataFrame:
        """Return the table that :meth:`from_frame` reads."""
        return pl.DataFrame(
            {"mbps_above": [None, *self.mbps_above], "weight": [self.lowest, *self.weight]},
            schema={"mbps_above": pl.Float64, "weight": pl.Float64},
        )

    def weights(self, mbps: FloatArray) -> FloatArray:
        """Return the weight of each throughput [MB/s]; NaN stays NaN."""
        steps = np.array((self.lowest, *self.weight))
        result = steps[np.searchsorted(np.array(self.mbps_above), mbps, side="left")]
        return np.where(np.isnan(mbps), np.nan, result)

    def of(self, mbps: float) -> float:
        """Return the weight of one throughput [MB/s]."""
        return float(self.weights(np.array([mbps], dtype=np.float64))[0])


WINDOW = timedelta(minutes=60)
"""Age limit of every metric."""
WINDOW_US = WINDOW // timedelta(microseconds=1)
ANY_AGE, ANY_TIME = -(2**63), 2**63 - 1
"""Stand for no limit of age, and for an instant without time [us since 1970]."""

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
    known = rows.select(*ends, "link")[rows["link"].arg_unique()].lazy().sort("link")
    wanted = moments.lazy()
    if asked is None:
        wanted = wanted.join(known, on=snapshot) if snapshot else wanted.join(known, how="cross")
    else:
        needed = asked.lazy().select("snapshot", dst="nucleus").unique()
        wanted = needed.join(wanted, on="snapshot", nulls_equal=True)
        wanted = wanted.join(known, on=[*snapshot, "dst"])
    return _newest(rows, run(wanted.rename({"dst": "nucleus"})))


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
    rows = read("network_matrix", network_matrix, MATRIX, SNAPSHOT).lazy().filter(counts)
    return run(rows.drop_nulls(["src", "dst", "key", "value", "ts"]))


def _newest(matrix: pl.DataFrame, wanted: pl.DataFrame) -> pl.DataFrame:
    """Add the newest value of each metric inside the window; links without any are left out.

    The matrix is sorted once by link, metric and time, all in one whole number, in which every link and instant then is
    searched: the memory stays at the size of the result.
    """
    ts = matrix["ts"].to_physical().to_numpy()
    times = np.unique(ts)
    width = len(times) + 1  # place 0 stands for before all of them
    metric = matrix["key"].cast(pl.Enum([*_COLUMNS])).to_physical().to_numpy().astype(np.int64)
    place = np.searchsorted(times, ts) + 1
    number = (matrix["link"].to_numpy() * len(_METRICS) + metric) * width + place
    rows = matrix.select("ts", "value", number=pl.Series(number)).sort("number", "value")
    numbers, values = rows["number"].to_numpy(), rows["value"].to_numpy()
    ages = rows["ts"].to_physical().to_numpy()
    at_us = wanted["at"].to_physical().fill_null(ANY_TIME).to_numpy()
    oldest = np.where(at_us == ANY_TIME, ANY_AGE, at_us - WINDOW_US)
    last = np.searchsorted(times, at_us, side="right")
    first = wanted["link"].to_numpy() * len(_METRICS) * width + last
    result = {}
    for nth, name in enumerate(_METRICS):
        asked = first + nth * width
        newest = np.searchsorted(numbers, asked, "right") - 1
        at = np.flatnonzero(newest >= 0)
        row = newest[at]
        fresh = (numbers[row] // width == asked[at] // width) & (ages[row] > oldest[at])
        column = np.full(len(asked), np.nan)
        column[at[fresh]] = values[row[fresh]]
        result[name] = pl.Series(column)
    something = pl.any_horizontal(pl.col(name).is_not_null() for name in _METRICS)
    known = wanted.lazy().with_columns(**result).with_columns(pl.col(_METRICS).fill_nan(None))
    kept = known.filter(something)
    return run(kept.select("snapshot", "nucleus", "src", *_METRICS))


WEIGHT_OF_ITSELF = 2.5
PLOT_FILES = 300
"""Files queued at which the queued weight of the plot is 1."""
MAX_CLOSENESS = 11
UNKNOWN_CLOSENESS = 0.7 * MAX_CLOSENESS

WEIGHTS = ("queued_weight", "throughput_weight", "network_weight")
LINK_KEY = ["snapshot", "nucleus", "src", "express"]
LINK_FACTS = ("n_queued", "closeness", "mbps", "window")


@dataclass(frozen=True)
class NetworkSettings:
    """What the configuration says about the formula.

    Attributes:
        queue_importance: NW_QUEUE_IMPORTANCE; the throughput part gets the rest.
        link_cap: NQUEUED_SAT_CAP [files]; 0 and less are refused.

    Source: network-weight.md 2.
    """

    queue_importance: float = 0.5
    link_cap: float = 150

    def __post_init__(self) -> None:
        if not self.link_cap > 0:
            raise ConfigError(
                f"gdpconfig jobbroker.NQUEUED_SAT_CAP={self.link_cap:g}: the network weight divides by it; set at least 1"
            )

    @classmethod
    def of(cls, config: Config) -> NetworkSettings:
        """Read them from a configuration."""

        def get(key: str) -> Any:
            return config.get(key, app="jedi", component="jobbroker", vo="atlas")

        return cls(
            queue_importance=float(get("NW_QUEUE_IMPORTANCE")),
            link_cap=float(get("NQUEUED_SAT_CAP")),
        )


def throughput_curve(rules: ProductionRules | None = None) -> ThroughputCurve:
    """Return the published steps of the throughput weight; switch ``throughput_step_50`` (D1): the weight above 50 MB/s.

    Source: network-weight.md 1.
    """
    step_50 = float((rules or ProductionRules()).throughput_step_50)
    return ThroughputCurve(
        (1.0, 2.0, 10.0, 20.0, 50.0, 75.0, 100.0, 200.0),
        (1.1, 1.2, 1.3, 1.5, step_50, 1.8, 1.9, 2.0),
        1.0,
    )


def files_to_one(cap: float, rules: ProductionRules | None = None) -> float:
    """Return how many files, in units of ``cap``, are queued where the queued weight has fallen from 2 to 1 (switch ``queued_line``)."""
    return 1.0 if (rules or ProductionRules()).queued_line == "cap" else PLOT_FILES / cap


def queued_weights(
    n_queued: FloatArray, cap: float, rules: ProductionRules | None = None
) -> FloatArray:
    """Return the queued weight of each number of queued files; ``cap`` is NQUEUED_SAT_CAP [files].

    The line of the code goes on below 1, the plot of the page ends there.

    Source: 002, Network Weight: "the queued and throughput weight are calculated as in the plot below"; the plot falls
    from 2 without files to 1 at 300 files, where it ends: docs/rules/network-weight.md 1.

    Example:
        >>> queued_weights(np.array([150.0, 300.0]), 150).tolist()
        [1.5, 1.0]
        >>> queued_weights(np.array([150.0, 300.0]), 150, ProductionRules("production")).tolist()
        [1.0, 0.0]
    """
    end = files_to_one(cap, rules)
    at = n_queued / cap
    line: FloatArray = 2.0 + at * (-1.0 / end)
    if (rules or ProductionRules()).queued_line == "cap":
        return line
    return np.where(at > end, 1.0, line)


def links(
    network_matrix: pl.DataFrame | None,
    *,
    instants: pl.DataFrame | None = None,
    nuclei: pl.DataFrame | None = None,
    rules: ProductionRules | None = None,
) -> pl.DataFrame:
    """Return every known link into a nucleus at every instant; :func:`at_links` weighs it.

    A row of the matrix counts at an instant if it is younger than 60 minutes (D9); of several the newest, then the
    largest. Rows without value or time are missing.

    Args:
        network_matrix: ``src``, ``dst``, ``key``, ``value``, ``ts``, perhaps ``snapshot`` (rows that hold for
            one instant only).
        instants: ``snapshot``, ``at`` (null = no age limit); null = one instant, no age limit.
        nuclei: ``nucleus`` and perhaps ``snapshot``, ``express``: what is needed; null = every ``dst``, at every
            instant, both kinds of work.
        rules: ``newest_window_first``; null = ``document``.

    Returns:
        One row per ``snapshot, nucleus, src, express``, sorted by them: ``n_queued`` [files] (missing = 0),
        ``closeness`` (null = missing), ``mbps`` [MB/s] and ``window`` (1h, 1d, 1w) of the throughput
        used, null without. A link without any metric inside the window has no row: it is unknown.

    Source: network-weight.md 2 and 3.
    """
    wide = link_metrics(network_matrix, instants=instants, nuclei=nuclei).lazy()
    key = [] if nuclei is None else [*{"snapshot", "nucleus", "express"} & {*nuclei.columns}]
    parts = []
    for express in QUEUED_KEYS:
        queued = pl.col("queued_express" if express else "queued").fill_null(0.0)
        part = wide.with_columns(express=pl.lit(express), n_queued=queued)
        if nuclei is not None and "express" in key:
            part = part.join(nuclei.lazy().select(key), on=key, how="semi", nulls_equal=True)
        parts.append(part)
    long = pl.concat(parts)
    chosen = long.with_columns(**_throughput(rules or ProductionRules()))
    return in_order(run(chosen.select(*LINK_KEY, *LINK_FACTS)), *LINK_KEY)


def _throughput(rules: ProductionRules) -> dict[str, pl.Expr]:
    """Return the throughput used, ``mbps``, and its ``window`` (switch ``newest_window_first``, D3).

    It is the hour, else the day, else the week; or the week must be there, then the day, then the hour, and the last of the
    unbroken walk counts.
    """
    has = {window: pl.col(f"mbps_{window}").is_not_null() for window in THROUGHPUT_KEYS}
    if rules.newest_window_first:
        uses = has
    else:
        day = has["1w"] & has["1d"]
        uses = {"1h": day & has["1h"], "1d": day, "1w": has["1w"]}
    return {
        "mbps": pl.coalesce(pl.when(use).then(f"mbps_{window}") for window, use in uses.items()),
        "window": pl.coalesce(pl.when(use).then(pl.lit(window)) for window, use in uses.items()),
    }


def at_links(
    pairs: pl.DataFrame,
    known: pl.DataFrame,
    *,
    config: Config | None = None,
    rules: ProductionRules | None = None,
    curve: ThroughputCurve | None = None,
) -> pl.DataFrame:
    """Join links (of :func:`links`) to what asks for them, and weigh them.

    ``pairs``: ``snapshot``, ``nucleus``, ``express``, ``storage_site`` (null = unknown), any other columns. The configuration
    gives NQUEUED_SAT_CAP and NW_QUEUE_IMPORTANCE, ``curve`` other steps of the throughput weight.

    Returns:
        The pairs in their order with ``link_known``, the facts of :func:`links`, ``queued_weight``,
        ``throughput_weight`` and ``network_weight``: unknown links have 0 queued and no closeness; the storage site of the
        nucleus weighs 2.5; without nucleus (null or '') the weights are null.
    """
    settings = NetworkSettings.of(config or Config.empty())
    facts = known.rename({"src": "storage_site"}).with_columns(link_known=pl.lit(value=True))
    on = ["snapshot", "nucleus", "express", "storage_site"]
    frame = pairs.join(facts, on=on, how="left", nulls_equal=True, maintain_order="left")
    frame = frame.with_columns(
        pl.col("n_queued").fill_null(0.0), pl.col("link_known").fill_null(value=False)
    )

    # in numpy: every step is one IEEE operation, in the order of the formula
    def column(name: str) -> FloatArray:
        return frame[name].cast(pl.Float64).fill_null(float("nan")).to_numpy()

    closeness, mbps = column("closeness"), column("mbps")
    distance = np.where(np.isnan(closeness), UNKNOWN_CLOSENESS, closeness)
    fallback = 1 + (MAX_CLOSENESS - distance) / MAX_CLOSENESS
    queued = queued_weights(column("n_queued"), settings.link_cap, rules)
    steps = curve or throughput_curve(rules)
    throughput = np.where(np.isnan(mbps), fallback, steps.weights(mbps))
    share = settings.queue_importance
    result = (queued, throughput, share * queued + (1 - share) * throughput)
    itself = pl.col("storage_site") == pl.col("nucleus")
    weight = pl.when(itself.fill_null(value=False)).then(WEIGHT_OF_ITSELF)
    placed = pl.col("nucleus").fill_null("") != ""
    return frame.with_columns(
        pl.Series(name, values) for name, values in zip(WEIGHTS, result, strict=True)
    ).with_columns(pl.when(placed).then(weight.otherwise(name)).alias(name) for name in WEIGHTS)


def nucleus_total_queued(known: pl.DataFrame) -> pl.DataFrame:
    """Return the files queued towards each nucleus over all links, its own too: ``snapshot, nucleus, express, total_queued``.

    f64, sorted; a nucleus without known links has no row: 0.
    """
    key = ["snapshot", "nucleus", "express"]
    # counts of files are whole numbers: their float sum is exact in any order
    return known.group_by(key).agg(total_queued=pl.col("n_queued").sum()).sort(key)
