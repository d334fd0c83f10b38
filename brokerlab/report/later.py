"""Ask proposals on a later archive: each by the proof that its report made."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from brokerlab.errors import InsufficientDataError

if TYPE_CHECKING:
    from brokerlab.calibrate.drift import Drift
    from brokerlab.gdpconfig.proposal import Proposal
    from brokerlab.report.scout_percentiles.inputs import Inputs

NO_PROOF = (
    "no proof of {keys} can be repeated on an archive alone; run the report that proposed it on the later archive, and "
    "compare what it says then"
)


def asker(
    archive: str | Path, *, start: str = "", end: str = "", reports: str | Path | None = None
) -> Callable[[Proposal], Drift]:
    """Return a function that says of proposals whether they still hold; the archive is read once for all of a kind.

    Args:
        archive: The later archive.
        start: Only what is from then on, ISO 8601, UTC.
        end: Only what is before.
        reports: Folder to look for the parts of merged proposals; null: none.

    Raises:
        DataError: There is no such archive.
    """
    from brokerlab.archive.store import open_archive
    from brokerlab.calibrate.drift import (
        NotRepeatableError,
        all_of,
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
            if proposal.sources and not proposal.takes_back:
                return all_of([(one.title, ask(one)) for one in _parts(proposal, reports)])
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


def _parts(proposal: Proposal, reports: str | Path | None) -> list[Proposal]:
    """Return the proposals that one was merged from.

    Raises:
        NotRepeatableError: Some do not lie in the folder of reports.
    """
    from brokerlab.calibrate.drift import NotRepeatableError
    from brokerlab.gdpconfig.proposal import Filed, find

    known = reports is not None and Path(reports).exists()
    filed = find(reports) if known and reports is not None else []
    there = {one.proposal.digest: one.proposal for one in filed if isinstance(one, Filed)}
    missing = [source.title for source in proposal.sources if source.digest not in there]
    if missing:
        raise NotRepeatableError(
            f"the proposal is merged from others, and {', '.join(missing)} do not lie in {reports}: say where (--reports)"
        )
    return [there[source.digest] for source in proposal.sources]


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
    from brokerlab.brokerage.replay.plan import time_of
    from brokerlab.calibrate.drift import exchange_drift
    from brokerlab.calibrate.drift.answer import data_end
    from brokerlab.calibrate.network_curve import read_links

    since = data_end(proposal)
    first, last = time_of(start or None, "start"), time_of(end or None, "end")
    begin = max((at for at in (first, since) if at is not None), default=None)
    later = read_links(archive, start=begin, end=last)
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
