"""How far off guesses of run times are, of whole tasks and of the batch logs of a folder, and where the bound of like jobs is exceeded."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from brokerlab.errors import ConfigError, InsufficientDataError, nearest
from brokerlab.estimators.deployed import log_rules
from brokerlab.estimators.held import ROUNDING, HeldBounds
from brokerlab.estimators.likejobs import LikeJobs
from brokerlab.estimators.offered import LEVEL, offers
from brokerlab.estimators.records import checked
from brokerlab.estimators.scoring.judged import FEW_TASKS, exact
from brokerlab.estimators.sources import of_log
from brokerlab.estimators.sources.source import At
from brokerlab.estimators.trial import Trial
from brokerlab.intervals import clustered
from brokerlab.numerics import FloatArray
from brokerlab.units import DAY_S
from brokerlab.workflows import swf

PATTERN = "swf-logs/*.swf.gz"
MEDIAN, BOUND = f"{LikeJobs.name}, median", f"{LikeJobs.name}, bound {100 * LEVEL:g} %"
"""Names of the median and of the bound of like jobs."""
MANY_JOBS = 100
"""Scored jobs with a bound from which on the miss rate of a single user is looked at."""
EXPERIENCE = {"1 to 5": (0, 5), "6 to 50": (5, 50), "51 or more": (50, None)}
"""Which job of its user a job is: earlier ones from, to below."""
WORST_USER = "worst user"


@dataclass(frozen=True, kw_only=True, eq=False)
class Log:
    """A log as it is scored."""

    name: str  # of the file
    jobs: pl.DataFrame  # records, the first by submission; the task is the user
    n_read: int  # jobs in the file
    knows_waits: bool  # else jobs start when they are submitted


@dataclass(frozen=True, kw_only=True, eq=False)
class LogComparison:
    """All predictions on the later half of every log."""

    # one row per log and method: ``log, users, days`` (scored) and the columns of `compare_predictions`
    methods: pl.DataFrame
    # ``log, stratum`` (a key of `EXPERIENCE`, or `WORST_USER`: the one with the largest share of misses),
    # ``user`` (null: all), ``jobs, users, answered`` (jobs that have a bound), ``under`` (share of these beyond
    # it; null: there are none), ``ratio`` (mean absolute error of the median / that of the best simple rule;
    # null where that is 0)
    strata: pl.DataFrame
    # one row per log: ``log, user, jobs, largest`` (misses of the user and day with most), ``missed`` (of all)
    campaigns: pl.DataFrame

    def row(self, log: str, method: str) -> dict[str, Any]:
        """Return the row of a method on a log."""
        return self.methods.filter(log=log, method=method).row(0, named=True)

    def each(self, method: str) -> pl.DataFrame:
        """Return the rows of a method, log by log."""
        return self.methods.filter(method=method)

    @property
    def offer(self) -> dict[str, Any]:
        """How like jobs compare with the simple rules over all logs, and whether they are offered: a row of `offered.offers`."""
        bounds = [
            {"system": row["log"], "upper_0.95": _upper(row)}
            for row in self.each(BOUND).iter_rows(named=True)
        ]
        schema = {"system": pl.String, "upper_0.95": pl.Float64}
        judged = self.each(MEDIAN).select(
            kind=pl.lit("batch log"),
            unseen=pl.lit(""),
            system="log",
            estimator="method",
            learns=pl.lit(value=True),
            silent=pl.col("answered") == 0,
            ratio="ratio",
        )
        return offers(judged.join(pl.DataFrame(bounds, schema=schema), on="system")).row(
            0, named=True
        )

    @property
    def guesses(self) -> pl.DataFrame:
        """``methods`` that are no bounds, the least ``ratio`` first, with their ``role``: ``simple rule``, or like jobs: ``proposed`` where offered, else ``model``."""
        method = pl.col("method")
        ours = pl.lit("proposed" if self.offer["offered"] else "model")
        role = pl.when(method == MEDIAN).then(ours).otherwise(pl.lit("simple rule"))
        rows = self.methods.filter(method != BOUND).sort("ratio", "method")
        return rows.with_columns(role=role)


def _upper(bound: Mapping[str, Any]) -> float | None:
    """Return the end of the exact interval of 95 % of how many jobs keep a bound; None: it is promised nowhere."""
    n = round(bound["jobs"] * bound["answered"])
    return exact(n - round(n * bound["under"]), n, 0.95).hi if n else None


def read_logs(folder: Path, *, max_jobs: int) -> tuple[dict[str, Log], dict[str, str]]:
    """Read every log of a folder whose jobs have a user, a run time and a request."""
    logs: dict[str, Log] = {}
    left_out: dict[str, str] = {}
    for path in sorted(folder.glob(PATTERN)):
        jobs = swf.read(path).jobs
        name = path.name.removesuffix(".swf.gz")
        knows_waits = jobs["wait_s"].null_count() < jobs.height
        first = jobs.sort("submit_s", maintain_order=True).head(max_jobs)
        try:
            source = of_log(first, unknown_wait_s=None if knows_waits else 0.0)
        except InsufficientDataError as why:
            left_out[name] = str(why)
            continue
        logs[name] = Log(
            name=name, jobs=source.records, n_read=jobs.height, knows_waits=knows_waits
        )
    return logs, left_out


def predict_log(jobs: Any) -> dict[str, FloatArray]:
    """Let every simple rule and like jobs say how long each job runs, when it is submitted."""
    frame = checked(jobs)
    predicted = {each.name: each.replay(frame, levels=(LEVEL,)).point for each in log_rules()}
    ours = HeldBounds(LikeJobs("walltime"), "walltime").replay(frame, levels=(LEVEL,))
    return predicted | {MEDIAN: ours.point, BOUND: ours.only_promised().at(LEVEL)}


def compare_predictions(
    jobs: Any,
    predicted: Mapping[str, FloatArray],
    *,
    peers: Collection[str] | None = None,
    confidence: float = 0.95,
    n_boot: int = 2000,
    seed: int = 0,
) -> pl.DataFrame:
    """Score what was predicted of the later half of a log, and compare each with the best peer.

    One row per name: ``method, jobs, answered`` (share of the jobs, on which all else is told), ``mae_s`` (mean absolute error), ``median_s`` (median absolute error), ``accuracy``
    (mean of smaller / larger of prediction and run), ``under`` (share of jobs that run longer) with ``under_lo,
    under_hi``, ``over_allocation`` (time predicted above the runs / time run), ``best_peer``, ``ratio`` (mean absolute
    error / that of the best peer), ``ratio_lo, ratio_hi``.

    Source: sizing.md, section 8.
    """
    held_against = [each.name for each in log_rules()] if peers is None else list(peers)
    wrong = [f"peer '{name}': {nearest(name, predicted)}" for name in held_against if name not in predicted]  # fmt: skip
    if wrong or not held_against:
        raise ConfigError("; ".join(wrong) or "compare: at least one peer is needed")
    frame = checked(jobs)
    half = slice(frame.height // 2, None)
    run_s = frame["used"].to_numpy()[half]
    predictions = {name: each[half] for name, each in predicted.items()}
    table = pl.DataFrame([_score(name, each, run_s) for name, each in predictions.items()])
    best = table.filter(pl.col("method").is_in(held_against)).sort("mae_s", nulls_last=True)[
        "method"
    ][0]
    columns: dict[str, Any] = {"user": frame["jeditaskid"][half]}
    best_error = np.abs(predictions[best] - run_s)
    for name, each in predictions.items():
        answered = np.isfinite(each) & np.isfinite(best_error)
        columns[f"jobs of {name}"] = answered.astype(float)
        columns[f"error of {name}"] = np.where(answered, np.abs(each - run_s), 0.0)
        columns[f"best of {name}"] = np.where(answered, best_error, 0.0)
        columns[f"under of {name}"] = (run_s > each * ROUNDING).astype(float)
    formulas = {
        **{f"ratio {name}": (f"error of {name}", f"best of {name}") for name in predictions},
        **{f"under {name}": (f"under of {name}", f"jobs of {name}") for name in predictions},
    }
    drawn: dict[str, Any] = {"confidence": confidence, "n_boot": n_boot, "seed": seed}
    result = clustered(pl.DataFrame(columns), formulas, unit="user", **drawn).row(0, named=True)
    ends = [
        {f"{what}{end}": result[f"{what} {name}{end}"] for what, end in _ENDS}
        for name in predictions
    ]
    schema = {f"{what}{end}": pl.Float64 for what, end in _ENDS}
    return pl.concat(
        [table.with_columns(best_peer=pl.lit(best)), pl.DataFrame(ends, schema=schema)],
        how="horizontal",
    )


_ENDS = (("under", "_lo"), ("under", "_hi"), ("ratio", ""), ("ratio", "_lo"), ("ratio", "_hi"))


def _score(name: str, said_s: FloatArray, run_s: FloatArray) -> dict[str, object]:
    answered = np.isfinite(said_s)
    if not answered.any():
        nothing = dict.fromkeys(("mae_s", "median_s", "accuracy", "under", "over_allocation"))
        return {"method": name, "jobs": run_s.size, "answered": 0.0, **nothing}
    predicted_s, run = said_s[answered], run_s[answered]
    return {
        "method": name,
        **errors_of(predicted_s, run),
        "jobs": run_s.size,
        "answered": float(answered.mean()),
        "under": float((run > predicted_s * ROUNDING).mean()),
        "over_allocation": float(np.maximum(predicted_s - run, 0).sum() / run.sum()),
    }


def compare_logs(logs: Mapping[str, Log], *, n_boot: int = 2000, seed: int = 0) -> LogComparison:
    """Predict every log by all methods, and compare them on its later half."""
    methods, strata, campaigns = [], [], []
    for name, log in logs.items():
        predicted = predict_log(log.jobs)
        compared = compare_predictions(log.jobs, predicted, n_boot=n_boot, seed=seed)
        scored = _score_jobs(log.jobs, predicted, compared["best_peer"][0])
        first_s, last_s = scored["decided_s"].min(), scored["decided_s"].max()
        log_name = pl.lit(name).alias("log")
        methods.append(
            compared.select(
                log_name,
                pl.lit(scored["user"].n_unique()).alias("users"),
                pl.lit((last_s - first_s) / DAY_S).alias("days"),  # type: ignore[operator]
                pl.all(),
            )
        )
        strata.append(_strata(scored).select(log_name, pl.all()))
        campaigns.append(_worst_day(scored).select(log_name, pl.all()))
    return LogComparison(
        methods=pl.concat(methods), strata=pl.concat(strata), campaigns=pl.concat(campaigns)
    )


def _score_jobs(jobs: pl.DataFrame, predicted: Mapping[str, FloatArray], best: str) -> pl.DataFrame:
    """Return scored jobs with two errors, misses (null: no bound), and how many jobs the user had submitted before."""
    run, both = pl.col("used"), pl.col(MEDIAN).is_finite() & pl.col(best).is_finite()
    bound = pl.col(BOUND)
    columns = pl.DataFrame({name: predicted[name] for name in {MEDIAN, BOUND, best}})
    every = checked(jobs).hstack(columns).select(
        "decided_s",
        user="jeditaskid",
        earlier=pl.int_range(pl.len()).over("jeditaskid"),
        error=pl.when(both).then((pl.col(MEDIAN) - run).abs()),
        best_error=pl.when(both).then((pl.col(best) - run).abs()),
        missed=pl.when(bound.is_finite()).then(run > bound * ROUNDING),
    )  # fmt: skip
    return every.slice(every.height // 2)


def _strata(scored: pl.DataFrame) -> pl.DataFrame:
    """Sum up by how many jobs of the user came before, and of the user with the largest share of misses."""
    earlier = pl.col("earlier")
    parts = [
        (name, None, scored.filter(earlier >= least, earlier < (below or 2**62)))
        for name, (least, below) in EXPERIENCE.items()
    ]
    users = scored.group_by("user").agg(
        pl.col("missed").count().alias("n"), pl.col("missed").mean()
    )
    many = users.filter(pl.col("n") >= MANY_JOBS).sort("missed", "user", descending=[True, False])
    parts += [(WORST_USER, user, scored.filter(user=user)) for user in many["user"].head(1)]
    schema = {
        "stratum": pl.String,
        "user": pl.Int64,
        "jobs": pl.Int64,
        "users": pl.Int64,
        "answered": pl.Int64,
        "under": pl.Float64,
        "ratio": pl.Float64,
    }
    rows = [_sum(name, user, part) for name, user, part in parts if part.height]
    return pl.DataFrame(rows, schema=schema)


def _sum(name: str, user: int | None, part: pl.DataFrame) -> dict[str, Any]:
    """Return one row of the strata."""
    ours, best = float(part["error"].sum()), float(part["best_error"].sum())
    return {
        "stratum": name,
        "user": user,
        "jobs": part.height,
        "users": part["user"].n_unique(),
        "answered": part["missed"].count(),
        "under": part["missed"].mean(),
        "ratio": ours / best if best > 0 else None,
    }


def _worst_day(scored: pl.DataFrame) -> pl.DataFrame:
    """Return how many of all misses are of one user on one day."""
    by_day = scored.group_by("user", day=pl.col("decided_s") // DAY_S).agg(
        pl.col("missed").sum().cast(pl.Int64), jobs=pl.len().cast(pl.Int64)
    )
    top = by_day.sort("missed", "user", "day", descending=[True, False, False]).head(1)
    return top.select(
        "user", "jobs", largest="missed", missed=pl.lit(int(scored["missed"].sum()), pl.Int64)
    )


MOST_JOBS = 0.95
"""Share of the jobs that an estimator must guess to be compared; the deployed rule always is."""


def guess_errors(
    trial: Trial, *, confidence: float = 0.95, n_boot: int = 2000, seed: int = 0
) -> pl.DataFrame:
    """Say how far off single guesses are, of production jobs that ended by themselves.

    Models guess their median, rules their limit.

    One row per estimator that guesses, the least error first, on the jobs of which all of these do: ``at, estimator, jobs,
    mae_s, median_s, accuracy`` (means over all jobs; see `errors_of`), ``error`` (mean over tasks of
    summed error / summed time), ``ratio`` (error / that of the rule of least error), ``ratio_lo, ratio_hi`` (interval
    over tasks; with fewer than 8 the range without one of them; null with one), ``best_rule``.
    """
    guesses = _compare_guesses(trial)
    answered = np.logical_and.reduce([np.isfinite(each) for each in guesses.values()])
    kept = answered & (~trial.records["is_scout"] & ~trial.records["censored"]).to_numpy()
    if not kept.any():
        raise InsufficientDataError(f"guesses {trial.at}: no job has one of every estimator")
    used = trial.records["used"].to_numpy()[kept]
    task = trial.records["jeditaskid"].to_numpy()[kept]
    rows = [{"estimator": name} | errors_of(each[kept], used) for name, each in guesses.items()]
    by_task = _errors_by_task({name: each[kept] for name, each in guesses.items()}, used, task)
    means = by_task.select(*guesses).mean().row(0, named=True)
    frame = pl.DataFrame(rows).with_columns(
        error=pl.col("estimator").replace_strict(means, return_dtype=pl.Float64)
    )
    frame = frame.sort("error", "estimator")
    best = frame.filter(~pl.col("estimator").is_in(trial.models))["estimator"][0]
    ratios = _ratios(by_task, list(guesses), best, confidence=confidence, n_boot=n_boot, seed=seed)
    return frame.join(ratios, on="estimator", how="left", maintain_order="left").select(
        pl.lit(trial.at).alias("at"), pl.all(), pl.lit(best).alias("best_rule")
    )


def guesses_by_clock(trials: Mapping[At, Trial], **drawn: Any) -> pl.DataFrame:
    """Return `guess_errors` of the same jobs by every clock, one below the other."""
    return pl.concat(guess_errors(trial, **drawn) for trial in trials.values())


def _compare_guesses(trial: Trial) -> dict[str, FloatArray]:
    """Return the guesses of the deployed rule, and of all others that answer for nearly all jobs."""
    judged = (~trial.records["is_scout"]).to_numpy()
    return {
        name: each.point
        for name, each in trial.predicted.items()
        if name not in trial.policies
        and (
            name == trial.comparison.reference
            or np.isfinite(each.point[judged]).mean() >= MOST_JOBS
        )
    }


def errors_of(guess: FloatArray, used: FloatArray) -> dict[str, Any]:
    """Return ``jobs``, ``mae_s, median_s`` (mean and median absolute error), ``accuracy`` (mean of smaller / larger)."""
    error = np.abs(guess - used)
    return {
        "jobs": used.size,
        "mae_s": float(error.mean()),
        "median_s": float(np.median(error)),
        "accuracy": float((np.minimum(guess, used) / np.maximum(guess, used)).mean()),
    }


def _errors_by_task(
    guesses: dict[str, FloatArray], used: FloatArray, task: FloatArray
) -> pl.DataFrame:
    """Return summed error / summed time: ``jeditaskid`` and one column per estimator."""
    jobs = pl.DataFrame({"jeditaskid": task, "used": used} | guesses)
    by_task = jobs.group_by("jeditaskid").agg(
        (pl.col(name) - pl.col("used")).abs().sum() / pl.col("used").sum() for name in guesses
    )
    return by_task.sort("jeditaskid")


def _ratios(by_task: pl.DataFrame, names: list[str], best: str, **drawn: Any) -> pl.DataFrame:
    """Return ``estimator, ratio, ratio_lo, ratio_hi`` of mean errors to the best rule's."""
    if by_task.height >= FEW_TASKS:
        wide = clustered(
            by_task, {name: (name, best) for name in names}, unit="jeditaskid", **drawn
        )
        row = wide.row(0, named=True)
        ends = {name: (row[name], row[f"{name}_lo"], row[f"{name}_hi"]) for name in names}
    else:
        total = by_task.select(names).sum()
        without = by_task.select(pl.col(names).sum() - pl.col(names))
        ends = {
            name: (total[name][0] / total[best][0], *_range(without[name] / without[best]))
            for name in names
        }
    columns = ("ratio", "ratio_lo", "ratio_hi")
    rows = [
        {"estimator": name} | dict(zip(columns, each, strict=True)) for name, each in ends.items()
    ]
    return pl.DataFrame(rows, schema={"estimator": pl.String} | dict.fromkeys(columns, pl.Float64))


def _range(ratios: pl.Series) -> tuple[float | None, float | None]:
    """Return the least and the largest of the ratios without one task; null of a single task."""
    finite = ratios.filter(ratios.is_finite())
    return finite.min(), finite.max()  # type: ignore[return-value]
