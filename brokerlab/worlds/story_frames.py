"""Tasks whose jobs are laid out one by one, second by second through the statuses, and their rows in every table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from brokerlab.archive.contracts.jobs import OVER
from brokerlab.numerics import IntArray
from brokerlab.units import KB, MB
from brokerlab.worlds.block import PLANTED_IDS, identify
from brokerlab.worlds.frames_tasks import DATASETS_PER_TASK, FILES_PER_BLOCK
from brokerlab.worlds.jobtypes import USER_SHARE
from brokerlab.worlds.queues import conform
from brokerlab.worlds.tasks import GROUPS, PRODUCTION_USER, USERS, registered
from brokerlab.worlds.world import World

HOUR, DAY = 3600, 86_400
USUAL_S = {
    "defined": 20,
    "assigned": 25,
    "activated": 600,
    "starting": 120,
    "running": 1500,
    "holding": 15,
}
"""Statuses of an ordinary job and how long it stays in each [s]."""
ORDER = (
    *("pending", "waiting", "defined", "assigned", "throttled", "activated", "sent", "starting"),
    *("running", "merging", "holding", "transferring"),
)
"""Statuses that a path may have, in the order that jobs take them."""


@dataclass(frozen=True)
class Path:
    """The statuses of a job with the second at which each began, and what else its row says."""

    # ``(status, second)``, the last one holds at the end of the archive
    steps: tuple[tuple[str, int], ...]
    queue: int  # index of the queue
    # columns of ``jobs`` that differ from the usual ones of its task
    columns: Mapping[str, Any] = field(default_factory=dict)
    signed_s: int | None = None  # last sign of life, if later than the last change of status [s]
    # number of the job of the same task that this one tries again, in their order; None = none
    again: int | None = None

    @property
    def created_s(self) -> int:
        """Second of creation."""
        return self.steps[0][1]

    @property
    def status(self) -> str:
        """Status at the end of the archive."""
        return self.steps[-1][0]

    @property
    def changed_s(self) -> int:
        """Second of the last change of status."""
        return self.steps[-1][1]

    @property
    def live(self) -> bool:
        """The job is not over."""
        return self.status not in OVER

    def first(self, *statuses: str) -> int | None:
        """Return when the job was first in one of the statuses."""
        return next((second for status, second in self.steps if status in statuses), None)

    @property
    def ended_s(self) -> int | None:
        """Second at which the payload ended; None if it did not."""
        after = [i for i, (status, _) in enumerate(self.steps) if status == "running"]
        if not after or after[-1] + 1 == len(self.steps):
            return None
        return self.steps[after[-1] + 1][1]


def steps(
    begin_s: int,
    stays: Mapping[str, int] | None = None,
    *,
    last: str = "finished",
    skip: tuple[str, ...] = (),
) -> tuple[tuple[str, int], ...]:
    """Lay a path out from its creation; ``stays`` [s] are those that are not as usual, also in statuses that are not.

    A ``last`` status of ``ORDER`` ends the path there; ``skip`` are usual ones that the job does not take.

    Example:
        >>> steps(0, {"holding": 100}, skip=("defined", "assigned"))
        (('activated', 0), ('starting', 600), ('running', 720), ('holding', 2220), ('finished', 2320))
        >>> steps(0, {"activated": 50}, last="starting")
        (('defined', 0), ('assigned', 20), ('activated', 45), ('starting', 95))
    """
    length = {**USUAL_S, **(stays or {})}
    result, second = [], begin_s
    for status in ORDER:
        if status not in length or status in skip:
            continue
        result.append((status, second))
        if status == last:
            return tuple(result)
        second += length[status]
    return (*result, (last, second))


def until(
    end_s: int, status: str, stay_s: int, stays: Mapping[str, int] | None = None
) -> tuple[tuple[str, int], ...]:
    """Lay out the path of a job that at the end of the archive has been in a status for so long.

    Example:
        >>> until(1000, "activated", 900)
        (('defined', 55), ('assigned', 75), ('activated', 100))
    """
    length = {**(stays or {}), status: stay_s}
    at_zero = steps(0, length, last=status)
    shift = end_s - stay_s - at_zero[-1][1]
    return tuple((name, second + shift) for name, second in at_zero)


LEAD_S = 900
"""A planted task is registered so long before its first job [s]: it is rated when it is brokered."""
FILE_BYTES, OUTPUT_BYTES, MEMORY_MB, RAM_MB, EFFICIENCY = 300 * MB, 20 * MB, 1100, 2000, 0.8
KINDS: dict[str, dict[str, Any]] = {
    "user": {
        "tasktype": "anal", "processingtype": "panda-client-1.5.85-jedi-run", "gshare": USER_SHARE,
        "transpath": "runGen-00-00-02", "workqueue_id": 7, "taskpriority": 1000,
    },
    "managed": {
        "tasktype": "prod", "processingtype": "simul", "gshare": "MC 16 simul",
        "transpath": "Sim_tf.py", "workqueue_id": 3, "taskpriority": 700, "cloud": "WORLD",
        "transhome": "Athena-24.0.40", "transuses": "Atlas-24.0.40",
    },
}  # fmt: skip
"""What tasks of a label have in common."""
PLATFORM = "x86_64-el9-gcc13-opt"


@dataclass(frozen=True)
class Story:
    """A task that was invented for what happens to its jobs."""

    name: str  # what it shows
    label: str  # ``user`` or ``managed``
    paths: tuple[Path, ...]
    user: int = -1  # index of the owner in `USERS`; -1 = production
    group: int = -1  # index of the working group in `GROUPS`; -1 = none
    cores: int = 1
    # columns of ``tasks`` that differ from the usual ones
    columns: Mapping[str, Any] = field(default_factory=dict)
    # further entries of the status log, (status, second); the last one before the archive's end may hold
    course: tuple[tuple[str, int], ...] = ()
    data: tuple[int, ...] = ()  # queues that have the input, beside those of its jobs
    # how they have it: ``whole``, ``none`` of it, ``virtual`` or ``partial`` while it is on ``tape``, or there alone
    copies: str = "whole"

    @property
    def created_s(self) -> int:
        """Second at which the task is registered."""
        return max(min(p.created_s for p in self.paths) - LEAD_S, 0)

    @property
    def changed_s(self) -> int:
        """Second of the last change of one of its jobs."""
        return max(p.changed_s for p in self.paths)

    @property
    def states(self) -> list[tuple[str, int]]:
        """The task's course, in order; the last status holds."""
        first = min(p.created_s for p in self.paths)
        begin = self.created_s
        known = [("registered", begin), ("defined", min(begin + 30, first))]
        if self.label == "managed":
            known += [("assigning", min(begin + 120, first)), ("ready", min(begin + 200, first))]
        else:
            known.append(("pending", min(begin + 60, first)))
        known += [("running", first), *self.course]
        if not any(p.live for p in self.paths):
            good = sum(p.status == "finished" for p in self.paths)
            roots = sum(p.again is None for p in self.paths)
            final = "done" if good == roots else "finished" if good else "broken"
            known.append((final, self.changed_s + 60))
        return known


