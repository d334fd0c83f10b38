"""Scouts as they were read at the first trigger: what the checks X1 to X7 stop and let through.

The back-test asks whether the tasks that the checks stop would have gone well, and those let through: every task with scouts is
judged as it stood at its first trigger, then its later jobs show what became of it. A task goes well if the same check, asked again
of the later jobs, does not fire, and enough of these jobs finish.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import polars as pl

from brokerlab.archive import Archive
from brokerlab.archive.contracts.jobs import ENDED
from brokerlab.archive.given import Source, check_once, scans_of
from brokerlab.errors import InsufficientDataError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.keys import CatalogueKey, find
from brokerlab.gdpconfig.ranges import known_rows, trial_of
from brokerlab.intervals import CONFIDENCE, ENDS, N_BOOT, clustered, exact_share
from brokerlab.scouts import ScoutResult, ScoutRules, estimate, exhausted, triggers
from brokerlab.scouts.checks import checks
from brokerlab.scouts.estimate import PARAMETER_KEYS
from brokerlab.scouts.exhausted import each_check
from brokerlab.scouts.settings import AFTER_AVALANCHE, splitrule_with, tag_column
from brokerlab.scouts.tables import INPUT_TYPES, TASK_COLUMNS, small
from brokerlab.scouts.used_jobs import LABEL_KEYS
from brokerlab.scouts.write import WRITTEN, set_splitrule
from brokerlab.units import HOUR_S

TABLES = ("jobs", "files", "tasks", "datasets", "queues")
USES_SCOUTS = 2
FIRST_TRIGGERS = ("T1", "T1b")
LEAST_FINISHED = 0.5
"""Share of a task's later jobs that must finish for it to have gone well [1]."""
AS_IT_WAS = ("expected_jobs", "expected_jobs_event", "new_jobs", "succeeded")
"""What is known only when the scouts are read: how much is to come, and whether the checks run at all."""
ANY = "any"
"""Name of the rows in which a task is stopped by any of the checks."""
EXEMPTS = (
    "SCOUT_CHANGE_SR_<prodsourcelabel>",
    "SCOUT_MAX_IO_INTENSITY_FOR_EXHAUSTED_<prodsourcelabel>",
)
"""Keys that excuse tasks: a check runs without them."""


@dataclass(frozen=True, kw_only=True)
class ScoutHistory:
    """The tasks with scouts as they stood at their first trigger, and their later jobs.

    Attributes:
        tasks: Table ``tasks``, split rules as before the trigger.
        at: ``jeditaskid``, ``at``: the first trigger.
        tables: By name: jobs, files, datasets, queues.
        later: The same, of jobs that ended after their task's trigger.
        outcomes: One row per task with such jobs: ``jeditaskid``, ``n_later``, ``n_finished``, ``core_h``,
            ``finished_core_h`` [core h].
    """

    tasks: pl.DataFrame
    at: pl.DataFrame
    tables: Mapping[str, pl.LazyFrame]
    later: Mapping[str, pl.LazyFrame]
    outcomes: pl.DataFrame
    rules: ScoutRules
    config: Config
    _memo: dict[tuple[Any, ...], ScoutResult] = field(default_factory=dict, repr=False)

    @cached_property
    def scopes(self) -> dict[str, list[str]]:
        """Labels that the keys of scouts are set for."""
        labels = self.tasks["prodsourcelabel"].drop_nulls().unique().sort()
        return {"prodsourcelabel": labels.to_list()}

    def scouts(self, config: Config) -> ScoutResult:
        """Return what the scouts say at the first trigger."""
        return self._once(config, later=False)

    def hindsight(self, config: Config) -> ScoutResult:
        """Return what the later jobs say, as if they were the scouts; how much was to come is what scouts said."""
        first = self.scouts(config).parameters.select("jeditaskid", *AS_IT_WAS)
        later = self._once(config, later=True)
        carried = later.parameters.drop(AS_IT_WAS).join(first, on="jeditaskid", how="left")
        return replace(later, parameters=carried)

    @cached_property
    def tasks_after(self) -> pl.DataFrame:
        """The tasks after the avalanche: their jobs grow no more."""
        changed = splitrule_with(self.tasks, "US", pl.lit(AFTER_AVALANCHE))
        return set_splitrule(self.tasks, changed)

    def decided(self, config: Config) -> pl.DataFrame:
        """Return one row per task: the parameters that scouts write, ``succeeded``, ``newng``, and ``rule, action`` that stop it."""
        scouts = self.scouts(config)
        verdicts = exhausted({"tasks": self.tasks}, scouts=scouts, config=config).verdicts
        known = scouts.parameters.columns
        written = [name for name in ("succeeded", "newng", *WRITTEN) if name in known]
        return scouts.parameters.select("jeditaskid", *written).join(
            verdicts.select("jeditaskid", "rule", "action"), on="jeditaskid"
        )

    def among(self, tasks: pl.DataFrame) -> ScoutHistory:
        """Return the history of some tasks."""
        kept = self.tasks.join(tasks, on="jeditaskid", how="semi")
        if kept.is_empty():
            raise InsufficientDataError("none of these tasks has scouts that were read")
        at = self.at.join(kept, on="jeditaskid", how="semi")
        return replace(self, tasks=kept, at=at, _memo={})

    def _once(self, config: Config, *, later: bool) -> ScoutResult:
        """Read scouts once for all configurations that tell them the same."""
        own = [config.get(key) for key in PARAMETER_KEYS.values()]
        for label in self.scopes["prodsourcelabel"]:
            own += [config.get(key, prodsourcelabel=label) for key in LABEL_KEYS.values()]
        key = (later, *own)
        if key not in self._memo:
            tables = {**(self.later if later else self.tables), "tasks": self.tasks}
            when: dict[str, Any] = {"max_scouts": None} if later else {"at": self.at}
            self._memo[key] = estimate(tables, rules=self.rules, config=config, **when)
        return self._memo[key]


