"""Read a workflow from a file of any form that is known."""

from __future__ import annotations

import codecs
import gzip
import zlib
from pathlib import Path

from brokerlab.errors import DataError, reading
from brokerlab.workflows.dag import Dag, workflow
from brokerlab.workflows.readers.dax import read_dax
from brokerlab.workflows.readers.parts import Parts
from brokerlab.workflows.readers.wfformat import read_wfformat

LARGEST = 512 * 1024**2  # bytes of a file, unpacked, that are read at most


def read_workflow(
    path: str | Path,
    *,
    default_runtime: float | None = None,
    cores_per_host: int = 1,
    stretch: float = 1.0,
) -> Dag:
    """Read a workflow: WfFormat JSON or DAX, also packed with gzip.

    Args:
        path: File; its beginning tells the form.
        default_runtime: For tasks without a run time [s].
        cores_per_host: Cores of a host; a task takes as many hosts as its cores need.
        stretch: Factor on all run times.

    Returns:
        The workflow, named after the file; `findings` tell what was odd.

    Raises:
        DataError: The file cannot be read, or is neither; what is wrong with it, all at once.
        WorkflowError: Its tasks are no workflow.

    Source: workflows.md 1.2, 1.3.
    """
    place = Path(path)
    with reading(place):
        content = _content(place)
        begins = content.removeprefix(codecs.BOM_UTF8).lstrip()[:1]
        if begins == b"<":
            parts = read_dax(content, place.name)
        elif begins == b"{":
            parts = read_wfformat(content, place.name, cores_per_host=cores_per_host)
        else:
            raise DataError(
                f"{place}: neither WfFormat (JSON) nor DAX (XML): it begins {content[:20]!r}"
            )
        return _workflow(parts, place, default_runtime, stretch)


def _workflow(parts: Parts, place: Path, default_runtime: float | None, stretch: float) -> Dag:
    name = place.name.removesuffix(".gz").rpartition(".")[0] or place.name
    if not parts.tasks.height:
        raise DataError(f"{place}: no tasks")
    return workflow(
        parts.tasks,
        parts.edges,
        name=name,
        default_runtime=default_runtime,
        stretch=stretch,
        findings=parts.findings,
    )


def _content(place: Path) -> bytes:
    try:
        with place.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(place) if packed else place.open("rb") as file:
            content = file.read(LARGEST + 1)
    except (OSError, EOFError, zlib.error) as problem:
        raise DataError(f"{place}: cannot be read: {problem}") from None
    if len(content) > LARGEST:
        raise DataError(f"{place}: more than {LARGEST // 1024**2} MB unpacked; is it a workflow?")
    return content
