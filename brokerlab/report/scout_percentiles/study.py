"""Load what a scout calibration needs, and take one parameter through back-test, choice and proof."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.archive.store import Archive, open_archive
from brokerlab.calibrate.backtest import Assumptions, Backtest, Setting, backtest
from brokerlab.calibrate.choice import Choice, LimitOn, choose
from brokerlab.calibrate.loss import LossWeights
from brokerlab.calibrate.parameters import PARAMETERS, Parameter, parameter_named
from brokerlab.calibrate.periods import Periods, exchangeability, split_periods
from brokerlab.calibrate.proof import Proof, prove
from brokerlab.calibrate.verdict import Verdict, current_setting, propose
from brokerlab.errors import ConfigError, InsufficientDataError, nearest
from brokerlab.gdpconfig import Config
from brokerlab.scouts import ScoutRules, job_quantities

ALL = "all"
TASKS_OF = """
select * from tasks
where ($gshare = '' or gshare = $gshare) and ($processingtype = '' or processingtype = $processingtype)
"""
CONFORMAL_COVERAGES = (75, 90, 95, 98)
"""Promised coverages tried with the conformal rule [%]."""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The tables of one study: tasks of the window, what their jobs say, the queues."""

    archive: Archive
    tasks: pl.DataFrame
    quantities: pl.DataFrame
    queues: pl.DataFrame | None
    periods: Periods
    rules: ScoutRules
    config: Config
    filters: str

    @property
    def window(self) -> tuple[datetime, datetime]:
        """First and last creation of a task."""
        early, late = self.periods.early_window, self.periods.late_window
        spans = [span for span in (early, late) if span is not None]
        return spans[0][0], spans[-1][1]


@dataclass(frozen=True, kw_only=True)
class Unanswered:
    """A parameter that the archive has too little data for, and why."""

    parameter: Parameter
    reason: str


@dataclass(frozen=True, kw_only=True)
class Study:
    """One parameter, from back-test to answer.

    Attributes:
        parameter: Which.
        early: Back-test of the calibration period.
        late: Back-test of the proof period.
        choice: What the calibration period speaks for.
        proof: What the proof period says of the current setting and of `other`.
        other: The chosen setting; where none was chosen, the best one that was not.
        alike: Exchangeability of the periods.
        verdict: The answer in one sentence, and the proposal document if there is one.
        conformal: ``by_setting`` of the conformal rule on the calibration period.
    """

    parameter: Parameter
    early: Backtest
    late: Backtest
    choice: Choice
    proof: Proof
    other: Setting
    alike: pl.DataFrame
    verdict: Verdict
    conformal: pl.DataFrame

    @property
    def kind(self) -> str:
        """The answer: change, keep or no_answer."""
        return self.verdict.kind

    @property
    def chosen(self) -> Setting | None:
        """The setting that the calibration period speaks for, proven or not; None: the current one."""
        return self.other if self.choice.status == "change" else None


def load(
    archive: str | Path,
    *,
    window_start: str = "",
    window_end: str = "",
    gshare: str = "",
    processingtype: str = "",
    rules: str = "document",
    early_share: float = 0.5,
) -> Inputs:
    """Load the tasks of a window and what their finished jobs say.

    Args:
        archive: Archive folder.
        window_start: First creation time of a task, ISO 8601, UTC; empty: no bound.
        window_end: Tasks created at or after it are left out; empty: no bound.
        gshare: Only this share; empty: all.
        processingtype: Only this processing type; empty: all.
        rules: ``document`` or ``production``.
        early_share: Share of the tasks that the choice is made on; the later ones prove it.

    Raises:
        ConfigError: A time that is not ISO 8601, or an unknown rule set.
        DataError: The archive cannot be read or lacks a table.
        InsufficientDataError: No task is left.
    """
    start, end = _time("window_start", window_start), _time("window_end", window_end)
    rule_set = ScoutRules(rules=rules)
    opened = open_archive(archive)
    chosen = opened.sql(TASKS_OF, {"gshare": gshare, "processingtype": processingtype})
    queues = opened.queues
    quantities = job_quantities(
        opened.jobs, opened.files, chosen, opened.datasets, queues, rules=rule_set
    )
    tasks = _in_window(chosen.pl(), quantities, start, end)
    filters = ", ".join(
        f"{name} {value}"
        for name, value in (("gshare", gshare), ("processing type", processingtype))
        if value
    )
    if tasks.is_empty():
        raise InsufficientDataError(
            f"{opened.path}: no task with finished jobs in the window {window_start or 'start'} to "
            f"{window_end or 'end'} of the archive{', ' + filters if filters else ''}; widen it"
        )
    kept = quantities.join(tasks.select("jeditaskid"), on="jeditaskid", how="semi")
    periods = split_periods(tasks, kept, fraction=early_share)
    return Inputs(
        archive=opened,
        tasks=tasks,
        quantities=kept,
        queues=queues.pl(),
        periods=periods,
        rules=rule_set,
        config=_config(opened, periods),
        filters=filters,
    )


def _config(archive: Archive, periods: Periods) -> Config:
    """Return the configuration at the end of the window; the catalogue's defaults where there is none."""
    if not archive.has("gdpconfig"):
        return Config.empty()
    config = Config.from_frame(archive.gdpconfig)
    return (
        config.at((periods.late_window or (periods.at, periods.at))[1])
        if config.has_history
        else config
    )


def parameters_named(name: str) -> list[str]:
    """Return the parameters to study: one by name, or every one.

    Raises:
        ConfigError: No such parameter.
    """
    if name == ALL:
        return list(PARAMETERS)
    if name not in PARAMETERS:
        raise ConfigError(f"parameter={name!r}: {nearest(name, [*PARAMETERS, ALL])}")
    return [name]


