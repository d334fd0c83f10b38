"""What the report says on batch logs, from what was found."""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.report.content import Verdict
from brokerlab.report.walltime_estimator.logs import BOUND, LEVEL, MEDIAN, LogStudy
from brokerlab.words import listed, measured, number, percent, thin

NEAR = 0.01
"""A bound whose misses are so near what was promised is called kept."""
MUCH = 0.5
"""Share of all misses from which on a single day of a user is named."""


def verdict(study: LogStudy) -> Verdict:
    """Say how ours compares with the best simple rule of each log, and whether its bound is kept."""
    return Verdict(kind="finding", subject="batch logs", sentence=thin(f"{headline(study)} {bounds(study)}"))  # fmt: skip


def headline(study: LogStudy) -> str:
    """Say in one sentence by how much ours errs less than the best simple rule of each log."""
    said = []
    for name in study.logs:
        ours, best = study.of(name, MEDIAN), study.best(name)
        said.append(
            f"{name} {_minutes(ours['mae_s'])} against {_minutes(best['mae_s'])} min (ratio {ratio(ours)}; best rule: {best['method']})"
        )
    return (
        "Told at submission, the median run time of like jobs is off, on average, by "
        f"{'; '.join(said)}; 95 % intervals over users."
    )


def brief(study: LogStudy) -> str:
    """Say the most important of it in one sentence."""
    rows = {name: (study.of(name, MEDIAN), study.of(name, BOUND)) for name in study.logs}
    ratios = [f"{ratio(ours)} on {name}" for name, (ours, _) in rows.items()]
    missed = [percent(bound["under"]) for _, bound in rows.values()]
    return (
        f"Batch logs: the median of like jobs errs {listed(ratios)} times as much as the best simple rule, and its bound of "
        f"{100 * LEVEL:g} % is exceeded by {listed(missed)} of the jobs (intervals over users)."
    )


def bounds(study: LogStudy) -> str:
    """Say how often the bound is exceeded."""
    said = []
    for name in study.logs:
        row = study.of(name, BOUND)
        said.append(f"{name} {percent(row['under'], row['under_lo'], row['under_hi'])}")
    return f"The bound that {percent(1 - LEVEL)} of the jobs are to exceed is exceeded by: {', '.join(said)}."


def finding(study: LogStudy) -> str:
    """Return the title of the picture of errors."""
    rows = [study.of(name, MEDIAN) for name in study.logs]
    less = [row for row in rows if row["ratio_hi"] < 1]
    low, high = min(row["ratio"] for row in rows), max(row["ratio"] for row in rows)
    span = number(low, 2) if len(rows) == 1 else f"{number(low, 2)} to {number(high, 2)}"
    beyond = f"beyond doubt on {len(less)} of {_count(len(rows), 'log')}"
    return thin(f"Like jobs err {span} times as much as the best simple rule, {beyond}")


def misses_finding(study: LogStudy) -> str:
    """Return the title of the picture of misses."""
    rows = [study.of(name, BOUND) for name in study.logs]
    kept = [row["log"] for row in rows if abs(row["under"] - (1 - LEVEL)) <= NEAR]
    if len(kept) == len(rows):
        return thin(f"The bound keeps its level on every log: {listed([percent(row['under']) for row in rows])} exceed it")  # fmt: skip
    off = [f"{row['log']} {percent(row['under'])}" for row in rows if row["log"] not in kept]
    return thin(f"The bound is off its level of {percent(1 - LEVEL)} on {listed(off)}")


def sample(study: LogStudy) -> str:
    """Say how much was scored."""
    said = [
        f"{name}: n = {study.of(name, MEDIAN)['jobs']:,} jobs of {_count(study.of(name, MEDIAN)['users'], 'user')}"
        for name in study.logs
    ]
    return thin(f"{'; '.join(said)}. Bars: 95 % intervals over users, all methods on the same draws.")  # fmt: skip


def certainty(study: LogStudy) -> str:
    """Say what the intervals are made of, and how much hangs on single days of single users."""
    said = [
        f"{row['largest']:,} of the {row['missed']:,} misses on {row['log']} are of one user on one day"
        for row in study.campaigns.iter_rows(named=True)
        if row["missed"] and row["largest"] / row["missed"] > MUCH
    ]
    told = f" {'; '.join(said)}: a campaign unlike what came before is missed as a whole, and no bound from the past can know it." if said else ""  # fmt: skip
    return thin(
        "Everything is predicted in the order of submission, from jobs that had ended by then and from how long others had run; "
        f"the later half is scored. Intervals draw users again, as jobs of one user are alike.{told}"
    )


def worst(study: LogStudy) -> str:
    """Say on which jobs ours is no better than the best rule."""
    rows = study.strata.filter(pl.col("ratio") > 1)
    said = [
        f"{row['stratum']} on {row['log']} ({number(row['ratio'], 2)})"
        for row in rows.iter_rows(named=True)
    ]
    if not said:
        return "In no group of jobs looked at does the best simple rule err less than the median of like jobs."
    return thin(f"The best simple rule errs less than the median of like jobs for {listed(said)}.")


def cannot_tell(study: LogStudy) -> list[str]:
    """Collect what logs cannot tell."""
    told = []
    for name, log in study.logs.items():
        if not log.knows_waits:
            told.append(
                f"{name} does not say how long jobs waited: they are taken to start when they come, so that their run times are known "
                "earlier than they were."
            )
        if log.jobs.height < log.n_read:
            told.append(
                f"Of {name} the first {log.jobs.height:,} of {log.n_read:,} jobs are taken."
            )
    told.append(
        "On batch logs a run is cut at its request: what a job stopped there would have needed is not known. The request is "
        "what the user types, so that rules that scale it are measured on people, not on the system of grid tasks."
    )
    return told


def ratio(row: dict[str, Any]) -> str:
    """Write the ratio of a method's error to the best rule's, with its interval."""
    return measured(row["ratio"], row["ratio_lo"], row["ratio_hi"], 2)


def _minutes(seconds: float) -> str:
    """Write seconds as minutes, three digits that count."""
    minutes = seconds / 60
    return number(minutes, 0 if minutes >= 100 else 1)


def _count(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"
