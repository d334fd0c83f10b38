"""How long analysis jobs wait at each queue, at one instant or many.

Source: docs/rules/classes.md 1 and 2.
"""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from brokerlab.engines import TEXT, collect, narrow
from brokerlab.lifecycle.classification import kernels, spans
from brokerlab.lifecycle.classification.instants import At, Instants
from brokerlab.lifecycle.classification.rules import ClassRules
from brokerlab.lifecycle.classification.weighted import ROUNDING, upper_limit
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.units import DAY_S, HOUR_S

USER = "user"
USER_ANALYSIS = "User Analysis"
MERGE = "pmerge"
PROBE_USER = "gangarbt"  # the user of the probes that measure queues
SAMPLE_S = 4 * DAY_S  # jobs changed within this time are the sample [s]
BASES = ("status_log", "activatedtime", "creationtime")
"""What a wait is read from; bits of ``kernels.Sample.basis``."""
_SEEN_ACTIVE = [
    "running",
    "holding",
    "merging",
    "transferring",
    "finished",
    "failed",
    "closed",
    "cancelled",
]
_FAR_US = 2**62
_US = 1_000_000
COLUMNS: dict[str, Any] = {
    "snapshot": pl.Int64,
    "at": pl.Datetime("us"),
    "computingsite": pl.String,
    "n": pl.Int64,
    **dict.fromkeys(["mean", "stdev", "median", "cl95upp", "sum_of_weights"], pl.Float64),
    **dict.fromkeys(["w_mean", "w_stdev", "w_cl95upp"], pl.Float64),
    "long_q_n": pl.Int64,
    "long_q_mean": pl.Float64,
    **dict.fromkeys(["reason", "wait_basis"], pl.String),
}


def wait_stats(
    jobs: Any,
    queues: Any | None = None,
    *,
    status_log: Any | None = None,
    at: At,
    rules: ClassRules | str | None = None,
) -> pl.DataFrame:
    """Rate how quickly each queue starts analysis jobs.

    ``jobs`` may be a table as it stood at the instant, or an archive: a job belongs to the sample of an instant if it
    had started and ended (rule set ``production``: started) by then and was changed in the four days before. Filters,
    first times and spans are computed in the engine of ``jobs``, once for all instants; what is left of a job (five
    numbers) is weighed here.

    One row per instant and queue with a job in the sample, sorted: ``snapshot, at, computingsite, n`` (jobs),
    ``mean, stdev, median, cl95upp`` [s], ``sum_of_weights, w_mean, w_stdev, w_cl95upp`` [s], ``long_q_n`` (jobs),
    ``long_q_mean`` [s], ``reason`` (``degenerate``: all waits are equal, no upper limit; ``no_wait``: the mean is
    0, no long queue; else null), ``wait_basis`` (what waits were read from).

    ``jobs``: ``pandaid, computingsite, prodsourcelabel, gshare, processingtype, produsername, jobstatus, creationtime,
    modificationtime``, perhaps ``statechangetime, activatedtime, starttime, table``; times are UTC, jobs without queue or without a
    time that is needed do not count. ``queues``: ``panda_queue, workflow``, read where starting jobs count for push queues only; None:
    none known. ``status_log``: ``pandaid, jobstatus, modificationtime`` of the same engine; None: the jobs' own times.

    Source: docs/rules/classes.md 1 and 2; switches half_life_hours, sample_status, wait_time, effective_n,
    long_q_status, empty_long_queue.
    """
    rules = ClassRules.of(rules)
    instants = Instants.of(at)
    table, log = spans.read(jobs, status_log)
    if not len(instants):
        return pl.DataFrame(schema=COLUMNS)
    waits = _waits(table, log, instants, rules)
    names = waits["computingsite"].unique().sort()
    half_life_s = rules.half_life_hours * HOUR_S
    count, bits, result = kernels.wait_moments(_sample(waits, names), instants.at_us, half_life_s)
    w_mean = result[:, :, 1]
    # without a mean above 0 nobody waits for longer than it: there is no long queue to speak of
    limit = np.where(w_mean > 0, w_mean, np.inf)
    queued = _queued(table, log, queues, instants, rules)
    longer, total_us = kernels.long_queue(_sample(queued, names), instants.at_us, limit)
    matrices = {"n": count, "bits": bits, "long_q_n": longer, "total_us": total_us}
    place, queue = np.nonzero(count.T)
    flat = {name: matrix[queue, place] for name, matrix in matrices.items()}
    return _told(flat, result[queue, place], instants.columns(place), names.gather(queue), rules)


