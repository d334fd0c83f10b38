"""What quantile models read of a job: what was asked for, and what of its task had finished by then.

Every column is known when the job is decided. Uses enter as logarithms, relative to an *anchor*: the best
simple guess at hand. So what is learnt on small jobs serves large ones, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl

from brokerlab.estimators.estimator import codes, known
from brokerlab.estimators.records import Quantity
from brokerlab.estimators.seen import Seen
from brokerlab.numerics import FloatArray, IntArray

CATEGORIES = ("kind", "queue")
MOST_CATEGORIES = 200  # boosting takes 255; rarer ones count as not known
SIZES = ("cores", "events", "input_mb", "corepower")
SIZE_OF: Mapping[Quantity, str] = {"memory": "cores", "walltime": "events"}
GUESSES = ("same", "sized", "high", "low", "asked", "largest", "at_queue", "last_two", "requested")
ANCHORS: Mapping[Quantity, tuple[str, ...]] = {
    "memory": ("sized", "same", "requested"),
    "walltime": ("asked", "same", "requested"),
}
SHRINK_TASKS = 3.0  # tasks of all kinds that a kind's own tasks are averaged with
FEATURES = (
    *CATEGORIES,
    *(f"ln {name}" for name in SIZES),
    *(f"ln {name} against the task's" for name in SIZES),
    *(f"{name} against anchor" for name in GUESSES),
    "ln anchor",
    "ln seen of task",
    "ln seen of task at queue",
    "is_scout",
)
"""Columns of the matrix, in its order."""
_LATEST = 1000
_MEDIAN, _HIGH, _LOW = (Seen(rank, most=_LATEST) for rank in (50, 90, 10))
_LARGEST, _LAST_TWO = Seen(100, most=None), Seen(50, most=2)


@dataclass(frozen=True)
class Known:
    """What is known of each job when it is decided."""

    x: FloatArray  # (n, len(FEATURES)) NaN where not known; the first two columns are codes
    anchor: FloatArray  # (n,) ln of the best simple guess [MB or s]
    seen: IntArray  # (n,) finished jobs of the task that were known


@dataclass(frozen=True)
class Reader:
    """Turns records into what is known of them; holds what a fit learnt of kinds and queues."""

    quantity: Quantity
    # column to the values told apart, most common in tasks first
    categories: Mapping[str, tuple[str, ...]]
    base: float  # mean ln use of all tasks; of memory per core
    # kind to the mean of its tasks, drawn to ``base`` where they are few
    bases: Mapping[str, float]

    @classmethod
    def fit(cls, records: pl.DataFrame, quantity: Quantity) -> Self:
        """Learn which kinds and queues there are, and what their tasks use."""
        tasks = _tasks(records, quantity)
        base = float(np.mean(tasks["use"].to_numpy()))
        kinds = tasks.drop_nulls("kind").group_by("kind").agg(pl.len(), pl.col("use").sum())
        means = {
            kind: (total + SHRINK_TASKS * base) / (n + SHRINK_TASKS)
            for kind, n, total in kinds.sort("kind").iter_rows()
        }
        return cls(quantity, {name: _common(records, name) for name in CATEGORIES}, base, means)

    def read(
        self, records: pl.DataFrame, events: IntArray, *, apart: pl.DataFrame | None = None
    ) -> Known:
        """Return what is known of each row when it is decided."""
        logs = {name: _logarithm(records[name]) for name in (*SIZES, "requested", "used")}
        guesses, contrasts = self._guesses(records, events, logs)
        anchor = self._base(records, apart)
        for name in reversed(ANCHORS[self.quantity]):
            anchor = np.where(np.isnan(guesses[name]), anchor, guesses[name])
        pairs = records.with_columns(jeditaskid=pl.Series(_pairs(records)))
        seen = known(records, events)
        columns = [
            *(self._code(records[name], name) for name in CATEGORIES),
            *(logs[name] for name in SIZES),
            *contrasts,
            *(guesses[name] - anchor for name in GUESSES),
            anchor,
            np.log1p(seen),
            np.log1p(known(pairs, events)),
            records["is_scout"].cast(pl.Float64).to_numpy(),
        ]
        return Known(np.column_stack(columns), anchor, seen)

    def _guesses(
        self, records: pl.DataFrame, events: IntArray, logs: Mapping[str, FloatArray]
    ) -> tuple[dict[str, FloatArray], list[FloatArray]]:
        """Return ln uses as simple rules guess them, and how the sizes differ from those of jobs seen."""
        (task, _), pair = codes(records, "jeditaskid"), _pairs(records)
        used, asked = logs["used"], logs["requested"]
        size = logs[SIZE_OF[self.quantity]]
        guesses = {
            "same": _MEDIAN.percentile(events, task, used),
            "sized": _MEDIAN.percentile(events, task, used - size) + size,
            "high": _HIGH.percentile(events, task, used - size) + size,
            "low": _LOW.percentile(events, task, used - size) + size,
            "asked": _MEDIAN.percentile(events, task, used - asked) + asked,
            "largest": _LARGEST.percentile(events, task, used),
            "at_queue": _MEDIAN.percentile(events, pair, used),
            "last_two": _LAST_TWO.percentile(events, task, used),
            "requested": asked,
        }
        contrasts = [logs[name] - _MEDIAN.percentile(events, task, logs[name]) for name in SIZES]
        return guesses, contrasts

    def _base(self, records: pl.DataFrame, apart: pl.DataFrame | None) -> FloatArray:
        """Return the mean ln use of tasks of the same kind, where nothing else is known."""
        means = pl.Series(list(self.bases.values()), dtype=pl.Float64)
        result = records["kind"].replace_strict(
            list(self.bases), means, default=self.base, return_dtype=pl.Float64
        )
        per_kind = result.to_numpy()
        if apart is not None:
            per_kind = per_kind - self._own_part(records, apart, per_kind)
        return per_kind + _per_size(records, self.quantity)

    def _own_part(
        self, records: pl.DataFrame, apart: pl.DataFrame, per_kind: FloatArray
    ) -> FloatArray:
        """Return what a task itself adds to the mean of its kind."""
        tasks = _tasks(apart, self.quantity)
        counted = tasks.with_columns(n=pl.len().over("kind").cast(pl.Float64))
        own = records.select("jeditaskid").join(
            counted.select("jeditaskid", "kind", "use", "n"),
            on="jeditaskid", how="left", maintain_order="left",
        )  # fmt: skip
        use, n = own["use"].to_numpy(), own["n"].to_numpy()
        others = n + SHRINK_TASKS - 1
        added = np.where(own["kind"].is_null().to_numpy(), 0.0, (use - per_kind) / others)
        return np.nan_to_num(added)

    def _code(self, values: pl.Series, name: str) -> FloatArray:
        """Return the number of each value's category; NaN where it is null or not told apart."""
        categories = self.categories[name]
        numbers = pl.Series(range(len(categories)), dtype=pl.Float64)
        result = values.replace_strict(
            list(categories), numbers, default=None, return_dtype=pl.Float64
        )
        return result.fill_null(float("nan")).to_numpy()

    def state(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "quantity": self.quantity,
            "categories": {name: list(values) for name, values in self.categories.items()},
            "base": self.base,
            "kinds": list(self.bases),
            "bases": np.array(list(self.bases.values()), dtype=np.float64),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return what :meth:`state` was made of."""
        categories = {name: tuple(state["categories"][name]) for name in CATEGORIES}
        bases = dict(zip(state["kinds"], state["bases"].tolist(), strict=True))
        return cls(state["quantity"], categories, float(state["base"]), bases)


def _logarithm(values: pl.Series) -> FloatArray:
    """Return logarithms; NaN where null or not above 0."""
    number = values.cast(pl.Float64).fill_null(0.0).to_numpy()
    return np.log(np.where(number > 0, number, np.nan))


def _per_size(records: pl.DataFrame, quantity: Quantity) -> FloatArray:
    """Return what a mean over tasks leaves out: memory is averaged per core."""
    if quantity == "walltime":
        return np.zeros(records.height)
    return _logarithm(records["cores"])


def _tasks(records: pl.DataFrame, quantity: Quantity) -> pl.DataFrame:
    """Return one row per task: ``jeditaskid, kind, use`` (median ln use), sorted."""
    use = _logarithm(records["used"]) - _per_size(records, quantity)
    tasks = records.select("jeditaskid", "kind", use=pl.Series(use)).group_by("jeditaskid")
    return tasks.agg(pl.col("kind").first(), pl.col("use").median()).sort("jeditaskid")


def _common(records: pl.DataFrame, name: str) -> tuple[str, ...]:
    """Return the values that most tasks have, most common first."""
    counted = records.drop_nulls(name).group_by(name).agg(pl.col("jeditaskid").n_unique())
    result = counted.sort(["jeditaskid", name], descending=[True, False])[name]
    return tuple(result.head(MOST_CATEGORIES).to_list())


def _pairs(records: pl.DataFrame) -> IntArray:
    """Number the pairs of task and queue."""
    return codes(records, "jeditaskid", "queue")[0]