def plant(
    world: World, stories: Sequence[Story], taskid: IntArray, *, index: int, n_blocks: int
) -> dict[str, pl.DataFrame]:
    """Write the rows of the stories of one block by table, and ``truth/planted``: ``pandaid, jeditaskid, computingsite, story``."""
    home = world.sites[
        int(np.argmax(np.where(world.nucleus & world.active, world.site_size, -1.0)))
    ]
    created = np.array([p.created_s for s in stories for p in s.paths], dtype=np.float64)
    _, pandaid = identify(created, index=index, n_blocks=n_blocks, room=PLANTED_IDS)
    ids = iter(pandaid.tolist())
    book = _Book(world, index, home)
    for story, task in zip(stories, taskid.tolist(), strict=True):
        book.enter(story, task, [next(ids) for _ in story.paths])
    return book.tables()


class _Book:
    """Rows that are being written down."""

    def __init__(self, world: World, index: int, home: str) -> None:
        self._world, self._index, self._home = world, index, home
        self._rows: dict[str, list[dict[str, Any]]] = {table: [] for table in _TABLES}

    def tables(self) -> dict[str, pl.DataFrame]:
        """Return the tables."""
        truth = pl.DataFrame(self._rows[_PLANTED], schema=_TRUTH, infer_schema_length=None)
        return {table: self._frame(table) for table in _TABLES[:-1]} | {_PLANTED: truth}

    def _frame(self, table: str) -> pl.DataFrame:
        rows = self._rows[table]
        if not rows:
            return conform(table, pl.DataFrame()).clear()
        frame = pl.DataFrame(rows, infer_schema_length=None)
        seconds = [n for n in frame.columns if n in _TIMES]
        at = [
            (pl.col(n) * 1_000_000 + self._world.settings.start_us).cast(pl.Datetime("us"))
            for n in seconds
        ]
        return conform(table, frame.with_columns(at))

    def enter(self, story: Story, task: int, pandaids: list[int]) -> None:
        """Write one story down."""
        common = {**KINDS[story.label], "vo": "atlas", "prodsourcelabel": story.label}
        common |= {
            "username": USERS[story.user] if story.user >= 0 else PRODUCTION_USER,
            "origusername": registered(story.user) if story.user >= 0 else PRODUCTION_USER,
            "workinggroup": GROUPS[story.group] if story.group >= 0 else None,
            "corecount": story.cores,
            "resource_type": "SCORE" if story.cores == 1 else "MCORE",
            "nucleus": self._home if story.label == "managed" else None,
            "container_name": None,
        }
        common |= {k: v for k, v in story.columns.items() if k in _SHARED}
        attempts = _attempts(story.paths)
        for number, (path, pandaid) in enumerate(zip(story.paths, pandaids, strict=True)):
            parent = None if path.again is None else pandaids[path.again]
            row = {**self._job(story, common, path), "pandaid": pandaid, "jeditaskid": task}
            row |= {"parentid": parent, "attemptnr": attempts[number], **path.columns}
            self._rows["jobs"].append(row)
            self._log(path, row)
            self._rows[_PLANTED].append(
                {**{n: row[n] for n in _TRUTH if n in row}, "story": story.name}
            )
        files = self._files(story, task, pandaids, attempts)
        self._task(story, task, common)
        self._datasets(story, task, files)

    def _job(self, story: Story, common: Mapping[str, Any], path: Path) -> dict[str, Any]:
        """Return the row of a job."""
        queue, begun, ended = path.queue, path.first("running"), path.ended_s
        power = float(self._world.corepower[queue]) * story.cores
        names = ("vo", "prodsourcelabel", "processingtype", "workinggroup", "gshare", "workqueue_id",
                 "resource_type", "corecount", "nucleus", "container_name")  # fmt: skip
        row = {name: common[name] for name in names}
        row |= {
            "jobstatus": path.status, "produsername": common["username"],
            "transformation": common["transpath"], "cmtconfig": PLATFORM, "lockedby": "jedi",
            "currentpriority": common["taskpriority"], "assignedpriority": common["taskpriority"],
            "computingsite": self._world.names[queue], "cloud": self._world.queues["cloud"][queue],
            "jobdefinitionid": 1, "maxattempt": 4, "creationtime": path.created_s,
            "activatedtime": path.first("activated"), "starttime": begun, "endtime": ended,
            "statechangetime": path.changed_s,
            "modificationtime": max(path.changed_s, path.signed_s or 0),
            "minramcount": RAM_MB * story.cores, "ninputdatafiles": 1, "inputfilebytes": FILE_BYTES,
        }  # fmt: skip
        if begun is not None:
            row |= {"hs06": round(power), "actualcorecount": story.cores}
        if begun is not None and ended is not None:
            good, wall = path.status != "failed", ended - begun
            row |= {
                "hs06sec": min(int(wall * power), 999_999_999),
                "cpuconsumptiontime": round(EFFICIENCY * wall * story.cores) if good else 0,
                "maxpss": MEMORY_MB * story.cores * KB if good else None,
                "outputfilebytes": OUTPUT_BYTES if good else None,
            }
        return row

    def _log(self, path: Path, row: Mapping[str, Any]) -> None:
        for status, second in path.steps:
            self._rows["job_status_log"].append({
                "pandaid": row["pandaid"], "jobstatus": status, "modificationtime": second,
                "computingsite": row["computingsite"], "prodsourcelabel": row["prodsourcelabel"],
            })  # fmt: skip

    def _files(
        self, story: Story, task: int, pandaids: list[int], attempts: list[int]
    ) -> dict[str, int]:
        """Write the input of every job, one file each; a job that tries again reads that of the first."""
        again = {p.again for p in story.paths}
        result = {"finished": 0, "failed": 0, "running": 0, "picked": 0}
        number = 0
        for place, path in enumerate(story.paths):
            if place in again or path.columns.get("prodsourcelabel") == "panda":
                continue  # a later attempt has the file; builds read none
            state = (
                "failed"
                if path.status in OVER
                else "picked"
                if path.first("running") is None
                else "running"
            )
            status = "finished" if path.status == "finished" else state
            result[status] += 1
            self._rows["files"].append({
                "jeditaskid": task, "datasetid": task * DATASETS_PER_TASK,
                "fileid": self._index * FILES_PER_BLOCK + FILES_PER_BLOCK // 2 + len(self._rows["files"]),
                "pandaid": pandaids[place], "scope": "synth", "type": "input", "status": status,
                "lfn": f"synth.{task}._{number}.root", "fsize": FILE_BYTES, "attemptnr": attempts[place],
                "maxattempt": 4, "failedattempt": attempts[place] - (status != "failed"),
            })  # fmt: skip
            number += 1
        return result

    def _task(self, story: Story, task: int, common: Mapping[str, Any]) -> None:
        """Write the task and its course."""
        course = story.states
        status, since = course[-1]
        starts = [s for p in story.paths if (s := p.first("running")) is not None]
        over = status in ("done", "finished", "broken")
        row = {
            **common, "jeditaskid": task, "reqid": task // 7, "parent_tid": task,
            "taskname": f"synth.{common['processingtype']}.{task}", "status": status,
            "currentpriority": common["taskpriority"], "ramcount": RAM_MB, "ramunit": "MB",
            "orig_ramcount": RAM_MB, "baseramcount": 0, "basewalltime": 60, "cpuefficiency": 90,
            "architecture": PLATFORM, "goal": 1000, "attemptnr": 1, "usescout": 1, "nfilesperjob": 1,
            "splitrule": "US=1,NF=1", "creationdate": story.created_s,
            "modificationtime": max(since, story.changed_s), "statechangetime": since,
            "starttime": min(starts, default=None), "endtime": since if over else None,
            "t_done_jobs": sum(p.status == "finished" for p in story.paths), **story.columns,
        }  # fmt: skip
        self._rows["tasks"].append(row)
        self._rows["task_status_log"] += [
            {"jeditaskid": task, "status": name, "modificationtime": second, "attemptnr": 1}
            for name, second in course
        ]

    def _datasets(self, story: Story, task: int, files: Mapping[str, int]) -> None:
        """Write input, output and log."""
        total, good = sum(files.values()), files["finished"]
        used = {"input": total, "output": good, "log": good}
        for place, (kind, number) in enumerate(used.items()):
            self._rows["datasets"].append({
                "jeditaskid": task, "datasetid": task * DATASETS_PER_TASK + place,
                "datasetname": f"synth.{task}.{kind}", "type": kind, "status": "ready", "state": "closed",
                "nfiles": total, "nfilestobeused": total, "nfilesused": number, "nfilesfinished": good,
                "nfilesfailed": files["failed"] if kind == "input" else 0,
                "creationtime": story.created_s, "modificationtime": story.changed_s,
            })  # fmt: skip


def _attempts(paths: Sequence[Path]) -> list[int]:
    """Return the number of the attempt that each job is."""
    result: list[int] = []
    for path in paths:
        result.append(1 if path.again is None else result[path.again] + 1)
    return result


_PLANTED = "truth/planted"
_TABLES = (*("jobs", "job_status_log", "tasks", "task_status_log", "datasets", "files"), _PLANTED)
_TRUTH = {
    "pandaid": pl.Int64,
    "jeditaskid": pl.Int64,
    "computingsite": pl.String,
    "story": pl.String,
}
_TIMES = {
    *("creationdate", "creationtime", "activatedtime", "starttime", "endtime"),
    *("statechangetime", "modificationtime", "frozentime"),
}
_SHARED = ("gshare", "taskpriority", "processingtype", "transpath", "container_name")
"""Columns of a story's task that its jobs have too."""
