"""How long analysis jobs wait at each queue, at one instant or many: mean, and the limit that one job's wait stays below.

The weights of a sample change with every instant and the median has no running form, so no grouping can replace the
loop over the jobs of a queue. They come in the order of time in which they enter the sample; those inside are kept in
that order, so that sums have the same last bit for one instant and for many.

Source: docs/rules/classes.md 1 and 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from brokerlab.compiled import compiled
from brokerlab.engines import TEXT, collect, narrow
from brokerlab.errors import ConfigError, DataError
from brokerlab.lazy import Later
from brokerlab.lifecycle import states
from brokerlab.lifecycle.classification.instants import At, Instants
from brokerlab.lifecycle.classification.rules import ClassRules
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.units import DAY_S, HOUR_S, SECOND_US

special = Later("scipy.special")


class Sample(NamedTuple):
    """Jobs of all queues, sorted by queue, then by entering."""

    begin: IntArray  # first row of each queue, and the number of rows at the end
    enter: IntArray  # the job belongs to the sample from here [us since 1970]
    leave: IntArray  # ... until before here
    time: IntArray  # start of waits, creation of queued jobs [us since 1970]
    value: FloatArray  # wait [s]
    basis: IntArray  # bit of what the wait was read from


@compiled
def moments(
    values: FloatArray, weights: FloatArray
) -> tuple[float, float, float, float, float, float]:
    """Return sum of weights, weighted mean and standard deviation, mean, standard deviation and median."""
    total = weighted = plain = 0.0
    for i in range(len(values)):
        total += weights[i]
        weighted += weights[i] * values[i]
        plain += values[i]
    mean = plain / len(values)
    w_mean = weighted / total if total > 0 else np.nan
    w_square = square = 0.0
    for i in range(len(values)):
        w_square += weights[i] * (values[i] - w_mean) ** 2
        square += (values[i] - mean) ** 2
    w_stdev = np.sqrt(w_square / total) if total > 0 else np.nan
    return total, w_mean, w_stdev, mean, np.sqrt(square / len(values)), np.median(values)


@compiled
def wait_moments(
    sample: Sample, at: IntArray, half_life_s: float
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return number of jobs, bits of basis, and the moments of every queue (rows) at every instant (columns)."""
    queues, instants = len(sample.begin) - 1, len(at)
    count = np.zeros((queues, instants), np.int64)
    bits = np.zeros((queues, instants), np.int64)
    result = np.full((queues, instants, 6), np.nan)
    widest = 0
    for queue in range(queues):
        widest = max(widest, sample.begin[queue + 1] - sample.begin[queue])
    inside = np.empty(widest, np.int64)
    values, weights = np.empty(widest), np.empty(widest)
    for queue in range(queues):
        following, n = sample.begin[queue], 0
        for k in range(instants):
            following, n = _move(sample, queue, at[k], inside, following, n)
            if n == 0:
                continue
            basis = 0
            for place in range(n):
                row = inside[place]
                values[place] = sample.value[row]
                weights[place] = np.exp2(-((at[k] - sample.time[row]) // SECOND_US) / half_life_s)
                basis |= sample.basis[row]
            count[queue, k], bits[queue, k] = n, basis
            for number, value in enumerate(moments(values[:n], weights[:n])):
                result[queue, k, number] = value
    return count, bits, result


@compiled
def _move(
    sample: Sample, queue: int, now: int, inside: IntArray, following: int, n: int
) -> tuple[int, int]:
    """Bring the rows of a queue that are inside the sample up to an instant."""
    kept = 0
    for place in range(n):
        if sample.leave[inside[place]] > now:
            inside[kept] = inside[place]
            kept += 1
    while following < sample.begin[queue + 1] and sample.enter[following] <= now:
        if sample.leave[following] > now:
            inside[kept] = following
            kept += 1
        following += 1
    return following, kept


@compiled
def long_queue(sample: Sample, at: IntArray, limit_s: FloatArray) -> tuple[IntArray, IntArray]:
    """Count the jobs that have queued for longer than a limit, and add up how long [us].

    ``limit_s`` has a row per queue and a column per instant.
    """
    queues, instants = len(sample.begin) - 1, len(at)
    count = np.zeros((queues, instants), np.int64)
    total = np.zeros((queues, instants), np.int64)
    widest = 0
    for queue in range(queues):
        widest = max(widest, sample.begin[queue + 1] - sample.begin[queue])
    inside = np.empty(widest, np.int64)
    for queue in range(queues):
        following, n = sample.begin[queue], 0
        for k in range(instants):
            following, n = _move(sample, queue, at[k], inside, following, n)
            for place in range(n):
                waited = at[k] - sample.time[inside[place]]
                if waited / SECOND_US > limit_s[queue, k]:
                    count[queue, k] += 1
                    total[queue, k] += waited
    return count, total


LARGEST_S = 999_999.0  # upper limits are cut here [s]
ROUNDING = 1e-9  # A relative standard deviation below is the rounding of waits that are all equal


def upper_limit(
    mean: FloatArray, stdev: FloatArray, freedom: FloatArray, cl: float = 0.95
) -> FloatArray:
    """Bound one wait from above: ``min(mean + stdev * t_cl(freedom), 999999)``.

    Source: docs/rules/classes.md 2, items 5 to 7.
    """
    spread = (stdev > ROUNDING * np.abs(mean)) & (freedom > 0)
    quantile = special.stdtrit(np.where(spread, freedom, 1.0), cl)
    # the quantile overflows to infinity for tiny degrees of freedom: the cut catches it
    limit = np.minimum(mean + stdev * quantile, LARGEST_S)
    return np.where(spread, limit, np.nan)


@dataclass(frozen=True)
class WeightedLimit:
    """Statistics of the waits of one queue; every one in seconds but for ``n`` and ``sum_of_weights``."""

    n: int  # number of jobs
    sum_of_weights: float  # sum of the weights
    w_mean: float | None  # weighted mean; null without jobs
    w_stdev: float | None  # weighted standard deviation, population form
    # weighted upper limit; null where all waits are equal (``degenerate``) or there are none
    upper: float | None
    mean: float | None
    stdev: float | None  # standard deviation, population form
    median: float | None
    unweighted_upper: float | None  # upper limit from n alone; null for n = 1 or equal waits

    @property
    def degenerate(self) -> bool:
        """All waits are equal: no upper limit exists."""
        return self.n > 0 and self.upper is None


def weighted_upper_limit(
    values: Sequence[float], ages: Sequence[float], *, half_life_hours: float = 6, cl: float = 0.95
) -> WeightedLimit:
    """Weigh waits by their age and bound one job's wait from above.

    ``w = 2 ** (-age / half-life)``; the effective number of jobs is the sum of weights + 1.

    Waits and ages (how long ago each job started) are in s, ages whole seconds; the half-life [h] is above 0, ``cl`` one-sided
    between 0 and 1, else a ConfigError.

    Source: docs/rules/classes.md 2.
    """
    if not half_life_hours > 0 or not 0 < cl < 1:
        raise ConfigError(
            f"half_life_hours={half_life_hours!r}, cl={cl!r}: allowed are a half-life above 0 and a level between 0 and 1"
        )
    if len(values) != len(ages):
        raise DataError(f"{len(values)} values and {len(ages)} ages: one age per value is needed")
    if not len(values):
        return WeightedLimit(0, 0.0, *[None] * 7)
    waits, old = (np.asarray(numbers, dtype=np.float64) for numbers in (values, ages))
    if not (np.isfinite(waits).all() and np.isfinite(old).all()):
        raise DataError("values and ages: NaN, null or infinite ones; leave these jobs out")
    weights = np.exp2(-old / (half_life_hours * HOUR_S))
    total, w_mean, w_stdev, mean, stdev, median = moments(waits, weights)
    numbers = np.array([w_mean, mean]), np.array([w_stdev, stdev])
    upper, unweighted = upper_limit(*numbers, np.array([total, len(values) - 1.0]), cl)
    result = (w_mean, w_stdev, upper, mean, stdev, median, unweighted)
    plain = [None if np.isnan(number) else float(number) for number in result]
    return WeightedLimit(len(values), float(total), *plain)


USER = "user"
USER_ANALYSIS = "User Analysis"
MERGE = "pmerge"
PROBE_USER = "gangarbt"  # the user of the probes that measure queues
SAMPLE_S = 4 * DAY_S  # jobs changed within this time are the sample [s]
BASES = ("status_log", "activatedtime", "creationtime")
"""What a wait is read from; bits of ``Sample.basis``."""
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
    table, log = states.read(jobs, status_log)
    if not len(instants):
        return pl.DataFrame(schema=COLUMNS)
    waits = _waits(table, log, instants, rules)
    names = waits["computingsite"].unique().sort()
    half_life_s = rules.half_life_hours * HOUR_S
    count, bits, result = wait_moments(_sample(waits, names), instants.at_us, half_life_s)
    w_mean = result[:, :, 1]
    # without a mean above 0 nobody waits for longer than it: there is no long queue to speak of
    limit = np.where(w_mean > 0, w_mean, np.inf)
    queued = _queued(table, log, queues, instants, rules)
    longer, total_us = long_queue(_sample(queued, names), instants.at_us, limit)
    matrices = {"n": count, "bits": bits, "long_q_n": longer, "total_us": total_us}
    place, queue = np.nonzero(count.T)
    flat = {name: matrix[queue, place] for name, matrix in matrices.items()}
    return _as_result(
        flat, result[queue, place], instants.columns(place), names.gather(queue), rules
    )


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
        seen = chosen.join(states.first_seen(log), on="pandaid", how="inner")
        timed = seen.with_columns(basis=nw.lit(1))
    else:
        timed = chosen.with_columns(
            activated=nw.coalesce("activatedtime", "creationtime"),
            running=nw.col("starttime"),
            basis=nw.when(nw.col("activatedtime").is_null()).then(nw.lit(4)).otherwise(nw.lit(2)),
        )
    kept = timed.filter(nw.col("running") >= nw.col("activated"))
    columns = ["computingsite", "activated", "running", "modificationtime", "basis"]
    rows = collect(kept.with_columns(changed=states.changed()).select(*columns, "changed"))
    start, change = _us("running"), _us("changed") if finished else _us("running")
    return rows.select(
        "computingsite",
        enter=pl.max_horizontal(start, change),
        leave=_us("modificationtime") + SAMPLE_S * SECOND_US,
        time=start,
        value=start - _us("activated"),
        basis=pl.col("basis").cast(pl.Int64),
    ).filter(pl.col("enter") < pl.col("leave"))


def _changed_in_time(instants: Instants) -> nw.Expr:
    """Whether a job was changed late enough for the first instant."""
    earliest = pl.Series([instants.at_us[0] - SAMPLE_S * SECOND_US]).cast(pl.Datetime("us"))[0]
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
    during = states.status_spans(chosen, log, ["computingsite", "creationtime"])
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


def _sample(rows: pl.DataFrame, names: pl.Series) -> Sample:
    """Lay rows out for the kernels: sorted by queue, then by entering; ties by what else they hold."""
    codes = pl.DataFrame({"computingsite": names, "code": np.arange(len(names))})
    coded = rows.join(codes, on="computingsite").drop("computingsite")
    coded = coded.sort("code", "enter", "leave", "time", "value", "basis")
    begin = np.searchsorted(coded["code"].to_numpy(), np.arange(len(names) + 1))
    array = {name: np.ascontiguousarray(coded[name].to_numpy()) for name in coded.columns}
    return Sample(
        begin.astype(np.int64),
        array["enter"],
        array["leave"],
        array["time"],
        array["value"] / SECOND_US,
        array["basis"],
    )


def _as_result(
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
    long_mean = np.where(
        longer, flat["total_us"] / SECOND_US / np.maximum(flat["long_q_n"], 1), empty
    )
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
