"""All checks of a model in one table, each with a sentence that can be read aloud."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators.estimator import Predicted
from brokerlab.estimators.records import checked
from brokerlab.estimators.trust.betting import bet_against
from brokerlab.estimators.trust.drift import coverage_blocks, largest_deviation
from brokerlab.estimators.trust.scouts import scouts_against_rest
from brokerlab.estimators.trust.strata import LEAST, coverage_by
from brokerlab.estimators.trust.support import support

HOLDS, WIDE, BROKEN = "holds", "wider than asked", "does not hold"
UNKNOWN = "cannot be told"
ALARM = 0.05
"""Share of wrong alarms that is allowed among the groups."""
_Found = tuple[str, float | None, str]


def overview(
    records: Any,
    predicted: Predicted,
    level: float,
    *,
    learnt: Any | None = None,
    scouts: bool = True,
    per_core: bool = False,
    least: int = LEAST,
    seed: int = 0,
) -> pl.DataFrame:
    """Run every check of a model, and say of each what it found.

    Bounds are judged on the jobs that are no scouts: those that an estimate is made for.

    Args:
        records: All jobs, scouts included; those that are none must have been predicted.
        predicted: Expectations of the jobs.
        level: One of ``predicted.levels``.
        learnt: The records that the model was fitted on; None: it learns on the way, and nothing is said
            of what it never saw.
        scouts: Compare the scouts with the rest; False where the records know no scouts.
        per_core: Compare them per core.
        least: Jobs that a group must have to be judged.
        seed: Of the draws between two levels; see :func:`judged.places`.

    Returns:
        One row per check: ``check`` (``groups``, ``drift``, ``distribution``, ``scouts``, ``learnt``),
        ``verdict`` (``holds``, ``wider than asked``: misses are too rare, ``does not hold``, ``cannot be
        told``), ``p`` (null where there is no one test), ``found`` (a sentence with the numbers).

    Raises:
        ConfigError, DataError: See the checks.
    """
    frame = checked(records)
    judged = frame.filter(~pl.col("is_scout"))
    checks: dict[str, Callable[[], _Found]] = {
        "groups": lambda: _groups(judged, predicted, level, least),
        "drift": lambda: _drift(judged, predicted, level, least),
        "distribution": lambda: _distribution(judged, predicted, seed),
    }
    if scouts:
        checks["scouts"] = lambda: _scouts(frame, per_core=per_core)
    if learnt is not None:
        checks["learnt"] = lambda: _learnt(learnt, judged)
    rows = []
    for name, check in checks.items():
        try:
            verdict, p, found = check()
        except InsufficientDataError as error:
            verdict, p, found = UNKNOWN, None, str(error)
        rows.append((name, verdict, p, found))
    types = {"check": pl.String, "verdict": pl.String, "p": pl.Float64, "found": pl.String}
    return pl.DataFrame(rows, schema=types, orient="row")


def _groups(judged: pl.DataFrame, predicted: Predicted, level: float, least: int) -> _Found:
    from scipy import stats

    table = coverage_by(judged, predicted, level, least=least)
    groups = table.filter(pl.col("stratum_by") != "all")
    if groups.is_empty():
        raise InsufficientDataError(f"no group has {least} jobs")
    adjusted = pl.Series("adjusted", stats.false_discovery_control(groups["p"].to_numpy()))
    clear = groups.filter(adjusted <= ALARM).sort("coverage", "stratum")
    often, rarely = (_count(clear, f"misses too {word}") for word in ("often", "rarely"))
    found = (
        f"{groups.height} groups of {least} jobs or more: {often} miss their bound too often, {rarely} too"
        " rarely, beyond what chance explains for so many groups"
    )
    if often:
        worst = clear.row(0, named=True)
        found += (
            f"; the worst is {worst['stratum_by']} {worst['stratum']}: {worst['coverage']:.1%} of"
            f" {worst['n']} jobs stay below their bound, {level:.4g} was asked"
        )
    return _verdict(often, rarely), None, found


def _drift(judged: pl.DataFrame, predicted: Predicted, level: float, block: int) -> _Found:
    blocks = coverage_blocks(judged, predicted, level, block=block)
    row = largest_deviation(judged, predicted, level).row(0, named=True)
    often, rarely = (_count(blocks, f"misses too {word}") for word in ("often", "rarely"))
    found = (
        f"in the order of decision, {often} of {blocks.height} blocks of {block} jobs miss too often,"
        f" {rarely} too rarely; furthest from what was asked after {row['after']} jobs:"
        f" {row['missed_before']} misses, {row['expected_before']:.0f} expected"
    )
    often += row["verdict"] == "misses too often"
    rarely += row["verdict"] == "misses too rarely"
    return _verdict(often, rarely), row["p"], found


def _distribution(judged: pl.DataFrame, predicted: Predicted, seed: int) -> _Found:
    row = bet_against(judged, predicted, seed=seed).row(0, named=True)
    found = (
        f"betting against the model turns 1 into 10^{row['log10_largest']:.1f} after {row['after']} of"
        f" {row['n']} jobs; a right model allows that with probability {row['p']:.2g} at most"
    )
    return (HOLDS if row["verdict"] == "as expected" else BROKEN), row["p"], found


def _scouts(frame: pl.DataFrame, *, per_core: bool) -> _Found:
    table = scouts_against_rest(frame, per_core=per_core)
    more, less = (_count(table, f"scouts use {word}") for word in ("more", "less"))
    found = f"in none of {table.height} tasks do the scouts differ from the rest"
    if more or less:
        found = (
            f"in {more} of {table.height} tasks the scouts use more than the rest, in {less} they use"
            " less: they are no random draw from their task"
        )
    smallest = float(table["p_adjusted"].to_numpy().min())
    return (BROKEN if more or less else HOLDS), smallest, found


def _learnt(learnt: Any, judged: pl.DataFrame) -> _Found:
    table = support(learnt, judged)
    new = table.filter(pl.col("verdict") != "learnt").sort("share", descending=True)
    said = [f"{name} ({share:.0%})" for name, share in new.select("feature", "share").iter_rows()]
    if not said:
        return HOLDS, None, "jobs are like those learnt from"
    return BROKEN, None, f"share of jobs outside what was learnt: {', '.join(said)}"


def _count(table: pl.DataFrame, verdict: str) -> int:
    """Return the number of rows with a verdict."""
    return table.filter(pl.col("verdict") == verdict).height


def _verdict(often: int, rarely: int) -> str:
    """Return what misses say: too many break a bound, too few make it wider than it need be."""
    return BROKEN if often else WIDE if rarely else HOLDS
