"""Small tables for the classification: jobs in plain words, and random archives with every kind of gap."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

import polars as pl

NOW = datetime(2026, 3, 10, 12)

Row = dict[str, Any]
_TEXTS = [
    "computingsite",
    "prodsourcelabel",
    "gshare",
    "processingtype",
    "produsername",
    "jobstatus",
    "vo",
    "table",
]
_TIMES = [
    "creationtime",
    "activatedtime",
    "starttime",
    "endtime",
    "statechangetime",
    "modificationtime",
]
JOBS: dict[str, Any] = {
    "pandaid": pl.Int64,
    **dict.fromkeys(_TEXTS, pl.String),
    "corecount": pl.Int64,
    "hs06": pl.Int64,
    **dict.fromkeys(_TIMES, pl.Datetime("us")),
}
LOG: dict[str, Any] = {
    "pandaid": pl.Int64,
    "jobstatus": pl.String,
    "modificationtime": pl.Datetime("us"),
}


def ago(**time: float) -> datetime:
    return NOW - timedelta(**time)


def job(number: int, **values: Any) -> Row:
    """Describe a finished merge job of User Analysis at queue Q."""
    row: Row = dict.fromkeys(JOBS)
    row |= {"pandaid": number, "computingsite": "Q", "prodsourcelabel": "user", "vo": "atlas"}
    row |= {"gshare": "User Analysis", "processingtype": "pmerge", "produsername": "ann"}
    return row | {"jobstatus": "finished", "corecount": 1} | values


def waited(number: int, wait_s: float, *, age_s: float = 0, **values: Any) -> Row:
    """Describe a job that waited and started some time ago, and finished since."""
    start = ago(seconds=age_s)
    times = {"activatedtime": start - timedelta(seconds=wait_s), "starttime": start}
    times |= {"creationtime": times["activatedtime"], "modificationtime": NOW}
    return job(number, **(times | values))


def queued(number: int, seconds: float, **values: Any) -> Row:
    """Describe a job that has been queueing."""
    since = ago(seconds=seconds)
    times = {"creationtime": since, "modificationtime": since, "jobstatus": "activated"}
    return job(number, **(times | values))


def jobs(*rows: Row) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=JOBS)


def drawn(seed: int, size: int = 150) -> dict[str, pl.DataFrame]:
    """Draw an archive of a week: jobs, their log, tasks, datasets and files."""
    draw = random.Random(seed)  # noqa: S311 - not a secret
    maybe = lambda *values: draw.choice([None, *values])  # noqa: E731
    rows, log = [], []
    for number in range(size):
        steps = [draw.randrange(-7 * 24 * 60, 60)]
        for _ in _TIMES[1:]:
            steps.append(steps[-1] + draw.choice([-5, 0, 0, 1, 7, 60, 600, 3000]))
        times = {
            name: NOW + timedelta(minutes=step, seconds=draw.choice([0, 0, 0.25, 7]))
            for name, step in zip(_TIMES, steps, strict=True)
        }
        times |= {name: None for name in _TIMES[1:5] if draw.random() < 0.15}
        row = job(
            number,
            computingsite=draw.choice(["Q", "R", "S", "T", None]),
            prodsourcelabel=draw.choice(["user"] * 5 + ["managed", None]),
            gshare=draw.choice(["User Analysis"] * 5 + ["Express Analysis", None]),
            processingtype=draw.choice(["pmerge", "pmerge", "run", None]),
            produsername=draw.choice(["ann", "bob", "gangarbt", None]),
            jobstatus=draw.choice(
                ["finished"] * 6
                + ["failed", "closed", "running", "activated", "starting", "sent", "pending"]
            ),
            corecount=maybe(0, 1, 8),
            hs06=maybe(10, 80),
            table=maybe("jobsactive4", "jobsarchived4"),
            **times,
        )
        rows.append(row)
        for status in ("assigned", "activated", "starting", "running", "activated"):
            if draw.random() < 0.6:
                moment = times["creationtime"] + timedelta(minutes=draw.randrange(0, 900))
                log.append((number, status, moment))
    return {
        "jobs": jobs(*rows),
        "job_status_log": pl.DataFrame(sorted(set(log)), schema=LOG, orient="row"),
        "queues": pl.DataFrame(
            {
                "panda_queue": ["Q", "R", "S"],
                "resource_type": ["GRID", "GRID", "hpc"],
                "workflow": ["push_heartbeat", None, "pull"],
            }
        ),
        **_tasks(draw),
    }


def _tasks(draw: random.Random) -> dict[str, pl.DataFrame]:
    """Draw tasks with input; some share their jobs."""
    tasks, log, files = [], [], []
    statuses = ["running", "scouting", "pending", "done", "finished", "throttled"]
    for task in range(12):
        created = NOW - timedelta(hours=draw.randrange(0, 200))
        changed = created + timedelta(hours=draw.randrange(0, 100))
        started = draw.choice([None, created + timedelta(minutes=30)])
        user, share = draw.choice(["ann", "bob", "gangarbt"]), draw.choice(["User Analysis", "X"])
        status = draw.choice(statuses)
        tasks.append((task, user, share, "anal", "user", status, created, started, changed))
        log += [
            (task, draw.choice(statuses), created + timedelta(hours=draw.randrange(0, 60)))
            for _ in range(draw.randrange(3))
        ]
        for _ in range(draw.randrange(20)):
            state = draw.choice(["finished", "failed", "ready", "running"])
            pandaid = draw.choice([None, draw.randrange(150)])
            files.append((task, draw.choice([task, task + 100]), pandaid, state))
    time = pl.Datetime("us")
    names = ["jeditaskid", "username", "gshare", "tasktype", "prodsourcelabel", "status"]
    kinds = dict(zip(names, [pl.Int64, *[pl.String] * 5], strict=True))
    kinds |= dict.fromkeys(["creationdate", "starttime", "modificationtime"], time)
    ids = list(range(12))
    return {
        "tasks": pl.DataFrame(tasks, schema=kinds, orient="row"),
        "task_status_log": pl.DataFrame(
            sorted(set(log)),
            schema={"jeditaskid": pl.Int64, "status": pl.String, "modificationtime": time},
            orient="row",
        ),
        "files": pl.DataFrame(
            files,
            schema={
                **dict.fromkeys(["jeditaskid", "datasetid", "pandaid"], pl.Int64),
                "status": pl.String,
            },
            orient="row",
        ),
        "datasets": pl.DataFrame(
            {
                "jeditaskid": ids * 2,
                "datasetid": ids + [number + 100 for number in ids],
                "masterid": [None] * 12 + [1] * 12,
                "type": ["input", "pseudo_input", "output"] * 8,
                "nfiles": [20] * 24,
            },
            schema_overrides={"masterid": pl.Int64},
        ),
    }
