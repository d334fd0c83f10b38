"""Contracts of the tables that the production task brokerage reads (production-tasks.md 1).

Names are the chapter's; what the job brokerage reads too has its contract there. A row whose ``jeditaskid``
or ``snapshot`` is null, or a table without that column, holds for every task or instant. ``position`` gives a
stored order where the rules depend on one; null = the order of the rows.
"""

from functools import partial

import dataframely as dy

from brokerlab.archive import contracts as archive
from brokerlab.archive.contracts._columns import (
    NOT_ALLOWED,
    declared,
    f64,
    flag,
    i64,
    kept,
    text,
    ts,
)
from brokerlab.brokerage import contracts as shared
from brokerlab.brokerage.contracts import DATASET, SNAPSHOT, TASK

_dataset = partial(kept, archive.TABLES["datasets"])
_task = partial(kept, archive.TABLES["tasks"])
_position = partial(i64, null="order of the rows")
_CHAIN: shared.Columns = {"fullchain": text("only, require, capable", null="not full chain")}
_NUCLEUS: shared.Columns = {"nucleus": text("ATLAS site", required=True)}

OPTIONS: dict[str, type[dy.Schema]] = declared(
    __name__,
    {
        "hint_queues": (
            "Queues that could run a task, from the job brokerage in hint mode.",
            {**TASK, **SNAPSHOT, "panda_queue": text("queue", required=True)},
        ),
        "draws": (
            "Random numbers of the choice.",
            {**TASK, **SNAPSHOT, "draw": f64("random number in [0, 1)", required=True)},
        ),
    },
)
"""Tables that are arguments of their own."""

_OWN = declared(
    __name__,
    {
        "tasks": (
            "A task at one instant of brokerage.",
            {
                **_task(jeditaskid=NOT_ALLOWED),
                "snapshot": i64("instant whose state the task sees", null="0"),
                "at": ts("instant of brokerage", required=True),
                "position": _position("order in which one cycle handles its tasks"),
                **_task(taskpriority="never waives the locality check"),
                **_task(currentpriority="never waives; shares no remaining work"),
                **_task(nucleus="not assigned yet", gshare=None),
                "workqueue_name": text("work queue", null="the gshare"),
                "iointensity": f64(
                    "input and output per second", "kB/s", null="low; high in the deployed weight"
                ),
                "t1weight": i64("preference for the nucleus", null="0"),
                "taskbrokeronmaster": flag("only the master input counts", null="no"),
                "inputprestaging": flag("data carousel", null="no"),
                **_CHAIN,
                **_task(parent_tid="no parent"),
                "frozentime": ts("since when it is stuck in assigning", null="not stuck"),
                "task_rw": f64("work left in the task", "HS06 s", null="adds nothing"),
            },
        ),
        "datasets": (
            "Input datasets of a task.",
            {
                **TASK,
                **SNAPSHOT,
                **DATASET,
                "is_master": flag("master", null="no"),
                "pseudo": flag("pseudo input, without files", null="no"),
            },
        ),
        "output_datasets": (
            "Datasets of type output and log of a task.",
            {
                **TASK,
                **SNAPSHOT,
                "position": _position("order in which they are looked at"),
                **_dataset(datasetid="not recorded"),
                "datasetname": text("dataset"),
                "storagetoken": text("destination", null="the first endpoint"),
            },
        ),
        "replicas": (
            "Dataset replicas, with the order in which they are listed.",
            shared.TABLES["replicas"].columns()
            | SNAPSHOT
            | {"position": _position("order of listing")},
        ),
        "nuclei": (
            "ATLAS sites that own production queues.",
            shared.TABLES["nuclei"].columns()
            | SNAPSHOT
            | {"position": _position("order in which the draw walks them")},
        ),
        "nucleus_endpoints": (
            "Endpoints of a nucleus; their own columns are those of ``storage_endpoints``.",
            {
                **SNAPSHOT,
                **_NUCLEUS,
                "direction": text("input, output", required=True),
                "position": _position("order of first appearance"),
                "ddm_endpoint_name": text("endpoint", required=True),
                "is_local": flag("local to the nucleus; outputs count only there", null="yes"),
            },
        ),
        "remaining_work": (
            "Work left at a nucleus.",
            {
                **SNAPSHOT,
                **_NUCLEUS,
                "workqueue_name": text("work queue", null="all"),
                "currentpriority_min": i64("least priority counted", null="all"),
                "rw": f64("work left", "HS06 s", null="0"),
            },
        ),
        "parent_tasks": (
            "Parents of full-chain tasks.",
            {
                **SNAPSHOT,
                "jeditaskid": i64("parent", required=True),
                **_CHAIN,
                "nucleus": text("ATLAS site", null="not assigned"),
            },
        ),
    },
)
TABLES: dict[str, type[dy.Schema]] = _OWN | {
    name: shared.TABLES[name] for name in ("storage_endpoints", "queues", "network_matrix")
}
"""Every input table of the production task brokerage."""

_STORAGE = ("no_storage", "not_reached", "read_wan_down", "write_wan_down", "disk_space")
NEEDED: dict[str, tuple[str, ...]] = {
    "storage_endpoints": (*_STORAGE, "input_size", "input_files", "input_not_readable"),
    "replicas": ("input_size", "input_files", "input_not_readable"),
    "parent_tasks": ("parent_missing",),
}
"""Table to the checks, and the ends of tasks, that cannot be decided without it: where it is missing they remove nothing."""

ABSENT: dict[str, str] = {
    "tasks": "nothing is decided",
    "datasets": "tasks have no input",
    "output_datasets": "tasks have no outputs: the first endpoint of a nucleus is asked (production: none)",
    "nuclei": "there is no nucleus",
    "nucleus_endpoints": "the lists of nuclei count",
    "queues": "the lists of nuclei name their queues",
    "network_matrix": "no file is queued",
    "remaining_work": "no work is left",
}
"""Table to what is taken where it is not given; a table of :data:`NEEDED` is unknown then."""
