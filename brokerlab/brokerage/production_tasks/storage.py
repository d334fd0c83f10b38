"""What is where, of the choice of the nucleus: the input of tasks, the work left, and where the outputs would go."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.inputs.frames import (
    KEY,
    first_valid_for,
    run,
    valid_for,
    with_positions,
    without_instants,
)
from brokerlab.brokerage.inputs.queues import SPACES, space_usable, up
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.matching.patterns import PatternError, compile_pattern

CPUTIME_UNKNOWN = 300  # HS06 s per event
_KEY = ("snapshot", "nucleus", "workqueue_name", "currentpriority_min")


def work_left(rules: ProductionRules | None = None) -> pl.Expr:
    """Return what is left of a task [HS06 s]: (nevents - neventsused) * cputime of its master input (production-tasks.md 1, T18).

    mHS06 count as a thousandth, as in ``task_rw`` under either rule set, unless the switch ``milli_units_converted`` is off.
    """
    events = pl.col("nevents").fill_null(0) - pl.col("neventsused").fill_null(0)
    work = events * pl.col("cputime").fill_null(CPUTIME_UNKNOWN)
    if rules is not None and not rules.milli_units_converted:
        return work
    milli = pl.col("cputimeunit").str.starts_with("mHS06").fill_null(value=False)
    known = milli & pl.col("cputime").is_not_null()
    return work / pl.when(known).then(1000.0).otherwise(1.0)


def remaining_work(
    tasks: pl.DataFrame, priorities: pl.DataFrame, *, rules: ProductionRules
) -> pl.DataFrame:
    """Sum the work left at nuclei as the brokerage asks for it: table ``remaining_work``, sorted by its key.

    ``tasks``: those in ready, scouting, running or pending with files left, one row per task and instant, with their master
    input; ``priorities`` those of the tasks to be brokered. Per nucleus there is all work (null queue and priority), and per
    work queue and priority asked for the work of that queue at that priority or above.
    """
    there = tasks.filter(pl.col("nucleus").is_not_null()).with_columns(rw=work_left(rules))
    everything = there.with_columns(
        workqueue_name=pl.lit(None, pl.String), currentpriority_min=pl.lit(None, pl.Int64)
    )
    asked = priorities.select(
        "snapshot", "workqueue_name", currentpriority_min=pl.col("currentpriority").cast(pl.Int64)
    ).unique()
    of_queue = there.join(asked, on=["snapshot", "workqueue_name"]).filter(
        pl.col("currentpriority") >= pl.col("currentpriority_min")
    )
    parts = [part.select(*_KEY, pl.col("rw").cast(pl.Float64)) for part in (everything, of_queue)]
    ordered = pl.concat(parts).sort(*_KEY, "rw")
    return ordered.group_by(_KEY, maintain_order=True).agg(pl.col("rw").sum())


def with_all_work(nuclei: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """Join ``rw_all``, all work left [HS06 s], to nuclei at instants; missing is 0."""
    summed, every = _sum(work)
    of_all = summed.filter(every).select("snapshot", "nucleus", rw_all="rw")
    joined = first_valid_for(nuclei, of_all, ["nucleus"], ["snapshot"])
    return joined.with_columns(pl.col("rw_all").fill_null(0.0))


def work_of_queues(asked: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """Return ``rw_prio``, the work left of a work queue at a priority and above [HS06 s], at each nucleus that has some.

    ``t_work, nucleus, rw_prio``.
    """
    summed, every = _sum(work)
    of_queue = summed.filter(~every).rename({"currentpriority_min": "currentpriority"})
    rows = valid_for(asked, of_queue, ["workqueue_name", "currentpriority"], ["snapshot"])
    rows = rows.unique(["t_work", "nucleus"], keep="first", maintain_order=True)
    return rows.select("t_work", "nucleus", rw_prio="rw")


def _sum(work: pl.DataFrame) -> tuple[pl.DataFrame, pl.Expr]:
    """Return the work of each key, and which rows are about all of it."""
    summed = work.group_by(_KEY, maintain_order=True).agg(pl.col("rw").sum())
    return summed, pl.col("workqueue_name").is_null() & pl.col("currentpriority_min").is_null()


AVAILABLE = ("ava_num_disk", "ava_num_any", "ava_size_disk", "ava_size_any")
TOTALS = ("tot_num", "tot_size")

_DATASET = (*KEY, "datasetname")
_UNIT = (*_DATASET, "constituent")
_LOG_FIELD = 4  # of the dataset's name, parted at dots


def counted_datasets(
    tasks: pl.DataFrame, datasets: pl.DataFrame, rules: ProductionRules
) -> pl.DataFrame:
    """Return the input datasets that count for the choice of the nucleus, ``jeditaskid, snapshot, datasetname``, each once.

    Left out: pseudo datasets, which have no files, with ``taskbrokeronmaster`` all but the master, and without
    ``conditions_and_logs_count`` conditions data (``ddo...``) and logs.

    Source: production-tasks.md 2.
    """
    name = pl.col("datasetname")
    field = name.str.split(".").list.get(_LOG_FIELD, null_on_oob=True)
    ignored = [
        pl.col("pseudo"),
        *(() if rules.conditions_and_logs_count else (name.str.starts_with("ddo"), field == "log")),
        pl.col("taskbrokeronmaster") & ~pl.col("is_master").fill_null(value=False),
    ]
    inputs = valid_for(tasks.lazy().select(*KEY, "taskbrokeronmaster"), datasets)
    counts = ~pl.any_horizontal(condition.fill_null(value=False) for condition in ignored)
    return run(inputs.filter(counts).select(_DATASET).unique(_DATASET).sort(_DATASET))


def listed_replicas(
    wanted: pl.DataFrame, replicas: pl.DataFrame, endpoints: pl.DataFrame, rules: ProductionRules
) -> pl.DataFrame:
    """Return the replicas of wanted datasets with what their endpoints are; one that is not listed is a disk, and up.

    Added are ``tape``, ``up`` (readable over WAN) and ``whole`` (found = total > 0).
    """
    counts = ("found", "total", "asize", "tsize")
    listed = valid_for(wanted, with_positions(replicas), ["datasetname"])
    listed = listed.with_columns(pl.col(counts).fill_null(0))
    status = endpoints.select("snapshot", "ddm_endpoint_name", "is_tape", "read_wan")
    return first_valid_for(listed, status, ["ddm_endpoint_name"], ["snapshot"]).with_columns(
        tape=pl.col("is_tape").fill_null(value=False),
        up=up("read_wan", rules=rules),
        whole=(pl.col("found") == pl.col("total")) & (pl.col("total") > 0),
    )


def unreadable(wanted: pl.DataFrame, listed: pl.DataFrame) -> pl.DataFrame:
    """Return the wanted datasets without any complete copy that is readable over WAN.

    For a container a complete copy of one constituent is enough, as deployed.
    """
    readable = listed.filter(pl.col("whole") & pl.col("up"))
    return wanted.join(readable, on=_DATASET, how="anti")


def totals(listed: pl.DataFrame, rules: ProductionRules) -> pl.DataFrame:
    """Return ``tot_num`` and ``tot_size`` [B] of every task's input; 0 for datasets without replicas.

    The total of a dataset is that of the first replica listed with a non-zero one. A container has the sum of
    its constituents, or in ``container_totals="last"`` what the last one listed has.
    """
    last_of = [*_DATASET, "constituent"]
    units = listed.lazy().sort(*_DATASET, "position").group_by(last_of, maintain_order=True)
    known = pl.col("total") > 0
    sized = units.agg(
        tot_num=pl.col("total").filter(known).first().fill_null(0),
        tot_size=pl.col("tsize").filter(known).first().fill_null(0),
    )
    if rules.container_totals == "last":
        sized = sized.group_by(_DATASET, maintain_order=True).agg(pl.col(TOTALS).last())
    return run(sized.group_by(KEY).agg(pl.col(TOTALS).sum()))


def at_nuclei(listed: pl.DataFrame, inputs: pl.DataFrame) -> pl.DataFrame:
    """Return what of every task's input each nucleus has at its input endpoints.

    Per dataset (or constituent), over the replicas at the nucleus's input endpoints in the order in which they
    are listed: a complete copy on disk is all there is to say; else the copy with most files counts, on disk
    and on disk or tape, the first one on ties.

    ``jeditaskid, snapshot, nucleus`` with ``ava_num_*`` [files], ``ava_size_*`` [B] and ``remote_source``: some replica
    looked at is readable over WAN. Nuclei without any replica fall out.
    """
    unit = [*_UNIT, "nucleus"]
    copies = valid_for(listed, inputs.unique(), ["ddm_endpoint_name"], ["snapshot"]).lazy()
    there = copies.with_columns(done=pl.col("whole") & ~pl.col("tape"))
    done = there.filter("done").group_by(unit).agg(end=pl.col("position").min())
    there = there.join(done, on=unit, how="left", nulls_equal=True).cache()
    seen = there.filter(pl.col("end").is_null() | (pl.col("position") <= pl.col("end")))
    ended = (pl.col("position") == pl.col("end")).fill_null(value=False)
    best = [pl.col("ended"), pl.col("found"), -pl.col("position")]
    first = seen.with_columns(ended=ended).sort(best, descending=True).cache()
    disk = first.filter(~pl.col("tape"))
    result = seen.group_by(unit).agg(remote_source=pl.col("up").any())
    for rows, kind in ((disk, "disk"), (first, "any")):
        most = rows.unique(unit, keep="first", maintain_order=True).select(
            *unit,
            pl.col("found").alias(f"ava_num_{kind}"),
            pl.when(pl.col("found") > 0).then("asize").otherwise(0).alias(f"ava_size_{kind}"),
        )
        result = result.join(most, on=unit, how="left", nulls_equal=True)
    summed = result.group_by(*KEY, "nucleus").agg(
        pl.col("remote_source").any(), pl.col(AVAILABLE).sum()
    )
    return run(summed.sort(*KEY, "nucleus"))


_SEPARATOR = "\x1f"  # stands in no endpoint's name


def pattern_of(storagetoken: pl.Expr) -> pl.Expr:
    """Return the part of a token that names an endpoint; a null token is the empty pattern.

    It is what stands after the last ``/``, without a leading ``dst:``.
    """
    return storagetoken.fill_null("").str.split("/").list.last().str.strip_prefix("dst:")


def destination(endpoint: pl.Expr, storagetoken: pl.Expr) -> pl.Expr:
    """Return the token that sends a dataset to an endpoint: ``dst:ENDPOINT/`` and the end of its own."""
    tail = storagetoken.fill_null("").str.split("/").list.last()
    return pl.concat_str(pl.lit("dst:"), endpoint, pl.lit("/"), tail)


def match(pattern: str, endpoints: Sequence[tuple[str, str | None]]) -> str | None:
    """Return the endpoint that a pattern of :func:`pattern_of` means among those of a nucleus; null if there is none.

    It is the endpoint (name and type, in stored order) of that exact name; else the first whose name the pattern finds as a
    regular expression, or whose type is the pattern without ``ATLAS``. A pattern that is no regular expression, or that cannot
    be decided in linear time, finds no name.

    Source: production-tasks.md 1, ``output_datasets``.
    """
    if any(name == pattern for name, _ in endpoints):
        return pattern
    wanted = pattern.replace("ATLAS", "")
    return next((name for name, kind in endpoints if kind == wanted or _finds(pattern, name)), None)


def _finds(pattern: str, name: str) -> bool:
    try:
        return compile_pattern(pattern).search(name)
    except PatternError:
        return False


def refusal(pattern: str) -> str | None:
    """Return why a pattern is taken for a name or type only; null for a regular expression."""
    try:
        compile_pattern(pattern)
    except PatternError as error:
        return str(error)
    return None


def resolve(asked: pl.DataFrame, endpoints: pl.DataFrame) -> pl.DataFrame:
    """Find the endpoint of every pattern at every site, null where it has none; each distinct pair of texts is matched once."""
    names, kinds = (
        pl.col(column).fill_null("").str.join(_SEPARATOR).alias(column)
        for column in ("ddm_endpoint_name", "type")
    )
    ordered = endpoints.lazy().sort("state", "site", "position")
    lists = ordered.group_by("state", "site").agg(names, kinds)
    asked = run(asked.lazy().join(lists, on=["state", "site"], how="left"))
    texts = ["pattern", "ddm_endpoint_name", "type"]
    distinct = asked.select(texts).unique().drop_nulls("ddm_endpoint_name")
    result = [
        match(pattern, list(zip(ends.split(_SEPARATOR), types.split(_SEPARATOR), strict=True)))
        for pattern, ends, types in distinct.iter_rows()
    ]
    first = distinct.lazy().with_columns(found=pl.Series(result, dtype=pl.String))
    answered = asked.lazy().join(first, on=texts, how="left")
    return run(answered.select("state", "site", "pattern", ddm_endpoint_name="found"))


PAIR = (*KEY, "nucleus")
GB_PER_TB = 1024.0
HS06_PER_CORE = 10
SECONDS_PER_DAY = 86400
GB_PER_CORE_DAY = 0.25
MISSING = {
    "gathers_output": False,
    "ddm_endpoint_name": None,
    "read_wan_up": True,
    "write_wan_up": True,
    **dict.fromkeys(
        ("read_wan", "write_wan", "usable_gb", "space_free", "space_expired", "space_total")
    ),
}
"""Facts of the output that decides, and what holds where a nucleus gathers none."""


def endpoints_of(nuclei: pl.DataFrame, nucleus_endpoints: pl.DataFrame) -> pl.DataFrame:
    """Return the endpoints of every nucleus in stored order; without a table of them the lists of nuclei are read.

    ``snapshot`` (null = every instant), ``nucleus, direction, position, ddm_endpoint_name``; output endpoints are local ones.
    """
    if nucleus_endpoints.height:
        away = (pl.col("direction") == "output") & ~pl.col("is_local").fill_null(value=True)
        return with_positions(nucleus_endpoints).filter(~away).drop("is_local")
    parts = [
        nuclei.select(
            "snapshot",
            "nucleus",
            pl.lit(direction).alias("direction"),
            pl.col(f"{direction}_endpoints").alias("ddm_endpoint_name"),
        )
        .explode("ddm_endpoint_name")
        .drop_nulls("ddm_endpoint_name")
        for direction in ("input", "output")
    ]
    order = pl.int_range(pl.len(), dtype=pl.Int64).over("snapshot", "nucleus", "direction")
    return pl.concat(parts).with_columns(position=order)


def demand_gb(rw_all: pl.Series, rules: ProductionRules) -> pl.Series:
    """Return the space that all work left at a nucleus will need [GB] (switch ``demand_is_whole``).

    A core of 10 HS06 writes 0.25 GB a day: ``rw_all / 10 / 86400 * 0.25``, rw_all in HS06 s.

    Source: production-tasks.md 3, row 6.
    """
    work = rw_all.to_numpy().astype(np.float64)
    demand = work / HS06_PER_CORE / SECONDS_PER_DAY * GB_PER_CORE_DAY
    return pl.Series(np.trunc(demand) if rules.demand_is_whole else demand)


def outputs_asked(
    tasks: pl.DataFrame, outputs: pl.DataFrame, rules: ProductionRules
) -> pl.DataFrame:
    """Return the outputs for which storage is asked; one without outputs may ask for the first endpoint (switch ``storage_of``).

    Source: 002, ATLAS Production Task Brokerage: "The storages associated to nuclei must have enough space:".
    """
    if rules.storage_of == "outputs":
        return outputs
    asked = tasks.select(KEY)
    return pl.concat(
        [outputs, asked.join(valid_for(asked, outputs), on=KEY, how="anti")], how="diagonal"
    )


def placed(
    pairs: pl.DataFrame, outputs: pl.DataFrame, endpoints: pl.DataFrame, storage: pl.DataFrame
) -> pl.DataFrame:
    """Find the endpoint of every output at every site, see :func:`match`; distributed outputs (``ddd:...``) go nowhere.

    One row per pair (``site``: whose endpoints count) and output with its columns and ``ddm_endpoint_name``, null without one.
    """
    nowhere = pl.col("storagetoken").str.starts_with("ddd:").fill_null(value=False)
    kept = with_positions(outputs).lazy().filter(~nowhere)
    gathered = run(kept.with_columns(pattern=pattern_of(pl.col("storagetoken"))))
    instants = pairs.select("snapshot").unique()
    wanted = endpoints.filter(pl.col("direction") == "output").drop("direction")
    wanted = without_instants(wanted, instants)
    kinds = without_instants(storage.select("snapshot", "ddm_endpoint_name", "type"), instants)
    varies = any(frame["snapshot"].is_not_null().any() for frame in (wanted, kinds))
    state = pl.col("snapshot") if varies else pl.lit(0, pl.Int64)  # else one state is that of all
    rows = valid_for(pairs.select(*PAIR, "site"), gathered).with_columns(state=state)
    asked = rows.select("state", "site", "pattern").unique()
    listed = valid_for(asked.select(snapshot="state").unique(), wanted, keys=["snapshot"])
    listed = first_valid_for(listed, kinds, ["ddm_endpoint_name"], ["snapshot"])
    result = resolve(asked, listed.rename({"snapshot": "state", "nucleus": "site"}))
    return rows.join(result, on=["state", "site", "pattern"], how="left").drop("state", "site")


def destinations(
    pairs: pl.DataFrame,
    outputs: pl.DataFrame,
    endpoints: pl.DataFrame,
    storage: pl.DataFrame,
    rules: ProductionRules,
) -> pl.DataFrame:
    """Add to :func:`placed` what the checks of an output compare.

    ``t, nucleus, position, demand_gb``, the columns of the endpoint, ``gathers_output`` (true), ``read_wan_up``,
    ``write_wan_up``, ``usable_gb`` and ``space_left``: the fraction of the endpoint that is left after the demand (null
    without total).
    """
    places = placed(pairs, outputs, endpoints, storage)
    places = places.join(pairs.select(*PAIR, "t", "demand_gb"), on=PAIR)
    rows = first_valid_for(places, storage, ["ddm_endpoint_name"], ["snapshot"]).lazy()
    rows = rows.with_columns(
        pl.col(*SPACES, "space_total").fill_null(0.0),
        gathers_output=pl.lit(value=True),
        read_wan_up=up("read_wan", rules=rules),
        write_wan_up=up("write_wan", rules=rules),
    )
    free = pl.col("space_free") + pl.col("space_expired")
    usable = space_usable() if rules.usable_space == "usable" else free
    rows = rows.with_columns(usable_gb=usable)
    left = (pl.col("usable_gb") - pl.col("demand_gb")) / pl.col("space_total")
    rows = rows.with_columns(space_left=pl.when(pl.col("space_total") > 0).then(left))
    return run(rows.select("t", "nucleus", "position", "demand_gb", "space_left", *MISSING))


def deciding(rows: pl.DataFrame, checks: Sequence[Rule], settings: pl.DataFrame) -> pl.DataFrame:
    """Return the output that decides at each nucleus: the first one that fails a check, else the one with the least space."""
    failing = pl.any_horizontal(check.when.fill_null(value=False) for check in checks)
    known = rows.lazy().join(settings.lazy(), on="t", maintain_order="left")
    known = known.with_columns(failing=failing)
    known = known.with_columns(least=pl.when(~pl.col("failing")).then("space_left"))
    ordered = known.sort(
        "failing", "least", "position", descending=[True, False, False], nulls_last=True
    )
    first = ordered.unique(["t", "nucleus"], keep="first", maintain_order=True)
    return run(first.select("t", "nucleus", *MISSING))
