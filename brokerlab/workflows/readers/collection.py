"""Recorded workflows by name, and what they are like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from brokerlab.errors import DataError
from brokerlab.workflows.dag import Dag
from brokerlab.workflows.readers.files import read_workflow

USUAL = (
    "pegasus/soykb/soykb-chameleon-10fastq-20ch-001.json.gz",
    "pegasus/srasearch/srasearch-chameleon-50a-002.json.gz",
    "makeflow/blast/blast-chameleon-large-001.json.gz",
    "pegasus/montage/montage-chameleon-dss-075d-001.json.gz",
    "nextflow/airrflow-dirt02-001.json.gz",
)
"""Recorded workflows: wide and long, short, as wide as a machine, many short tasks, long and narrow."""
RECORDED_AT = frozenset({"chameleon", "dirt02", "001"})
"""Parts of file names that say where a workflow was recorded, and which execution it was."""


def read_workflows(
    folder: str | Path | None, files: Sequence[str] = USUAL, *, stretch: float = 1.0
) -> dict[str, Dag]:
    """Read several recorded workflows.

    Args:
        folder: With the recorded workflows; null: none, files are paths.
        files: Below the folder, or anywhere.
        stretch: Factor on the run times of tasks.

    Returns:
        Workflows by short name.

    Raises:
        DataError: A file is not there or cannot be read, or two have one short name.
    """
    workflows: dict[str, Dag] = {}
    for name in files:
        path = Path(name) if folder is None or Path(name).is_file() else Path(folder) / name
        dag = read_workflow(path, stretch=stretch)
        short = " ".join(word for word in dag.name.split("-") if word not in RECORDED_AT)
        if (short or dag.name) in workflows:
            raise DataError(f"workflows: two have the short name {short!r}; give each once")
        workflows[short or dag.name] = dag
    return workflows


def describe_workflows(workflows: Mapping[str, Dag]) -> pl.DataFrame:
    """Return what workflows are like: ``workflow, tasks, levels, width`` (of the widest level [hosts]), ``work`` [host s], ``longest_path`` [s]."""
    rows = [
        {
            "workflow": name,
            "tasks": len(dag),
            "levels": len(dag.levels),
            "width": max(dag.widths, default=0),
            "work": dag.work,
            "longest_path": dag.longest_path,
        }
        for name, dag in workflows.items()
    ]
    return pl.DataFrame(rows)
