"""Contracts of the tables that the production task brokerage reads (production-tasks.md 1).

Names are the chapter's; what the job brokerage reads too has its contract there. A row whose ``jeditaskid``
or ``snapshot`` is null, or a table without that column, holds for every task or instant. ``position`` gives a
stored order where the rules depend on one; null = the order of the rows.
"""

from functools import partial

import dataframely as dy

from brokerlab.archive import contracts as archive
from brokerlab.archive.contracts._columns import f64, flag, i64, like, text, ts
from brokerlab.brokerage import contracts as shared

_dataset = partial(like, archive.TABLES["datasets"])
_task = partial(like, archive.TABLES["tasks"])


class Tasks(dy.Schema):
    """A task at one instant of brokerage."""

    jeditaskid = _task("jeditaskid", required=True)
    snapshot = i64("instant whose state the task sees", null="0")
    at = ts("instant of brokerage", required=True)
    position = i64("order in which one cycle handles its tasks", null="order of the rows")
    taskpriority = _task("taskpriority", null="never waives the locality check")
    currentpriority = _task("currentpriority", null="never waives; shares no remaining work")
    nucleus = _task("nucleus", null="not assigned yet")
    gshare = _task("gshare")
    workqueue_name = text("work queue", null="the gshare")
    iointensity = f64(
        "input and output per second", "kB/s", null="low; high in the deployed weight"
    )
    t1weight = i64("preference for the nucleus", null="0")
    taskbrokeronmaster = flag("only the master input counts", null="no")
    inputprestaging = flag("data carousel", null="no")
    fullchain = text("only, require, capable", null="not full chain")
    parent_tid = _task("parent_tid", null="no parent")
    frozentime = ts("since when it is stuck in assigning", null="not stuck")
    task_rw = f64("work left in the task", "HS06 s", null="adds nothing")


class Datasets(dy.Schema):
    """Input datasets of a task."""

    jeditaskid = _dataset("jeditaskid", null="every task")
    snapshot = i64("instant", null="every instant")
    datasetname = text("dataset", required=True)
    is_master = flag("master", null="no")
    pseudo = flag("pseudo input, without files", null="no")


class OutputDatasets(dy.Schema):
    """Datasets of type output and log of a task."""

    jeditaskid = _dataset("jeditaskid", null="every task")
    snapshot = i64("instant", null="every instant")
    position = i64("order in which they are looked at", null="order of the rows")
    datasetid = _dataset("datasetid", null="not recorded")
    datasetname = text("dataset")
    storagetoken = text("destination", null="the first endpoint")


class Replicas(shared.Replicas):
    """Dataset replicas, with the order in which they are listed."""

    snapshot = i64("instant", null="every instant")
    position = i64("order of listing", null="order of the rows")


class Nuclei(shared.Nuclei):
    """ATLAS sites that own production queues."""

    snapshot = i64("instant", null="every instant")
    position = i64("order in which the draw walks them", null="order of the rows")


class NucleusEndpoints(dy.Schema):
    """Endpoints of a nucleus; their own columns are those of ``storage_endpoints``."""

    snapshot = i64("instant", null="every instant")
    nucleus = text("ATLAS site", required=True)
    direction = text("input, output", required=True)
    position = i64("order of first appearance", null="order of the rows")
    ddm_endpoint_name = text("endpoint", required=True)
    is_local = flag("local to the nucleus; outputs count only there", null="yes")


class RemainingWork(dy.Schema):
    """Work left at a nucleus."""

    snapshot = i64("instant", null="every instant")
    nucleus = text("ATLAS site", required=True)
    workqueue_name = text("work queue", null="all")
    currentpriority_min = i64("least priority counted", null="all")
    rw = f64("work left", "HS06 s", null="0")


class ParentTasks(dy.Schema):
    """Parents of full-chain tasks."""

    snapshot = i64("instant", null="every instant")
    jeditaskid = i64("parent", required=True)
    fullchain = text("only, require, capable", null="not full chain")
    nucleus = text("ATLAS site", null="not assigned")


class HintQueues(dy.Schema):
    """Queues that could run a task, from the job brokerage in hint mode."""

    jeditaskid = i64("task", null="every task")
    snapshot = i64("instant", null="every instant")
    panda_queue = text("queue", required=True)


class Draws(dy.Schema):
    """Random numbers of the choice."""

    jeditaskid = i64("task", null="every task")
    snapshot = i64("instant", null="every instant")
    draw = f64("random number in [0, 1)", required=True)


OPTIONS: dict[str, type[dy.Schema]] = {"hint_queues": HintQueues, "draws": Draws}
"""Tables that are arguments of their own."""

TABLES: dict[str, type[dy.Schema]] = {
    "tasks": Tasks,
    "datasets": Datasets,
    "output_datasets": OutputDatasets,
    "replicas": Replicas,
    "nuclei": Nuclei,
    "nucleus_endpoints": NucleusEndpoints,
    "storage_endpoints": shared.StorageEndpoints,
    "queues": shared.Queues,
    "network_matrix": shared.NetworkMatrix,
    "remaining_work": RemainingWork,
    "parent_tasks": ParentTasks,
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
