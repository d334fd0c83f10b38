"""The command ``brokerlab proposal drift``: does an accepted proposal still hold on last week's archive?"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from brokerlab.errors import InsufficientDataError
from brokerlab.report.exits import CANNOT_BE_CHECKED, DOES_NOT_HOLD, NO_ANSWER

if TYPE_CHECKING:
    from brokerlab.calibrate.drift import Drift
    from brokerlab.gdpconfig.proposal import Proposal
    from brokerlab.report.scout_percentiles.inputs import Inputs

EXIT_CODES = {
    "holds": 0,
    "does_not_hold": DOES_NOT_HOLD,
    "cannot_tell": NO_ANSWER,
    "cannot_be_checked": CANNOT_BE_CHECKED,
}
"""Of the command."""
NO_PROOF = (
    "no proof of {keys} can be repeated on an archive alone; run the report that proposed it on the later archive, and "
    "compare what it says then"
)


def drift(
    proposal: Annotated[Path, typer.Argument(help="The proposal, as JSON.")],
    *,
    archive: Annotated[Path, typer.Option(help="Folder of the later archive.")],
    start: Annotated[
        str,
        typer.Option(help="Only what is from then on, UTC; always after the proposal's own data."),
    ] = "",
    end: Annotated[str, typer.Option(help="Only what is before, UTC.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One line, for programs.")] = False,
) -> None:
    """Say whether a proposal still holds on later data.

    Exit code 0 holds, 8 does not, 6 this archive cannot tell, 9 its proof cannot be repeated on any archive.
    """
    from brokerlab.gdpconfig.proposal import read

    document = read(proposal)
    found = asker(archive, start=start, end=end)(document)
    code = EXIT_CODES[found.status]
    if as_json:
        told = {"proposal": str(proposal), "title": document.title, "digest": document.digest}
        summary = {**told, "archive": str(archive), "exit_code": code, **found.to_dict()}
        typer.echo(json.dumps(summary, ensure_ascii=False))
    else:
        typer.echo(found.sentence)
        for row in found.effects.filter(found.effects["apart"].fill_null(value=False)).to_dicts():
            said, seen = (_interval(row, name) for name in ("told", "found"))
            typer.echo(f"  {row['quantity']} [{row['unit']}]: told {said}, found {seen}")
    raise typer.Exit(code)


def asker(archive: str | Path, *, start: str = "", end: str = "") -> Callable[[Proposal], Drift]:
    """Return a function that says of proposals whether they still hold; the archive is read once for all of a kind.

    Args:
        archive: The later archive.
        start: Only what is from then on, ISO 8601, UTC.
        end: Only what is before.
    """
    from brokerlab.archive.store import open_archive
    from brokerlab.calibrate.drift import (
        NotRepeatableError,
        is_of_exchange,
        is_of_percentiles,
        is_of_thresholds,
        refused,
    )

    open_archive(archive)  # refused at once, even where nothing is asked of it

    @functools.cache
    def inputs(rules: str) -> Inputs:
        from brokerlab.report.scout_percentiles.inputs import load

        return load(archive, window_start=start, window_end=end, rules=rules)

    def ask(proposal: Proposal) -> Drift:
        try:
            if is_of_percentiles(proposal):
                return _percentiles(proposal, inputs)
            if is_of_thresholds(proposal):
                return _thresholds(proposal, archive, start, end)
            if is_of_exchange(proposal):
                return _exchange(proposal, archive, start, end)
            keys = ", ".join(sorted({change.key for change in proposal.changes}))
            raise NotRepeatableError(NO_PROOF.format(keys=keys))
        except InsufficientDataError as error:
            return refused(error)

    return ask


def _percentiles(proposal: Proposal, inputs: Callable[[str], Inputs]) -> Drift:
    """Ask a proposal on the scouts' percentiles."""
    from brokerlab.calibrate.drift import drift as scored
    from brokerlab.rulesets import NAMES

    named = (proposal.digests.rules or "").split(" ")[0]
    later = inputs(named if named in NAMES else NAMES[0])  # others are refused, with their digest
    return scored(
        proposal,
        later.quantities,
        later.tasks,
        later.queues,
        later.archive.jobs,
        config=later.config,
    )


def _exchange(proposal: Proposal, archive: str | Path, start: str, end: str) -> Drift:
    """Ask a proposal on the importance of the network weight; only metrics from after its own data count."""
    from brokerlab.calibrate.drift import exchange_drift
    from brokerlab.calibrate.drift.answer import data_end
    from brokerlab.report.network_curve.inputs import load

    since = data_end(proposal)
    begin = max([start, *([] if since is None else [since.isoformat()])])
    later = load(str(archive), start=begin, end=end)
    if since is None and proposal.digests.archive in later.digests:
        raise InsufficientDataError("the archive is the one that the proposal was made from")
    evidence = later.evidence.get("metrics")
    if evidence is None:
        raise InsufficientDataError(
            later.refused.get("metrics", f"{archive} has no metrics of links (network_matrix)")
        )
    return exchange_drift(proposal, evidence, acting=later.settings)


def _thresholds(proposal: Proposal, archive: str | Path, start: str, end: str) -> Drift:
    """Ask a proposal on thresholds: the later archive is simulated, if the simulation gives back what was seen there."""
    from brokerlab.archive.store import open_archive
    from brokerlab.brokerage.replay.plan import time_of
    from brokerlab.calibrate.drift import thresholds_drift
    from brokerlab.calibrate.drift.answer import data_end
    from brokerlab.calibrate.thresholds import Period
    from brokerlab.calibrate.thresholds.check import too_short
    from brokerlab.calibrate.thresholds.grid import of_archive
    from brokerlab.gdpconfig import Config
    from brokerlab.gdpconfig.present import present

    opened = open_archive(archive)
    window = opened.manifest.window
    if window is None:
        raise InsufficientDataError(f"{archive} has no jobs")
    first, last = (time_of(given or at, name) for given, at, name in zip((start, end), window, ("start", "end"), strict=True))  # fmt: skip
    since = data_end(proposal)
    if first is None or last is None:
        raise InsufficientDataError(f"{archive} does not tell when its jobs were")
    period = Period(first if since is None else max(first, since), last)
    if period.start >= period.end:
        raise InsufficientDataError(
            f"{archive} ends {period.end}, before what the proposal was not made from begins ({period.start})"
        )
    if short := too_short(opened, (period, period)):
        raise InsufficientDataError(short[0])
    config = present(archive, period.end) if opened.has("gdpconfig") else Config.empty()
    simulation = of_archive(opened, [period])
    return thresholds_drift(
        proposal, simulation, period, config=config, validation=simulation.validate(period)
    )


def _interval(row: dict[str, float], name: str) -> str:
    return f"{row[name]:+.4g} ({row[f'{name}_lo']:+.4g} to {row[f'{name}_hi']:+.4g})"
