"""The command that makes a synthetic archive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from brokerlab.console import beside


def synthesise(
    into: Annotated[Path, typer.Option(help="Folder of the archive.")],
    jobs: Annotated[int, typer.Option(help="Rows of the jobs table.")],
    days: Annotated[float, typer.Option(help="Days over which work is submitted.")] = 60,
    seed: Annotated[int, typer.Option(help="Seed; the same one gives the same bytes.")] = 1,
    start: Annotated[str, typer.Option(help="First instant, UTC.")] = "2026-03-01",
    queues: Annotated[int, typer.Option(help="How many queues.")] = 140,
    drift: Annotated[
        float, typer.Option(help="Change of campaign late in the period, on ln(memory).")
    ] = 0.03,
    planted: Annotated[
        str,
        typer.Option(
            help="With --lived: wrong (settings whose truth lies in the folder truth) or none."
        ),
    ] = "wrong",
    lived: Annotated[  # noqa: FBT002 - an option of the command line
        bool,
        typer.Option(
            help="Jobs wait because slots are taken, under the brokerage's own rules; else waits are drawn and the number "
            "of jobs is met exactly."
        ),
    ] = False,
) -> None:
    """Make an archive of invented jobs with real shapes, and the truth beside it."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeElapsedColumn

    from brokerlab import worlds

    asked: dict[str, Any] = {
        "jobs": jobs,
        "days": days,
        "seed": seed,
        "start": start,
        "queues": queues,
        "drift": drift,
        "lived": lived,
        "planted": planted,
    }
    console = Console(soft_wrap=True, highlight=False)
    present = worlds.is_made(into, **asked)
    if present is not None:
        console.print(f"{into}: holds exactly this archive already, nothing to do", markup=False)
        console.print(f"digest {present.digest}", markup=False)
        return
    columns = (BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress("{task.description}", *columns, console=beside()) as bar:
        line = bar.add_task("drawn", total=1.0)
        manifest = worlds.synthesise(
            into,
            **asked,
            progress=lambda what, part: bar.update(line, description=what, completed=part),
        )
    counts = ", ".join(f"{rows} {table}" for table, rows in sorted(manifest.counts.items()))
    console.print(f"{into}: synthetic archive of {counts}", markup=False)
    console.print(f"digest {manifest.digest}", markup=False)
