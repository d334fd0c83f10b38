"""Random worlds for the analysis brokerage: many tasks at many queues, every rule acts somewhere."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

from tests.unit.brokerage.analysis_jobs.toys import AT, SHARE, World

USERS = ("alice", "bob", "carol")
SHARES = (SHARE, SHARE, SHARE, "Express Analysis", "Group Analysis")
GB = 1024**3


def random_world(seed: int, n_tasks: int = 30, n_queues: int = 18) -> World:
    """Return tasks of three users at queues with jobs, storage, classes and input here and there."""
    rng = random.Random(seed)  # noqa: S311
    world = World()
    world.rows["tasks"].clear()
    first = World().rows["tasks"][0]
    for number in range(1, n_tasks + 1):
        world.add("tasks", **(first | _task(rng, number)))
        if rng.random() < 0.8:
            world.add("task_class", jeditaskid=number, **{"class": rng.choice([2, 1, 1, 1, 0, -1])})
        if rng.random() < 0.7:
            _input(world, rng, number, n_queues)
    for number in range(n_queues):
        _queue(world, rng, f"Q{number:02}")
    world.add("gshare_usage", gshare=SHARE, usage_perc=1.3)
    world.add("user_eval", user="bob", rem_slots_a=10.0, rem_slots_b=0.0)
    world.add(
        "user_totals", workinggroup="higgs", nrunjobs=9, nqueuedjobs=9, nruncores=9, nqueuedcores=9
    )
    for user, jobs in zip(USERS, (50, 900, 300), strict=True):
        counts = {
            "nrunjobs": jobs,
            "nqueuedjobs": 2 * jobs,
            "nruncores": jobs,
            "nqueuedcores": jobs,
        }
        world.add("user_totals", origusername=user, **counts)
    return world


def _task(rng: random.Random, number: int) -> dict[str, Any]:
    maybe = {
        "limitedsites": rng.random() < 0.2,
        "includedsite": rng.choice([None, ["Q0*"], ["Q01", "Q02", "AUTO"]]),
        "site": "Q03" if rng.random() < 0.08 else None,
        "is_merging": rng.random() < 0.1,
        "chunk_usescout": rng.random() < 0.15,
        "allowincompleteinds": rng.random() < 0.3,
        "frozentime": AT - timedelta(hours=rng.choice([1, 5, 30])) if rng.random() < 0.5 else None,
    }
    return {
        "jeditaskid": number, "username": rng.choice(USERS), "workinggroup": rng.choice([None, None, None, "higgs"]), "gshare": rng.choice(SHARES),
        "iointensity": rng.choice([None, 50.0, 400.0, 3000.0]), "diskio": rng.choice([None, 900.0]),
        "taskpriority": rng.choice([900, 1000, 2500]), "ramcount": rng.choice([1000, 2000, 4000]),
        "n_jobs_to_submit": rng.choice([0, 5, 60, 500]), "resource_type": "SCORE", **maybe,
    }  # fmt: skip


def _input(world: World, rng: random.Random, number: int, n_queues: int) -> None:
    name = f"mc.{number}"
    world.add("datasets", jeditaskid=number, datasetname=name, type="input", is_master=True)
    for lfn in "ab":
        world.add("files", jeditaskid=number, datasetname=name, lfn=lfn, fsize=3 * GB)
    most = rng.choice([100, 100, 95, 40])
    for place in rng.sample(range(n_queues), 3):
        found = rng.choice([most, 40])
        row = {"found": found, "total": 100, "ddm_endpoint_name": f"Q{place:02}_DISK"}
        world.add("replicas", jeditaskid=number, datasetname=name, **row)


def _queue(world: World, rng: random.Random, name: str) -> None:
    world.queue(
        name,
        status="test" if rng.random() < 0.08 else "online",
        maxrss=rng.choice([0.0, 2000.0, 4000.0]),
        catchall=rng.choice([None, None, None, "use_only_local_data"]),
        max_io_intensity=rng.choice([None, 1000.0]),
        e_space_usable=rng.choice([5000.0, 5000.0, 300.0, 100.0]),
        e_write_wan=rng.choice([None, None, "OFF"]),
    )  # fmt: skip
    for share in dict.fromkeys(SHARES):  # in order: the world is the same in every run
        for status, most in (("running", 400), ("activated", 600), ("starting", 20)):
            world.jobs(name, status, rng.choice([0, most // 10, most]), gshare=share)
        for user in USERS:
            if rng.random() < 0.6:
                counts = {"nqueue": rng.choice([0, 30, 300]), "nrunning": rng.choice([0, 20, 100])}
                world.add(
                    "user_job_stats", computingsite=name, gshare=share, produsername=user, **counts
                )
    world.add("to_run_rate", computingsite=name, jobs_per_hour=rng.choice([0.0, 5.0, 80.0]))
    world.add("site_class", computingsite=name, **{"class": rng.choice([1, 0, 0, -1])})
    world.add("diskio_usage", computingsite=name, diskio_per_core=rng.choice([100.0, 2000.0]))
    for task in rng.sample(range(1, 20), 3):
        status = rng.choice(["failed", "finished", "closed"])
        row = {"jobstatus": status, "njobs": rng.choice([3, 5, 12]), "computingsite": name}
        world.add("failure_counts", jeditaskid=task, **row)
