"""Plain weights that a step curve has to beat: the throughput itself, closeness, the sites alone."""

from __future__ import annotations

import numpy as np
import polars as pl

from brokerlab.brokerage.network_weight import MAX_CLOSENESS, UNKNOWN_CLOSENESS
from brokerlab.calibrate.network_curve.steps import logged
from brokerlab.numerics import FloatArray


def log_throughput(rows: pl.DataFrame, column: str = "mbps") -> FloatArray:
    """Return ln(MB/s), the ranking without any step; a missing value ranks last."""
    return logged(rows[column].fill_null(0.0).to_numpy())


def isotonic(rows: pl.DataFrame, seen: pl.DataFrame) -> FloatArray:
    """Return the finest monotone curve of links that were seen, at other links.

    Args:
        rows: ``mbps``.
        seen: ``mbps, outcome``.
    """
    from sklearn.isotonic import IsotonicRegression

    fit = IsotonicRegression(out_of_bounds="clip")
    fit.fit(logged(seen["mbps"].to_numpy()), logged(seen["outcome"].to_numpy()))
    return np.asarray(fit.predict(logged(rows["mbps"].to_numpy())))


def closeness(rows: pl.DataFrame) -> FloatArray:
    """Return the ranking by closeness alone, the nearest first; missing is 7.7 as in the document."""
    return MAX_CLOSENESS - rows["closeness"].fill_null(UNKNOWN_CLOSENESS).to_numpy()


def sites(rows: pl.DataFrame, seen: pl.DataFrame) -> FloatArray:
    """Return what the names of source and destination alone predict, from other links of theirs.

    A ridge regression of ln(MB/s) on both names: how much a site sends and another one receives in all. Where it
    ranks links well without having seen them, throughput is the size of sites rather than the capability of
    a link.

    Args:
        rows: ``src, dst`` of the links to rank.
        seen: ``src, dst, outcome`` of the links that were seen.
    """
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    names = ["src", "dst"]
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), Ridge(alpha=1.0))
    model.fit(seen.select(names).to_numpy(), logged(seen["outcome"].to_numpy()))
    return np.asarray(model.predict(rows.select(names).to_numpy()))
