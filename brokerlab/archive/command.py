"""The commands that fill an archive from dumps, and check what it holds."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

if TYPE_CHECKING:
    from brokerlab.archive.ingestion import IngestReport


def verify(archive: Annotated[Path, typer.Argument(help="Folder of the archive.")]) -> None:
    """Read every file of an archive and compare its digest with the manifest; damaged parts are named."""
    from brokerlab.archive import manifest as manifests

    files = manifests.read(archive).files()
    manifests.check(archive, files, again=True)
    size = sum(file.bytes for file in files)
    line = f"{archive}: {len(files)} files, {size:,} bytes, all as they were written"
    Console().print(line, markup=False, highlight=False, soft_wrap=True)


def ingest(
    sources: Annotated[list[Path], typer.Argument(help="Files, or folders of files.")],
    into: Annotated[Path, typer.Option(help="Folder of the archive.")],
    table: Annotated[
        str | None, typer.Option(help="Table of the sources, where names do not tell.")
    ] = None,
    fill: Annotated[
        list[Path] | None,
        typer.Option(help="File of partial rows (key and some columns) that fill nulls."),
    ] = None,
) -> None:
    """Read dumps of PanDA into an archive; refused rows are kept with their reasons."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    from brokerlab.archive import ingestion

    bar = Progress(
        "{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )
    with bar:
        line = bar.add_task("recognising", total=None)

        def show(done: int, total: int, name: str, rows: int) -> None:
            bar.update(line, completed=done, total=total, description=f"{name}: {rows:,} rows")

        report = ingestion.ingest(sources, into, table=table, fill=fill or [], progress=show)
        bar.update(line, total=1, completed=1, description="done")
    _print(report, into)


def _print(report: "IngestReport", into: Path) -> None:
    """Print the counts by source and table, the notes, and the first reasons of refusal."""
    console = Console(width=None if Console().is_terminal else 140, highlight=False)
    for name in report.skipped:
        console.print(f"{name}: in the archive already, skipped", markup=False, soft_wrap=True)
    if report.sources:
        _print_counts(report, console)
    notes: dict[str, list[str]] = {}
    for entry in report.sources:
        for note in entry.notes:
            notes.setdefault(note, []).append(entry.name)
    for note, names in notes.items():
        where = names[0] if len(names) == 1 else f"{len(names)} sources"
        console.print(f"note, {where}: {note}", markup=False, soft_wrap=True)
    _print_refused(report, into, console)
    if report.approximated:
        console.print(
            f"{report.approximated} task(s) have no files: one stand-in per job, approximate = true"
        )
    counts = ", ".join(f"{rows} {table}" for table, rows in sorted(report.manifest.counts.items()))
    last = f"{into}: {counts or 'empty'}; digest {report.manifest.digest}"
    console.print(last, markup=False, soft_wrap=True)


def _print_counts(report: "IngestReport", console: Console) -> None:
    """Print rows in and what became of them."""
    from rich.table import Table
    from rich.text import Text

    frame = report.to_frame()
    shown = Table("source", "table")
    for heading in ("rows in", "accepted", "quarantined", "duplicates"):
        shown.add_column(heading, justify="right")
    for source, table, *counts in frame.iter_rows():
        shown.add_row(Text(source), table, *(f"{count:,}" for count in counts))
    totals = frame.select("rows", "accepted", "quarantined", "duplicates").sum().row(0)
    shown.add_section()
    shown.add_row("together", "", *(f"{total:,}" for total in totals))
    console.print(shown)
    rows, accepted, refused, doubled = totals
    console.print(
        f"{rows} rows in = {accepted} accepted + {refused} quarantined + {doubled} duplicates"
    )


def _print_refused(report: "IngestReport", into: Path, console: Console) -> None:
    """Print the first refused rows of this run."""
    from brokerlab.archive import store

    if not report.to_frame()["quarantined"].sum():
        return
    query = """
        select source, "row", "table", reason from quarantine where source in $names
        order by source, "table", "row" limit 5
    """
    names = [entry.name for entry in report.sources]
    for source, row, table, reason in (
        store.open_archive(into).sql(query, {"names": names}).fetchall()
    ):
        line = f"refused, {source} row {row} ({table}): {reason[:300]}"
        console.print(line, markup=False, soft_wrap=True)
    console.print("all of them: the table quarantine of the archive")
