"""How much of the spread of run times lies between queues."""

from __future__ import annotations

import numpy as np
import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.intervals import CONFIDENCE
from brokerlab.numerics import FloatArray

TAILS = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
FEWEST_QUEUES = 5  # queues below which nothing is said of differences between queues


def between_queues(
    queues: pl.Series, seconds: pl.Series, *, n_boot: int = 1000, seed: int = 0
) -> dict[str, float]:  # fmt: skip
    """Split the variance of ln(time) of any jobs into that between and inside queues.

    ``jobs, queues, sd, within_sd, share, share_lo, share_hi``.
    """
    part = pl.DataFrame({"queue": queues, "s": seconds}).filter(pl.col("s") > 0)
    sums = moments(part.select("queue", y=pl.col("s").log()))
    if sums.shape[0] < FEWEST_QUEUES:
        raise InsufficientDataError(
            f"jobs at {sums.shape[0]} queues: {FEWEST_QUEUES} or more are needed"
        )
    result = shares(sums, np.random.default_rng(seed), n_boot=n_boot)
    del result["sd_lo"], result["sd_hi"]
    return {"jobs": part.height, "queues": sums.shape[0], **result}


def shares(sums: FloatArray, rng: np.random.Generator, *, n_boot: int) -> dict[str, float]:
    """Return ``sd, sd_lo, sd_hi, within_sd, share, share_lo, share_hi``: what `split` says, queues drawn with replacement."""
    sd, within, share = split(sums.sum(axis=0))
    drawn = np.array([split(each) for each in drawn_sums(sums, rng, n_boot)])
    (sd_lo, sd_hi), (lo, hi) = (np.quantile(drawn[:, k], TAILS).tolist() for k in (0, 2))
    return {
        "sd": sd,
        "sd_lo": sd_lo,
        "sd_hi": sd_hi,
        "within_sd": within,
        "share": share,
        "share_lo": lo,
        "share_hi": hi,
    }


def moments(part: pl.DataFrame) -> FloatArray:
    """Return number, sum, sum of squares, and squares around its mean, of every queue."""
    y = pl.col("y") - part["y"].mean()
    sums = part.group_by("queue").agg(
        pl.len().cast(pl.Float64).alias("n"),
        y.sum().alias("sum"),
        (y * y).sum().alias("squares"),
        ((pl.col("y") - pl.col("y").mean()) ** 2).sum().alias("inside"),
    )
    return sums.sort("queue").drop("queue").to_numpy()


def split(sums: FloatArray) -> tuple[float, float, float]:
    """Return standard deviation, that inside queues, and the share of the variance between queues."""
    n, total, squares, inside = sums
    spread = squares - total * total / n
    share = 1 - inside / spread if spread > 0 else 0.0
    return float(np.sqrt(spread / max(n - 1, 1))), float(np.sqrt(inside / n)), float(share)


def drawn_sums(sums: FloatArray, rng: np.random.Generator, n_boot: int) -> FloatArray:
    """Return sums over queues drawn with replacement, a row per draw."""
    n = sums.shape[0]
    return np.asarray(rng.multinomial(n, np.full(n, 1 / n), size=n_boot) @ sums)