def _waits(
    jobs: nw.LazyFrame[Any], log: nw.LazyFrame[Any] | None, instants: Instants, rules: ClassRules
) -> pl.DataFrame:
    """Return the history sample: queue, times that bound its part in the sample, wait, basis."""
    status = nw.col("jobstatus")
    finished = rules.sample_status == "finished"
    if finished:
        counted = status == "finished"
    else:
        archived = nw.coalesce("table", nw.lit("")).str.to_lowercase() == "jobsarchived4"
        counted = archived | status.is_in(_SEEN_ACTIVE)
    who = (nw.col("processingtype") == MERGE) | (nw.col("produsername") == PROBE_USER)
    labels = (nw.col("prodsourcelabel") == USER) & (nw.col("gshare") == USER_ANALYSIS)
    chosen = jobs.filter(
        labels & counted & who & ~nw.col("computingsite").is_null() & _changed_in_time(instants)
    )
    if log is not None and rules.wait_time == "first_seen":
        seen = chosen.join(spans.first_seen(log), on="pandaid", how="inner")
        timed = seen.with_columns(basis=nw.lit(1))
    else:
        timed = chosen.with_columns(
            activated=nw.coalesce("activatedtime", "creationtime"),
            running=nw.col("starttime"),
            basis=nw.when(nw.col("activatedtime").is_null()).then(nw.lit(4)).otherwise(nw.lit(2)),
        )
    kept = timed.filter(nw.col("running") >= nw.col("activated"))
    columns = ["computingsite", "activated", "running", "modificationtime", "basis"]
    rows = collect(kept.with_columns(changed=spans.changed()).select(*columns, "changed"))
    start, change = _us("running"), _us("changed") if finished else _us("running")
    return rows.select(
        "computingsite",
        enter=pl.max_horizontal(start, change),
        leave=_us("modificationtime") + SAMPLE_S * _US,
        time=start,
        value=start - _us("activated"),
        basis=pl.col("basis").cast(pl.Int64),
    ).filter(pl.col("enter") < pl.col("leave"))


def _changed_in_time(instants: Instants) -> nw.Expr:
    """Whether a job was changed late enough for the first instant."""
    earliest = pl.Series([instants.at_us[0] - SAMPLE_S * _US]).cast(pl.Datetime("us"))[0]
    return nw.col("modificationtime") > nw.lit(earliest)


def _us(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Datetime("us")).cast(pl.Int64)


def _queued(
    jobs: nw.LazyFrame[Any],
    log: nw.LazyFrame[Any] | None,
    queues: Any | None,
    instants: Instants,
    rules: ClassRules,
) -> pl.DataFrame:
    """Return the current sample: queue, when the job queued there, its creation."""
    labels = (nw.col("prodsourcelabel") == USER) & (nw.col("gshare") == USER_ANALYSIS)
    known = ~nw.col("computingsite").is_null() & ~nw.col("creationtime").is_null()
    chosen = jobs.filter(labels & (nw.col("processingtype") == MERGE) & known)
    during = spans.status_spans(chosen, log, ["computingsite", "creationtime"])
    page = rules.long_q_status == "activated_starting"
    wanted = ["activated", "starting"] if page else ["activated", "sent", "starting"]
    early = nw.col("enter").is_null() | (nw.col("enter") <= nw.lit(instants.last))
    late = nw.col("leave").is_null() | (nw.col("leave") > nw.lit(instants.first))
    rows = collect(during.filter(nw.col("status").is_in(wanted) & early & late))
    if not page:
        push = pl.col("computingsite").is_in(_push(queues))
        rows = rows.filter((pl.col("status") != "starting") | push)
    created = _us("creationtime")
    return rows.select(
        "computingsite",
        enter=pl.max_horizontal(_us("enter"), created),
        leave=_us("leave").fill_null(_FAR_US),
        time=created,
        value=pl.lit(0, pl.Int64),
        basis=pl.lit(0, pl.Int64),
    )


