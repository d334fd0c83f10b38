"""The cheap screen: does any value of a key change any decision of this archive? Keys that change nothing are kept."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from brokerlab.brokerage import plugins
from brokerlab.brokerage.replaying import Replay, build_once
from brokerlab.brokerage.replaying.counts import Counts
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.brokerage.sensitivities import Sensitivity
from brokerlab.calibrate.thresholds.outcomes import Period
from brokerlab.calibrate.thresholds.settings import HOLDS, Key, Space, shown
from brokerlab.errors import BrokerlabWarning, DataError
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.timeouts import TimeoutRules, fast_rebrokerage_at
from brokerlab.rulesets import RuleSetName
from brokerlab.times import instants_of

if TYPE_CHECKING:
    from brokerlab.archive import Archive

CHANGES, NOTHING, NOT_READ, UNTOLD = "changes decisions", "changes nothing", "not read", "not told"
"""What the screen says of a key."""
FOLLOWS = {CHANGES: "screened", NOTHING: "keep", NOT_READ: "keep: not read", UNTOLD: "not known"}
"""What follows from a state where no simulation can judge."""
EVERY = "1h"
"""Instants of the fast rebrokerage."""
PLACE = ("snapshot", "computingsite", "gshare")
READ_BY_NONE = "no check and no weight reads it under these settings"


@dataclass(frozen=True)
class Screen:
    """What other values of keys would have decided.

    Attributes:
        period: Brokerages of this time were decided again.
        keys: One row per key, those that change most first: ``key, stage, unit``; ``now`` (text; mixed: differs between
            shares); ``n_values`` tried; ``state`` (`CHANGES`, `NOTHING`, `NOT_READ`: nothing reads it here, `UNTOLD`: the
            archive cannot tell) and ``reason`` (of the last two); of the value that changes most tasks (of the fast
            rebrokerage: moves most jobs otherwise) ``at, n_tasks, n_jobs, n_pairs, n_without, shift``; ``judged_by``
            (simulation, screen), ``simulate``: it changes decisions and the simulation holds these, ``follows``: what
            follows, in words; ``minimum, maximum`` (guard rails [unit]), ``grows`` and ``shrinks`` (when it is raised).
        values: One row per key and value: ``key, value`` (null: none), ``n_pairs`` decided differently (task and queue, or
            nucleus; queue and share of the fast rebrokerage), ``n_tasks`` with any difference, ``n_jobs`` moved otherwise
            (fast rebrokerage alone), ``n_without`` more tasks without a queue, ``shift``: part of the expected jobs that
            goes elsewhere.
    """

    period: Period
    keys: pl.DataFrame
    values: pl.DataFrame


def screen(
    archive: Archive,
    space: Space,
    period: Period,
    *,
    stage: str = "jobs",
    rules: RuleSetName = "document",
) -> Screen:
    """Try every value of every key on the brokerages of a period.

    Decisions are made again with the state of queues as it was: what other decisions would have led to is not followed,
    so that a key that changes nothing here may still do so elsewhere, but not the other way round. ``stage`` is what a
    simulation would hold, of `HOLDS`.

    Source: calibration.md 2 (the sensitivity of a key comes from the rules themselves).
    """
    rows: list[pl.DataFrame] = []
    reasons: dict[str, tuple[str, str]] = {}
    for decides in dict.fromkeys(key.threshold.stage for key in space.keys):
        here = [key for key in space.keys if key.threshold.stage == decides]
        try:
            if decides == "lifecycle":
                tables = _fast(archive, period)
                rows += [_moved(space, key, tables, rules) for key in here]
                continue
            replay = build_once(
                archive,
                start=period.start,
                end=period.end,
                stage=decides,
                rules=ProductionRules(rules),
            )
            tried, unread = _decide(replay.with_config(space.config), here, rules)
        except DataError as problem:
            reasons |= {key.name: (UNTOLD, str(problem)) for key in here}
        else:
            rows += tried
            reasons |= dict.fromkeys(unread, (NOT_READ, READ_BY_NONE))
    values = pl.concat(rows) if rows else pl.DataFrame(schema=_SCHEMA)
    return Screen(period, _sum(space, values, reasons, HOLDS[stage]), values)


_SCHEMA = pl.Schema(
    {
        "key": pl.String(),
        "value": pl.Float64(),
        **dict.fromkeys(("n_pairs", "n_tasks", "n_jobs", "n_without"), pl.Int64()),
        "shift": pl.Float64(),
    }
)


def _sum(
    space: Space,
    values: pl.DataFrame,
    reasons: Mapping[str, tuple[str, str]],
    stages: Sequence[str],
) -> pl.DataFrame:
    """Return what each key could change and what it trades: see `Screen`."""
    most = ["n_tasks", "n_jobs", "n_pairs"]
    rows = []
    for key in space.keys:
        known = key.threshold
        tried = values.filter(pl.col("key") == key.name)
        top = tried.sort([pl.col(name).fill_null(0) for name in most], descending=True).head(1)
        result: dict[str, Any] = top.to_dicts()[0] if top.height else dict.fromkeys(_SCHEMA)
        changes = CHANGES if result["n_pairs"] or result["n_tasks"] else NOTHING
        state, reason = reasons.get(key.name, (changes, None))
        simulate = state == CHANGES and known.stage in stages
        about = {
            "key": key.name,
            "stage": known.stage,
            "unit": known.row.unit,
            "now": "mixed" if key.mixed else shown(key.current),
            "n_values": tried.height,
            "state": state,
            "reason": reason,
            "at": result["value"] if state == CHANGES else None,
            "judged_by": known.judged_by,
            "simulate": simulate,
            "follows": "simulate" if simulate else FOLLOWS[state],
            "minimum": known.rails[0],
            "maximum": known.rails[1],
            "grows": known.grows,
            "shrinks": known.shrinks,
        }
        rows.append(result | about)
    order = [pl.col("state") == CHANGES, pl.col("shift").fill_null(-1.0)]
    return pl.DataFrame(rows, schema=_SUMMED).sort(order, descending=True, maintain_order=True)


_SUMMED = pl.Schema(
    {
        **dict.fromkeys(("key", "stage", "unit", "now"), pl.String()),
        "n_values": pl.Int64(),
        **dict.fromkeys(("state", "reason"), pl.String()),
        "at": pl.Float64(),
        **dict.fromkeys(("n_tasks", "n_jobs", "n_pairs", "n_without"), pl.Int64()),
        "shift": pl.Float64(),
        "judged_by": pl.String(),
        "simulate": pl.Boolean(),
        "follows": pl.String(),
        **dict.fromkeys(("minimum", "maximum"), pl.Float64()),
        **dict.fromkeys(("grows", "shrinks"), pl.String()),
    }
)


def _decide(
    replay: Replay, keys: list[Key], rules: RuleSetName
) -> tuple[list[pl.DataFrame], list[str]]:
    """Try the keys of a brokerage; return what they change, and the names of those that nothing reads.

    The replay is decided once, and what a value touches again.
    """
    chosen = plugins.of_stage(replay.stage).rule_set(rules)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BrokerlabWarning)  # odd policies: the replay's report
        asked = Sensitivity.of(replay, rules=chosen)
        tried = [_tried(key, asked) for key in keys if key.threshold.key in asked.keys]
    return tried, [key.name for key in keys if key.threshold.key not in asked.keys]


def _fast(archive: Archive, period: Period) -> dict[str, Any]:
    """Return the tables of the fast rebrokerage, at whole hours."""
    instants = instants_of(*period, EVERY)
    log = archive.joinable_if_there("job_status_log")
    table = Counts.of(archive.joinable("jobs"), log, instants).table(
        "computingsite", "gshare", "jobstatus"
    )
    slots = pl.DataFrame(schema={"pandaqueuename": pl.String})
    if archive.has("slots"):
        slots = (
            archive.scan("slots").select(pl.col("pandaqueuename").drop_nulls().unique()).collect()
        )
    return {
        "share_job_stats": table.drop_nulls(["computingsite", "gshare"]),
        "queues": archive.scan("queues").collect(),
        "slots": slots,
    }


def _tried(key: Key, asked: Sensitivity) -> pl.DataFrame:
    values = [value for value in key.grid if key.mixed or value != key.current]
    result = asked.of_key(key.name, [*values, key.current]).totals()
    before = result["n_without"][-1] if not key.mixed else result["n_without"].min()
    return result.head(len(values)).select(
        key=pl.lit(key.name),
        value=pl.Series(values, dtype=pl.Float64, strict=False),
        n_pairs="n_pairs",
        n_tasks="n_tasks",
        n_jobs=pl.lit(None, pl.Int64),
        n_without=pl.col("n_without") - before,
        shift=pl.col("weight_shift").fill_nan(None),
    ).cast(_SCHEMA)  # fmt: skip


def _moved(space: Space, key: Key, tables: Mapping[str, Any], rules: RuleSetName) -> pl.DataFrame:
    """Try a key of the fast rebrokerage: which queues and shares give back other jobs."""
    base = _given_back(tables, space.config, rules)
    rows = []
    for setting in space.single(key.name):
        other = _given_back(tables, space.configured(setting), rules)
        both = base.join(other, on=PLACE, how="full", coalesce=True, suffix="_other")
        change = (pl.col("n_moved_other").fill_null(0) - pl.col("n_moved").fill_null(0)).abs()
        n_pairs, n_jobs = both.select(n=(change > 0).sum(), jobs=change.sum()).row(0)
        value = setting.values[0][1]
        rows.append((key.name, value, n_pairs, None, int(n_jobs), None, None))
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _given_back(tables: Mapping[str, Any], config: Config, rules: RuleSetName) -> pl.DataFrame:
    result = fast_rebrokerage_at(tables, rules=TimeoutRules(rules), config=config)
    return result.filter("triggered").select(*PLACE, "n_moved")
