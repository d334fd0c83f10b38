"""How many slots queues have: given, set, seen when a queue was full, pledged; else a lower bound.

A queue that a setting starves shows no capacity: what another setting would do there cannot be told from the archive alone.

Source: calibration.md, section 4.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import dataframely as dy
import polars as pl

from brokerlab.archive.contracts._columns import i64, text, ts
from brokerlab.brokerage.inputs.queues import slot_counts
from brokerlab.brokerage.replaying import places
from brokerlab.brokerage.replaying.clock import Clock
from brokerlab.errors import ConfigError, DataError, reading
from brokerlab.frames import prepared

KNOWN = ("given", "slots", "full", "pledge")
"""Where slots come from that are taken as they are, the surest first; others are lower bounds."""
LOWER = ("busiest", "nothing")
"""Lower bounds: the most that ran at once while jobs did not wait for slots, or nothing ran at all."""
SOURCES = {
    "given": "given",
    "slots": "as set (slots)",
    "full": "seen when full",
    "pledge": "as pledged",
    "busiest": "never full, at least those in use",
    "nothing": "not known, nothing ran",
}
"""Where slots come from, in words."""
PATIENCE = timedelta(minutes=30)
"""Jobs that waited longer than a start-up takes wait for slots."""
NEARLY = 0.9
"""Part of the busiest time's cores from which a queue counts as full: wide jobs leave some free."""
STALL = timedelta(hours=3)
"""A queue that starts nothing for so long, though jobs wait and slots are free, takes no jobs."""
EVER = datetime.fromisoformat("1970-01-01")
"""From when on slots hold that are given without a time."""


