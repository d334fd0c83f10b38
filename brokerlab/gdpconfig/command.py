"""The commands ``brokerlab proposal list|show|annotate|verify|diff|apply|revert|merge|base``."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from brokerlab.gdpconfig.config import Config


WIDTH = 200
"""Room for the table of changes; the longest key of the catalogue has 60 characters."""

LINE = 1000
"""Room for one line per proposal; a terminal wraps it, a file keeps it."""


Form = Literal["sql", "json", "patch"]
"""Kinds of file that ``apply`` writes."""
BackForm = Literal["proposal", "sql", "json", "patch"]
"""Kinds of file that ``revert`` writes."""

ProposalFile = Annotated[Path, typer.Argument(help="The proposal, as JSON.")]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="The present gdpconfig: CSV, JSON, or the folder of an archive. Without it: no entries, "
        "every key has its default.",
    ),
]
VerifyConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="The present gdpconfig: CSV, JSON, or the folder of an archive. Without it the keys of the "
        "proposal are compared with their defaults, and no others.",
    ),
]
StateConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="The present gdpconfig, as for verify. Without it nothing is said of the state.",
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


def list_(
    folder: Annotated[
        Path, typer.Argument(help="Folder of reports, of runs or of proposals.")
    ] = Path("reports"),
    *,
    config: StateConfigFile = None,
    at: At = None,
    latest: Annotated[
        bool,
        typer.Option(
            "--newest", help="Leave out what a later run of the same report has replaced."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show every proposal of a folder in one line: keys, old and new, effect, whether it still fits."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from brokerlab.gdpconfig.proposal import Filed, find, newest, overview

    result = find(folder)
    if latest:
        replaced = newest(one for one in result if isinstance(one, Filed))[1]
        result = [one for one in result if one not in replaced]
    table = overview(result, None if config is None else _config(config, at))
    if as_json:
        typer.echo(json.dumps(table.to_dicts(), ensure_ascii=False, indent=2))
        return
    if table.is_empty():
        typer.echo(f"{folder}: no proposal*.json")
        return
    shown = Table(box=box.SIMPLE, pad_edge=False)
    columns = ("report", "run", "kind", "keys", "scope", "change", "effect", "state")
    for name in columns:
        shown.add_column(name, no_wrap=True)
    for row in table.iter_rows(named=True):
        effect = row["why"] if row["kind"] == "broken" else row["effect"]
        cells = {**row, "report": row["report"] or row["name"], "effect": effect}
        shown.add_row(*(escape(cells[name] or "-") for name in columns))
    Console(width=LINE).print(shown, highlight=False, soft_wrap=True)


def show(
    proposal: ProposalFile,
    *,
    config: StateConfigFile = None,
    at: At = None,
    reports: Annotated[
        Path, typer.Option(help="Folder to look for the report of a proposal that lies elsewhere.")
    ] = Path("reports"),
) -> None:
    """Say what one proposal sets, what it promises, who gains and who loses, and what proves it."""
    from brokerlab.gdpconfig.proposal import in_words, read_all

    (filed,) = read_all([proposal], reports)
    typer.echo(in_words(filed, None if config is None else _config(config, at)), nl=False)


def annotate(
    proposal: ProposalFile,
    *,
    into: Into,
    ticket: Annotated[str | None, typer.Option(help="Where it is discussed.")] = None,
    author: Annotated[str | None, typer.Option(help="Who proposes it.")] = None,
    approver: Annotated[str | None, typer.Option(help="Who agreed.")] = None,
    comment: Annotated[str | None, typer.Option(help="Anything else.")] = None,
    force: Force = False,
) -> None:
    """Write a proposal with notes of people; an empty text takes a note away, the digest stays."""
    from brokerlab.errors import ProposalError
    from brokerlab.gdpconfig.proposal import dumps, read, write

    if ticket is None and author is None and approver is None and comment is None:
        raise ProposalError(
            "nothing to note: give --ticket, --author, --approver or --comment (or several)"
        )
    document = read(proposal).annotated(
        ticket=ticket, author=author, approver=approver, comment=comment
    )
    write(dumps(document), into, overwrite=force)
    typer.echo(f"written to {into}; nothing was set")


def verify(
    proposals: Annotated[list[Path], typer.Argument(help="One proposal or more.")],
    *,
    config: VerifyConfigFile = None,
    at: At = None,
    touched_only: TouchedOnly = False,
) -> None:
    """Check that proposals are sound and were made for this configuration; everything wrong is told at once."""
    from brokerlab.gdpconfig.proposal import verified

    present = None if config is None else _config(config, at)
    result = (
        "sound, made for its keys at their defaults; without --config no other keys were compared"
        if present is None
        else "sound, and made for this configuration"
    )
    for document in verified(proposals, present, touched_only=touched_only):
        typer.echo(f"{document.kind}: {document.title}: {result}")


def diff(proposal: ProposalFile) -> None:
    """Show what would change."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from brokerlab.gdpconfig.proposal import read, tasks_in_words

    document = read(proposal)
    console = Console(width=WIDTH)  # a narrow terminal wraps the lines, but loses nothing
    table = Table(box=box.SIMPLE)
    for name in ("key", "VO", "old", "new", "unit", "guard rails", "entry"):
        table.add_column(name, no_wrap=True)
    for change in document.changes:
        rails = f"{_shown(change.minimum)} to {_shown(change.maximum)}"
        cells = [change.place, change.vo or "all", _shown(change.old), _shown(change.new)]
        table.add_row(*map(escape, [*cells, change.unit, rails, change.action]))
    console.print(f"{document.kind}: {document.title}", markup=False, highlight=False)
    console.print(document.evidence.verdict, markup=False, highlight=False)
    if document.evidence.filters:
        tasks = tasks_in_words(document.evidence.filters)
        console.print(f"Measured on {tasks}.", markup=False, highlight=False)
    if document.evidence.synthetic:
        console.print("Made from a synthetic archive: not to be set anywhere.", highlight=False)
    console.print(table, highlight=False, soft_wrap=True)


