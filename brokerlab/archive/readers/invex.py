"""Read job tables of the InVEx kind: one CSV per task, no times of day (section 13.5).

The files hold durations only. Times are laid out so that the differences are true and the order is
possible: all scouts are created at the epoch (they were created together), the other jobs after the
last scout ended, one second apart in the order of ``pandaid``. Only differences mean something.

What a scout decision needs beside the jobs and can be inferred is written too: the task with the
defaults of PanDA, and the queues with the core power that ``hs06sec`` implies.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import polars as pl

from brokerlab.archive import approximate
from brokerlab.archive.conversion import MAX_DURATION_S, as_float
from brokerlab.archive.parsing import cleaned, low
from brokerlab.archive.readers import delimited
from brokerlab.archive.readers.detect import Detected
from brokerlab.archive.readers.records import REFUSED, Batch, numbered
from brokerlab.errors import DataError, SchemaError

EPOCH = datetime(2018, 1, 1)  # noqa: DTZ001  (canonical times are UTC without zone)
"""Start of the invented calendar; the jobs of the known files are of 2018."""

SCOUT_PRIORITY = 901
"""Priority of scouts, unless the task's own is above 900: then one more than that."""
MERGE_PRIORITY = 5000
"""Priority of merge jobs."""

RENAMED = {
    "iobytesread": "totrbytes",
    "iobyteswritten": "totwbytes",
    "iobytesreadrate": "raterbytes",
    "iobyteswriterate": "ratewbytes",
    "iocharread": "totrchar",
    "iocharwritten": "totwchar",
    "iocharreadrate": "raterchar",
    "iocharwriterate": "ratewchar",
}
"""Names of section 13.5; the ``char`` ones are carried through under the monitor's names."""

_USED_UP = ["wall_time", "queue_time", "cpu_eff", "workdirsize", "dbtime"]
_DURATIONS = ("wall_time", "queue_time")
_NOTE = (
    "times are laid out from 2018-01-01, only differences are true; scouts by assignedpriority; "
    "the task's units, base time and efficiency are PanDA's defaults, core power is inferred from "
    "hs06sec"
)
_NO_STATUS = "the file has no jobstatus: every job is taken as finished"


def read(path: Path, detected: Detected) -> Iterator[Batch]:
    """Read the job records of one task, whose number is in the file's name; yields ``jobs``, then the inferred ``tasks`` and ``queues``.

    Source:
        archive.md section 13.5; calibration.md 1 for the scouts.
    """
    task = _task_of(path)
    parts = list(delimited.read(path, detected))
    frame = pl.concat([part.frame for part in parts])
    frame = frame.rename(low)
    both = [f"{old} and {new}" for old, new in RENAMED.items() if {old, new} <= set(frame.columns)]
    if both:
        raise SchemaError(f"{path}: {'; '.join(both)} are the same column; keep one of each")
    good, unreadable = _with_durations(frame, pl.concat([part.rows for part in parts]))
    refused = pl.concat([*(part.refused for part in parts), unreadable])
    good = _with_times(_with_roles(good))
    jobs = _jobs(good, task)
    notes = (_NOTE,) if "jobstatus" in good.columns else (_NOTE, _NO_STATUS)
    yield Batch("jobs", jobs, good["__row"], refused, notes=notes)
    if len(good):
        tasks = _task(good, task)
        yield Batch("tasks", tasks, numbered(tasks))
    if len(good) and "computingsite" in good.columns:
        queues = _queues(good)
        yield Batch("queues", queues, numbered(queues))


def _task_of(path: Path) -> int:
    """Return the task number in the file name: its last run of five digits or more."""
    runs = re.findall(r"\d{5,}", path.name)
    if not runs:
        raise DataError(
            f"{path}: no task number in the file name; name it like job_records_15350577.csv.gz"
        )
    return int(runs[-1])