def levels(parts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Add up changes over time: what they have come to by ``panda_queue`` and ``time`` of a change, sorted."""
    keys = ["panda_queue", "time"]
    changes = pl.concat(parts).group_by(keys).agg(pl.all().sum()).sort(keys)
    return changes.with_columns(pl.exclude(keys).cum_sum().over("panda_queue"))


def in_use(jobs: pl.DataFrame) -> pl.DataFrame:
    """Return the cores in use at every change: ``panda_queue``, ``time``, ``cores``, sorted by both."""
    edges = {"starttime": pl.col("corecount"), "endtime": -pl.col("corecount")}
    return levels(
        jobs.select(panda_queue="computingsite", time=time, cores=cores)
        for time, cores in edges.items()
    )


def spans(parts: Iterable[pl.DataFrame], capacity: pl.DataFrame) -> pl.DataFrame:
    """Add up changes over time, see :func:`levels`, and return from when to when (``until``) nothing changed, sorted by time.

    The columns of ``capacity`` are those that hold then (null before its first row).
    """
    until = pl.col("time").shift(-1).over("panda_queue", order_by="time")
    known = levels(parts).with_columns(until=until).drop_nulls("until").sort("time")
    return known.join_asof(
        capacity.sort("ts"), left_on="time", right_on="ts", by="panda_queue",
        check_sortedness=False,
    )  # fmt: skip


def windows_of(begin: datetime, end: datetime, window: timedelta) -> pl.Series:
    """Return the beginnings of the windows of a time, the last one before its end."""
    return pl.datetime_range(begin, end, window, time_unit="us", closed="left", eager=True)


def capacity_of(
    use: pl.DataFrame, *, begin: datetime, end: datetime, window: timedelta, quantile: float
) -> pl.DataFrame:
    """Estimate the slots of every queue and window from the cores that were in use: ``panda_queue``, ``ts``, ``slots``, sorted.

    With the quantile 1, the maximum: what was seen running fits, so that the order of starts seen is possible in the
    simulation too. A queue that was never full seems smaller than it is, which delays no job that was seen to start. A
    window in which nothing ran says nothing: the one before holds (before the first use, the first).
    """
    windows = windows_of(begin, end, window).to_frame("time")
    names = use.select("panda_queue").unique()
    marks = names.join(windows, how="cross").with_columns(ts=pl.col("time"))
    at_marks = marks.sort("time").join_asof(
        use.sort("time"), on="time", by="panda_queue", check_sortedness=False
    )
    inside = (
        use.filter(pl.col("time").is_between(begin, end, closed="left"))
        .sort("time")
        .join_asof(windows.with_columns(ts="time"), on="time", check_sortedness=False)
    )
    steps = pl.concat(
        [part.select("panda_queue", "ts", "time", "cores") for part in (at_marks, inside)]
    ).sort("panda_queue", "time", maintain_order=True)
    following = pl.col("time").shift(-1).over("panda_queue", order_by="time").fill_null(end)
    lasts = (following - pl.col("time")).dt.total_microseconds()
    result = (
        steps.with_columns(pl.col("cores").fill_null(0), lasts=lasts)
        .filter(pl.col("lasts") > 0)
        .sort("panda_queue", "ts", "cores")
        .with_columns(
            until=pl.col("lasts").cum_sum().over("panda_queue", "ts"),
            total=pl.col("lasts").sum().over("panda_queue", "ts"),
        )
        .filter(pl.col("until") >= pl.col("total") * quantile)
        .group_by("panda_queue", "ts")
        .agg(slots=pl.col("cores").min())
        .sort("panda_queue", "ts")
    )
    seen = pl.when(pl.col("slots") > 0).then("slots")
    held = seen.forward_fill().backward_fill().over("panda_queue", order_by="ts")
    return result.with_columns(slots=held.fill_null(0))


def full_windows(jobs: pl.DataFrame, capacity: pl.DataFrame, *, window: timedelta) -> pl.DataFrame:
    """Return the windows (``panda_queue``, ``ts``, sorted) in which a queue was full: its busiest time is then its capacity.

    It was full if jobs waited longer than a start-up takes for a 24th of the window while nearly as many cores were in use
    as at its busiest time, and if most of the time that they waited was such.
    """
    rows = jobs.rename({"computingsite": "panda_queue"})
    late = rows.with_columns(since=pl.col("readytime") + pl.lit(PATIENCE))
    late = late.filter(pl.col("since") < pl.col("starttime"))
    zero, one, cores = pl.lit(0, pl.Int64), pl.lit(1, pl.Int64), pl.col("corecount").cast(pl.Int64)
    parts = [
        rows.select("panda_queue", time="starttime", cores=cores, late=zero),
        rows.select("panda_queue", time="endtime", cores=-cores, late=zero),
        late.select("panda_queue", time="since", cores=zero, late=one),
        late.select("panda_queue", time="starttime", cores=zero, late=-one),
        capacity.select("panda_queue", time="ts", cores=zero, late=zero),
    ]
    state = spans(parts, capacity)
    lasts = pl.col("until") - pl.col("time")
    busy = pl.col("cores") >= pl.col("slots") * NEARLY
    waited = state.filter(pl.col("late") > 0, pl.col("ts").is_not_null(), pl.col("slots") > 0)
    times = waited.group_by("panda_queue", "ts").agg(all=lasts.sum(), busy=lasts.filter(busy).sum())
    enough = (pl.col("busy") >= pl.lit(window / 24)) & (pl.col("busy") * 2 >= pl.col("all"))
    return times.filter(enough).select("panda_queue", "ts").sort("panda_queue", "ts")


def stalls(jobs: pl.DataFrame, capacity: pl.DataFrame) -> pl.DataFrame:
    """Return when queues started nothing though jobs waited for them and slots were free: they took no jobs then.

    Slots are free that the widest job of the queue fits into. ``panda_queue``, ``begin``, ``end``, each at least `STALL` long,
    sorted.
    """
    rows = jobs.rename({"computingsite": "panda_queue"}).join(
        capacity.select("panda_queue").unique(), on="panda_queue", how="semi"
    )
    cores, zero = pl.col("corecount").cast(pl.Int64), pl.lit(0, pl.Int64)
    columns = {
        "readytime": {"ready": cores, "used": zero, "starts": zero},
        "starttime": {"ready": -cores, "used": cores, "starts": pl.lit(1, pl.Int64)},
        "endtime": {"ready": zero, "used": -cores, "starts": zero},
    }
    parts = (rows.select("panda_queue", time=time, **values) for time, values in columns.items())
    widest = rows.group_by("panda_queue").agg(widest=pl.col("corecount").max())
    started = pl.col("starts") > pl.col("starts").shift(fill_value=0).over("panda_queue")
    state = (
        spans(parts, capacity.select("panda_queue", "ts", "slots"))
        .join(widest, on="panda_queue")
        .sort("panda_queue", "time")
    )
    idle = (pl.col("ready") > 0) & (pl.col("used") + pl.col("widest") <= pl.col("slots"))
    return (
        state.with_columns(idle=idle.fill_null(value=False))
        .with_columns(spell=(~pl.col("idle") | started).cum_sum().over("panda_queue"))
        .filter("idle")
        .group_by("panda_queue", "spell")
        .agg(begin=pl.col("time").min(), end=pl.col("until").max())
        .filter(pl.col("end") - pl.col("begin") >= pl.lit(STALL))
        .select("panda_queue", "begin", "end")
        .sort("panda_queue", "begin")
    )


def without_stalls(capacity: pl.DataFrame, spells: pl.DataFrame) -> pl.DataFrame:
    """Return slots over time, none while a queue takes no jobs."""
    ends = [spells.select("panda_queue", ts=name) for name in ("begin", "end")]
    known = capacity.sort("ts")
    more = pl.concat(ends).join(capacity, on=["panda_queue", "ts"], how="anti").unique().sort("ts")
    added = more.join_asof(known, on="ts", by="panda_queue", check_sortedness=False).drop_nulls()
    rows = pl.concat([known, added.select(known.columns)]).sort("ts")
    inside = rows.join_asof(
        spells.sort("begin"),
        left_on="ts",
        right_on="begin",
        by="panda_queue",
        check_sortedness=False,
    )
    stalled = (pl.col("ts") < pl.col("end")).fill_null(value=False)
    slots = pl.when(stalled).then(0).otherwise("slots")
    return (
        inside.select(pl.col(known.columns))
        .with_columns(inside.select(slots.alias("slots").cast(pl.Int64)))
        .sort("panda_queue", "ts")
    )


def stated_slots(
    slots: Any | None, queues: pl.DataFrame, *, begin: datetime, end: datetime, window: timedelta
) -> pl.DataFrame:
    """Return what an archive states of its queues' slots in every window: set slots, else the pledge.

    Slots count that are set for any share in the middle of the window, those of all resource types together; before the first
    that were set for any queue, where nothing is known of the table, those first ones; a pledge counts above 0
    (-1: opportunistic, 0 or null: none). Slots that were set after the end are not looked at. ``panda_queue``, ``ts``,
    ``slots``, ``source`` (slots, pledge), sorted.
    """
    windows = windows_of(begin, end, window)
    ts = pl.select(snapshot=pl.int_range(len(windows)), ts=windows)
    pledges = pl.DataFrame(schema={"panda_queue": pl.String, "slots": pl.Int64})
    if "pledgedcpu" in queues.columns:
        pledges = (
            queues.select("panda_queue", slots=pl.col("pledgedcpu").cast(pl.Int64))
            .filter(pl.col("slots") > 0)
            .group_by("panda_queue")
            .agg(pl.col("slots").max())
        )
    stated = pledges.join(ts, how="cross").select(
        "panda_queue", "ts", "slots", source=pl.lit("pledge")
    )
    if slots is not None:
        middle = pl.min_horizontal(pl.col("ts") + pl.lit(window / 2), pl.lit(end))
        first = places.first_slots(slots, end) or EVER
        clock = Clock.of(ts.select("snapshot", at=pl.max_horizontal(middle, pl.lit(first))))
        held = places.slots(slots, clock)
        wanted = held.select("snapshot", "panda_queue").unique()
        tag = pl.lit(None, pl.String)
        result = slot_counts(held, wanted.with_columns(tag=tag, resource_type=tag))
        of_slots = (
            result.filter(pl.col("numslots") > 0)
            .join(ts, on="snapshot")
            .select("panda_queue", "ts", slots="numslots", source=pl.lit("slots"))
        )
        rest = stated.join(of_slots, on=["panda_queue", "ts"], how="anti")
        stated = pl.concat([of_slots, rest])
    return stated.sort("panda_queue", "ts")


def with_sources(capacity: pl.DataFrame, full: pl.DataFrame, stated: pl.DataFrame) -> pl.DataFrame:
    """Say where the slots of every window come from, and take what is stated where it is the better knowledge.

    Set slots go before what was seen, a pledge before a busiest time at which nobody waited; never fewer slots than
    ran at once. A queue that was full in some windows has as many slots in others as in the full one before, else after.
    Queues of which slots are stated though they ran nothing are added. ``panda_queue``, ``ts``, ``slots``, ``source`` (slots,
    full, pledge, busiest, see `KNOWN` and `LOWER`), sorted.
    """
    key = ["panda_queue", "ts"]
    both = capacity.join(
        stated.select(*key, stated="slots", of="source"), on=key, how="full", coalesce=True
    ).join(full.with_columns(full=pl.lit(value=True)), on=key, how="left")
    then = pl.when("full").then("slots")
    near = then.forward_fill().backward_fill().over("panda_queue", order_by="ts")
    source = (
        pl.when(pl.col("of") == "slots")
        .then("of")
        .when(near.is_not_null())
        .then(pl.lit("full"))
        .otherwise(pl.coalesce("of", pl.lit("busiest")))
    )
    known = (
        pl.when(source == "full").then(near).when(source.is_in(["slots", "pledge"])).then("stated")
    )
    return both.select(
        *key, slots=pl.max_horizontal("slots", known).cast(pl.Int64), source=source
    ).sort(key)


def upper_slots(capacity: pl.DataFrame, queues: pl.DataFrame, most: float) -> pl.DataFrame:
    """Return the slots, also of ``queues``, at the upper end of what they may be: only lower bounds grow.

    A queue of which slots are stated in another window has at most as many as then; another at most ``most`` times its
    busiest time, and no fewer than the median queue at its busiest. So has one that ran nothing.
    """
    first = capacity["ts"].min()
    idle = queues.select(
        "panda_queue", ts=pl.lit(first), slots=pl.lit(0, pl.Int64), source=pl.lit("nothing")
    )
    rows = pl.concat([capacity, idle.cast(capacity.schema)])
    if most == 1:
        return rows.sort("panda_queue", "ts")
    ran = capacity.group_by("panda_queue").agg(pl.col("slots").max()).filter(pl.col("slots") > 0)
    usual = pl.lit(ran["slots"].median(), pl.Float64)
    sure = pl.col("source").is_in(KNOWN)
    then = pl.col("slots").filter(sure).max().over("panda_queue")
    grown = pl.max_horizontal(pl.col("slots").max().over("panda_queue") * most, usual).ceil()
    top = pl.max_horizontal("slots", pl.coalesce(then, grown))
    slots = pl.when(sure).then("slots").otherwise(top.cast(pl.Int64))
    return rows.with_columns(slots=slots).sort("panda_queue", "ts")


class Given(dy.Schema):
    """Slots that somebody knows."""

    panda_queue = text("panda queue", required=True)
    ts = ts("from here on", null="always")
    slots = i64("cores that run at once", "cores", required=True)


def read_capacity(given: pl.DataFrame | str | Path) -> pl.DataFrame:
    """Read slots that somebody knows (`Given`), of a frame or a file (``.parquet``, else CSV): ``panda_queue``, ``ts``, ``slots``, sorted.

    Raises:
        ConfigError: There is no such file.
        SchemaError: Columns are missing, or values are no whole numbers or times.
        DataError: The file cannot be read, or slots are below 0.
    """
    name = "capacity"
    if not isinstance(given, pl.DataFrame):
        path, name = Path(given), f"capacity {given}"
        if not path.is_file():
            raise ConfigError(f"{name}: there is no such file")
        with reading(name):
            given = pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path)
    known = prepared({name: given}, {name: Given})[name]
    few = known.filter(pl.col("slots") < 0)
    if few.height:
        raise DataError(
            f"{name}: slots {few['slots'][0]} in {few.height} rows: allowed are cores from 0"
        )
    return known.with_columns(pl.col("ts").fill_null(EVER)).sort("panda_queue", "ts")


def with_given(seen: pl.DataFrame, given: pl.DataFrame | None) -> pl.DataFrame:
    """Put slots that are given in the place of those read from an archive."""
    if given is None:
        return seen
    sure = given.select("panda_queue", "ts", "slots", source=pl.lit("given")).cast(seen.schema)
    return pl.concat([sure, seen.join(sure, on="panda_queue", how="anti")]).sort(
        "panda_queue", "ts"
    )


def sources_in_words(sources: pl.DataFrame) -> str:
    """Say of how many queues the slots are known, and whence."""
    counts = dict(sources["source"].value_counts().iter_rows())
    return ", ".join(
        f"{counts[key]} queues: {text}" for key, text in SOURCES.items() if key in counts
    )