def scans_once(
    source: Source, needed: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, pl.LazyFrame]:
    """Return tables by name; rows given twice, which would count twice and which no archive has, are refused."""
    tables = scans_of(source, needed, optional)
    for name, table in tables.items() if not isinstance(source, Archive) else ():
        if name != "files":  # they are held to it wherever tables are given by name
            check_once(name, table)
    return tables


def last_change(source: Source) -> datetime:
    """Return when a job changed last."""
    jobs = scans_of(source, ["jobs"])["jobs"]
    last: datetime | None = jobs.select(pl.col("modificationtime").max()).collect().item()
    if last is None:
        raise InsufficientDataError("no job has a time of its last change")
    return last


def read_scout_history(
    source: Source, *, rules: ScoutRules | None = None, config: Config | None = None
) -> ScoutHistory:
    """Read the tasks with scouts (split rule ``US=2``, or 3 by now) and what their later jobs did.

    The configuration is by default what is recorded at the last change of a job, else the catalogue's defaults.
    """
    chosen = rules or ScoutRules()
    tables = scans_once(source, TABLES)
    used = small(tables.pop("tasks"), "tasks", TASK_COLUMNS).filter(
        tag_column("US").is_in([USES_SCOUTS, AFTER_AVALANCHE])
    )
    scouted = set_splitrule(used, splitrule_with(used, "US", pl.lit(USES_SCOUTS)))
    jobs, files = tables["jobs"], tables["files"]
    when = triggers(jobs, files, scouted, tables["datasets"], rules=chosen)
    at = when.filter(pl.col("trigger").is_in(FIRST_TRIGGERS)).select("jeditaskid", "at")
    if at.is_empty():
        raise InsufficientDataError("no task has scouts (split rule US=2) that were read")
    after = jobs.join(at.lazy(), on="jeditaskid").filter(pl.col("modificationtime") > pl.col("at"))
    inputs = files.join(after.select("pandaid"), on="pandaid", how="semi")
    return ScoutHistory(
        tasks=scouted.join(at, on="jeditaskid", how="semi").sort("jeditaskid"),
        at=at,
        tables=tables,
        later=tables | {"jobs": after.drop("at"), "files": inputs},
        outcomes=_outcomes(after, inputs),
        rules=chosen,
        config=Config.recorded(source, last_change(source)) if config is None else config,
    )


