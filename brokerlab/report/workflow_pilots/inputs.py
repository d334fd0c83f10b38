"""Read what is compared: machines with the load of logs, and recorded workflows; generated ones where there are none."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from brokerlab.archive.store import open_archive
from brokerlab.errors import DataError
from brokerlab.words import number
from brokerlab.workflows import shapes
from brokerlab.workflows.compare import BatchSystem
from brokerlab.workflows.dag import Dag
from brokerlab.workflows.machines import (
    Machines,
    archived_machine,
    generated_machines,
    recorded_machines,
)
from brokerlab.workflows.readers import describe_workflows, read_workflows
from brokerlab.workflows.readers.collection import USUAL

VARIABLE = "BROKERLAB_DATA"


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
        return describe_workflows(self.workflows)


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
        generated_machines(policies, seed=seed)
        if logs is None or not logs.is_dir()
        else recorded_machines(logs, policies, load=load)
    )
    digests = {}
    if archive:
        opened = open_archive(archive)
        found = found.join(archived_machine(opened, policies[0], load=load))
        digests = {"Archive": f"{opened.path.as_posix()}, digest {opened.digest}"}
    home = None if folder is None else folder / "wfinstances"
    made = not workflows and (home is None or not home.is_dir())
    flows = (
        shapes.usual(stretch) if made else read_workflows(home, workflows or USUAL, stretch=stretch)
    )
    caveats = _caveats(found)
    if made:
        caveats.append(
            "The workflows are generated, of published shapes: no recorded ones were given."
        )
    odd = [f"{name}: {told}" for name, dag in flows.items() for told in dag.findings]
    facts = _facts(found) | digests | {"Workflows": ", ".join(f"{n} ({len(d)} tasks)" for n, d in flows.items())}  # fmt: skip
    if odd:
        facts["Odd in the files"] = "; ".join(odd)
    if stretch != 1:
        caveats.append(
            f"Run times of tasks are stretched by {stretch:g}: no recorded execution has them."
        )
    return Inputs(
        systems=dict(found.systems),
        workflows=flows,
        source=", ".join(found.sources["source"]),
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


def _caveats(found: Machines) -> list[str]:
    """Say what of the machines limits what can be told."""
    told = []
    for row in (
        found.describe().unique("cluster", keep="first", maintain_order=True).iter_rows(named=True)
    ):
        if row["origin"] == "generated":
            told.append(
                "The background load is generated: no log was at hand. How users ask and come is made up, so that the "
                "page shows what it would say of a log, and nothing about real queues."
            )
        if not row["hosts_known"]:
            told.append(
                f"{row['system']}: its source does not say how many hosts it has; {number(row['hosts'])} make a load of "
                f"{number(row['load'], 2)}. Its jobs take up to {number(row['widest'])}, and its log spans "
                f"{number(row['days'])} days: instants share queues."
                + (" Its jobs are generated: the archive is synthetic." if row["synthetic"] else "")
            )
    if "log" in found.sources["origin"]:
        told.append(
            "Background jobs come when the log says, and are scheduled anew: the real queue had its own policy, priorities "
            "and reservations, so that waits are those of the simulated machine."
        )
    return told


def _facts(found: Machines) -> dict[str, str]:
    """Say what rule R did to a log."""
    facts = {}
    for row in found.sources.iter_rows(named=True):
        touched = [
            f"{c['rule']} {c['n_rows']} ({c['effect']})"
            for c in found.changes.filter(cluster=row["cluster"]).iter_rows(named=True)
        ]
        facts[f"{row['cluster']} load"] = (
            f"{row['source']}: {row['jobs']} of {row['rows']} rows; {', '.join(touched) or 'none touched'}"
        )
    return facts
