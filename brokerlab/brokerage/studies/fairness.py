"""Fairness between users: Jain's index and Lorenz curves of what they asked for and got."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from brokerlab.brokerage.engine.decisions import TASK
from brokerlab.brokerage.studies.history import brokerages_of_jobs
from brokerlab.brokerage.studies.users import NO_USER, USER
from brokerlab.intervals import Formula, Sums, clustered, summed
from brokerlab.numerics import FloatArray

QUANTITIES = ("asked", "let_through", "placed", "core_h")
"""What is divided among users: jobs asked for, those that the throttle lets through, those that find a queue, and the
core hours that really ran."""
STEPS = {"throttle": ("asked", "let_through"), "checks": ("let_through", "placed")}
"""What changes the first of these quantities into the second."""


def totals_by_user(rows: pl.DataFrame, jobs: pl.DataFrame) -> pl.DataFrame:
    """Return what each user asked for and got, sorted: ``user``, ``asked``, ``let_through``, ``placed`` [jobs], ``core_h``."""
    n = pl.col("jobs")
    asked = rows.group_by(USER).agg(
        asked=n.sum(),
        let_through=n.filter(pl.col("route") != "held").sum(),
        placed=n.filter(pl.col("outcome") == "candidates").sum(),
    )
    used = summed(jobs, [USER], ["core_h"])
    joined = asked.join(used, on=USER, how="left")
    return joined.with_columns(pl.col("core_h").fill_null(0.0)).sort(USER)


def jain_indices(users: pl.DataFrame, **dice: Any) -> pl.DataFrame:
    """Return Jain's index of what users asked for and got, with intervals over users.

    The index is 1 where all have the same and 1/n where one of n has all.

    Returns:
        One row per quantity of `QUANTITIES` and per step of `STEPS`: ``quantity``, ``index, index_lo, index_hi`` (null
        ends with fewer than two users; null where nobody has anything), ``resampled``, ``n_units``; a step is the
        index of the later less that of the earlier, of the same draws.

    Source: R. Jain, D. Chiu, W. Hawe, DEC-TR-301 (1984), equation 3.
    """
    squares = [(pl.col(name) ** 2).alias(_square(name)) for name in QUANTITIES]
    formulas: dict[str, Formula] = {name: partial(_jain, name) for name in QUANTITIES}
    formulas |= {step: partial(_jain_step, *ends) for step, ends in STEPS.items()}
    row = clustered(
        users.with_columns(*squares, one=pl.lit(1)),
        formulas,
        unit=USER,
        measures=["one", *QUANTITIES, *map(_square, QUANTITIES)],
        **dice,
    ).row(0, named=True)
    values: list[dict[str, Any]] = [
        {"quantity": name}
        | {f"index{end}": row[f"{name}{end}"] for end in ("", "_lo", "_hi")}
        | {key: row[key] for key in ("resampled", "n_units")}
        for name in formulas
    ]
    floats = dict.fromkeys(("index", "index_lo", "index_hi"), pl.Float64)
    schema = {"quantity": pl.String, **floats, "resampled": pl.String, "n_units": pl.Int64}
    return pl.DataFrame(values, schema=schema)


def _square(quantity: str) -> str:
    return f"{quantity}_squared"


def _jain(quantity: str, sums: Sums) -> FloatArray:
    return sums[quantity] ** 2 / (sums["one"] * sums[_square(quantity)])


def _jain_step(first: str, last: str, sums: Sums) -> FloatArray:
    return _jain(last, sums) - _jain(first, sums)


def lorenz_curves(
    users: pl.DataFrame, quantities: Sequence[str] = ("asked", "placed", "core_h")
) -> pl.DataFrame:
    """Return how much the users with least have together, of quantities of `totals_by_user`.

    ``quantity``, ``users`` (share of them, those with least first) and ``part`` (of the whole) [1]; last the line of
    the quantity ``equal``, where all have the same. A quantity of which nobody has anything is left out.
    """
    curves = []
    for name in quantities:
        values = np.sort(users[name].to_numpy().astype(np.float64))
        if values.sum() > 0:
            sums = np.concatenate([[0.0], np.cumsum(values)])
            frame = {"users": np.linspace(0, 1, len(sums)), "part": sums / sums[-1]}
            curves.append(
                pl.DataFrame(frame).select(pl.lit(name).alias("quantity"), "users", "part")
            )
    equal = {"quantity": "equal", "users": [0.0, 1.0], "part": [0.0, 1.0]}
    return pl.concat([*curves, pl.DataFrame(equal)])


def jobs_with_users(jobs: pl.DataFrame, tasks: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the jobs that really ran with ``user`` and ``snapshot`` of the last brokerage of their task before they were made."""
    users = rows.select(*TASK, USER)
    joined = brokerages_of_jobs(jobs, tasks).join(users, on=TASK, how="left")
    return joined.with_columns(pl.col(USER).fill_null(NO_USER))
