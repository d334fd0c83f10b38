"""Jobs beside what was expected of them: was a bound kept, and where in its distribution was the use."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from brokerlab.errors import ConfigError, DataError
from brokerlab.estimators.estimator import Predicted
from brokerlab.estimators.records import checked
from brokerlab.numerics import FloatArray

ROUNDING = 1 + 1e-9  # a use that is larger by the last bits of a product is as large


def judged(records: Any, predicted: Predicted, level: float) -> pl.DataFrame:
    """Say of every job whether it kept to its bound.

    The records in the order of their decision, and ``seen, bound, missed``: null where nobody can
    say, as the bound is infinite or the job was killed below it.
    """
    if level not in predicted.levels:
        known = ", ".join(f"{each:g}" for each in predicted.levels)
        raise ConfigError(f"level = {level:g} was not predicted; allowed: {known}")
    frame, row = matched(records, predicted)
    frame = frame.with_columns(
        seen=pl.Series(predicted.seen[row]), bound=pl.Series(predicted.at(level)[row])
    )
    over = pl.col("used") > pl.col("bound") * ROUNDING
    unsaid = pl.col("bound").is_infinite() | (
        pl.col("censored") & (pl.col("used") * ROUNDING < pl.col("bound"))
    )
    return frame.with_columns(missed=pl.when(~unsaid).then(over))


def matched(records: Any, predicted: Predicted) -> tuple[pl.DataFrame, np.ndarray]:
    """Return records in the order of their decision, and the row of each among the predictions."""
    frame = checked(records)
    wanted = frame["pandaid"].to_numpy()
    if np.array_equal(wanted, predicted.pandaid):
        return frame, np.arange(wanted.size)
    order = np.argsort(predicted.pandaid, kind="stable")
    ids = predicted.pandaid[order]
    place = np.searchsorted(ids, wanted).clip(max=max(ids.size - 1, 0))
    known = ids[place] == wanted if ids.size else np.zeros(wanted.size, bool)
    if not known.all():
        lost = wanted[~known]
        raise DataError(
            f"predicted.pandaid: {lost.size} of {wanted.size} jobs were not predicted, such as"
            f" {', '.join(str(each) for each in lost[:3])}; predict them, or leave them out"
        )
    return frame, order[place]


def places(records: Any, predicted: Predicted, *, seed: int) -> pl.DataFrame:
    """Return the place of every use in the distribution that was expected of it; jobs of which none was told are left out.

    The place is the share of uses expected below it. Bounds tell it up to the next level: inside that
    step it is drawn evenly, so that a right model gives even places from 0 to 1, whatever its levels. Of
    a killed job the place of its limit is found so, and its own drawn evenly from there to 1: were killed
    jobs left out, high places would be missing, and a right model would look wrong.

    ``pandaid, jeditaskid, decided_s, censored, place`` in the order of the decision.

    Source: Dunn and Smyth 1996, Randomized Quantile Residuals, doi:10.1080/10618600.1996.10474708.
    """
    frame, row = matched(records, predicted)
    n_bounds = np.isfinite(predicted.bounds[row]).sum(
        axis=1
    )  # levels; above them an infinite bound tells nothing
    frame, row, n_bounds = (
        frame.filter(pl.Series(n_bounds > 0)),
        row[n_bounds > 0],
        n_bounds[n_bounds > 0],
    )
    used = frame["used"].to_numpy()
    step = (used[:, None] > predicted.bounds[row] * ROUNDING).sum(axis=1)
    edges: FloatArray = np.array([0.0, *predicted.levels, 1.0])
    drawn, beyond = np.random.default_rng(seed).random((2, used.size))
    upper = np.where(step < n_bounds, edges[step + 1], 1.0)
    place = edges[step] + drawn * (upper - edges[step])
    place += np.where(frame["censored"].to_numpy(), beyond * (1 - place), 0.0)
    kept = ("pandaid", "jeditaskid", "decided_s", "censored")
    return frame.select(*kept, place=pl.Series(place))