def _outcomes(after: pl.LazyFrame, files: pl.LazyFrame) -> pl.DataFrame:
    """Add up the later jobs with input of each task that finished or failed; whole microseconds add up alike in any order."""
    own = files.filter(pl.col("type").is_in(INPUT_TYPES)).select("pandaid").unique()
    ended = after.filter(pl.col("jobstatus").is_in(ENDED))
    known = ended.collect_schema().names()
    counts = [
        pl.col(name).replace(0, None) for name in ("actualcorecount", "corecount") if name in known
    ]
    wall = (pl.col("endtime") - pl.col("starttime")).dt.total_microseconds()
    used = (wall * pl.coalesce(*counts, pl.lit(1))).clip(0).fill_null(0).cast(pl.Int64)
    ok = pl.col("jobstatus") == "finished"
    sums = ended.join(own, on="pandaid", how="semi").group_by("jeditaskid")
    counted = sums.agg(
        n_later=pl.len().cast(pl.Int64),
        n_finished=ok.sum().cast(pl.Int64),
        core_h=used.sum() / (1e6 * HOUR_S),
        finished_core_h=used.filter(ok).sum() / (1e6 * HOUR_S),
    )
    return counted.collect().sort("jeditaskid")


@dataclass(frozen=True, kw_only=True)
class StopBacktest:
    """What the checks stop and let through, and how that ended.

    Attributes:
        tasks: One row per setting, check and task on which the checks run: ``key`` and ``value`` (null: as set), ``check``
            (X1 to X7, or `ANY`), ``jeditaskid``, ``stopped``, ``fires_later`` (the check asked again of the later jobs),
            ``went_well`` (null: no later job finished or failed), ``n_later``, ``n_finished``, ``core_h``,
            ``finished_core_h``.
        checks: One row per setting and check: ``key, value, check``; ``n_tasks`` (on which the checks run), ``n_unknown``
            (without later jobs, as of a task that was really stopped), ``n_stopped``, ``n_stopped_well``, ``false_share``
            (of the stopped tasks that would have gone well [1]), ``n_passed``, ``n_passed_badly``, ``missed_share`` (of the
            tasks let through that went badly [1]); ``lost_core_h`` (of the finished later jobs of stopped tasks that went
            well), ``missed_core_h`` (of all later jobs of tasks let through that went badly); shares (exact, tasks
            with equal weight) and hours (tasks drawn again) with ``_lo`` and ``_hi``, null where there is no task.
        beside: Key to what was switched on with it, in words; only of keys that other settings switch off.
    """

    tasks: pl.DataFrame
    checks: pl.DataFrame
    beside: Mapping[str, str]


def backtest_stops(
    history: ScoutHistory,
    keys: Sequence[str] = (),
    *,
    n_boot: int = N_BOOT,
    seed: int = 1,
) -> StopBacktest:
    """Compare tasks that the checks stop with tasks that they let through, by what their later jobs did.

    Each check is asked on its own. Tasks that were really stopped have no later jobs and say nothing: where the deployed
    settings stop tasks, stricter values are judged well, laxer ones are not. Of ``keys`` (see :func:`stop_keys`) other values are
    tried, besides the settings in force. A task has gone well if `LEAST_FINISHED` of its later jobs finish.

    Raises:
        ConfigError: A key that no check reads.

    Source: exhausted.md 1 and 2.
    """
    beside: dict[str, str] = {}
    judged = []
    settings: list[tuple[str | None, Any, Config]] = [(None, None, history.config)]
    for row in known_rows(keys, stop_keys(history.rules)):
        switches = switches_of(row.key, history.rules)
        trial = trial_of(history.config, row, history.scopes, switches=switches)
        settings += [(row.key, float(value), one) for value, one in trial.configs.items()]
        if trial.beside:
            beside[row.key] = words_of(trial.beside)
    for key, value, config in settings:
        rows = _judge(history, config)
        own = [check.name for check in checks(history.rules) if key is None or key in check.keys]
        judged.append(
            rows.filter(pl.col("check").is_in([*own, ANY])).select(
                pl.lit(key, pl.String).alias("key"),
                pl.lit(value, pl.Float64).alias("value"),
                pl.all(),
            )
        )
    tasks = pl.concat(judged)
    return StopBacktest(tasks=tasks, checks=_checks(tasks, n_boot, seed), beside=beside)


def stop_keys(rules: ScoutRules | None = None) -> tuple[CatalogueKey, ...]:
    """Return the keys that the checks X1 to X7 read, in their order."""
    named = dict.fromkeys(key for check in checks(rules or ScoutRules()) for key in check.keys)
    return tuple(find(key) for key in named)