def apply(
    proposal: ProposalFile,
    *,
    into: Into,
    config: ConfigFile = None,
    form: Annotated[Form, typer.Option("--format", help="Kind of file.")] = "sql",
    at: At = None,
    touched_only: TouchedOnly = False,
    force: Force = False,
) -> None:
    """Write the statements that set the values, and those that take them back, to a file."""
    from brokerlab.gdpconfig.proposal import read, render, write

    document = read(proposal)
    text = render(document, _config(config, at), form=form, touched_only=touched_only)
    write(text, into, overwrite=force)
    if document.evidence.synthetic:
        typer.echo("Made from a synthetic archive: not to be set anywhere.")
    typer.echo(f"written to {into}; nothing was set")


def revert(
    proposal: ProposalFile,
    *,
    into: Into,
    config: ConfigFile = None,
    form: Annotated[BackForm, typer.Option("--format", help="Kind of file.")] = "proposal",
    at: At = None,
    force: Force = False,
) -> None:
    """Write what takes a proposal back, made for the configuration that has it."""
    from brokerlab.gdpconfig.proposal import dumps, read, render, write

    present = _config(config, at)
    back = read(proposal).revert(present, created_at=_now())
    text = dumps(back) if form == "proposal" else render(back, present, form=form)
    write(text, into, overwrite=force)
    typer.echo(f"written to {into}; nothing was set")


def merge(
    proposals: Annotated[list[Path], typer.Argument(help="Two proposals or more.")],
    *,
    into: Into,
    config: StateConfigFile = None,
    at: At = None,
    touched_only: TouchedOnly = False,
    force: Force = False,
) -> None:
    """Make one proposal of several, or name everything that keeps them from being put in together."""
    from brokerlab.errors import ProposalError
    from brokerlab.gdpconfig.proposal import dumps, read_all, write
    from brokerlab.gdpconfig.proposal import merge as merged_of

    if touched_only and config is None:
        raise ProposalError("--touched-only needs the present configuration: give --config")
    present = None if config is None else _config(config, at)
    merged = merged_of(
        read_all(proposals), created_at=_now(), config=present, touched_only=touched_only
    )
    write(dumps(merged), into, overwrite=force)
    typer.echo(
        f"{len(merged.sources)} proposals, {len(merged.changes)} keys: written to {into}; nothing was set"
    )


def base(
    *,
    into: Into,
    config: ConfigFile = None,
    at: At = None,
    force: Force = False,
) -> None:
    """Write a gdpconfig as the JSON document that ``apply --format patch`` fits."""
    from brokerlab.gdpconfig.proposal import write
    from brokerlab.gdpconfig.proposal.statements import config_text

    write(config_text(_config(config, at)), into, overwrite=force)
    typer.echo(f"written to {into}")


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None, microsecond=0)


def _config(path: Path | None, at: datetime | None) -> Config:
    from brokerlab.gdpconfig.config import Config

    config = Config.empty() if path is None else Config.from_file(path)
    return config if at is None else config.at(at)


def _shown(value: object) -> str:
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