def _push(queues: Any | None) -> list[str]:
    """Return the queues whose workflow begins with ``push``."""
    if queues is None:
        return []
    table = narrow(
        queues, "queues", {"panda_queue": TEXT, "workflow": TEXT}, ("panda_queue", "workflow")
    )
    result = collect(table.filter(nw.col("workflow").str.starts_with("push")))
    return result["panda_queue"].to_list()


def _sample(rows: pl.DataFrame, names: pl.Series) -> kernels.Sample:
    """Lay rows out for the kernels: sorted by queue, then by entering; ties by what else they hold."""
    codes = pl.DataFrame({"computingsite": names, "code": np.arange(len(names))})
    coded = rows.join(codes, on="computingsite").drop("computingsite")
    coded = coded.sort("code", "enter", "leave", "time", "value", "basis")
    begin = np.searchsorted(coded["code"].to_numpy(), np.arange(len(names) + 1))
    array = {name: np.ascontiguousarray(coded[name].to_numpy()) for name in coded.columns}
    return kernels.Sample(
        begin.astype(np.int64),
        array["enter"],
        array["leave"],
        array["time"],
        array["value"] / _US,
        array["basis"],
    )


def _told(
    flat: dict[str, IntArray],
    values: FloatArray,
    at: dict[str, pl.Series],
    names: pl.Series,
    rules: ClassRules,
) -> pl.DataFrame:
    """Make the result from flat arrays, one place per row."""
    weights, w_mean, w_stdev, mean, stdev, median = values.T
    others = (flat["n"] - 1).astype(np.float64)
    w_freedom = weights if rules.effective_n == "weights" else others
    w_stdev = np.where(w_stdev <= ROUNDING * w_mean, 0.0, w_stdev)
    longer = flat["long_q_n"] > 0
    empty = w_mean if rules.empty_long_queue == "w_mean" else np.nan
    # whole microseconds: the sum is exact, whatever its order
    long_mean = np.where(longer, flat["total_us"] / _US / np.maximum(flat["long_q_n"], 1), empty)
    waits = w_mean > 0
    numbers = {
        "mean": mean,
        "stdev": stdev,
        "median": median,
        "cl95upp": upper_limit(mean, stdev, others),
        "sum_of_weights": weights,
        "w_mean": w_mean,
        "w_stdev": w_stdev,
        "w_cl95upp": upper_limit(w_mean, w_stdev, w_freedom),
        "long_q_mean": np.where(waits, long_mean, np.nan),
    }
    frame = pl.DataFrame(
        {**at, "computingsite": names, "n": flat["n"], "long_q_n": flat["long_q_n"], **numbers}
    ).with_columns(pl.col(list(numbers)).fill_nan(None), waits=pl.Series(waits))
    bits = pl.Series(flat["bits"])
    basis = [
        "+".join(name for bit, name in enumerate(BASES) if value >> bit & 1) for value in range(8)
    ]
    no_wait = pl.when(~pl.col("waits")).then(pl.lit("no_wait"))
    degenerate = pl.when(pl.col("w_cl95upp").is_null()).then(pl.lit("degenerate"))
    rows = frame.with_columns(
        pl.when("waits").then("long_q_n"),
        reason=pl.coalesce(no_wait, degenerate),
        wait_basis=bits.replace_strict(list(range(8)), basis, return_dtype=pl.String),
    )
    return rows.select(pl.col(name).cast(dtype) for name, dtype in COLUMNS.items())
