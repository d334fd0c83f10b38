"""Read what is estimated: workflow traces, records of whole tasks, and an archive."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from brokerlab.archive.store import Archive
from brokerlab.errors import InsufficientDataError
from brokerlab.estimators.sizing import Trace, read_trace
from brokerlab.estimators.sources import Source, of_archive, of_invex
from brokerlab.estimators.sources.source import KEPT, At
from brokerlab.report.estimates import archive_at, data_folder

TRACES = "nfcore-traces/trace_*.csv.gz"
TASKS, TASK_FILES = "panda-invex-jobs", "job_records_*.csv*"
CLOCKS: tuple[At, ...] = ("submit", "start")
IDS_PER_S = 10.0
OTHER_SPEEDS = (5.0, 25.0)
"""Jobs that the whole system creates in a second, beside the usual one: what is between scouts and production in real tasks."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Inputs:
    """What is estimated.

    Attributes:
        traces: Of workflows.
        tasks: Records of whole real tasks, by clock; empty where there are none.
        speeds: The same at submission, by other speeds of numbering jobs [1/s].
        archive: Records of an archive, by clock; empty without one.
        opened: That archive.
        source: Where everything is from, in words.
        synthetic: No real data were found.
        caveats: What of it limits what can be told.
        facts: What was read, what was left out, in words.
    """

    traces: tuple[Trace, ...]
    tasks: dict[At, Source]
    speeds: dict[float, Source]
    archive: dict[At, Source]
    opened: Archive | None
    source: str
    synthetic: bool
    caveats: tuple[str, ...]
    facts: dict[str, str]


def load(*, data: str = "", archive: str = "") -> Inputs:
    """Find and read what is estimated.

    Args:
        data: Folder with ``nfcore-traces`` and ``panda-invex-jobs``; empty: that of the variable ``BROKERLAB_DATA``, or
            ``../shared/data``. What is not in it is left out.
        archive: Archive folder; empty: ``data/demo``, where it is there.

    Raises:
        DataError: A named folder is not there, or a file cannot be read.
        InsufficientDataError: There is nothing to estimate.
    """
    folder, opened = data_folder(data), archive_at(archive)
    traces = () if folder is None else _traces(folder)
    home = None if folder is None else folder / TASKS
    real = home is not None and any(home.glob(TASK_FILES))
    tasks = {at: of_invex(home, "memory", at=at) for at in CLOCKS} if real and home else {}
    speeds = {s: of_invex(home, "memory", ids_per_s=s) for s in OTHER_SPEEDS} if real and home else {}  # fmt: skip
    stored = {} if opened is None else {at: of_archive(opened, "memory", at=at) for at in CLOCKS}
    if not (traces or tasks or stored):
        raise InsufficientDataError(
            "neither real data nor an archive: set BROKERLAB_DATA, or make an archive by `brokerlab synthesise --into data/demo --jobs 200000`"
        )
    return Inputs(
        traces=traces,
        tasks=tasks,
        speeds={IDS_PER_S: tasks["submit"], **speeds} if tasks else {},
        archive=stored,
        opened=opened,
        source="; ".join(_places(traces, tasks, opened)),
        synthetic=not (traces or tasks) and (opened is None or opened.synthetic),
        caveats=_caveats(traces, tasks, opened),
        facts=_facts(traces, tasks, stored, opened),
    )


def _traces(folder: Path) -> tuple[Trace, ...]:
    return tuple(read_trace(path) for path in sorted(folder.glob(TRACES)))


def _places(
    traces: tuple[Trace, ...], tasks: dict[At, Source], opened: Archive | None
) -> list[str]:
    found = [f"{len(traces)} workflow traces"] if traces else []
    if tasks:
        found.append(f"{tasks['submit'].records['jeditaskid'].n_unique()} real tasks")
    if opened is not None:
        word = "synthetic archive" if opened.synthetic else "archive"
        found.append(f"{word} {opened.path.as_posix()}")
    return found


def _caveats(
    traces: tuple[Trace, ...], tasks: dict[At, Source], opened: Archive | None
) -> tuple[str, ...]:
    told = []
    if not traces and not tasks:
        told.append(
            "No real data were found: everything here is from an archive"
            + (" that was generated. " if opened is not None and opened.synthetic else ". ")
            + "Set BROKERLAB_DATA to the folder of real data."
        )
    elif not traces or not tasks:
        told.append(f"No {'real tasks' if traces else 'workflow traces'} were found: that part is left out.")  # fmt: skip
    if opened is not None and opened.synthetic and (traces or tasks):
        told.append(
            "The archive is generated: what is learnt and tested on it follows how it was generated, not what real jobs do."
        )
    if opened is None:
        told.append(
            "There is no archive: nothing is tested on hundreds of tasks, and no setting is proposed."
        )
    return tuple(told)


def _facts(
    traces: tuple[Trace, ...],
    tasks: dict[At, Source],
    stored: dict[At, Source],
    opened: Archive | None,
) -> dict[str, str]:
    facts = {}
    if traces:
        said = (
            f"{each.name} ({len(each.types)} task types, {each.n_runs} runs)" for each in traces
        )
        facts["Workflow traces"] = ", ".join(said)
    if tasks:
        facts["Real tasks"] = _counted(tasks["submit"])
        facts["Clock of real tasks"] = "; ".join(tasks["submit"].notes)
    if stored and opened is not None:
        facts["Archive"] = f"{opened.path.as_posix()}, digest {opened.digest}; {_counted(stored['submit'])}"  # fmt: skip
    return facts


def _counted(source: Source) -> str:
    """Say what became of every row that was read."""
    counts = dict(source.counts.select("reason", "rows").iter_rows())
    kept = counts.pop(KEPT)
    left = ", ".join(f"{reason}: {rows}" for reason, rows in counts.items())
    return f"{kept} jobs kept" + (f"; left out: {left}" if left else "")