def _with_durations(frame: pl.DataFrame, rows: pl.Series) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read the two durations; refuse rows where one is no number, negative or above 1e9 s."""
    text = pl.String()
    frame = frame.with_columns(rows.alias("__row")).with_columns(
        [cleaned(pl.col(name), text).str.slice(0, 64).alias(f"__{name}") for name in _DURATIONS]
    )
    frame = frame.with_columns(
        [pl.col(f"__{n}").cast(pl.Float64, strict=False).alias(f"__{n}_s") for n in _DURATIONS]
    )
    bad = [
        pl.col(f"__{n}").is_not_null()
        & ~pl.col(f"__{n}_s").is_between(0, MAX_DURATION_S).fill_null(value=False)
        for n in _DURATIONS
    ]
    words = [
        pl.when(test).then(
            pl.lit(f"{name} '")
            + pl.col(f"__{name}").str.slice(0, 40)
            + "' is no duration, allowed: 0 to 1e9 s"
        )
        for name, test in zip(_DURATIONS, bad, strict=True)
    ]
    refused = frame.filter(pl.any_horizontal(bad)).select(
        pl.col("__row").alias("row"),
        (pl.lit("pandaid=") + pl.col("pandaid").str.slice(0, 40)).alias("key"),
        pl.concat_str(words, separator="; ", ignore_nulls=True).alias("reason"),
    )
    return frame.filter(~pl.any_horizontal(bad)), refused.cast(pl.Schema(REFUSED))


def _with_roles(frame: pl.DataFrame) -> pl.DataFrame:
    """Mark scouts and merge jobs by their priority; read numbers needed here."""
    frame = frame.with_columns(
        (as_float(frame, name) if name in frame.columns else pl.lit(None, dtype=pl.Float64)).alias(
            f"__{name}"
        )
        for name in ("pandaid", "assignedpriority", "actualcorecount", "hs06sec")
    )
    priority = frame["__assignedpriority"]
    usual = priority.filter(priority != MERGE_PRIORITY).drop_nulls().mode(maintain_order=True)
    mark = SCOUT_PRIORITY
    if SCOUT_PRIORITY not in priority.to_list() and len(usual) and usual[0] >= SCOUT_PRIORITY:
        mark = usual[0] + 1
    return frame.with_columns(
        (pl.col("__assignedpriority") == mark).fill_null(value=False).alias("__scout"),
        (pl.col("__assignedpriority") == MERGE_PRIORITY).fill_null(value=False).alias("__merge"),
    )


def _with_times(frame: pl.DataFrame) -> pl.DataFrame:
    """Lay out the times: scouts at the epoch, the rest after them in the order of pandaid."""
    wait = pl.col("__queue_time_s").fill_null(0)
    wall = pl.col("__wall_time_s")
    scouts = frame.filter("__scout").select((wait + wall.fill_null(0)).max()).to_series()
    after_s = float(scouts[0] or 0.0) if len(scouts) else 0.0
    rank = pl.col("__pandaid").rank("ordinal").fill_null(0)
    offset_s = pl.when("__scout").then(0.0).otherwise(after_s + rank)

    def at(seconds: pl.Expr) -> pl.Expr:
        return pl.lit(EPOCH) + pl.duration(microseconds=(seconds * 1e6).round().cast(pl.Int64))

    frame = frame.with_columns(__created=offset_s)
    frame = frame.with_columns(__started=pl.col("__created") + pl.col("__queue_time_s"))
    return frame.with_columns(
        creationtime=at(pl.col("__created")),
        starttime=at(pl.col("__started")),
        endtime=at(pl.col("__started") + wall),
    )


def _jobs(frame: pl.DataFrame, task: int) -> pl.DataFrame:
    """Build the canonical jobs."""
    metrics = [
        pl.when(cleaned(pl.col(name), pl.String()).is_not_null()).then(
            pl.lit(f"{key}=") + pl.col(name).str.strip_chars().str.strip_suffix(".0")
        )
        for name, key in (("workdirsize", "workDirSize"), ("dbtime", "dbTime"))
        if name in frame.columns
    ]
    status = pl.col("jobstatus") if "jobstatus" in frame.columns else pl.lit("finished")
    made = frame.with_columns(
        pl.lit(task).alias("jeditaskid"),
        status.alias("jobstatus"),
        pl.lit("managed").alias("prodsourcelabel"),
        pl.lit("atlas").alias("vo"),
        pl.coalesce("endtime", "starttime", "creationtime").alias("modificationtime"),
        pl.when("__scout").then(pl.lit("sj")).alias("specialhandling"),
        pl.when("__merge").then(pl.lit("pmerge")).alias("processingtype"),
        pl.concat_str(metrics, separator=" ", ignore_nulls=True).alias("jobmetrics")
        if metrics
        else pl.lit(None, dtype=pl.String).alias("jobmetrics"),
    )
    own = [name for name in made.columns if name.startswith("__") or name in _USED_UP]
    return made.drop(own).rename(RENAMED, strict=False)


def _task(frame: pl.DataFrame, task: int) -> pl.DataFrame:
    """Build the task with PanDA's defaults; requests before scouting are not known: null."""
    usual = frame.filter(~pl.col("__scout") & ~pl.col("__merge"))["__assignedpriority"]
    priority = usual.drop_nulls().mode(maintain_order=True)
    end = frame.select(pl.max_horizontal("endtime", "starttime", "creationtime").max()).item()
    return pl.DataFrame(
        {
            "jeditaskid": [task],
            "vo": ["atlas"],
            "prodsourcelabel": ["managed"],
            "tasktype": ["prod"],
            "status": ["done"],
            "taskpriority": [int(priority[0]) if len(priority) else None],
            **{name: [value] for name, value in approximate.USUAL.items()},
            "creationdate": [EPOCH],
            "modificationtime": [end],
        }
    )


def _queues(frame: pl.DataFrame) -> pl.DataFrame:
    """Build the queues with the core power that ``hs06sec = floor(power x wall x cores)`` implies."""
    work = pl.col("__wall_time_s") * pl.col("__actualcorecount")
    name = cleaned(pl.col("computingsite"), pl.String()).alias("panda_queue")
    usable = frame.select(name, pl.col("__hs06sec").alias("hs06sec"), work=work)
    usable = usable.drop_nulls("panda_queue")
    power = approximate.core_power(usable.lazy()).collect()
    every = usable.select("panda_queue").unique().sort("panda_queue")
    return every.join(power, on="panda_queue", how="left", maintain_order="left").with_columns(
        type=pl.lit("production"), status=pl.lit("online")
    )
