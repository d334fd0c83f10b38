"""The settings that nothing beats in every respect."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from brokerlab.calibrate.thresholds.outcomes import OBJECTIVES
from brokerlab.calibrate.thresholds.settings import Setting
from brokerlab.calibrate.thresholds.sweep import Sweep
from brokerlab.numerics import FloatArray


def not_dominated(values: FloatArray) -> FloatArray:
    """Tell which rows no other row beats: at most as much everywhere, and less somewhere.

    Args:
        values: (n, k); less is better.

    Returns:
        (n,) truth values.

    Example:
        >>> not_dominated(np.array([[1.0, 2.0], [2.0, 1.0], [2.0, 2.0]])).tolist()
        [True, True, False]
    """
    free = [
        not bool(((values <= row).all(axis=1) & (values < row).any(axis=1)).any()) for row in values
    ]
    return np.array(free, dtype=bool)


def front(sweep: Sweep, objectives: Sequence[str] = OBJECTIVES) -> pl.DataFrame:
    """Return every setting tried, and whether it is on the Pareto front.

    Args:
        sweep: What was tried.
        objectives: Quantities; those that the simulation does not know are left out.

    Returns:
        One row per setting, the current one first: ``setting``, ``n_keys``, the objectives (means over tasks and
        replications, of the current setting as in the first comparison), ``on_front``. Points that differ by less than
        their uncertainty are told apart all the same: the front is for looking, the choice is made with intervals.
    """
    settings = [Setting(), *sweep.found]
    rows = [
        {"setting": one.name, "n_keys": len(one.values), **sweep.values(one)} for one in settings
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    known = [name for name in objectives if frame[name].null_count() == 0]
    values = frame.select(known).to_numpy() if known else np.zeros((frame.height, 1))
    return frame.select("setting", "n_keys", *objectives).with_columns(
        on_front=pl.Series(not_dominated(values))
    )
