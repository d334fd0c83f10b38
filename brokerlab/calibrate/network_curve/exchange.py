"""How many waiting files weigh as much as one unit of throughput weight: slope, cap and importance at once.

The network weight is ``i (2 - n / cap) + (1 - i) t``. Which link comes first depends on ``t - n / F`` only, with
``F = cap (1 - i) / i`` files: slope, cap and importance cannot be told apart by any ranking of links.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import polars as pl

from brokerlab.brokerage.curves import ThroughputCurve
from brokerlab.brokerage.network_weight import NetworkSettings
from brokerlab.calibrate.network_curve.fallback import line
from brokerlab.calibrate.network_curve.scores import BLOCK, Scores, compare, weighted_spearman
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.intervals import CONFIDENCE, bootstrap_weights, percentile_interval
from brokerlab.numerics import FloatArray

FEWEST_GROUPS = 40
Files = TypeVar("Files", float, pl.Expr)
GRID = tuple(float(f"{v:.3g}") for v in np.geomspace(1, 1e5, 31))
"""Files that weigh as much as one unit of throughput weight, tried one after the other."""
MOST_IMPORTANCE, LEAST_IMPORTANCE = 0.95, 0.05
"""An importance beyond these is one part alone [1]; it is shown, not proposed."""


@dataclass(frozen=True)
class ExchangeFit:
    """How queue and throughput trade against each other.

    Attributes:
        table: One row per value tried, and one for the current exchange (``is_current``) where it lies among them:
            ``files``, ``score``: rank correlation of the weight with how soon the files that wait are delivered;
            ``score_lo, score_hi``.
        files: The best value [files per unit of throughput weight].
        files_lo: Lower end of its interval.
        files_hi: Upper end.
        at_edge: The best value is the first or the last one tried: one part alone ranks best.
        current: That of the settings.
        n_links: Links, mirrored ones counted once.
    """

    table: pl.DataFrame
    files: float
    files_lo: float
    files_hi: float
    at_edge: bool
    current: float
    n_links: int


def marks(fit: ExchangeFit, best: str) -> pl.DataFrame:
    """Return the exchanges that are named in a chart: ``files, score, label`` of the current one and the best.

    Args:
        fit: What was tried.
        best: What the best one is called, unless it is the current one.
    """
    chosen = pl.when(pl.col("files") == fit.files).then(pl.lit(best))
    label = pl.when("is_current").then(pl.lit("current")).otherwise(chosen)
    return fit.table.select("files", "score", label=label).drop_nulls("label")


def files_per_unit(settings: NetworkSettings) -> float:
    """Return how many waiting files weigh as much as one unit of throughput weight.

    Example:
        >>> files_per_unit(NetworkSettings())
        150.0
    """
    share = settings.queue_importance
    return float("inf") if share == 0 else settings.link_cap * (1 - share) / share


def importance(files: Files, cap: float) -> Files:
    """Return the NW_QUEUE_IMPORTANCE that gives so many files per unit at a cap.

    Example:
        >>> importance(150, 150), importance(50, 150)
        (0.5, 0.75)
    """
    return cap / (cap + files)


def exchange_keys(fit: ExchangeFit, settings: NetworkSettings) -> pl.DataFrame:
    """Return what the current and the best exchange mean in each of the two keys, the other staying as it is.

    Both keys give the same order of links.

    Returns:
        One row each for ``exchange`` = current, best: ``files`` per unit of throughput weight [files], ``importance``
        (NW_QUEUE_IMPORTANCE at the cap that acts), ``cap`` (NQUEUED_SAT_CAP at the importance that acts [files], null
        where that is 0 or 1), each with ``_lo, _hi`` (null for the current one).
    """
    share = settings.queue_importance
    files = pl.DataFrame(
        {
            "exchange": ["current", "best"],
            "files": [fit.current, fit.files],
            "files_lo": [None, fit.files_lo],
            "files_hi": [None, fit.files_hi],
        }
    )
    part = pl.lit(share / (1 - share) if 0 < share < 1 else None, dtype=pl.Float64)
    return files.with_columns(
        importance=importance(pl.col("files"), settings.link_cap),
        importance_lo=importance(pl.col("files_hi"), settings.link_cap),
        importance_hi=importance(pl.col("files_lo"), settings.link_cap),
        cap=pl.col("files") * part,
        cap_lo=pl.col("files_lo") * part,
        cap_hi=pl.col("files_hi") * part,
    )


def ready(queues: pl.DataFrame, curve: ThroughputCurve) -> pl.DataFrame:
    """Add ``throughput_weight`` and ``outcome`` (minus ln of the hours that the queue takes).

    Raises:
        InsufficientDataError: Too few links with files waiting and files delivered.
    """
    kept = queues.filter(pl.col("wait_h") > 0, pl.col("n_queued") > 0)
    n = kept["group"].n_unique()
    if n < FEWEST_GROUPS:
        raise InsufficientDataError(
            f"{n} links have files waiting and files delivered; {FEWEST_GROUPS} are needed"
        )
    mbps = kept["mbps"].fill_null(float("nan")).to_numpy()
    weight = np.where(np.isnan(mbps), line(kept["closeness"]), curve.weights(mbps))
    return kept.with_columns(
        throughput_weight=pl.Series(weight), outcome=-pl.col("wait_h").log()
    ).sort("group", "query", "n_queued")


def fit_exchange(
    queues: pl.DataFrame,
    curve: ThroughputCurve,
    settings: NetworkSettings,
    *,
    n_boot: int = 500,
    seed: int = 1,
) -> ExchangeFit:
    """Find how many waiting files should weigh as much as one unit of throughput weight.

    Args:
        queues: ``n_queued`` [files], ``mbps, closeness, wait_h, group, query, dst``.
        curve: The throughput curve.
        settings: What acts now.
        n_boot: Bootstrap replicates over groups of mirrored links.
        seed: Of the bootstrap.

    Raises:
        ConfigError: NW_QUEUE_IMPORTANCE is no share.
        InsufficientDataError: Too few links with files waiting and delivered.

    Source: network-weight.md 2, 2.1, D2, D6.
    """
    if not 0 <= settings.queue_importance <= 1:
        raise ConfigError(
            f"NW_QUEUE_IMPORTANCE is {settings.queue_importance:g}; allowed is a share from 0 to 1"
        )
    kept = ready(queues, curve)
    codes = (kept["group"].rank("dense") - 1).cast(pl.Int64).to_numpy()
    n = int(codes[-1]) + 1
    blocks = [np.ones((1, n)), *bootstrap_weights(n, n_boot=n_boot, seed=seed)]
    counts = np.concatenate(blocks)[:, codes]
    current = files_per_unit(settings)
    shown = [current] if GRID[0] <= current <= GRID[-1] else []
    tried = np.array(sorted({*GRID, *shown}))
    scores = np.column_stack([_scores(kept, files, counts) for files in tried])
    low, high = percentile_interval(scores[1:], CONFIDENCE, n_tasks=n)
    best = np.array(GRID)[scores[:, np.isin(tried, GRID)].argmax(axis=1)]
    ends = np.quantile(best[1:], [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], method="nearest")
    return ExchangeFit(
        pl.DataFrame(
            {
                "files": tried,
                "is_current": tried == current,
                "score": scores[0],
                "score_lo": low,
                "score_hi": high,
            }
        ),
        files=float(best[0]),
        files_lo=float(ends[0]),
        files_hi=float(ends[1]),
        at_edge=float(best[0]) in (GRID[0], GRID[-1]),
        current=current,
        n_links=n,
    )


def _scores(kept: pl.DataFrame, files: float, counts: FloatArray) -> FloatArray:
    """Return the rank correlation of the sample and of every replicate."""
    outcome, weight = kept["outcome"].to_numpy(), _weight(kept, files)
    one = np.zeros(len(outcome), dtype=np.int64)
    parts = [
        weighted_spearman(outcome, weight, one, counts[i : i + BLOCK])
        for i in range(0, len(counts), BLOCK)
    ]
    return np.concatenate(parts)


def _weight(kept: pl.DataFrame, files: float) -> FloatArray:
    """Return what ranks links where so many files (infinite: any number) weigh one unit of throughput weight."""
    queued = kept["n_queued"].to_numpy()
    part = kept["throughput_weight"].to_numpy()
    if files == 0:  # the queue alone
        return -queued
    return np.asarray(part - queued / files)


def prove_exchange(
    queues: pl.DataFrame,
    curve: ThroughputCurve,
    fit: ExchangeFit,
    *,
    n_boot: int = 500,
    seed: int = 1,
) -> Scores:
    """Score the chosen exchange against the current one, each part alone, and plain alternatives.

    Args:
        queues: As for :func:`fit_exchange`, other links at a later time.
        curve: The throughput curve.
        fit: What was chosen.
        n_boot: Bootstrap replicates.
        seed: Of the bootstrap.

    Raises:
        InsufficientDataError: Too few links.
    """
    kept = ready(queues, curve)
    queued = kept["n_queued"].to_numpy()
    part = kept["throughput_weight"].to_numpy()
    mbps = kept["mbps"].fill_null(0.0).to_numpy()
    weights = {
        "current": _weight(kept, fit.current),
        "fitted": _weight(kept, fit.files),
        "queue_only": -queued,
        "throughput_only": part,
        "log_ratio": np.log(np.maximum(mbps, 0.005)) - np.log(queued),
    }
    wait = kept["wait_h"].to_numpy()
    return compare(
        kept, weights, reference="current", gain=1 / (1 + wait), n_boot=n_boot, seed=seed
    )


def queue_facts(queues: pl.DataFrame, cap: float) -> dict[str, float]:
    """Return how queues stand to the cap and to what is delivered.

    Args:
        queues: ``n_queued`` [files], ``wait_h``.
        cap: NQUEUED_SAT_CAP [files].

    Returns:
        ``n_queues``; ``at_cap`` share with at least the cap, which the backlog check removes; ``below_tenth`` share
        whose queued weight is above 1.9 [1]; ``spearman_rate`` rank correlation of the queue with the
        rate at which the link delivers.
    """
    kept = queues.filter(pl.col("wait_h") > 0)
    if kept.height < 3:
        return {"n_queues": kept.height}
    rate = pl.col("n_queued") / pl.col("wait_h")
    found = kept.select(
        n_queues=pl.len(),
        at_cap=(pl.col("n_queued") >= cap).mean(),
        below_tenth=(pl.col("n_queued") * 10 < cap).mean(),
        spearman_rate=pl.corr("n_queued", rate, method="spearman"),
    )
    return found.row(0, named=True)
