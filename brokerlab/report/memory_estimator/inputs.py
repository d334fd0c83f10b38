"""Read what is estimated: workflow traces, records of whole tasks, and an archive."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators.sizing import Trace, read_trace
from brokerlab.report.estimates import data_folder

TRACES = "nfcore-traces/trace_*.csv.gz"


@dataclass(frozen=True, kw_only=True, eq=False)
class Inputs:
    """What is estimated.

    Attributes:
        traces: Of workflows.
        source: Where everything is from, in words.
        synthetic: All of it was generated.
        caveats: What of it limits what can be told.
        facts: What was read, what was left out, in words.
    """

    traces: tuple[Trace, ...]
    source: str
    synthetic: bool
    caveats: tuple[str, ...]
    facts: dict[str, str]


def load(*, data: str = "") -> Inputs:
    """Find and read what is estimated.

    Args:
        data: Folder with ``nfcore-traces`` and ``panda-invex-jobs``; empty: that of the variable ``BROKERLAB_DATA``, or
            ``../shared/data``.

    Raises:
        DataError: A named folder is not there, or a file in it cannot be read.
        InsufficientDataError: There is nothing to estimate.
    """
    folder = data_folder(data)
    traces = _traces(folder)
    if not traces:
        raise InsufficientDataError("neither traces nor tasks nor an archive to estimate from")
    facts = {}
    if traces:
        said = (
            f"{each.name} ({len(each.types)} task types, {each.n_runs} runs)" for each in traces
        )
        facts["Workflow traces"] = ", ".join(said)
    return Inputs(
        traces=traces,
        source="workflow traces",
        synthetic=not traces,
        caveats=(),
        facts=facts,
    )


def _traces(folder: Path | None) -> tuple[Trace, ...]:
    if folder is None:
        return ()
    return tuple(read_trace(path) for path in sorted(folder.glob(TRACES)))
