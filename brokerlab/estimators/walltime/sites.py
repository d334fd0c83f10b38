"""What the configured core power of queues explains of run times, and what it does not.

The rule of the system takes time per event as inverse to core power: a log-log slope of -1. Here the
slope is estimated, with what it would do to an estimate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dataframely as dy
import numpy as np
import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.frames import prepared
from brokerlab.intervals import CONFIDENCE, summed
from brokerlab.numerics import FloatArray

TIMES = ("wall", "cpu")
NO_POWER, RULE, FITTED, OWN = "no core power", "slope -1", "slope of the others", "own queue"
"""Ways to carry the times of other queues over to a queue; the last knows the queue itself."""


class TimedJobs(dy.Schema):
    """One row per finished job of a task; rows where a time is null, 0 or no number are left out of that time."""

    jeditaskid = dy.Int64(metadata={"meaning": "the task: all its jobs do the same"})
    queue = dy.String(metadata={"meaning": "where it ran"})
    corepower = dy.Float64(
        nullable=True, metadata={"unit": "HS06 per core", "meaning": "as configured for the queue"}
    )
    cores = dy.Int64(metadata={"unit": "cores", "meaning": "of the job, at least 1"})
    events = dy.Int64(nullable=True, metadata={"meaning": "processed; null or 0: not known"})
    wall_s = dy.Float64(nullable=True, metadata={"unit": "s", "meaning": "start to end"})
    cpu_s = dy.Float64(nullable=True, metadata={"unit": "s", "meaning": "summed over the cores"})


def power_slopes(jobs: Any) -> pl.DataFrame:
    """Estimate the log-log slope of core time per event on core power, queues being random effects.

    ln(wall x cores / events), or ln(cpu / events), is linear in ln(core power) and, where jobs of a task
    differ in it, ln(events), plus a normal effect of the queue; by restricted maximum likelihood. A
    core power is one number per queue, so the interval has as many degrees of freedom as queues less 2.

    One row per task and time, by these: ``jeditaskid, time`` (wall, cpu), ``jobs, queues, slope,
    slope_lo, slope_hi, between_sd, within_sd`` (of the queue's effect and of a job, in logarithms), ``missing`` (why
    there is no slope; null: there is one).

    Source: calibration.md 5; Laird, Ware, Biometrics 38 (1982) 963, doi:10.2307/2529876.
    """
    rows = []
    for task, time, part in _parts(_timed(jobs), per_event=True):
        notes = _cannot(part)
        head = {"jeditaskid": task, "time": time, "jobs": part.height, "queues": part["queue"].n_unique()}  # fmt: skip
        rows.append(head | ({"missing": notes} if notes else _slope(part)))
    numbers = dict.fromkeys(
        ("slope", "slope_lo", "slope_hi", "between_sd", "within_sd"), pl.Float64
    )
    return pl.DataFrame(rows, schema={**_KEYS, **_COUNTS, **numbers, "missing": pl.String})


def queue_shares(jobs: Any, *, n_boot: int = 1000, seed: int = 0) -> pl.DataFrame:
    """Split the variance of ln(time) into that between queues and that inside, with and without core power.

    One row per task, time and ``scaled`` (the time was multiplied by core power): ``jeditaskid, time,
    scaled, jobs, queues, sd, sd_lo, sd_hi, within_sd, share, share_lo, share_hi`` (of the variance,
    between queues); tasks at fewer than 5 queues are left out.

    Ends are of queues drawn with replacement.

    Source: calibration.md 5.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for task, time, part in _parts(_timed(jobs), per_event=False):
        if part["queue"].n_unique() < FEWEST_QUEUES:
            continue
        for scaled in (False, True):
            value = pl.col("y") + (pl.col("x") if scaled else 0)
            sums = moments(part.select("queue", y=value))
            rows.append(
                {
                    "jeditaskid": task,
                    "time": time,
                    "scaled": scaled,
                    "jobs": part.height,
                    "queues": sums.shape[0],
                    **shares(sums, rng, n_boot=n_boot),
                }
            )
    numbers = dict.fromkeys(_SHARES, pl.Float64)
    return pl.DataFrame(rows, schema={**_KEYS, "scaled": pl.Boolean, **_COUNTS, **numbers})


