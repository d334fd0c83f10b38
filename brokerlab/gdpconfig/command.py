"""The commands ``brokerlab proposal verify|diff|apply|revert``."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from brokerlab.gdpconfig.config import Config


WIDTH = 200
"""Room for the table of changes; the longest key of the catalogue has 60 characters."""


class Form(StrEnum):
    """Kinds of file that ``apply`` writes."""

    sql = "sql"
    json = "json"


ProposalFile = Annotated[Path, typer.Argument(help="The proposal, as JSON.")]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="The present gdpconfig: CSV, JSON, or the folder of an archive. Without it: no entries, "
        "every key has its default.",
    ),
]
At = Annotated[
    datetime | None,
    typer.Option(help="Time (UTC) at which to look at a gdpconfig with a history."),
]
TouchedOnly = Annotated[
    bool, typer.Option("--touched-only", help="Other keys may have changed since.")
]
Into = Annotated[Path, typer.Option(help="The file to write.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the file.")]


def verify(
    proposal: ProposalFile,
    *,
    config: ConfigFile = None,
    at: At = None,
    touched_only: TouchedOnly = False,
) -> None:
    """Check that the proposal is sound and was made for this configuration."""
    from brokerlab.gdpconfig.proposal import read

    document = read(proposal)
    document.verify(_config(config, at), touched_only=touched_only)
    typer.echo(f"{document.kind}: {document.title}: sound, and made for this configuration")


def diff(proposal: ProposalFile) -> None:
    """Show what would change."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from brokerlab.gdpconfig.proposal import read

    document = read(proposal)
    console = Console(width=WIDTH)  # a narrow terminal wraps the lines, but loses nothing
    table = Table(box=box.SIMPLE)
    for name in ("key", "VO", "old", "new", "unit", "guard rails", "entry"):
        table.add_column(name, no_wrap=True)
    for change in document.changes:
        rails = f"{_shown(change.minimum)} to {_shown(change.maximum)}"
        cells = [change.place, change.vo or "all", _shown(change.old), _shown(change.new)]
        table.add_row(*cells, change.unit, rails, change.action)
    console.print(f"{document.kind}: {document.title}", markup=False, highlight=False)
    console.print(document.evidence.verdict, markup=False, highlight=False)
    if document.evidence.synthetic:
        console.print("Made from a synthetic archive: not to be set anywhere.", highlight=False)
    console.print(table, highlight=False, soft_wrap=True)


def apply(
    proposal: ProposalFile,
    *,
    into: Into,
    config: ConfigFile = None,
    form: Annotated[Form, typer.Option("--format", help="Kind of file.")] = Form.sql,
    at: At = None,
    touched_only: TouchedOnly = False,
    force: Force = False,
) -> None:
    """Write the statements that set the values, and those that take them back, to a file."""
    from brokerlab.gdpconfig.proposal import read, render, write

    document = read(proposal)
    text = render(document, _config(config, at), form=form.value, touched_only=touched_only)
    write(text, into, overwrite=force)
    typer.echo(f"written to {into}; nothing was set")


def revert(
    proposal: ProposalFile,
    *,
    into: Into,
    config: ConfigFile = None,
    at: At = None,
    force: Force = False,
) -> None:
    """Write the proposal that takes this one back, made for the configuration that has it."""
    from brokerlab.gdpconfig.proposal import dumps, read, write

    now = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
    back = read(proposal).revert(_config(config, at), created_at=now)
    write(dumps(back), into, overwrite=force)
    typer.echo(f"written to {into}; nothing was set")


def _config(path: Path | None, at: datetime | None) -> Config:
    from brokerlab.gdpconfig.config import Config

    if path is None:
        return Config.empty()
    if path.is_dir():
        from brokerlab import archive

        config = Config.from_frame(archive.open(path).scan("gdpconfig"))
    else:
        config = Config.from_file(path)
    return config if at is None else config.at(at)


def _shown(value: object) -> str:
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
