"""Every recorded vector of the classification: waits, queues, users, tasks and shares (classes.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import polars as pl
import pytest

from brokerlab.gdpconfig import Config
from brokerlab.lifecycle import classification
from brokerlab.lifecycle.classification import ClassRules
from tests.oracle import vectors

PRODUCTION = ClassRules("production")
NOW = datetime(2024, 7, 1)

Row = dict[str, Any]
_TIME, _TEXT, _INT = pl.Datetime("us"), pl.String, pl.Int64
TYPES: dict[str, Any] = {
    **dict.fromkeys(["modificationtime", "creationtime", "starttime"], _TIME),
    **dict.fromkeys(["computingsite", "prodsourcelabel", "gshare", "processingtype"], _TEXT),
    **dict.fromkeys(["produsername", "jobstatus", "vo", "table", "panda_queue"], _TEXT),
    **dict.fromkeys(["workflow", "resource_type", "parent", "username", "status"], _TEXT),
    **dict.fromkeys(["pandaid", "corecount", "jeditaskid", "long_q_n", "class"], _INT),
    **dict.fromkeys(["w_cl95upp", "long_q_mean", "hs", "value"], pl.Float64),
}


def frame(rows: list[Row], columns: str) -> pl.DataFrame:
    """Make a table with the named columns; times are texts in the vectors."""
    schema = {name: TYPES.get(name) for name in columns.split()}
    texts = [
        {
            name: datetime.fromisoformat(row[name])
            if kind == _TIME and row.get(name)
            else row.get(name)
            for name, kind in schema.items()
        }
        for row in rows
    ]
    return pl.DataFrame(texts, schema=schema)


def config_of(rows: list[Row]) -> Config:
    entries = [
        {"app": "pandaserver", "type": "int", **row, "value": str(row["value"])} for row in rows
    ]
    return Config.from_rows(entries)


def near(got: Any, expected: Any) -> bool:
    """Compare numbers to 1e-9 relative; whole numbers, names and nulls exactly."""
    if isinstance(expected, Mapping):
        return got.keys() >= expected.keys() and all(near(got[k], v) for k, v in expected.items())
    if isinstance(expected, list):
        return len(got) == len(expected) and all(map(near, got, expected))
    if isinstance(expected, float) and got is not None:
        return math.isclose(got, expected, rel_tol=1e-9, abs_tol=0.0)
    return bool(got == expected)


def weighted_upper_limit(inputs: Row, expected: Row) -> bool:
    limit = classification.weighted_upper_limit(**inputs)
    got = {name: getattr(limit, name) for name in expected}
    if len(set(inputs["values"])) == 1:  # rounding noise decides in the deployed code
        expected = {k: v for k, v in expected.items() if k not in ("w_stdev", "upper")}
    return near(got, expected)


JOBS = (
    "pandaid computingsite prodsourcelabel gshare processingtype produsername jobstatus modificationtime "
    "creationtime starttime corecount vo table"
)


def analysis_wait_stats(inputs: Row, expected: Row) -> bool:
    rules = ClassRules("production", half_life_hours=inputs["half_life_hours"])
    found = classification.wait_stats(
        frame(inputs["jobs"], JOBS),
        frame(inputs["queues"], "panda_queue workflow"),
        status_log=frame(inputs["status_log"], "pandaid jobstatus modificationtime"),
        at=datetime.fromisoformat(inputs["now"]),
        rules=rules,
    ).rename({"median": "med"})
    wanted = sorted(expected["stats"], key=lambda row: row["computingsite"])
    noise = ("cl95upp", "w_stdev", "w_cl95upp")
    kept = [{k: v for k, v in row.items() if row["stdev"] or k not in noise} for row in wanted]
    return near(found.to_dicts(), kept)


def site_class(inputs: Row, expected: Row) -> bool:
    stats = frame(inputs["wait_stats"], "computingsite age_minutes w_cl95upp long_q_mean long_q_n")
    queues = frame(inputs["queues"], "panda_queue resource_type")
    jobs = frame(inputs["started_jobs"], "computingsite corecount starttime vo jobstatus table")
    at = datetime.fromisoformat(inputs["now"])
    activity = classification.queue_activity(jobs, at=at, vo="atlas")
    found = classification.site_classes(stats, queues, activity, rules=PRODUCTION)
    if expected["error"]:  # the deployed code loses every class of that cycle
        return "no_resource_type" in found.classes["reason"].to_list()
    limits = found.percentiles.to_dicts() or [{"n_ranked": 0, "p33": None, "p67": None}]
    told = {
        name: limits[0][name] if limits[0][name] is None else round(limits[0][name], 3)
        for name in ("n_ranked", "p33", "p67")
    }
    wanted = sorted(expected["classes"], key=lambda row: row["computingsite"])
    got = found.classes.filter(pl.col("class").is_not_null()).to_dicts()
    return near(got, wanted) and near(told, {name: expected[name] for name in told})


def user_usage(inputs: Row, expected: Row) -> bool:
    columns = "pandaid computingsite prodsourcelabel gshare processingtype produsername jobstatus corecount"
    slots = classification.user_slots(frame(inputs["jobs"], columns), at=NOW, totals=True)
    wanted = [{k.lower(): v for k, v in row.items()} for row in expected["user_job_stats"]]
    key = ("computingsite", "gshare", "produsername")
    wanted.sort(key=lambda row: tuple(row[name] for name in key))
    rated = frame(inputs["site_class"], "computingsite class resource_type")
    users = slots.filter(pl.col("produsername") != classification.TOTAL)
    found = classification.user_usage(
        users, rated, config=config_of(inputs["gdpconfig"]), rules=PRODUCTION
    )
    return near(slots.to_dicts(), wanted) and near(
        [evaluated(row) for row in found.users.to_dicts()],
        sorted(expected["user_eval"], key=lambda row: row["user"]),
    )


def evaluated(row: Row) -> Row:
    """Name a user's numbers as the deployed metric does."""
    sites = {
        f"{letter}_sites": {
            "nQueue": row[f"nqueue_{name}"],
            "nRunning": row[f"nrunning_{name}"],
            "slotsQueue": row[f"slotsqueue_{name}"],
            "slotsRunning": row[f"slots_{name}"],
        }
        for letter, name in zip("ABC", ("hi", "mid", "lo"), strict=True)
    }
    left = {
        f"{name}_{letter.upper()}": row[f"{name}_{letter}"]
        for name in ("rem_slots", "rem_slot_ratio")
        for letter in "ab"
    }
    return {"user": row["produsername"], **sites, **left}


