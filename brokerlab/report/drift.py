"""The command ``brokerlab proposal drift``: does an accepted proposal still hold on last week's archive?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

EXIT_CODES = {"holds": 0, "does_not_hold": 8, "cannot_tell": 6}
"""Of the command; 6 is also that of every other question with too little data, 8 no error has."""


def drift(
    proposal: Annotated[Path, typer.Argument(help="The proposal, as JSON.")],
    *,
    archive: Annotated[Path, typer.Option(help="Folder of the later archive.")],
    start: Annotated[
        str, typer.Option(help="Only tasks created from then on, UTC; always after its own data.")
    ] = "",
    end: Annotated[str, typer.Option(help="Only tasks created before, UTC.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Say whether a proposal still holds on later tasks: exit code 0 holds, 8 does not, 6 cannot tell."""
    from brokerlab.calibrate.drift import Drift
    from brokerlab.calibrate.drift import drift as scored
    from brokerlab.errors import InsufficientDataError
    from brokerlab.gdpconfig.proposal import read
    from brokerlab.report.scout_percentiles.inputs import load
    from brokerlab.rulesets import NAMES

    document = read(proposal)
    named = (document.digests.rules or "").split(" ")[0]
    rules = named if named in NAMES else NAMES[0]  # others are refused, with their digest, below
    try:
        inputs = load(archive, window_start=start, window_end=end, rules=rules)
    except InsufficientDataError as error:
        found = Drift("cannot_tell", f"Cannot tell: {error}")
    else:
        found = scored(
            document,
            inputs.quantities,
            inputs.tasks,
            inputs.queues,
            inputs.archive.jobs,
            config=inputs.config,
        )
    if as_json:
        summary = {"proposal": str(proposal), "title": document.title, **found.to_dict()}
        typer.echo(json.dumps(summary, ensure_ascii=False, indent=2))
    else:
        typer.echo(found.sentence)
        for row in found.effects.filter(found.effects["apart"].fill_null(value=False)).to_dicts():
            told, seen = (_interval(row, name) for name in ("told", "found"))
            typer.echo(f"  {row['quantity']} [{row['unit']}]: told {told}, found {seen}")
    raise typer.Exit(EXIT_CODES[found.status])


def _interval(row: dict[str, float], name: str) -> str:
    return f"{row[name]:+.4g} ({row[f'{name}_lo']:+.4g} to {row[f'{name}_hi']:+.4g})"
