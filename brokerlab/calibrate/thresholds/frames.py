"""A calibration as frames: what each key could change, its values, the front, the proof against the limits."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import polars as pl

from brokerlab.calibrate.key_coverage import coverage_of
from brokerlab.calibrate.thresholds.archive_study import ArchiveStudy
from brokerlab.calibrate.thresholds.choice import LEAST, RELATIVE
from brokerlab.calibrate.thresholds.keys import threshold_of
from brokerlab.calibrate.thresholds.outcomes import OBJECTIVES
from brokerlab.calibrate.thresholds.result import Calibration
from brokerlab.calibrate.thresholds.screening import CHANGES, NOT_READ, NOTHING, UNTOLD
from brokerlab.calibrate.thresholds.settings import Setting, shown

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
    proof: pl.DataFrame
    candidates: pl.DataFrame
    strata: pl.DataFrame
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
            proof_frame(made),
            candidates_frame(made),
            strata_frame(made),
            coverage_of(made.screened, others),
        )

    @property
    def calibration(self) -> Calibration:
        """Choice, proof and verdict."""
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
            for key in study.space.keys
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
    proposed = dict(calibration.verdict.setting.values) if calibration.verdict.kind == "change" else {}  # fmt: skip
    tried = calibration.tried.filter(
        pl.col("quantity") == calibration.objective, pl.col("n_keys") == 1
    )
    least = dict(tried.group_by("key").agg(pl.col("diff").min()).iter_rows())
    rows = []
    for key in sorted(
        (key for key in calibration.space.keys if key.name in least),
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


def front_frame(calibration: Calibration) -> pl.DataFrame:
    """Return every setting tried, by all objectives.

    Returns:
        The columns of :func:`.pareto.front`; ``NAME_pct, NAME_pct_lo, NAME_pct_hi`` of each objective NAME [% of now; 0 for
        the current setting, null where it is not known]; ``role``: current, proposed, on the front, tried, in this order.
    """
    front, verdict = calibration.pareto, calibration.verdict
    if front.is_empty():
        return pl.DataFrame()
    proposed = verdict.setting.name if verdict.kind == "change" else ""
    roles = ["current", "proposed", "on the front", "tried"]
    role = (
        pl.when(pl.col("setting") == Setting().name)
        .then(pl.lit(roles[0]))
        .when(pl.col("setting") == proposed)
        .then(pl.lit(roles[1]))
        .when("on_front")
        .then(pl.lit(roles[2]))
        .otherwise(pl.lit(roles[3]))
    )
    ends = ("diff_pct", "diff_pct_lo", "diff_pct_hi")
    for name in OBJECTIVES:
        changes = calibration.tried.filter(quantity=name).select(
            "setting", *(pl.col(end).alias(f"{name}{end.removeprefix('diff')}") for end in ends)
        )
        front = front.join(changes, on="setting", how="left", maintain_order="left")
    now = pl.col("setting") == Setting().name
    return (
        front.with_columns(
            pl.when(now & (pl.col(name) > LEAST[name]))
            .then(0.0)
            .otherwise(f"{name}_pct")
            .alias(f"{name}_pct")
            for name in OBJECTIVES
        )
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


def proof_frame(calibration: Calibration) -> pl.DataFrame:
    """Return the quantities of the proof that the simulation knows, each with its limit.

    Returns:
        The columns of :func:`.intervals.compared`; ``limit`` (null: none), ``limit_unit`` (% of now, or the quantity's),
        ``role`` (objective, beyond its limit; null: neither). Empty without a proof.
    """
    proof = calibration.tested
    if proof is None or proof.table.is_empty():
        return pl.DataFrame()
    limits = {RELATIVE.get(name, name): (name, value) for name, value in calibration.limits.values().items()}  # fmt: skip
    held = replace(calibration.limits, on="point")
    broken = {RELATIVE.get(name, name) for name in held.broken(proof.table)}
    rows = []
    for row in proof.table.filter(pl.col("before").is_not_null()).iter_rows(named=True):
        name, value = limits.get(row["quantity"], (None, None))
        unit = None if name is None else "% of now" if name in RELATIVE else row["unit"]
        role = "objective" if row["quantity"] == calibration.objective else None
        role = "beyond its limit" if row["quantity"] in broken else role
        rows.append(row | {"limit": value, "limit_unit": unit, "role": role})
    more = {"limit": pl.Float64, "limit_unit": pl.String, "role": pl.String}
    return pl.DataFrame(rows, schema={**proof.table.schema, **more})


def candidates_frame(calibration: Calibration) -> pl.DataFrame:
    """Return :attr:`.choice.Choice.candidates` with ``role`` (chosen; null: not); empty without a choice."""
    if not calibration.choices or calibration.choices[0].candidates.is_empty():
        return pl.DataFrame()
    choice = calibration.choices[0]
    chosen = pl.when(pl.col("setting") == choice.setting.name).then(pl.lit("chosen"))
    return choice.candidates.with_columns(role=chosen)


def strata_frame(calibration: Calibration) -> pl.DataFrame:
    """Return :attr:`.proof.Proof.strata`, worst first, with ``role`` (worst; null: not); empty without a proof."""
    proof = calibration.tested
    if proof is None or proof.strata.is_empty():
        return pl.DataFrame()
    worst = proof.strata.sort("diff_pct", descending=True, nulls_last=True)
    first = pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("worst"))
    return worst.with_columns(role=first)


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


def stops_frame(calibration: Calibration) -> pl.DataFrame:
    """Return why no simulations were added: ``stopped`` (see :attr:`.sweep.Sweep.stopped`), ``n_settings``; most first."""
    if calibration.tried.is_empty():
        return pl.DataFrame(schema={"stopped": pl.String, "n_settings": pl.UInt32})
    rows = calibration.tried.filter(quantity=calibration.objective)
    return (
        rows.group_by("stopped")
        .agg(n_settings=pl.len())
        .sort("n_settings", "stopped", descending=[True, False])
    )