def grid(bounds: Iterable[int], *, name: str) -> range:
    """Return the whole numbers from the first to the last bound.

    Raises:
        ConfigError: Not two numbers in order.

    Example:
        >>> grid([50, 99], name="ranks")
        range(50, 100)
    """
    numbers = list(bounds)
    if len(numbers) != 2 or numbers[0] > numbers[1]:
        raise ConfigError(f"{name}={numbers}: must be the first and the last, such as 50,99")
    return range(numbers[0], numbers[1] + 1)


def study(
    inputs: Inputs,
    name: str,
    *,
    created_at: datetime,
    ranks: Iterable[int],
    margins: Iterable[int] | None = None,
    loss: dict[str, float] | None = None,
    max_exceed: float = 0.02,
    limit_on: LimitOn = "upper",
    assumptions: Assumptions | None = None,
    n_boot: int = 2000,
    seed: int = 0,
) -> Study | Unanswered:
    """Take one parameter through back-test, choice and proof.

    Args:
        inputs: From `load`.
        name: Parameter.
        created_at: When the proposal is made, UTC without zone.
        ranks: Percentile ranks tried.
        margins: Margins tried for ramcount [%]; the others' margins are fixed in the code.
        loss: Weights that differ from the parameter's defaults.
        max_exceed: Largest accepted share of jobs whose first attempt is killed.
        limit_on: Whether the upper bound of that share or the point must meet it.
        assumptions: Of the back-test.
        n_boot: Bootstrap replicates.
        seed: Of the bootstrap.

    Returns:
        The study, or why there is too little data for one.
    """
    parameter = parameter_named(name)
    made = assumptions or Assumptions(
        rules=inputs.rules, ram_min_mb=inputs.config.get("SCOUT_RAMCOUNT_MIN")
    )
    weights = LossWeights.default(name, **(loss or {}))
    tried_margins = list(margins) if margins is not None and name == "ramcount" else None

    def replay(tasks: pl.DataFrame, **how: Any) -> Backtest:
        return backtest(
            inputs.quantities,
            tasks,
            inputs.queues,
            inputs.archive.jobs,
            parameter=name,
            current=current_setting(inputs.config, name),
            loss=weights,
            synthetic=inputs.archive.synthetic,
            **how,
        )

    try:
        early = replay(
            inputs.periods.early, ranks=list(ranks), margins=tried_margins, assumptions=made
        )
        choice = choose(early, max_exceed=max_exceed, limit_on=limit_on)
        other = choice.setting if choice.status == "change" else _runner_up(choice)
        pair = sorted({early.current, other})
        late = replay(
            inputs.periods.late,
            ranks=[rank for rank, _ in pair],
            margins=[margin for _, margin in pair],
            detail=pair,
            assumptions=made,
        )
    except InsufficientDataError as error:
        return Unanswered(parameter=parameter, reason=str(error))
    limits: dict[str, Any] = {"max_exceed": max_exceed, "limit_on": limit_on}
    proof = prove(late, other, **limits, n_boot=n_boot, seed=seed)
    return Study(
        parameter=parameter,
        early=early,
        late=late,
        choice=choice,
        proof=proof,
        other=other,
        alike=exchangeability(early, late, n_boot=n_boot, seed=seed),
        verdict=propose(
            choice,
            proof,
            late,
            inputs.periods,
            inputs.config,
            created_at=created_at,
            archive_digest=inputs.archive.digest,
            synthetic=inputs.archive.synthetic,
        ),
        conformal=_conformal(replay, inputs, early),
    )


def _runner_up(choice: Choice) -> Setting:
    """Return the best setting besides the current one: of least loss within the limit, else nearest to it."""
    here = (pl.col("rank") == choice.current[0]) & (pl.col("margin_pct") == choice.current[1])
    others = choice.candidates.filter(~here)
    within = others.filter("meets_limit").sort("loss", "rank", "margin_pct")
    nearest_to_it = others.sort("exceed_hi", "loss", "rank", "margin_pct")
    rows = within if within.height else nearest_to_it
    return (rows["rank"][0], rows["margin_pct"][0]) if rows.height else choice.current


def _conformal(replay: Any, inputs: Inputs, early: Backtest) -> pl.DataFrame:
    """Back-test the conformal rule beside the percentile rule, with and without the deployed margin."""
    made = replace(early.assumptions, rule="conformal")
    margins = sorted({0, early.current[1]}) if early.parameter.name != "outdiskcount" else [0]
    tried: Backtest = replay(
        inputs.periods.early, ranks=CONFORMAL_COVERAGES, margins=margins, assumptions=made
    )
    return tried.by_setting.filter(pl.col("rank").is_in(CONFORMAL_COVERAGES))


def _in_window(
    tasks: pl.DataFrame,
    quantities: pl.DataFrame,
    start: datetime | None,
    end: datetime | None,
) -> pl.DataFrame:
    """Keep tasks with finished jobs that were created in the window; the first job stands in for a null."""
    first = quantities.group_by("jeditaskid").agg(first_job=pl.col("creationtime").min())
    created = pl.coalesce("creationdate", "first_job")
    inside = pl.lit(value=True)
    if start is not None:
        inside &= created >= start
    if end is not None:
        inside &= created < end
    return (
        tasks.join(first, on="jeditaskid", how="inner")
        .filter(inside)
        .drop("first_job")
        .sort("jeditaskid")
    )


def _time(name: str, text: str) -> datetime | None:
    """Read a time of a parameter; archive times are UTC without zone."""
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{name}={text!r}: must be ISO 8601, such as 2026-03-01T00:00") from None
    if at.tzinfo is not None:
        raise ConfigError(f"{name}={text!r}: times are UTC, leave the zone out")
    return at