def words_of(beside: Mapping[str, Any]) -> str:
    """Write keys with their values."""
    return ", ".join(f"{key} = {value:g}" for key, value in beside.items())


def switches_of(key: str, rules: ScoutRules) -> list[CatalogueKey]:
    """Return the keys without which the checks X1 to X7 that read a key are off, itself among them; none of other keys."""
    named = [other for check in checks(rules) if key in check.keys for other in check.keys]
    return [find(other) for other in dict.fromkeys(named) if other not in EXEMPTS]


def _judge(history: ScoutHistory, config: Config) -> pl.DataFrame:
    """Return one row per check and task on which the checks run."""
    now = each_check(history.tasks, history.scouts(config), config=config)
    then = each_check(history.tasks_after, history.hindsight(config), config=config)
    names = [check.name for check in checks(history.rules)]
    run = now.filter("eligible").drop("eligible")
    both = _long(run, names, "stopped").join(
        _long(then.drop("eligible"), names, "fires_later"), on=["jeditaskid", "check"], how="left"
    )
    share = pl.col("n_finished") / pl.col("n_later")
    well = ~pl.col("fires_later") & (share >= LEAST_FINISHED)
    return both.join(history.outcomes, on="jeditaskid", how="left").select(
        "check",
        "jeditaskid",
        "stopped",
        "fires_later",
        went_well=pl.when(pl.col("n_later") > 0).then(well),
        n_later=pl.col("n_later").fill_null(0),
        n_finished=pl.col("n_finished").fill_null(0),
        core_h=pl.col("core_h").fill_null(0),
        finished_core_h=pl.col("finished_core_h").fill_null(0),
    )


def _long(wide: pl.DataFrame, names: Sequence[str], value: str) -> pl.DataFrame:
    """Return one row per task and check, and one of any check."""
    whole = wide.with_columns(pl.any_horizontal(names).alias(ANY))
    return whole.unpivot([*names, ANY], index="jeditaskid", variable_name="check", value_name=value)


def _checks(tasks: pl.DataFrame, n_boot: int, seed: int) -> pl.DataFrame:
    """Add tasks up by setting and check; shares have exact intervals: tasks are the unit."""
    by = ["key", "value", "check"]
    known = pl.col("went_well").is_not_null()
    well, stopped = pl.col("went_well").fill_null(value=False), pl.col("stopped")
    stopped_well, passed_badly = stopped & well, known & ~stopped & ~well
    marked = tasks.with_columns(
        lost_core_h=pl.when(stopped_well).then("finished_core_h").otherwise(0.0),
        missed_core_h=pl.when(passed_badly).then("core_h").otherwise(0.0),
    )
    counts = {
        "n_tasks": pl.len(),
        "n_unknown": (~known).sum(),
        "n_stopped": (known & stopped).sum(),
        "n_stopped_well": stopped_well.sum(),
        "n_passed": (known & ~stopped).sum(),
        "n_passed_badly": passed_badly.sum(),
    }
    table = marked.group_by(by, maintain_order=True).agg(**counts)
    table = table.with_columns(pl.col(list(counts)).cast(pl.Int64))
    shares = {"false_share": ("n_stopped_well", "n_stopped"), "missed_share": ("n_passed_badly", "n_passed")}  # fmt: skip
    for name, (hits, of) in shares.items():
        low, high = exact_share(table[hits], table[of], CONFIDENCE)
        values = [pl.lit(pl.Series(each)) for each in (low, high)]
        table = table.with_columns(
            pl.when(pl.col(of) > 0).then(value).alias(f"{name}{end}")
            for end, value in zip(ENDS, (pl.col(hits) / pl.col(of), *values), strict=True)
        )
    hours = {name: name for name in ("lost_core_h", "missed_core_h")}
    amounts = clustered(
        marked.filter(known), hours, unit="jeditaskid", by=by, n_boot=n_boot, seed=seed
    )
    both = table.join(amounts, on=by, how="left", nulls_equal=True, maintain_order="left")
    return both.select(
        *by,
        *("n_tasks", "n_unknown", "n_stopped", "n_stopped_well"),
        *(f"false_share{end}" for end in ENDS),
        *("n_passed", "n_passed_badly"),
        *(f"missed_share{end}" for end in ENDS),
        *(f"{name}{end}" for name in hours for end in ENDS),
    )
