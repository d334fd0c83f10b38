"""Bound the jobs of a file with a saved model, held to its levels: every row is predicted, or refused with its reasons."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import polars as pl

from brokerlab.errors import DataError, SchemaError, nearest, reading, writing
from brokerlab.estimators.estimator import check_levels
from brokerlab.estimators.held import HeldBounds
from brokerlab.estimators.records import Records, wrong_records
from brokerlab.estimators.saving import Saved

HAS_FINISHED = "pandaid: is among the finished jobs"


@dataclass(frozen=True)
class Bounded:
    """What became of the rows of a file."""

    # ``pandaid, jeditaskid, seen, point``, ``bound_<level>`` [MB or s], ``promised_<level>``
    bounds: pl.DataFrame
    refused: pl.DataFrame  # ``file`` (``jobs`` or ``seen``), ``row``, ``pandaid``, ``reason``
    jobs: int  # rows of the file of jobs
    seen: int  # rows of the file of finished jobs


def bound_file(
    saved: Saved, jobs: Path, seen: Path | None = None, *, levels: Sequence[float]
) -> Bounded:
    """Bound the jobs of a file from a saved model and the jobs that have finished since: by `HeldBounds`."""
    asked = check_levels(levels)
    waiting = sift(jobs, "jobs")
    finished = sift(seen, "seen") if seen else None
    rows = waiting.records.height + waiting.refused.height
    held = HeldBounds(saved.estimator, saved.estimator.quantity, levels=asked)
    if finished:
        waiting = waiting.without(finished.records["pandaid"], HAS_FINISHED)
        held.update(finished.records)
    refused = _name(waiting, finished)
    if waiting.records.is_empty():
        first = f", the first one for: {refused['reason'][0]}" if refused.height else ""
        raise DataError(f"{jobs}: none of {rows} rows can be predicted{first}")
    result = held.predict(waiting.records, levels=asked)
    tasks = waiting.records.select("pandaid", "jeditaskid")
    return Bounded(
        tasks.join(result, on="pandaid", how="left", maintain_order="left"),
        refused,
        rows,
        finished.records.height + finished.refused.height if finished else 0,
    )


def _name(waiting: Sifted, finished: Sifted | None) -> pl.DataFrame:
    """Return the refused rows of both files."""
    parts = {"jobs": waiting, "seen": finished}
    return pl.concat(
        part.refused.select(pl.lit(name).alias("file"), "row", "pandaid", "reason")
        for name, part in parts.items()
        if part
    )


Use = Literal["jobs", "seen"]

NEEDED: dict[Use, tuple[str, ...]] = {
    "jobs": ("pandaid", "jeditaskid", "cores"),
    "seen": ("pandaid", "jeditaskid", "cores", "used", "ended_s"),
}
"""Columns a file must have, without null; the others may be left out, and are not known then."""
UNTIL_IT_RAN = {"used": 1.0, "ended_s": None, "censored": False, "wall_s": 0.0}
"""What a job that has not run holds in the columns about its run; nothing reads them."""
_TRUTH = {"true": True, "1": True, "false": False, "0": False}
_SHOWN = 40
_LARGE = 2.0**53  # whole numbers above are not exact as decimals are read


@dataclass(frozen=True)
class Sifted:
    """Rows of a file."""

    records: pl.DataFrame  # columns of `records.Records`, in the order of the file
    row: pl.Series  # their rows in the file, from 1
    # ``row`` (from 1, in the file), ``pandaid`` (as it stands there), ``reason``
    refused: pl.DataFrame

    def without(self, pandaid: pl.Series, reason: str) -> Self:
        """Refuse jobs for one more reason."""
        over = self.records["pandaid"].is_in(pandaid.to_list())
        more = pl.DataFrame(
            {"row": self.row, "pandaid": self.records["pandaid"].cast(pl.String)}
        ).filter(over)
        refused = pl.concat([self.refused, more.with_columns(reason=pl.lit(reason))]).sort("row")
        return type(self)(self.records.filter(~over), self.row.filter(~over), refused)


def sift(path: Path, use: Use) -> Sifted:
    """Read a file of jobs."""
    with reading(path):
        frame = _read(path)
        wrong = [
            f"{path.name}.{name} is missing ({nearest(name, frame.columns)})"
            for name in NEEDED[use]
            if name not in frame.columns
        ]
        if wrong:
            raise SchemaError(
                f"{'; '.join(wrong)}: add the columns; what they mean: docs/prediction.md"
            )
        cast, reasons = _cast(frame, use)
        result = cast.with_columns(
            reason=pl.concat_list(*reasons).list.drop_nulls().list.join("; ")
        )
        row = pl.int_range(1, frame.height + 1, dtype=pl.Int64).alias("row")
        rows = result.with_columns(row, raw=frame["pandaid"].cast(pl.String))
        good, bad = rows.filter(pl.col("reason") == ""), rows.filter(pl.col("reason") != "")
        refused = bad.select("row", pl.col("raw").alias("pandaid"), "reason")
        return Sifted(good.select(list(Records.columns())), good["row"], refused)


def write(frame: pl.DataFrame, path: Path) -> None:
    """Write a frame as Parquet or CSV, by the end of the name; a file of that name is replaced as a whole."""
    check_name(path)
    made = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".csv":
                frame.write_csv(made)
            else:
                frame.write_parquet(made)
            made.replace(path)
    finally:
        made.unlink(missing_ok=True)


def check_name(path: Path) -> None:
    """Refuse names of other kinds of files."""
    if path.suffix not in {".parquet", ".csv"}:
        raise DataError(f"{path}: a name that ends in .parquet or .csv is needed")


def _read(path: Path) -> pl.DataFrame:
    check_name(path)
    if not path.is_file() or not os.access(path, os.R_OK):
        raise DataError(f"{path}: there is no such file, or it may not be read")
    try:
        if path.suffix == ".csv":
            return pl.read_csv(path, infer_schema=False)
        known = pl.read_parquet_schema(path).keys() & {*Records.columns()}
        return pl.read_parquet(path, columns=[name for name in Records.columns() if name in known])
    except pl.exceptions.NoDataError:
        raise DataError(f"{path}: it is empty") from None
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from error


def _cast(frame: pl.DataFrame, use: Use) -> tuple[pl.DataFrame, list[pl.Expr]]:
    """Return the columns of records and, per rule, the reason that a row is refused for."""
    made: list[pl.Series] = []
    reasons: list[pl.Expr] = []
    about_run = UNTIL_IT_RAN if use == "jobs" else {}
    for name, column in Records.columns().items():
        if name in about_run or name not in frame.columns:
            value = about_run.get(name, _default(name))
            made.append(
                pl.Series(name, [value], dtype=column.dtype).new_from_index(0, frame.height)
            )
            continue
        series = frame[name]
        if series.dtype == pl.String:
            series = series.str.strip_chars().replace("", None)
        values = _as(series, column.dtype)
        lost = values.is_null() & series.is_not_null()
        shown = pl.concat_str(
            pl.lit(f"{name}: '"),
            pl.lit(series.cast(pl.String, strict=False).str.slice(0, _SHOWN)),
            pl.lit(f"' is no {column.dtype}"),
        )
        reasons.append(pl.when(pl.lit(lost)).then(shown))
        default = _default(name)
        made.append(values if default is None else values.fill_null(default))
    cast = pl.DataFrame(made)
    known = pl.col("ended_s") if use == "seen" else pl.lit(0.0)
    cast = cast.with_columns(pl.col("decided_s").fill_null(known))
    rules = {f"{name}: null, a value is needed": pl.col(name).is_null() for name in NEEDED[use]}
    twice = ~pl.col("pandaid").is_first_distinct() & pl.col("pandaid").is_not_null()
    rules |= wrong_records() | {"pandaid: is there already in an earlier row": twice}
    reasons += [pl.when(bad).then(pl.lit(message)) for message, bad in rules.items()]
    return cast, reasons


def _default(name: str) -> float | bool | None:
    """Return what a column holds where it is not known."""
    nothing = {"is_scout": False, "censored": False, "wall_s": 0.0}
    return nothing.get(name)


def _as(series: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Return values of another type; null where a value is none: a time is no number, it has no unit."""
    if series.dtype == dtype:
        return series
    if series.dtype.is_temporal() and dtype.is_numeric():
        return pl.Series(series.name, [None] * len(series), dtype=dtype)
    if dtype == pl.String and not series.dtype.is_nested():
        return series.cast(pl.String)
    if dtype == pl.Boolean and series.dtype == pl.String:
        return series.str.to_lowercase().replace_strict(
            _TRUTH, default=None, return_dtype=pl.Boolean
        )
    try:
        cast = series.cast(dtype, strict=False)
    except pl.exceptions.PolarsError:
        return pl.Series(series.name, [None] * len(series), dtype=dtype)
    if dtype.is_integer() and series.dtype.is_float():
        same = (cast.cast(series.dtype) == series).fill_null(value=False)
        return cast.set(~same, None)
    if dtype.is_integer() and series.dtype == pl.String:  # 8.0 is how pandas writes 8 beside a null
        number = series.cast(pl.Float64, strict=False)
        exact = (number == number.floor()) & (number.abs() < _LARGE)
        whole = number.set(~exact.fill_null(value=False), None).cast(dtype)
        return cast.zip_with(cast.is_not_null(), whole)
    return cast