def power_gain(jobs: Any, *, n_boot: int = 1000, seed: int = 0) -> pl.DataFrame:
    """Say how well times at a queue follow from those at the task's other queues, with and without core power.

    For every queue the mean logarithm of core time per event at the other queues (each queue counts the
    same) is carried over: as it is, with slope -1, with the slope that the others have, and, to compare,
    the mean of the queue's own other jobs. The error of a job is the absolute logarithm of told / taken.

    One row per task, time and ``way``: ``jeditaskid, time, way, jobs, queues, error`` (mean over the
    queues of the mean over their jobs), ``ratio, ratio_lo, ratio_hi`` (error / that without core power),
    ``job_error, job_ratio`` (the same where every job counts the same); tasks at fewer than 5 queues
    are left out.

    Ends are of queues drawn with replacement, all ways on the same draws.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for task, time, part in _parts(_timed(jobs), per_event=True):
        if part["queue"].n_unique() < FEWEST_QUEUES:
            continue
        errors = _carry(part)
        names = errors.columns[1:]
        by_queue = errors.select("queue").unique(maintain_order=True)
        by_queue = by_queue.join(_means(errors, names), on="queue", maintain_order="left")
        means = by_queue.select(names).to_numpy()
        drawn = drawn_sums(means, rng, n_boot)
        lo, hi = np.quantile(drawn / drawn[:, :1], TAILS, axis=0)
        error, job_error = means.mean(axis=0), errors.drop("queue").to_numpy().mean(axis=0)
        rows += [
            {
                "jeditaskid": task,
                "time": time,
                "way": name,
                "jobs": part.height,
                "queues": means.shape[0],
                "error": error[k],
                "ratio": error[k] / error[0],
                "ratio_lo": lo[k],
                "ratio_hi": hi[k],
                "job_error": job_error[k],
                "job_ratio": job_error[k] / job_error[0],
            }
            for k, name in enumerate(names)
        ]
    numbers = dict.fromkeys(_GAIN, pl.Float64)
    return pl.DataFrame(rows, schema={**_KEYS, "way": pl.String, **_COUNTS, **numbers})


def queue_means(jobs: Any) -> pl.DataFrame:
    """Return the mean logarithm of core time per event of every queue, less the mean over the task's queues.

    ``jeditaskid, time, queue, jobs, corepower, per_event``; by these, of tasks at 5 queues or more.
    """
    parts = [
        part.group_by("queue", maintain_order=True)
        .agg(jobs=pl.len().cast(pl.Int64), corepower=pl.col("x").first().exp(), y=pl.col("y").mean())
        .select(
            jeditaskid=pl.lit(task, pl.Int64), time=pl.lit(time), queue="queue", jobs="jobs",
            corepower="corepower", per_event=pl.col("y") - pl.col("y").mean(),
        )
        for task, time, part in _parts(_timed(jobs), per_event=True)
        if part["queue"].n_unique() >= FEWEST_QUEUES
    ]  # fmt: skip
    numbers = {"jobs": pl.Int64, "corepower": pl.Float64, "per_event": pl.Float64}
    empty = pl.DataFrame(schema={**_KEYS, "queue": pl.String, **numbers})
    return pl.concat(parts) if parts else empty


_KEYS = {"jeditaskid": pl.Int64, "time": pl.String}
_COUNTS = {"jobs": pl.Int64, "queues": pl.Int64}
_SHARES = ("sd", "sd_lo", "sd_hi", "within_sd", "share", "share_lo", "share_hi")
_GAIN = ("error", "ratio", "ratio_lo", "ratio_hi", "job_error", "job_ratio")


def _timed(jobs: Any) -> pl.DataFrame:
    return prepared({"jobs": jobs}, {"jobs": TimedJobs})["jobs"]


def _parts(jobs: pl.DataFrame, *, per_event: bool) -> Iterator[tuple[int, str, pl.DataFrame]]:
    """Give ``queue, y`` = ln(time), ``x`` = ln(core power), ``events`` of each task and time.

    Per event the time of all cores is meant, and jobs without events are left out.
    """
    base = jobs.filter(_above_0("corepower")).sort("jeditaskid", "queue")
    if per_event:
        base = base.filter(pl.col("events") > 0)
    cores = pl.col("cores") if per_event else pl.lit(1)
    spent = {"wall": cores * pl.col("wall_s"), "cpu": pl.col("cpu_s")}
    for (task,), rows in base.group_by("jeditaskid", maintain_order=True):
        for time in TIMES:
            taken = spent[time] / (pl.col("events") if per_event else 1)
            part = rows.filter(_above_0(f"{time}_s")).select(
                "queue", "events", y=taken.log(), x=pl.col("corepower").log()
            )
            yield int(task), time, part


def _above_0(name: str) -> pl.Expr:
    """Tell where a number is above 0, and finite: Polars orders NaN above all."""
    return (pl.col(name) > 0) & pl.col(name).is_finite()


def _cannot(part: pl.DataFrame) -> str | None:
    """Say why there is no slope."""
    queues = part["queue"].n_unique()
    if queues < FEWEST_QUEUES:
        return f"{queues} queue{'s' if queues != 1 else ''}, {FEWEST_QUEUES} are needed"
    if part["x"].n_unique() < 3:
        return "core powers hardly differ"
    return None


def _slope(part: pl.DataFrame) -> dict[str, float | str]:
    """Return the slope with its interval and the deviations, or why there is none."""
    import warnings

    import statsmodels.api as sm
    from scipy import stats

    x = [np.ones(part.height), part["x"].to_numpy()]
    if part["events"].n_unique() > 1:
        x.append(np.log(part["events"].to_numpy()))
    queues = part["queue"].to_numpy()
    model = sm.MixedLM(part["y"].to_numpy(), np.column_stack(x), groups=queues)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a variance of 0 between queues is an answer
        result = model.fit(reml=True)
    if not np.isfinite(result.bse[1]):
        return {"missing": "its uncertainty cannot be told"}
    wide = stats.t.ppf(TAILS[1], part["queue"].n_unique() - 2) * result.bse[1]
    slope = float(result.params[1])
    return {
        "slope": slope,
        "slope_lo": slope - float(wide),
        "slope_hi": slope + float(wide),
        "between_sd": float(np.sqrt(result.cov_re[0, 0])),
        "within_sd": float(np.sqrt(result.scale)),
    }


def _means(rows: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Return ``queue``, the means of columns, and ``n`` rows, sorted; the same bits at any number of threads."""
    sums = summed(rows.with_columns(n=1), ["queue"], [*names, "n"])
    return sums.with_columns(pl.col(names) / pl.col("n"))