def task_class(inputs: Row, expected: Row) -> bool:
    tasks = "jeditaskid username gshare tasktype prodsourcelabel status modificationtime"
    usage = frame(inputs["user_eval"], "user rem_slots_a rem_slots_b")
    found = classification.task_classes(
        frame(inputs["tasks"], tasks),
        frame(inputs["task_progress"], "jeditaskid nfiles nfilesfinished nfilesfailed njobs"),
        usage.rename({"user": "produsername"}),
        at=datetime.fromisoformat(inputs["now"]),
        config=config_of(inputs["gdpconfig"]),
        rules=PRODUCTION,
    ).classes
    names = {
        "jeditaskid": "task_id",
        "username": "user",
        "nfiles": "n_files_total",
        "nfilesfinished": "n_files_finished",
        "nfilesfailed": "n_files_failed",
    }
    got = found.filter(pl.col("class").is_not_null()).rename(names).to_dicts()
    return near(got, sorted(expected["classes"], key=lambda row: row["task_id"]))


def gshare_usage(inputs: Row, expected: Row) -> bool:
    found = classification.share_usage(
        frame(inputs["shares"], "name value parent"),
        frame(inputs["share_job_stats"], "gshare jobstatus hs"),
    )
    leaves = found.ranked_leaves().to_dicts()
    names = {
        "name": "gshare",
        "running": "running_hs",
        "target": "target_hs",
        "queuing": "queuing_hs",
    }
    got = [{name: row[column] for name, column in names.items()} for row in leaves]
    if expected["error"]:  # the deployed code loses the metric: a top-level share has no target
        return found.usage["eqiv_usage_perc"].null_count() > 0 and near(
            got, expected["ranked_leaves"]
        )
    usage = sorted(expected["usage"], key=lambda row: row["gshare"])
    return near(got, expected["ranked_leaves"]) and near(found.usage.to_dicts(), usage)


FUNCTIONS: dict[str, Callable[[Row, Row], bool]] = {
    "anal_weighted_upper_limit": weighted_upper_limit,
    "anal_wait_stats": analysis_wait_stats,
    "anal_site_class": site_class,
    "anal_user_usage": user_usage,
    "anal_task_class": task_class,
    "anal_gshare_usage": gshare_usage,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_vector_agrees(name: str) -> None:
    cases = vectors.load(name)
    wrong = [case["id"] for case in cases if not FUNCTIONS[name](case["inputs"], case["expected"])]
    vectors.report(name, len(cases), len(cases) - len(wrong))
    assert not wrong, f"{name}: {len(wrong)} of {len(cases)} differ: {wrong[:20]}"
