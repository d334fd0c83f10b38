"""The command that makes a synthetic archive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def synthesise(
    into: Annotated[Path, typer.Option(help="Folder of the archive.")],
    jobs: Annotated[int, typer.Option(help="Rows of the jobs table, met exactly [jobs].")],
    days: Annotated[float, typer.Option(help="Period over which work is submitted [days].")] = 60,
    seed: Annotated[int, typer.Option(help="Seed; the same one gives the same bytes.")] = 1,
    start: Annotated[str, typer.Option(help="First instant, UTC.")] = "2026-03-01",
    drift: Annotated[
        float, typer.Option(help="Change of campaign late in the period, on ln(memory).")
    ] = 0.03,
) -> None:
    """Make an archive of invented jobs with real shapes, and the truth beside it."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    from brokerlab.archive import synthetic

    settings = synthetic.make_settings(jobs=jobs, days=days, seed=seed, start=start, drift=drift)
    console = Console(soft_wrap=True, highlight=False)
    present = synthetic.is_made(into, settings)
    if present is not None:
        console.print(f"{into}: holds exactly this archive already, nothing to do", markup=False)
        console.print(f"digest {present.digest}", markup=False)
        return
    bar = Progress("{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                   console=Console(stderr=True))  # fmt: skip
    with bar:
        line = bar.add_task("jobs", total=jobs)
        manifest = synthetic.synthesise(
            into, jobs=jobs, days=days, seed=seed, start=start, drift=drift,
            progress=lambda done, _: bar.update(line, completed=done),
        )  # fmt: skip
    counts = ", ".join(f"{rows} {table}" for table, rows in sorted(manifest.counts.items()))
    console.print(f"{into}: synthetic archive of {counts}", markup=False)
    console.print(f"digest {manifest.digest}", markup=False)
