"""Where the library and the plain loop of the analysis brokerage decide a random world differently."""

from __future__ import annotations

import json
import math
from typing import Any

import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions, AnalysisRules, decide
from brokerlab.brokerage.analysis_jobs.contracts import TABLES
from brokerlab.gdpconfig import Config
from tests.twins import analysis_jobs
from tests.twins.analysis_world import SWITCHES

REL = 1e-12
OF_SERVER = ("prio_mgr", "analy_eval")
NUMBERS = {
    "orig": "orig", "new": "new", "max_q_len": "max_q_len", "u_queued": "user_queued", "rem_q_len": "rest",
    "u_running": "user_running", "x_nq": "nq", "running": "running",
}  # fmt: skip
MARKS = ("user_queue", "bad_jobs", "no_running")
Tables = dict[str, Any]
Row = dict[str, Any]
Frames = dict[str, pl.DataFrame]


def other(name: str, value: Any) -> Any:
    """Return the other value of a switch."""
    return next(one for one in SWITCHES[name] if one != value)


def frames(tables: Tables) -> Frames:
    """Return the tables that the library reads; those without rows are known to have none."""
    found = {}
    for name, contract in TABLES.items():
        rows = tables.get(name) or []
        if name == "sw_tags":
            rows = [row | {"data": json.dumps(row["data"])} for row in rows]
        frame = pl.DataFrame(rows, infer_schema_length=None)
        found[name] = frame.select(key for key in contract.columns() if key in frame.columns)
    return found


def config(tables: Tables) -> Config:
    """Return the settings of a world."""
    return Config.empty().with_values(
        {
            f"{'pandaserver' if row['component'] in OF_SERVER else 'jedi'}/{row['component']}/{row['key']}": row["value"]
            for row in tables["gdpconfig"]
        }
    )  # fmt: skip


def decided(tables: Tables, rules: AnalysisRules, **more: Any) -> AnalysisDecisions:
    return decide(frames(tables), rules=rules, config=config(tables), **more)


def disagreements(
    tables: Tables, rules: AnalysisRules, found: AnalysisDecisions | None = None
) -> list[str]:
    """Return what is decided differently, ``kind| where: what``; ``found`` is what the library decided, if it was asked."""
    found = found or decided(tables, rules)
    tasks = {_task(row): row for row in found.tasks.to_dicts()}
    walks = [_by_task(frame) for frame in (found.first_loop, found.queues)]
    new = "new" if rules.new_weight == "budgets" else "new_document"
    weighed = _by_task(found.weighed.with_columns(new=pl.col(new)))
    wrong: list[str] = []
    for one in analysis_jobs.decide_all(tables, rules=rules):
        key = _task(one)
        told = [
            f"{what}| {key}: {tasks[key][what]}, twin {one[what]}"
            for what in ("throttle", "outcome")
            if tasks[key][what] != one[what]
        ]
        ours = [walk[key] for walk in walks if key in walk]
        told += _walks_differ(ours, one["loops"])
        told += _weights_differ(weighed.get(key, {}), one)
        wrong += [text.replace("|", f"| {key}", 1) for text in told]
    return wrong


def _task(row: Row) -> tuple[int, int]:
    return row["jeditaskid"], row["snapshot"]


def _by_task(frame: pl.DataFrame) -> dict[tuple[int, int], dict[str, Row]]:
    found: dict[tuple[int, int], dict[str, Row]] = {}
    texts = frame.with_columns(pl.col(pl.Enum, pl.Categorical).cast(pl.String))
    for row in texts.iter_rows(named=True):
        found.setdefault(_task(row), {})[row["panda_queue"]] = row
    return found


def _walks_differ(ours: list[dict[str, Row]], theirs: list[Row]) -> list[str]:
    theirs = [checks for checks in theirs if checks]
    if len(ours) != len(theirs):
        return [f"walks| {len(ours)}, twin {len(theirs)}"]
    found = []
    for mine, checks in zip(ours, theirs, strict=True):
        found += [f"candidate| {name}: on one side" for name in sorted(mine.keys() ^ checks.keys())]
        found += [
            f"{mine[name]['check']} / {checks[name]}| {name}"
            for name in sorted(mine.keys() & checks.keys())
            if mine[name]["check"] != checks[name]
        ]
    return found


def _weights_differ(ours: dict[str, Row], one: Row) -> list[str]:
    found = []
    kept = {name for name, row in ours.items() if row["new"] is not None}
    found += [f"weighed| {name}: on one side" for name in sorted(kept ^ one["weights"].keys())]
    for name in sorted(kept & one["weights"].keys()):
        row, state = ours[name], one["states"][ours[name].get("parent") or name.split("/")[0]]
        pairs = {what: (row[what], getattr(state, theirs)) for what, theirs in NUMBERS.items()}
        pairs["weight"] = row["weight"], one["weights"][name]
        found += [
            f"{what}| {name}: {mine}, twin {theirs}"
            for what, (mine, theirs) in pairs.items()
            if not math.isclose(mine, theirs, rel_tol=REL, abs_tol=1e-15)
        ]
        if {mark for mark in MARKS if row[mark]} != state.marks:
            found.append(f"marks| {name}: twin {state.marks}")
        if row["rank"] != one["ranks"].get(name):
            found.append(f"rank| {name}: {row['rank']}, twin {one['ranks'].get(name)}")
    return found
