"""A study as frames for a page: the front of the settings tried, all keys of the catalogue."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from brokerlab.calibrate.key_coverage import coverage_of
from brokerlab.calibrate.thresholds.archive_study import ArchiveStudy
from brokerlab.calibrate.thresholds.calibration import Calibration
from brokerlab.calibrate.thresholds.outcomes import OBJECTIVES, quantity_of
from brokerlab.calibrate.thresholds.settings import NOW
from brokerlab.numerics import FloatArray


class StudyFrames(NamedTuple):
    """A study with its frames; see the function of each."""

    found: ArchiveStudy
    front: pl.DataFrame
    catalogue: pl.DataFrame

    @classmethod
    def of(cls, found: ArchiveStudy, others: pl.DataFrame) -> StudyFrames:
        """Make the frames of a study.

        Args:
            found: The study.
            others: The screen of keys that are no thresholds, of :func:`brokerlab.calibrate.key_screens.screen_keys`.
        """
        made = found.calibration
        return cls(found, front_frame(made), coverage_of(made.screened, others))

    @property
    def calibration(self) -> Calibration:
        """What the judge says, and the verdict."""
        return self.found.calibration


def as_text(coverage: pl.DataFrame) -> pl.DataFrame:
    """Return a coverage with lists as text, for tables."""
    return coverage.with_columns(pl.col("read_by", "by", "reports").list.join(", "))


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


def front_frame(calibration: Calibration) -> pl.DataFrame:
    """Return every setting tried, by all objectives, on the first period; empty if nothing was simulated.

    Points that differ by less than their uncertainty are told apart all the same: the front is for looking, the judge goes
    by intervals.

    Returns:
        One row per setting: ``setting``, ``n_keys``; of each objective NAME: ``NAME``, and ``NAME_pct, NAME_pct_lo,
        NAME_pct_hi`` [% of now; 0 for the current setting, null where it is not known]; ``on_front``; ``role``: current,
        proposed, on the front, tried, in this order.
    """
    tried = calibration.tried
    if tried.is_empty():
        return pl.DataFrame()
    front = tried.select("setting", "n_keys").unique(maintain_order=True)
    now = {"setting": NOW.name, "n_keys": 0}
    for name in OBJECTIVES:
        rows = tried.filter(quantity=name)
        ends = {f"{name}_pct{end}": pl.col(f"diff_pct{end}") for end in ("", "_lo", "_hi")}
        changes = rows.select("setting", pl.col("after").alias(name), **ends)
        front = front.join(changes, on="setting", how="left", maintain_order="left")
        before = rows["before"][0]
        known = before is not None and before > quantity_of(name).least
        now |= {name: before, f"{name}_pct": 0.0 if known else None}
    front = pl.concat([pl.DataFrame([now]), front], how="diagonal_relaxed")
    known_objectives = [name for name in OBJECTIVES if front[name].null_count() == 0]
    values = front.select(known_objectives).to_numpy() if known_objectives else np.zeros((front.height, 1))  # fmt: skip
    acts = calibration.judgement is not None and calibration.judgement.acts
    roles = ["current", "proposed", "on the front", "tried"]
    role = (
        pl.when(pl.col("setting") == NOW.name)
        .then(pl.lit(roles[0]))
        .when((pl.col("setting") == calibration.setting.name) & acts)
        .then(pl.lit(roles[1]))
        .when("on_front")
        .then(pl.lit(roles[2]))
        .otherwise(pl.lit(roles[3]))
    )
    return (
        front.with_columns(on_front=pl.Series(not_dominated(values)))
        .with_columns(role=role)
        .sort(pl.col("role").cast(pl.Enum(roles)), maintain_order=True)
    )


def drawn_against(front: pl.DataFrame, objective: str) -> str | None:
    """Return the objective to draw settings by beside another, the bytes moved if they are known; null: none is.

    Args:
        front: From `front_frame`.
        objective: The other.
    """
    known = {name for name in front.columns if not front[name].null_count()}
    others = [name for name in ("moved_tb", *OBJECTIVES) if name != objective]
    wanted = [name for name in others if {f"{objective}_pct", f"{name}_pct"} <= known]
    return next(iter(wanted), None)


def unknown_quantities(calibration: Calibration) -> list[str]:
    """Return the labels of the quantities that the simulation does not know."""
    if calibration.tried.is_empty():
        return []
    labels = calibration.tried.filter(pl.col("before").is_null())["label"]
    return labels.unique(maintain_order=True).to_list()


def unfinished_share(calibration: Calibration) -> float:
    """Return the part of the tasks that are not over at the end of a simulation of what is now [1]."""
    if calibration.tried.is_empty():
        return 0.0
    shares = calibration.tried.filter(quantity="unfinished")["before"].drop_nulls()
    return float(shares[0]) if len(shares) else 0.0
