"""A study as frames for a page: what each key could change, its values, the front."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from brokerlab.calibrate.key_coverage import coverage_of
from brokerlab.calibrate.thresholds.archive_study import ArchiveStudy
from brokerlab.calibrate.thresholds.calibration import Calibration
from brokerlab.calibrate.thresholds.keys import threshold_of
from brokerlab.calibrate.thresholds.outcomes import OBJECTIVES, quantity_of
from brokerlab.calibrate.thresholds.screening import CHANGES, NOT_READ, NOTHING, UNTOLD
from brokerlab.calibrate.thresholds.settings import NOW, Setting, shown
from brokerlab.numerics import FloatArray

FOLLOWS = {
    (CHANGES, True): "simulate",
    (CHANGES, False): "screened",
    (NOTHING, False): "keep",
    (NOT_READ, False): "keep: not read",
    (UNTOLD, False): "not known",
}
"""What follows from the screen, by state and whether the simulator can judge."""
_DIFF = ("diff", "diff_lo", "diff_hi", "diff_pct", "diff_pct_lo", "diff_pct_hi")


class StudyFrames(NamedTuple):
    """A study with its frames; see the function of each."""

    found: ArchiveStudy
    keys: pl.DataFrame
    values: pl.DataFrame
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
        return cls(
            found,
            keys_frame(found),
            values_frame(made),
            front_frame(made),
            coverage_of(made.screened, others),
        )

    @property
    def calibration(self) -> Calibration:
        """What the judge says, and the verdict."""
        return self.found.calibration


def as_text(coverage: pl.DataFrame) -> pl.DataFrame:
    """Return a coverage with lists as text, for tables."""
    return coverage.with_columns(pl.col("read_by", "by", "reports").list.join(", "))


def keys_frame(study: ArchiveStudy) -> pl.DataFrame:
    """Return what each key could change and what it trades, those that change most first.

    Returns:
        The columns of :func:`.screening.summed`; ``now`` (text; mixed: differs between shares), ``most_shift`` (largest part
        of the expected jobs that goes elsewhere at any value; null: not known), ``follows`` (of `FOLLOWS`), ``minimum``,
        ``maximum`` (guard rails [unit]), ``grows`` and ``shrinks`` (when it is raised).
    """
    most = study.curves.group_by("key").agg(most_shift=pl.col("shift").max())
    about = pl.DataFrame(
        [
            {
                "key": key.name,
                "now": "mixed" if key.mixed else shown(key.current),
                "minimum": known.rails[0],
                "maximum": known.rails[1],
                "grows": known.grows,
                "shrinks": known.shrinks,
            }
            for key in study.calibration.case.space.keys
            for known in (threshold_of(key.name),)
        ],
        schema_overrides={"minimum": pl.Float64, "maximum": pl.Float64},
    )
    follows = pl.struct("state", "simulate").map_elements(
        lambda row: FOLLOWS[row["state"], row["simulate"]], return_dtype=pl.String
    )
    return (
        study.calibration.screened.with_columns(follows=follows)
        .join(about, on="key", how="left", maintain_order="left")
        .join(most, on="key", how="left", maintain_order="left")
        .with_row_index("_place")
        .sort(
            pl.col("state") == CHANGES,
            pl.col("shift").fill_null(-1.0),
            "_place",
            descending=[True, True, False],
        )
        .drop("_place")
    )


def values_frame(calibration: Calibration) -> pl.DataFrame:
    """Return what each value of each key does to the objective, every key alone, on the calibration period.

    Returns:
        One row per key and value, the key that lowers the objective most first: ``key, unit, value`` (null: none),
        ``is_current``, ``setting`` (current, proposed; null: tried), ``label`` (value in words), ``diff, diff_lo, diff_hi``
        [unit of the objective], ``diff_pct, diff_pct_lo, diff_pct_hi`` [% of now]; no differences for the current value.
    """
    if calibration.tried.is_empty():
        return pl.DataFrame(schema=_VALUES)
    proposed = dict(calibration.setting.values)
    tried = calibration.tried.filter(
        pl.col("quantity") == calibration.case.options.objective, pl.col("n_keys") == 1
    )
    least = dict(tried.group_by("key").agg(pl.col("diff").min()).iter_rows())
    rows = []
    for key in sorted(
        (key for key in calibration.case.space.keys if key.name in least),
        key=lambda key: (least[key.name], key.name),
    ):
        about = {"key": key.name, "unit": key.threshold.row.unit}
        for row in tried.filter(pl.col("key") == key.name).iter_rows(named=True):
            chosen = key.name in proposed and row["setting"] == Setting.of({key.name: proposed[key.name]}).name  # fmt: skip
            rows.append(
                about
                | {"value": row["value"], "is_current": False, "setting": "proposed" if chosen else None}
                | {name: row[name] for name in _DIFF}
            )  # fmt: skip
        if not key.mixed:
            current = None if key.current is None else float(key.current)
            rows.append(about | {"value": current, "is_current": True, "setting": "current"})
    frame = pl.DataFrame(rows, schema={n: t for n, t in _VALUES.items() if n != "label"})
    labels = pl.Series("label", [shown(value) for value in frame["value"]], dtype=pl.String)
    order = {name: place for place, name in enumerate(frame["key"].unique(maintain_order=True))}
    return (
        frame.with_columns(labels)
        .sort(pl.col("key").replace_strict(order, return_dtype=pl.Int64), "value", nulls_last=True)
        .select(list(_VALUES))
    )


_VALUES: dict[str, pl.DataType | type[pl.DataType]] = {
    **dict.fromkeys(("key", "unit"), pl.String),
    "value": pl.Float64,
    "is_current": pl.Boolean,
    **dict.fromkeys(("setting", "label"), pl.String),
    **dict.fromkeys(_DIFF, pl.Float64),
}


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
