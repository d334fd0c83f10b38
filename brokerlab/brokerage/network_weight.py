"""The network weight of links: how quickly outputs of a satellite are gathered at the nucleus.

Source: network-weight.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from brokerlab.brokerage.curves import QueuedCurve, ThroughputCurve
from brokerlab.brokerage.inputs.numbers import in_order
from brokerlab.brokerage.link_metrics import QUEUED_KEYS, THROUGHPUT_KEYS, link_metrics
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config
from brokerlab.numerics import FloatArray

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


def queued_line(cap: float, rules: ProductionRules | None = None) -> QueuedCurve:
    """Return the line of the queued weight, ``cap`` being NQUEUED_SAT_CAP [files] (switch ``queued_line``).

    Source: 002, Network Weight: "the queued and throughput weight are calculated as in the plot below"; the plot falls
    from 2 without files to 1 at 300 files, where it ends: docs/rules/network-weight.md 1.

    Example:
        >>> queued_line(150).of(150, 150), queued_line(150, ProductionRules("production")).of(150, 150)
        (1.5, 1.0)
    """
    if (rules or ProductionRules()).queued_line == "cap":
        return QueuedCurve()
    end = PLOT_FILES / cap
    return QueuedCurve((0.0, end, 2 * end), (2.0, 1.0, 1.0))


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
    wide = link_metrics(network_matrix, instants=instants, nuclei=nuclei)
    key = [] if nuclei is None else [*{"snapshot", "nucleus", "express"} & {*nuclei.columns}]
    parts = []
    for express in QUEUED_KEYS:
        queued = pl.col("queued_express" if express else "queued").fill_null(0.0)
        part = wide.with_columns(express=pl.lit(express), n_queued=queued)
        if nuclei is not None and "express" in key:
            part = part.join(nuclei.select(key), on=key, how="semi", nulls_equal=True)
        parts.append(part)
    long = pl.concat(parts)
    chosen = long.with_columns(**_throughput(rules or ProductionRules()))
    return in_order(chosen.select(*LINK_KEY, *LINK_FACTS), *LINK_KEY)


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
    line = queued_line(settings.link_cap, rules)
    queued = line.weights(column("n_queued"), settings.link_cap)
    steps = curve or throughput_curve(rules)
    throughput = np.where(np.isnan(mbps), fallback, steps.weights(mbps))
    share = settings.queue_importance
    found = (queued, throughput, share * queued + (1 - share) * throughput)
    itself = pl.col("storage_site") == pl.col("nucleus")
    weight = pl.when(itself.fill_null(value=False)).then(WEIGHT_OF_ITSELF)
    placed = pl.col("nucleus").fill_null("") != ""
    return frame.with_columns(
        pl.Series(name, values) for name, values in zip(WEIGHTS, found, strict=True)
    ).with_columns(pl.when(placed).then(weight.otherwise(name)).alias(name) for name in WEIGHTS)


def nucleus_total_queued(known: pl.DataFrame) -> pl.DataFrame:
    """Return the files queued towards each nucleus over all links, its own too: ``snapshot, nucleus, express, total_queued``.

    f64, sorted; a nucleus without known links has no row: 0.
    """
    key = ["snapshot", "nucleus", "express"]
    # counts of files are whole numbers: their float sum is exact in any order
    return known.group_by(key).agg(total_queued=pl.col("n_queued").sum()).sort(key)
