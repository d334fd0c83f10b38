"""What every estimator reads: one row per job, what was known of it, and what it used."""

from __future__ import annotations

from typing import Any, Literal

import dataframely as dy
import polars as pl

from brokerlab.errors import ConfigError, DataError, nearest
from brokerlab.frames import prepared

Quantity = Literal["memory", "walltime"]
UNITS: dict[Quantity, str] = {"memory": "MB", "walltime": "s"}


def check_quantity(quantity: str) -> None:
    """Refuse a quantity that does not exist."""
    if quantity not in UNITS:
        raise ConfigError(f"quantity '{quantity}': {nearest(quantity, UNITS)}")


class Records(dy.Schema):
    """One row per job and one quantity: memory of the whole job [MB] or wall time [s]."""

    pandaid = dy.Int64(metadata={"meaning": "the job"})
    jeditaskid = dy.Int64(metadata={"meaning": "its task; of a batch log its user"})
    kind = dy.String(
        nullable=True, metadata={"meaning": "what tasks are alike by; null: nothing is known"}
    )
    queue = dy.String(nullable=True, metadata={"meaning": "where it runs; null: not known"})
    cores = dy.Int64(metadata={"unit": "cores", "meaning": "of the job, at least 1"})
    events = dy.Int64(nullable=True, metadata={"meaning": "to be processed; null or 0: not known"})
    input_mb = dy.Float64(
        nullable=True, metadata={"unit": "MB", "meaning": "of input; null or 0: not known"}
    )
    corepower = dy.Float64(
        nullable=True,
        metadata={
            "unit": "HS06 per core",
            "meaning": "as configured for the queue; null: not known",
        },
    )
    requested = dy.Float64(
        nullable=True,
        metadata={"unit": "MB or s", "meaning": "asked for before anything ran; null: nothing"},
    )
    sent = dy.Float64(
        nullable=True,
        metadata={"unit": "MB or s", "meaning": "what the system gave the job; null: nothing"},
    )
    is_scout = dy.Bool(metadata={"meaning": "a real scout: it ran before its task was estimated"})
    decided_s = dy.Float64(
        metadata={
            "unit": "s",
            "meaning": "when the estimate is needed; only the order and sums count",
        }
    )
    started_s = dy.Float64(
        nullable=True, metadata={"unit": "s", "meaning": "when it began to run; null: not known"}
    )
    ended_s = dy.Float64(
        nullable=True, metadata={"unit": "s", "meaning": "when its use is known; null: never"}
    )
    used = dy.Float64(
        metadata={
            "unit": "MB or s",
            "meaning": "what it used, above 0; of a censored one: at least",
        }
    )
    censored = dy.Bool(metadata={"meaning": "killed at a limit: it would have used more"})
    wall_s = dy.Float64(
        metadata={"unit": "s", "meaning": "duration, at least 0; what waste is weighed by"}
    )


_MAY_BE_NULL = ("input_mb", "corepower", "requested", "sent", "started_s")
"""Numbers that nothing is lost without; an end that is none is refused."""


def wrong_records() -> dict[str, pl.Expr]:
    """Tell which rows cannot be, by what they should be."""
    used, wall_s, decided_s, ended_s = map(pl.col, ("used", "wall_s", "decided_s", "ended_s"))
    return {
        "used: a finite number above 0 is needed": ~(used.is_finite() & (used > 0)),
        "cores: at least 1 is allowed": pl.col("cores") < 1,
        "wall_s: a finite number of at least 0 is needed": ~(wall_s.is_finite() & (wall_s >= 0)),
        "decided_s: a finite number is needed": ~decided_s.is_finite(),
        "ended_s: a finite number is needed": ~ended_s.is_finite(),
        "ended_s: not before decided_s": ended_s < decided_s,
    }


def checked(records: Any) -> pl.DataFrame:
    """Return records in the order in which they are decided, held to their contract.

    The contract's columns, sorted by ``decided_s, pandaid``; of what may be null a NaN or an infinite number is not known either.
    """
    frame = prepared({"records": records}, {"records": Records})["records"]
    frame = frame.with_columns(
        pl.when(pl.col(name).is_finite()).then(name).alias(name) for name in _MAY_BE_NULL
    )
    wrong = wrong_records() | {"pandaid: each job once": pl.col("pandaid").is_duplicated()}
    counts = frame.select(where.sum().alias(message) for message, where in wrong.items()).row(0)
    result = [
        f"records.{message}; {n} rows, such as pandaid"
        f" {', '.join(str(each) for each in frame.filter(where)['pandaid'].head(3))}"
        for (message, where), n in zip(wrong.items(), counts, strict=True)
        if n
    ]
    if result:
        raise DataError("; ".join(result) + "; mend or leave out those rows")
    return frame.sort("decided_s", "pandaid")
