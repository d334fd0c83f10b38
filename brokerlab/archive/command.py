"""The commands that fill an archive from dumps, and check what it holds."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from brokerlab.console import beside, print_line
from brokerlab.errors import SchemaError

if TYPE_CHECKING:
    from brokerlab.archive.ingestion import IngestReport

_SHOWN = 10
_NAMES = 40
_LONGEST = 60
_VALUE = r"'[^']*'|[0-9][-0-9:. ]*"
"""What of a reason is the value of one row."""


def verify(archive: Annotated[Path, typer.Argument(help="Folder of the archive.")]) -> None:
    """Read every file of an archive and compare its digest with the manifest; damaged parts are named."""
    from brokerlab.archive import manifest as manifests
    from brokerlab.archive import store
    from brokerlab.words import listed

    files = manifests.read(archive).files()
    manifests.check(archive, files, again=True)
    size = sum(file.bytes for file in files)
    line = f"{archive}: {len(files)} files, {size:,} bytes, all as they were written"
    Console().print(line, markup=False, highlight=False, soft_wrap=True)
    if made := store.open_archive(archive).derive().derived:
        line = f"not in it, and made from its jobs where a report needs them: {listed(made)}"
        Console().print(line, markup=False, highlight=False, soft_wrap=True)


def ingest(
    sources: Annotated[list[Path], typer.Argument(help="Files, or folders of files.")],
    into: Annotated[Path, typer.Option(help="Folder of the archive.")],
    table: Annotated[
        str | None, typer.Option(help="Table of the sources, where names do not tell.")
    ] = None,
    map_: Annotated[
        list[str] | None,
        typer.Option("--map", help="NAME=column: a column of the source and what it means."),
    ] = None,
    default: Annotated[
        list[str] | None,
        typer.Option(help="column=value, for all rows; for a time also another time's name."),
    ] = None,
    unit: Annotated[
        list[str] | None,
        typer.Option(help="column=unit, e.g. maxpss=MB; for times of numbers creationtime=ms."),
    ] = None,
    dates: Annotated[
        str, typer.Option(help="day-first or month-first, where dates do not tell.")
    ] = "",
    mapping: Annotated[
        str | None,
        typer.Option(help="File with a mapping, JSON or TOML; 'none' leaves kept ones aside."),
    ] = None,
    fill: Annotated[
        list[Path] | None,
        typer.Option(help="File of partial rows (key and some columns) that fill nulls."),
    ] = None,
    as_json: Annotated[  # noqa: FBT002
        bool, typer.Option("--json", help="One line, for programs.")
    ] = False,
) -> None:
    """Read jobs, tasks and other tables into an archive; refused rows are kept with their reasons.

    What is said about columns is kept in the archive: the next export with the same columns needs no options.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    from brokerlab.archive import ingestion
    from brokerlab.archive.mapping import NONE, Mapping

    typed = Mapping.of_options(map=map_ or [], default=default or [], unit=unit or [], dates=dates)
    given = typed if typed.says else None
    if mapping is not None:
        given = (Mapping() if mapping == NONE else Mapping.read(mapping)).joined(typed)
    bar = Progress(
        "{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=beside(),
    )
    with bar:
        line = bar.add_task("recognising", total=None)

        def show(done: int, total: int, name: str, rows: int) -> None:
            bar.update(line, completed=done, total=total, description=f"{name}: {rows:,} rows")

        report = ingestion.ingest(
            sources, into, table=table, mapping=given, fill=fill or [], progress=show
        )
        bar.update(line, total=1, completed=1, description="done")
    if as_json:
        print_line(_summary(report, into))
    else:
        _print(report, into)
    rows, _, refused, _ = _totals(report)
    if refused and rows == refused:
        reasons = "; ".join(f"{n} row(s): {words}" for words, n in _reasons(report, into))
        again = any(ingestion.READ_BEFORE in source.notes for source in report.sources)
        before = f"; the source {ingestion.READ_BEFORE}" if again else ""
        raise SchemaError(f"nothing was accepted: {rows} rows in, all refused; {reasons}{before}")


def _totals(report: "IngestReport") -> tuple[int, int, int, int]:
    """Return rows in, accepted, quarantined and duplicates."""
    counts = report.frame().select("rows", "accepted", "quarantined", "duplicates").sum()
    rows, accepted, refused, doubled = counts.row(0)
    return rows, accepted, refused, doubled


def _summary(report: "IngestReport", into: Path) -> dict[str, Any]:
    """Return what was done as plain values."""
    rows, accepted, refused, doubled = _totals(report)
    return {
        "archive": str(into),
        "rows": rows,
        "accepted": accepted,
        "quarantined": refused,
        "duplicates": doubled,
        "sources": report.frame().to_dicts(),
        "skipped": report.skipped,
        "left_out": report.left_out,
        "not_taken": [asdict(column) for column in report.not_taken],
        "notes": {source.name: source.notes for source in report.sources},
        "refused": [{"reason": words, "rows": n} for words, n in _reasons(report, into)],
        "mappings": [str(path) for path in report.mappings],
        "counts": report.manifest.counts,
        "digest": report.manifest.digest,
    }


