"""Ask proposals on a later archive: each by the proof that its report made."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from brokerlab.archive.store import Archive
from brokerlab.calibrate.drift.answer import Drift, NotRepeatableError, all_of, data_end, refused
from brokerlab.calibrate.drift.exchange import exchange_drift, is_of_exchange
from brokerlab.calibrate.drift.percentiles import drift, is_of_percentiles
from brokerlab.calibrate.drift.thresholds import is_of_thresholds, thresholds_drift
from brokerlab.calibrate.network_curve import read_links
from brokerlab.calibrate.percentiles.history import Inputs, load
from brokerlab.calibrate.settings import settings_at
from brokerlab.calibrate.thresholds import Period
from brokerlab.calibrate.thresholds.archive_study import too_short
from brokerlab.calibrate.thresholds.grid import of_archive
from brokerlab.errors import InsufficientDataError
from brokerlab.gdpconfig.proposal import Filed, Proposal, find
from brokerlab.rulesets import RuleSetName

NO_PROOF = (
    "no proof of {keys} can be repeated on an archive alone; run the report that proposed it on the later archive, and "
    "compare what it says then"
)


@dataclass(frozen=True)
class LaterArchive:
    """An archive that proposals are asked on; it is read once for all of a kind.

    Attributes:
        archive: The archive.
        start: Only what is from then on, UTC without zone; null: no bound.
        end: Only what is before; null: no bound.
        reports: Folder to look for the parts of merged proposals; null: none.
    """

    archive: Archive
    start: datetime | None = None
    end: datetime | None = None
    reports: Path | None = None
    _scouts: dict[str, Inputs] = field(default_factory=dict, repr=False, compare=False)

    def ask(self, proposal: Proposal) -> Drift:
        """Return whether a proposal still holds; where its proof cannot be made again, that is the answer."""
        try:
            if proposal.sources and not proposal.takes_back:
                return all_of([(part.title, self.ask(part)) for part in self._parts(proposal)])
            if is_of_percentiles(proposal):
                return self._percentiles(proposal)
            if is_of_thresholds(proposal):
                return self._thresholds(proposal)
            if is_of_exchange(proposal):
                return self._exchange(proposal)
            keys = ", ".join(sorted({change.key for change in proposal.changes}))
            raise NotRepeatableError(NO_PROOF.format(keys=keys))
        except InsufficientDataError as error:
            return refused(error)

    def _parts(self, proposal: Proposal) -> list[Proposal]:
        """Return the proposals that one was merged from.

        Raises:
            NotRepeatableError: Some do not lie in the folder of reports.
        """
        filed = find(self.reports) if self.reports is not None and self.reports.exists() else []
        known = {one.proposal.digest: one.proposal for one in filed if isinstance(one, Filed)}
        missing = [source.title for source in proposal.sources if source.digest not in known]
        if missing:
            raise NotRepeatableError(
                f"the proposal is merged from others, and {', '.join(missing)} do not lie in {self.reports}: say where "
                "(--reports)"
            )
        return [known[source.digest] for source in proposal.sources]

    def _percentiles(self, proposal: Proposal) -> Drift:
        """Ask a proposal on the scouts' percentiles, under its rule set; `drift` refuses unknown ones."""
        rules = _rules_of(proposal)
        if rules not in self._scouts:
            whole = self.archive.derive()  # as the report that made the proposal
            self._scouts[rules] = load(whole, start=self.start, end=self.end, rules=rules)
        return drift(proposal, self._scouts[rules])

    def _exchange(self, proposal: Proposal) -> Drift:
        """Ask a proposal on the importance of the network weight; only metrics from after its own data count."""
        since = data_end(proposal)
        begin = max((at for at in (self.start, since) if at is not None), default=None)
        later = read_links(self.archive.path, start=begin, end=self.end)
        if since is None and proposal.digests.archive in later.digests:
            raise InsufficientDataError("the archive is the one that the proposal was made from")
        evidence = later.evidence.get("metrics")
        if evidence is None:
            missing = f"{self.archive.path} has no metrics of links (network_matrix)"
            raise InsufficientDataError(later.refused.get("metrics", missing))
        rules = _rules_of(proposal)
        return exchange_drift(proposal, evidence, acting=later.settings, rules=rules)

    def _thresholds(self, proposal: Proposal) -> Drift:
        """Ask a proposal on thresholds: the archive is simulated, if the simulation gives back what was seen there."""
        period = self._later_period(proposal)
        if short := too_short(self.archive, {"later": period}):
            raise InsufficientDataError(short[0])
        config = settings_at(self.archive, period.end)
        rules = _rules_of(proposal)
        simulation = of_archive(self.archive, [period], rules=rules)
        validation = simulation.validate(period)
        return thresholds_drift(proposal, simulation, period, config=config, validation=validation)

    def _later_period(self, proposal: Proposal) -> Period:
        """Return the part of the archive that a proposal was not made from.

        Raises:
            InsufficientDataError: There is none, or no jobs.
        """
        path, window = self.archive.path, self.archive.manifest.window
        if window is None:
            raise InsufficientDataError(f"{path} has no jobs")
        first, last = (datetime.fromisoformat(text) for text in window)
        since = data_end(proposal)
        start, end = self.start or first, self.end or last
        period = Period(start if since is None else max(start, since), end)
        if period.start >= period.end:
            raise InsufficientDataError(
                f"{path} ends {period.end}, before what the proposal was not made from begins ({period.start})"
            )
        return period


def _rules_of(proposal: Proposal) -> RuleSetName:
    """Return the rule set that a proposal was made under, ``document`` where it names none."""
    named = (proposal.digests.rules or "").split(" ")[0]
    return "production" if named == "production" else "document"
