"""The command ``brokerlab proposal drift``: does an accepted proposal still hold on last week's archive?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from brokerlab.console import print_line
from brokerlab.errors import CANNOT_BE_CHECKED, DOES_NOT_HOLD, InsufficientDataError

EXIT_CODES = {
    "holds": 0,
    "does_not_hold": DOES_NOT_HOLD,
    "cannot_tell": InsufficientDataError.exit_code,
    "cannot_be_checked": CANNOT_BE_CHECKED,
}
"""Of the command."""


def drift(
    proposal: Annotated[Path, typer.Argument(help="The proposal, as JSON.")],
    *,
    archive: Annotated[Path, typer.Option(help="Folder of the later archive.")],
    start: Annotated[
        str,
        typer.Option(help="Only what is from then on, UTC; always after the proposal's own data."),
    ] = "",
    end: Annotated[str, typer.Option(help="Only what is before, UTC.")] = "",
    reports: Annotated[
        Path, typer.Option(help="Folder to look for the parts of a merged proposal.")
    ] = Path("reports"),
    as_json: Annotated[bool, typer.Option("--json", help="One line, for programs.")] = False,
) -> None:
    """Say whether a proposal still holds on later data, and what to look at once it is applied.

    Exit code 0 holds, 8 does not, 6 this archive cannot tell, 9 its proof cannot be repeated on any archive.
    """
    from brokerlab.archive.store import open_archive
    from brokerlab.calibrate.drift import LaterArchive
    from brokerlab.gdpconfig.proposal import after_applying, read
    from brokerlab.times import time_of

    document = read(proposal)
    first, last = time_of(start or None, "start"), time_of(end or None, "end")
    answer = LaterArchive(open_archive(archive), first, last, reports).ask(document)
    code, after = EXIT_CODES[answer.status], after_applying(document, str(proposal))
    if as_json:
        about = {"proposal": str(proposal), "title": document.title, "digest": document.digest}
        summary = {
            **about,
            "archive": str(archive),
            "exit_code": code,
            **answer.to_dict(),
            "after": after,
        }
        print_line(summary)
    else:
        typer.echo(answer.sentence)
        apart = answer.effects.filter(answer.effects["apart"].fill_null(value=False))
        for row in apart.to_dicts():
            stated, measured = (_interval(row, name) for name in ("stated", "measured"))
            typer.echo(f"  {row['quantity']} [{row['unit']}]: stated {stated}, measured {measured}")
        if after:
            typer.echo("\n  ".join(["After it is applied:", *after]))
    raise typer.Exit(code)


def _interval(row: dict[str, Any], name: str) -> str:
    return f"{row[name]:+.4g} ({row[f'{name}_lo']:+.4g} to {row[f'{name}_hi']:+.4g})"