def _print(report: "IngestReport", into: Path) -> None:
    """Print the counts by source and table, what was not taken, the notes, and reasons of refusal."""
    console = Console(width=None if Console().is_terminal else 140, highlight=False)

    def say(text: str) -> None:
        console.print(text, markup=False, soft_wrap=True)

    for name in report.skipped:
        say(f"{name}: in the archive already, skipped")
    for what in report.left_out[:_SHOWN]:
        say(f"left out: {what}")
    if len(report.left_out) > _SHOWN:
        say(f"left out: {len(report.left_out) - _SHOWN} more")
    if report.sources:
        _print_counts(report, console)
    notes: dict[str, list[str]] = {}
    for entry in report.sources:
        for note in entry.notes:
            notes.setdefault(note, []).append(entry.name)
    for note, names in notes.items():
        where = names[0] if len(names) == 1 else f"{len(names)} sources"
        say(f"note, {where}: {note}")
    _print_not_taken(report, say)
    _print_refused(report, into, say)
    if report.approximated:
        say(
            f"{report.approximated} task(s) have no files: one stand-in per job, approximate = true"
        )
    for path in report.mappings:
        say(f"{path}: keeps what was said; the next export with these columns needs no options")
    counts = ", ".join(f"{rows} {table}" for table, rows in sorted(report.manifest.counts.items()))
    say(f"{into}: {counts or 'empty'}; digest {report.manifest.digest}")


def _print_not_taken(report: "IngestReport", say: Callable[[str], None]) -> None:
    """Print the columns that are none of their tables, and what to type where one is near."""
    columns: dict[tuple[str, str], list[str]] = {}
    for one in report.not_taken:
        columns.setdefault((one.source, one.table), []).append(one.column)
    sources: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (source, table), names in columns.items():
        sources.setdefault((table, tuple(names)), []).append(source)
    for (table, every), some in sources.items():
        place = some[0] if len(some) == 1 else f"{len(some)} sources"
        more = f" and {len(every) - _NAMES} more (--json has all)" if len(every) > _NAMES else ""
        shown = ", ".join(name[:_LONGEST] for name in every[:_NAMES]) + more
        say(
            f"{place}: {len(every)} column(s) not taken as columns of {table}, kept beside: {shown}"
        )
    hints = {one.column: one.suggestion for one in report.not_taken if one.suggestion}
    for name, option in list(hints.items())[:_SHOWN]:
        say(f"{name[:_LONGEST]}: did you mean {option[: 4 * _LONGEST]} ?")


def _print_counts(report: "IngestReport", console: Console) -> None:
    """Print rows in and what became of them."""
    from rich.table import Table
    from rich.text import Text

    frame = report.frame()
    shown = Table("source", "table")
    for heading in ("rows in", "accepted", "quarantined", "duplicates"):
        shown.add_column(heading, justify="right")
    for source, table, *counts in frame.iter_rows():
        shown.add_row(Text(source), table, *(f"{count:,}" for count in counts))
    totals = _totals(report)
    shown.add_section()
    shown.add_row("together", "", *(f"{total:,}" for total in totals))
    console.print(shown)
    rows, accepted, refused, doubled = totals
    console.print(
        f"{rows} rows in = {accepted} accepted + {refused} quarantined + {doubled} duplicates"
    )


def _print_refused(report: "IngestReport", into: Path, say: Callable[[str], None]) -> None:
    """Print the first refused rows of this run."""
    query = """
        select source, "row", "table", reason from quarantine where source in $names
        order by source, "table", "row" limit 5
    """
    rows = _quarantined(report, into, query)
    for source, row, table, reason in rows:
        say(f"refused, {source} row {row} ({table}): {reason[:300]}")
    if rows:
        say("all of them: the table quarantine of the archive")


def _reasons(report: "IngestReport", into: Path) -> list[tuple[str, int]]:
    """Return the most frequent reasons of refusal in this run, each by its first row, with their rows."""
    query = """
        select min_by(reason, "row")[:300], count(*) as n from quarantine where source in $names
        group by "table", regexp_replace(reason, $value, '', 'g')
        order by n desc, min("row") limit 5
    """
    return _quarantined(report, into, query, value=_VALUE)


def _quarantined(report: "IngestReport", into: Path, query: str, **params: str) -> list[Any]:
    """Ask the quarantine about the rows of this run, if any was refused."""
    from brokerlab.archive import store

    if not report.frame()["quarantined"].sum():
        return []
    names = [entry.name for entry in report.sources]
    return store.open_archive(into).sql(query, {"names": names, **params}).fetchall()
