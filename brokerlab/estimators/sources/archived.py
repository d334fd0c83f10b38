"""Records from the canonical archive."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab import archive as archives
from brokerlab.archive import Archive, given
from brokerlab.archive.contracts import empty
from brokerlab.engines import last_attempts
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.estimators.records import Quantity
from brokerlab.estimators.sources import jobs as facts
from brokerlab.estimators.sources.source import At, Source, check_choices, sift
from brokerlab.frames import latest
from brokerlab.scouts.resource_type import PER_CORE
from brokerlab.scouts.tables import INPUT_TYPES

TASK_COLUMNS = ("jeditaskid", "ramunit", "orig_ramcount", "baseramcount", "maxwalltime")
_KIND = ("processingtype", "transformation")
_OF_JOBS = (*facts.NEEDED, "parentid", "prodsourcelabel", "transformation")


def of_archive(
    archive: given.Source | str | Path,
    quantity: Quantity,
    *,
    at: At = "submit",
    labels: Collection[str] = ("managed",),
) -> Source:
    """Read what the jobs of an archive used.

    A finished job used what was recorded of it. One that failed at the limit of this quantity, by the
    pilot's error code, used at least what was recorded, else its limit: it is ``censored``. Left out are
    merge jobs, jobs that failed otherwise, jobs that failed and were tried again (the new try says what
    was needed, or is itself here), and those without a record. A new try has the moment and the limit of
    its own: after a kill it is a heavier job than most that are decided then, and was sent with more.

    ``kind`` is the processing type and the transformation. ``requested`` is, of memory, ``orig_ramcount``
    as a whole job's [MB]: per core times the cores plus ``baseramcount``; of walltime, the longest that
    the task allows (split rule ``MW``). ``sent`` is the job's own ``minramcount``; ``maxwalltime``, else
    ``maxcpucount``. ``events`` and ``input_mb`` are those recorded of the job. Of a job that failed no
    events are recorded, which nobody knows at submission: its events are those of its primary input
    files, where the archive has them. Both are null where 0. ``corepower`` is the queue's in the archive.
    Scouts are those marked ``sj``: where a task has none marked, none of its jobs is one.

    Args:
        archive: An archive, its folder, or its tables by name.
        quantity: ``memory`` [MB of the whole job] or ``walltime`` [s].
        at: When an estimate is needed: at the creation of a job (``submit``) or at its ``start``.
        labels: ``prodsourcelabel`` of the jobs to be read.

    Returns:
        Records with times in seconds since 1970, counts of the rows left out, and notes.

    Raises:
        ConfigError: A quantity or moment that does not exist, or no label.
        DataError: No archive, or one without jobs.
        InsufficientDataError: No job is left.

    Source: archive.md sections 1 to 4; scouts.md sections 3.1, 3.3 and 5.3.
    """
    check_choices(quantity, at)
    if isinstance(labels, str) or not labels:
        raise ConfigError(f"labels = {labels!r}: several are allowed, such as ('managed', 'user')")
    opened = (
        archives.open(archive) if isinstance(archive, str | Path) else given.archive_of(archive)
    )
    jobs = opened.scan("jobs").select(_OF_JOBS)
    jobs = jobs.filter(pl.col("prodsourcelabel").is_in(list(labels)))
    _check_labels(opened, jobs, labels)
    retried = opened.scan("jobs").select(pandaid="parentid", is_retried=True).drop_nulls().unique()
    failed = pl.col("jobstatus") == "failed"
    asked = _asked_events(opened, jobs.filter(failed))
    rows = (
        jobs.join(retried, on="pandaid", how="left")
        .join(_tasks(opened), on="jeditaskid", how="left")
        .join(_corepower(opened), on="computingsite", how="left")
        .join(asked, on=["jeditaskid", "pandaid"], how="left")
        .with_columns(nevents=pl.when(failed).then("asked_events").otherwise("nevents"))
    )
    own = facts.reasons(quantity, at)
    reasons = {"failed, and tried again": failed & pl.col("is_retried"), **own}
    reasons = {facts.MERGE_REASON: own[facts.MERGE_REASON], **reasons}
    columns = facts.columns(quantity, at) | {
        "kind": pl.concat_str(_KIND, separator=" ", ignore_nulls=True).replace("", None),
        "corepower": pl.col("corepower"),
        "requested": _requested(quantity),
    }
    return sift(rows, reasons, columns, quantity=quantity, notes=_notes(opened))


def _check_labels(opened: Archive, jobs: pl.LazyFrame, labels: Collection[str]) -> None:
    """Refuse labels that no job has, and say which there are."""
    if jobs.head(1).collect().is_empty():
        present = opened.scan("jobs").select(pl.col("prodsourcelabel").unique()).collect()
        there = ", ".join(present.to_series().drop_nulls().sort()) or "none"
        raise InsufficientDataError(
            f"jobs.prodsourcelabel: no job has {' or '.join(labels)}; there are {there}: give `labels`"
        )


def _notes(opened: Archive) -> tuple[str, ...]:
    """Say which tables were not there."""
    without = {
        "tasks": "no table of tasks: what was requested is not known",
        "queues": "no table of queues: core power is not known",
        "files": "no table of files: the events of failed jobs are not known",
    }
    return tuple(note for table, note in without.items() if not opened.has(table))


def _asked_events(opened: Archive, failed: pl.LazyFrame) -> pl.LazyFrame:
    """Return the events of the primary input files of failed jobs: ``jeditaskid, pandaid, asked_events``."""
    files, datasets = (
        opened.scan(table) if opened.has(table) else empty(table).lazy()
        for table in ("files", "datasets")
    )
    keys = ["jeditaskid", "pandaid"]
    primary = datasets.filter(pl.col("masterid").is_null()).select("jeditaskid", "datasetid")
    span = (pl.col("endevent") - pl.col("startevent") + 1).clip(lower_bound=1)
    events = pl.coalesce(span, pl.col("nevents"))
    own = (
        files.filter(pl.col("type").is_in(INPUT_TYPES))
        .join(failed.select(keys), on=keys, how="semi")
        .join(primary, on=["jeditaskid", "datasetid"], how="semi")
    )
    last: pl.LazyFrame = last_attempts(nw.from_native(own), "pandaid").to_native()
    summed = pl.when(events.count() > 0).then(events.sum())
    return last.group_by(keys).agg(asked_events=summed)


def _tasks(opened: Archive) -> pl.LazyFrame:
    """Return what tasks asked for: ``jeditaskid, task_*``."""
    tasks = opened.scan("tasks") if opened.has("tasks") else empty("tasks").lazy()
    renamed = {name: f"task_{name}" for name in TASK_COLUMNS[1:]}
    return (
        tasks.select(TASK_COLUMNS)
        .rename(renamed)
        .unique("jeditaskid", keep="last", maintain_order=True)
    )


def _corepower(opened: Archive) -> pl.LazyFrame:
    """Return the core power of the queues, where above 0: ``computingsite, corepower``."""
    queues = opened.scan("queues").collect() if opened.has("queues") else empty("queues")
    return (
        latest(queues)
        .lazy()
        .select(computingsite="panda_queue", corepower=facts.positive("corepower"))
    )


def _requested(quantity: Quantity) -> pl.Expr:
    """Return what the task asked for before anything ran [MB of the whole job, or s]."""
    if quantity == "walltime":
        return facts.positive("task_maxwalltime")
    per_core = pl.col("task_ramunit").is_in(PER_CORE).fill_null(value=False)
    asked = facts.positive("task_orig_ramcount")
    base = facts.positive("task_baseramcount").fill_null(0)
    whole = asked * facts.cores() + base
    return pl.when(per_core).then(whole).otherwise(asked)
