"""Toy archives for the scouts: a few tasks and jobs written down in a line each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from brokerlab import scouts
from brokerlab.gdpconfig import Config
from brokerlab.units import MB

T0 = datetime(2026, 3, 1)
TIME = pl.Datetime("us")
JOBS = {
    **dict.fromkeys(["pandaid", "jeditaskid", "eventservice", "jobsetid"], pl.Int64),
    **dict.fromkeys(["cpuconsumptiontime", "actualcorecount", "corecount", "maxpss"], pl.Int64),
    **dict.fromkeys(["nevents", "outputfilebytes", "inputfilebytes"], pl.Int64),
    **dict.fromkeys(["totrbytes", "totwbytes", "memory_leak", "hs06sec"], pl.Int64),
    "memory_leak_x2": pl.Float64,
    **dict.fromkeys(["jobstatus", "specialhandling", "computingsite", "jobmetrics"], pl.String),
    **dict.fromkeys(["modificationhost", "prodsourcelabel"], pl.String),
    **dict.fromkeys(["creationtime", "starttime", "endtime", "modificationtime"], TIME),
}
FILES = {
    **dict.fromkeys(["jeditaskid", "datasetid", "pandaid", "fsize", "nevents"], pl.Int64),
    **dict.fromkeys(["startevent", "endevent", "attemptnr", "maxattempt"], pl.Int64),
    **dict.fromkeys(["failedattempt", "maxfailure"], pl.Int64),
    **dict.fromkeys(["type", "status"], pl.String),
}
TASKS = {
    **dict.fromkeys(["jeditaskid", "baseramcount", "workdiskcount", "walltime"], pl.Int64),
    **dict.fromkeys(["basewalltime", "orig_ramcount", "orig_mergeramcount"], pl.Int64),
    **dict.fromkeys(["cputime", "ramcount", "attemptnr", "corecount"], pl.Int64),
    **dict.fromkeys(["cpuefficiency", "orig_cputime"], pl.Float64),
    **dict.fromkeys(["prodsourcelabel", "status", "splitrule", "ramunit"], pl.String),
    **dict.fromkeys(["outdiskunit", "cputimeunit", "orig_cputimeunit"], pl.String),
    **dict.fromkeys(["oldstatus", "walltimeunit"], pl.String),
    "parent_tid": pl.Int64,
    "frozentime": TIME,
}
DATASETS = {
    **dict.fromkeys(["jeditaskid", "datasetid", "masterid"], pl.Int64),
    **dict.fromkeys(["nfiles", "nfilesused", "nfilesfinished"], pl.Int64),
    "type": pl.String,
}
QUEUES = {
    **dict.fromkeys(["panda_queue", "atlas_site"], pl.String),
    "corepower": pl.Float64,
    "maxinputsize": pl.Int64,
    "direct_access_lan": pl.Boolean,
}
OUTPUTS = {"pandaid": pl.Int64, "type": pl.String, "dataset": pl.String, "fsize": pl.Int64}
NAMES = ("jobs", "files", "tasks", "datasets", "queues")
PRIMARY, SECONDARY, LIBRARY, MERGE = 1, 2, 3, 4  # datasetid of every toy task

Tables = tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, pl.DataFrame, pl.DataFrame]


def by_name(tables: Iterable[Any]) -> dict[str, Any]:
    """Return jobs, files, tasks, datasets, queues and what follows them by name."""
    return dict(zip((*NAMES, "jobs_files"), tables, strict=False))


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def frame(rows: list[dict[str, Any]], types: Mapping[str, Any]) -> pl.DataFrame:
    """Build a table; absent keys are null."""
    extra = {key for row in rows for key in row} - types.keys()
    if extra:
        raise KeyError(f"no such column: {sorted(extra)}")
    return pl.DataFrame(
        [{name: row.get(name) for name in types} for row in rows], schema=dict(types)
    )


class Toy:
    """An archive in the making; every method returns the toy itself."""

    def __init__(self, **task: Any) -> None:
        """Start with one task, number 1: per-core memory, output per event, no base time."""
        self.tasks: list[dict[str, Any]] = []
        self.jobs: list[dict[str, Any]] = []
        self.files: list[dict[str, Any]] = []
        self.datasets: list[dict[str, Any]] = []
        self.queues: list[dict[str, Any]] = []
        self.outputs: list[dict[str, Any]] = []
        self.queue("Q").task(1, **task)

    def queue(self, name: str, corepower: float | None = 10.0, **columns: Any) -> Toy:
        self.queues.append({"panda_queue": name, "corepower": corepower} | columns)
        return self

    def task(self, number: int, *, nfiles: int = 0, nfilesused: int = 0, **columns: Any) -> Toy:
        """Add a task; ``nfilesfinished`` of its primary dataset is counted from the files."""
        defaults = {
            "prodsourcelabel": "managed",
            "status": "scouting",
            "splitrule": "US=2",
            "ramunit": "MBPerCore",
            "outdiskunit": "kBPerEvent",
            "cputimeunit": "HS06sPerEvent",
            "cpuefficiency": 100,
            "basewalltime": 0,
        }
        self.tasks.append({"jeditaskid": number} | defaults | columns)
        for dataset, kind, master in (
            (PRIMARY, "input", None),
            (SECONDARY, "input", PRIMARY),
            (LIBRARY, "lib", None),
            (MERGE, "trn_log", None),
        ):
            self.datasets.append(
                {
                    "jeditaskid": number,
                    "datasetid": 10 * number + dataset,
                    "type": kind,
                    "masterid": master and 10 * number + master,
                }
            )
        self.datasets[-4] |= {"nfiles": nfiles, "nfilesused": nfilesused, "nfilesfinished": 0}
        return self

    def file(
        self, pandaid: int | None, *, task: int = 1, dataset: int = PRIMARY, **columns: Any
    ) -> Toy:
        """Add a file of a job; finished and of 1 MB unless said otherwise."""
        defaults = {"type": "input", "status": "finished", "fsize": MB}
        row = {"jeditaskid": task, "datasetid": 10 * task + dataset, "pandaid": pandaid}
        self.files.append(row | defaults | columns)
        if dataset == PRIMARY and self.files[-1]["status"] == "finished":
            primary = next(d for d in self.datasets if d["datasetid"] == 10 * task + PRIMARY)
            primary["nfilesfinished"] += 1
        return self

    def job(
        self,
        pandaid: int,
        seconds: float | None = 3600,
        events: int | None = 100,
        *,
        task: int = 1,
        input_mb: float = 1,
        file: Mapping[str, Any] | None = None,
        start: float = 0,
        created: float | None = None,
        **columns: Any,
    ) -> Toy:
        """Add a finished job of one core with one finished input file of its own."""
        begin = None if seconds is None else at(start)
        end = None if seconds is None else at(start + seconds)
        defaults = {
            "pandaid": pandaid,
            "jeditaskid": task,
            "jobstatus": "finished",
            "computingsite": "Q",
            "actualcorecount": 1,
            "creationtime": at(start if created is None else created),
            "starttime": begin,
            "endtime": end,
            "modificationtime": end,
        }
        self.jobs.append(defaults | columns)
        own = {"fsize": int(input_mb * MB), "nevents": events} | dict(file or {})
        return self.file(pandaid, task=task, **own)

    def output(self, pandaid: int, dataset: str, fsize: int, type: str = "output") -> Toy:  # noqa: A002
        self.outputs.append({"pandaid": pandaid, "dataset": dataset, "fsize": fsize, "type": type})
        return self

    def tables(self) -> Tables:
        """Return jobs, files, tasks, datasets, queues; files have numbers where one is given any."""
        numbered = any("fileid" in row for row in self.files)
        return (
            frame(self.jobs, JOBS),
            frame(self.files, FILES | ({"fileid": pl.Int64} if numbered else {})),
            frame(self.tasks, TASKS),
            frame(self.datasets, DATASETS),
            frame(self.queues, QUEUES),
        )

    def result(
        self, rules: str = "document", *, config: Mapping[str, Any] | None = None, **keywords: Any
    ) -> scouts.ScoutResult:
        """Read the scouts; unknown keywords are switches of the rules."""
        names = ("at", "merge", "seed", "max_scouts")
        options = {key: keywords.pop(key) for key in names if key in keywords}
        tables = by_name(self.tables())
        hosts = ("worker_nodes", "cpu_benchmarks")
        tables |= {name: keywords.pop(name) for name in hosts if name in keywords}
        if self.outputs:
            tables["jobs_files"] = frame(self.outputs, OUTPUTS)
        return scouts.estimate(
            tables,
            rules=scouts.ScoutRules(rules, **keywords),
            config=settings(config),
            **options,
        )

    def parameters(self, rules: str = "document", **keywords: Any) -> dict[str, Any]:
        """Return the parameters of the only task."""
        return self.result(rules, **keywords).parameters.row(0, named=True)

    def tags(self, parameter: str, rules: str = "document", **keywords: Any) -> list[int]:
        """Return the jobs that defined a parameter."""
        found = self.result(rules, **keywords).tags.filter(pl.col("parameter") == parameter)
        return found["pandaid"].to_list()


def together(toys: Sequence[Toy]) -> Toy:
    """Return toys of one task each as one: toy n is task n, its ids and queues are its own."""
    whole = Toy()
    for name in vars(whole):
        getattr(whole, name).clear()
    for number, toy in enumerate(toys):
        for name, rows in vars(toy).items():
            getattr(whole, name).extend(_in_toy(number, row) for row in rows)
    return whole


ANSWERS: dict[str, scouts.ScoutResult] = {}


def result_of(toys: Sequence[Toy], rules: str = "document", **keywords: Any) -> scouts.ScoutResult:
    """Read the scouts of several toys :func:`together`; the same question is answered once."""
    asked = repr(([vars(toy) for toy in toys], rules, keywords))
    if asked not in ANSWERS:
        ANSWERS[asked] = together(toys).result(rules, **keywords)
    return ANSWERS[asked]


def among(
    toys: Sequence[Toy], number: int, rules: str = "document", **keywords: Any
) -> dict[str, Any]:
    """Return the parameters of one of several toys."""
    return result_of(toys, rules, **keywords).parameters.row(number, named=True)


def _in_toy(number: int, row: dict[str, Any]) -> dict[str, Any]:
    own = {"jeditaskid": number} if "jeditaskid" in row else {}
    for name in ("pandaid", "datasetid", "masterid"):
        if row.get(name) is not None:
            own[name] = 1000 * number + row[name]
    for name in ("panda_queue", "computingsite"):
        if row.get(name) is not None:
            own[name] = f"{number}/{row[name]}"
    return row | own


def settings(values: Mapping[str, Any] | None) -> Config:
    """Return a configuration with these values."""
    return Config.empty().with_values(dict(values or {}))
