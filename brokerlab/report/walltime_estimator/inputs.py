"""Read whose run times are estimated: batch logs, whole tasks, an archive, and what is known of queues and sites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from brokerlab.archive import Archive
from brokerlab.errors import InsufficientDataError
from brokerlab.estimators import sources
from brokerlab.estimators.walltime.power import TASK_FILES, PowerData, read_power
from brokerlab.report.estimates import archive_at, data_folder
from brokerlab.report.walltime_estimator.logs import Log, read_logs
from brokerlab.report.walltime_estimator.tasks import CLOCKS, TaskInputs
from brokerlab.words import listed, number

NO_DATA = "No folder of real data was at hand: only the archive answers, and what it says of real systems is what its maker put in."
NO_LOGS = "No batch log was at hand, so nothing is said of the requests that people type."


@dataclass(frozen=True, kw_only=True, eq=False)
class Inputs:
    """Whose run times are estimated.

    Attributes:
        logs: Batch logs by name.
        power: What is known of queues and sites.
        archive: The archive, if there is one.
        tasks: Grid tasks by name of their part: real ones, and those of the archive.
        source: Where everything is from, in words.
        synthetic: All of it was generated.
        caveats: What of it limits what can be told.
        facts: What was read, what was left out, in words.
    """

    logs: Mapping[str, Log]
    power: PowerData
    archive: Archive | None
    tasks: Mapping[str, TaskInputs]
    source: str
    synthetic: bool
    caveats: tuple[str, ...]
    facts: dict[str, str]


def load(
    *, data: str = "", archive: str = "", max_jobs: int = 30_000, ids_per_s: float = 10.0
) -> Inputs:
    """Find and read whose run times are estimated.

    Args:
        data: Folder with ``swf-logs``, ``panda-invex-jobs`` and others; empty: that of the variable ``BROKERLAB_DATA``, or
            ``../shared/data``. Where it is not there, the archive answers alone.
        archive: Archive; empty: ``data/demo`` where it is there.
        max_jobs: Jobs taken of a log, the first by submission.
        ids_per_s: Jobs that the whole system creates [1/s]: the clock of tasks without times.

    Raises:
        DataError: A named folder is not there, or a file in it cannot be read.
        InsufficientDataError: There is nothing to estimate.
    """
    folder, opened = data_folder(data), archive_at(archive)
    logs, without = ({}, {}) if folder is None else read_logs(folder, max_jobs=max_jobs)
    power = read_power(folder, opened)
    tasks = _tasks(folder, opened, ids_per_s)
    if not logs and not tasks:
        raise InsufficientDataError(
            "neither logs nor tasks nor an archive to estimate from; name a folder with data=..., or an archive with archive=..."
        )
    synthetic = not logs and all(each.synthetic for each in tasks.values())
    caveats = [NO_DATA] * (folder is None) + [NO_LOGS] * (folder is not None and not logs)
    return Inputs(
        logs=logs,
        power=power,
        archive=opened,
        tasks=tasks,
        source=_source(logs, tasks),
        synthetic=synthetic,
        caveats=tuple(caveats),
        facts=_facts(folder, logs, without, power, opened) | _counted(tasks),
    )


def _tasks(folder: Path | None, archive: Archive | None, ids_per_s: float) -> dict[str, TaskInputs]:
    """Read records of real tasks, and of the archive, by both clocks."""
    found = {}
    files = [] if folder is None else sorted(folder.glob(TASK_FILES))
    if files:
        found["tasks"] = TaskInputs(
            name="tasks",
            said=f"{len(files)} whole task{'s' * (len(files) > 1)}",
            sources={at: sources.of_invex(files, "walltime", at=at, ids_per_s=ids_per_s) for at in CLOCKS},
            left_out=True,
            synthetic=False,
        )  # fmt: skip
    if archive is not None:
        found["archive"] = TaskInputs(
            name="archive",
            said=f"{'the synthetic' if archive.synthetic else 'the'} archive {archive.path.name}",
            sources={at: sources.of_archive(archive, "walltime", at=at) for at in CLOCKS},
            left_out=False,
            synthetic=archive.synthetic,
        )
    return found


def _source(logs: Mapping[str, Log], tasks: Mapping[str, TaskInputs]) -> str:
    found = [f"batch log{'s' * (len(logs) > 1)} {listed(list(logs))}"] if logs else []
    return ", ".join([*found, *(each.said for each in tasks.values())])


def _counted(tasks: Mapping[str, TaskInputs]) -> dict[str, str]:
    """Say what became of the rows of tasks."""
    facts = {}
    for each in tasks.values():
        counts = each.sources["submit"].counts
        said = (f"{row['reason']} {number(row['rows'])}" for row in counts.iter_rows(named=True))
        facts[f"Jobs of {each.said}"] = ", ".join(said)
    return facts


def _facts(
    folder: Path | None,
    logs: Mapping[str, Log],
    without: Mapping[str, str],
    power: PowerData,
    archive: Archive | None,
) -> dict[str, str]:
    facts = {}
    if logs:
        said = (f"{name} ({number(log.jobs.height)} of {number(log.n_read)} jobs)" for name, log in logs.items())  # fmt: skip
        facts["Batch logs"] = ", ".join(said)
    if without:
        facts["Logs left out"] = "; ".join(f"{name}: {why}" for name, why in without.items())
    if power.timed is not None:
        facts["Timed jobs"] = (
            f"{number(power.timed.height)} of {power.timed['jeditaskid'].n_unique()} tasks at {power.timed['queue'].n_unique()} queues"
            + (" (of the archive)" if power.from_archive else "")
        )
    for name, frame in (
        ("Nodes", power.nodes),
        ("Monthly usage", power.usage),
        ("CPU times", power.cpu_times),
    ):
        if frame is not None:
            facts[name] = f"{number(frame.height)} rows"
    if archive is not None:
        facts["Archive"] = f"{archive.path.as_posix()}, digest {archive.digest}"
    if folder is None:
        facts["Real data"] = "none"
    return facts