def _carry(part: pl.DataFrame) -> pl.DataFrame:
    """Return ``queue`` and the error of every job, by way."""
    firsts = part.group_by("queue").agg(pl.col("x").first())
    means = _means(part, ["y"]).join(firsts, on="queue", how="left", maintain_order="left")
    y, x = means["y"].to_numpy(), means["x"].to_numpy()
    n = y.size
    values = np.empty((n, 3))
    for k in range(n):
        others = np.arange(n) != k
        base, middle = y[others].mean(), x[others].mean()
        dx = x[others] - middle
        slope = float(dx @ (y[others] - base) / (dx @ dx)) if dx @ dx > 0 else 0.0
        values[k] = base, base - (x[k] - middle), base + slope * (x[k] - middle)
    frame = means.select("queue", "n", own="y").with_columns(
        pl.Series(name, values[:, k]) for k, name in enumerate((NO_POWER, RULE, FITTED))
    )
    rows = part.select("queue", "y").join(frame, on="queue", how="left", maintain_order="left")
    alone = (pl.col("own") * pl.col("n") - pl.col("y")) / (pl.col("n") - 1)
    rows = rows.with_columns(pl.when(pl.col("n") > 1).then(alone).otherwise(NO_POWER).alias(OWN))
    names = (NO_POWER, RULE, FITTED, OWN)
    return rows.select("queue", *((pl.col(name) - pl.col("y")).abs() for name in names))


TAILS = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
FEWEST_QUEUES = 5  # queues below which nothing is said of differences between queues


def between_queues(
    queues: pl.Series, seconds: pl.Series, *, n_boot: int = 1000, seed: int = 0
) -> dict[str, float]:  # fmt: skip
    """Split the variance of ln(time) of any jobs into that between and inside queues.

    ``jobs, queues, sd, within_sd, share, share_lo, share_hi``.
    """
    part = pl.DataFrame({"queue": queues, "s": seconds}).filter(pl.col("s") > 0)
    sums = moments(part.select("queue", y=pl.col("s").log()))
    if sums.shape[0] < FEWEST_QUEUES:
        raise InsufficientDataError(
            f"jobs at {sums.shape[0]} queues: {FEWEST_QUEUES} or more are needed"
        )
    result = shares(sums, np.random.default_rng(seed), n_boot=n_boot)
    del result["sd_lo"], result["sd_hi"]
    return {"jobs": part.height, "queues": sums.shape[0], **result}


def shares(sums: FloatArray, rng: np.random.Generator, *, n_boot: int) -> dict[str, float]:
    """Return ``sd, sd_lo, sd_hi, within_sd, share, share_lo, share_hi``: what `split` says, queues drawn with replacement."""
    sd, within, share = split(sums.sum(axis=0))
    drawn = np.array([split(each) for each in drawn_sums(sums, rng, n_boot)])
    (sd_lo, sd_hi), (lo, hi) = (np.quantile(drawn[:, k], TAILS).tolist() for k in (0, 2))
    return dict(zip(_SHARES, (sd, sd_lo, sd_hi, within, share, lo, hi), strict=True))


def moments(part: pl.DataFrame) -> FloatArray:
    """Return number, sum, sum of squares, and squares around its mean, of every queue."""
    y = pl.col("y") - part["y"].mean()
    sums = part.group_by("queue").agg(
        pl.len().cast(pl.Float64).alias("n"),
        y.sum().alias("sum"),
        (y * y).sum().alias("squares"),
        ((pl.col("y") - pl.col("y").mean()) ** 2).sum().alias("inside"),
    )
    return sums.sort("queue").drop("queue").to_numpy()


def split(sums: FloatArray) -> tuple[float, float, float]:
    """Return standard deviation, that inside queues, and the share of the variance between queues."""
    n, total, squares, inside = sums
    spread = squares - total * total / n
    share = 1 - inside / spread if spread > 0 else 0.0
    return float(np.sqrt(spread / max(n - 1, 1))), float(np.sqrt(inside / n)), float(share)


def drawn_sums(sums: FloatArray, rng: np.random.Generator, n_boot: int) -> FloatArray:
    """Return sums over queues drawn with replacement, a row per draw."""
    n = sums.shape[0]
    return np.asarray(rng.multinomial(n, np.full(n, 1 / n), size=n_boot) @ sums)
