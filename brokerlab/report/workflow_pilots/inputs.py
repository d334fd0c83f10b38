"""Read what is compared: machines with the load of logs, and recorded workflows; generated ones where there are none."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from brokerlab.errors import DataError
from brokerlab.report.workflow_pilots.machines import Machines, archived, generated, recorded
from brokerlab.workflows import shapes
from brokerlab.workflows.compare import BatchSystem
from brokerlab.workflows.dag import Dag
from brokerlab.workflows.readers import read_workflow

VARIABLE = "BROKERLAB_DATA"
USUAL = (
    "pegasus/soykb/soykb-chameleon-10fastq-20ch-001.json.gz",
    "pegasus/srasearch/srasearch-chameleon-50a-002.json.gz",
    "makeflow/blast/blast-chameleon-large-001.json.gz",
    "pegasus/montage/montage-chameleon-dss-075d-001.json.gz",
    "nextflow/airrflow-dirt02-001.json.gz",
)
"""Recorded workflows: wide and long, short, as wide as a machine, many short tasks, long and narrow."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Inputs:
    """What is compared.

    Attributes:
        systems: Machines by name.
        workflows: Workflows by name.
        source: Where they are from, in words.
        synthetic: Some of it was generated.
        caveats: What of it limits what can be told.
        facts: What was read, what was left out, in words.
    """

    systems: dict[str, BatchSystem]
    workflows: dict[str, Dag]
    source: str
    synthetic: bool
    caveats: tuple[str, ...]
    facts: dict[str, str]

    def summary(self) -> pl.DataFrame:
        """Return one row per workflow: ``workflow, tasks, levels, width`` [hosts], ``work`` [host s], ``longest_path`` [s]."""
        return pl.DataFrame(
            [
                {
                    "workflow": name,
                    "tasks": len(dag),
                    "levels": len(dag.levels),
                    "width": max(dag.widths),
                    "work": dag.work,
                    "longest_path": dag.longest_path,
                }
                for name, dag in self.workflows.items()
            ]
        )


def load(
    *,
    data: str = "",
    archive: str = "",
    workflows: Sequence[str] = (),
    policies: Sequence[str] = ("easy", "conservative"),
    stretch: float = 1.0,
    load: float = 0.7,
    seed: int = 1,
) -> Inputs:
    """Read machines and workflows.

    Args:
        data: Folder with ``swf-logs`` and ``wfinstances``; empty: that of the variable ``BROKERLAB_DATA``. Where it is not
            there, load and workflows are generated.
        archive: Archive whose busiest queue is one more machine; empty for none.
        workflows: Files below ``wfinstances``, or anywhere; empty for the usual ones.
        policies: Of the first machine; the others have the first of them.
        stretch: Factor on the run times of tasks.
        load: Load of machines whose number of hosts is not known.
        seed: Of what is generated.

    Returns:
        What is compared.

    Raises:
        DataError: A given folder or file is not there or cannot be read.
    """
    folder = _folder(data)
    logs = None if folder is None else folder / "swf-logs"
    found = (
        generated(policies, seed=seed)
        if logs is None or not logs.is_dir()
        else recorded(logs, policies, load=load)
    )
    if archive:
        found = _joined(found, archived(archive, policies[0], load=load))
    flows, made = _workflows(folder, workflows, stretch)
    caveats = list(found.caveats)
    if made:
        caveats.append(
            "The workflows are generated, of published shapes: no recorded ones were given."
        )
    odd = [f"{name}: {told}" for name, dag in flows.items() for told in dag.findings]
    facts = dict(found.facts) | {"Workflows": ", ".join(f"{n} ({len(d)} tasks)" for n, d in flows.items())}  # fmt: skip
    if odd:
        facts["Odd in the files"] = "; ".join(odd)
    if stretch != 1:
        caveats.append(
            f"Run times of tasks are stretched by {stretch:g}: no recorded execution has them."
        )
    return Inputs(
        systems=found.systems,
        workflows=flows,
        source=found.source,
        synthetic=made or found.synthetic,
        caveats=tuple(caveats),
        facts=facts,
    )


def _folder(data: str) -> Path | None:
    """Return the folder of logs and workflows; none where none was named and the usual one is not there."""
    if data:
        folder = Path(data)
        if not folder.is_dir():
            raise DataError(f"data={data!r}: no such folder; leave it empty to generate a load")
        return folder
    usual = os.environ.get(VARIABLE, "")
    return Path(usual) if usual and Path(usual).is_dir() else None


def _workflows(
    folder: Path | None, files: Sequence[str], stretch: float
) -> tuple[dict[str, Dag], bool]:
    """Return workflows by name, and whether they were generated."""
    home = None if folder is None else folder / "wfinstances"
    if not files and (home is None or not home.is_dir()):
        made = (
            shapes.fork_join(40, runtime=900 * stretch),
            shapes.pipelines(20, 3, runtime=1200 * stretch),
            shapes.gaussian(10, runtime=600 * stretch),
        )
        return {dag.name: dag for dag in made}, True
    found = {}
    for name in files or USUAL:
        place = Path(name) if home is None or Path(name).is_file() else home / name
        dag = read_workflow(place, stretch=stretch)
        short = _short(dag.name) or dag.name
        if short in found:
            raise DataError(f"workflows: two are called {short!r} on the page; give each once")
        found[short] = dag
    return found, False


def _short(name: str) -> str:
    """Leave out of a name where it was recorded and which execution it was."""
    words = [w for w in name.split("-") if w not in {"chameleon", "dirt02", "001"}]
    return " ".join(words)


def _joined(one: Machines, other: Machines) -> Machines:
    return Machines(
        systems=one.systems | other.systems,
        source=f"{one.source}; {other.source}",
        synthetic=one.synthetic or other.synthetic,
        caveats=(*one.caveats, *other.caveats),
        facts=one.facts | other.facts,
    )
