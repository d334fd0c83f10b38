"""The steps of a calibration, one after the other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from brokerlab.calibrate.thresholds.choice import Choice, choose
from brokerlab.calibrate.thresholds.options import Options
from brokerlab.calibrate.thresholds.outcomes import Period
from brokerlab.calibrate.thresholds.pareto import front
from brokerlab.calibrate.thresholds.proof import Proof, prove
from brokerlab.calibrate.thresholds.refine import polish, refine, that_matter
from brokerlab.calibrate.thresholds.result import Calibration
from brokerlab.calibrate.thresholds.runs import Runs
from brokerlab.calibrate.thresholds.settings import Setting, Space
from brokerlab.calibrate.thresholds.sweep import Sweep
from brokerlab.calibrate.thresholds.verdict import (
    Case,
    Verdict,
    judged,
    of_capacity,
    refused,
    subject,
)

if TYPE_CHECKING:
    from brokerlab.archive import Archive

Propose = Literal["together", "each"]
LATER = 1_000_000
"""Seeds of the proof lie so far from those of the choice."""


@dataclass(frozen=True)
class Study:
    """A calibration under way.

    Attributes:
        options: What was asked for.
        propose: One proposal for all keys ``together``, or one for ``each``.
        periods: Calibration and proof.
        space: The keys, the configuration and the values to try.
        screened: See :func:`.screening.screen`; null: not screened, every key is open.
        created_at: Of the proposal.
        archive: Null: there is none.
    """

    options: Options
    propose: Propose
    periods: tuple[Period, Period]
    space: Space
    screened: pl.DataFrame | None
    created_at: datetime
    archive: Archive | None

    @property
    def open_keys(self) -> tuple[str, ...]:
        """Names of the keys that are worth simulating: they change decisions, and the simulator holds these."""
        names = [key.name for key in self.space.keys]
        if self.screened is None:
            return tuple(names)
        open_ = set(self.screened.filter("simulate")["key"])
        return tuple(name for name in names if name in open_)

    def unsimulated(self) -> Calibration:
        """Return what is known without any simulation: no key is worth one."""
        names = [key.name for key in self.space.keys]
        about = subject(self.space, names)
        if self.screened is None or not self.screened["state"].is_in(["changes nothing"]).all():
            told = "No answer: none of the keys both changes decisions and can be judged by the simulator; see the screen"
            return self._result(None, (), (Verdict("no_answer", f"{told}.", about, Setting()),))
        why = "No value between the guard rails that was tried changes any decision of the calibration period."
        choice = Choice("keep", Setting(), why, pl.DataFrame(), _NO_SENSITIVITY)
        return self._result(None, (choice,), (judged(self._case(tuple(names), ""), choice, None),))

    def refused(self, reason: str) -> Calibration:
        """Return what is known where the simulation is not to be believed."""
        return self._result(None, (), (refused(self.space, reason),), valid=False, why=reason)

    def simulated(self, runs: Runs, why: str | None) -> Calibration:
        """Sweep, refine, choose and prove.

        Args:
            runs: The simulations.
            why: What the validation said; null: there was none.
        """
        sweep = self._sweep(runs, self.periods[0], self.options.seed)
        for name in self.open_keys:
            sweep.try_all(self.space.single(name))
        boxes = that_matter(
            sweep, self.options.allowed, most=self.options.most_keys, relevant=self.options.relevant
        )
        folder = None if runs.store is None else runs.store.folder / "searches"
        n_trials = self._refined(sweep, boxes, folder)
        sweep.try_all(list(sweep.found))  # those that refinement made rivals get their replications
        choices = self._choices(sweep)
        proofs = self._proofs(runs, [one for _, one in choices if one.status == "change"])
        verdicts = tuple(
            judged(self._case(names, why or ""), one, proofs.get(one.setting))
            for names, one in choices
        )
        return self._result(
            sweep, tuple(one for _, one in choices), verdicts, tuple(proofs.values()),
            boxes=tuple(boxes), n_trials=n_trials, valid=None if why is None else True, why=why or "",
        )  # fmt: skip

    def over_range(self, found: Calibration, runs: Runs, unknown: tuple[str, ...]) -> Calibration:
        """Let only those answers stand that are the same where queues of unknown capacity have more slots.

        A change stands if it is proven there, too; a keep, if the same question is answered by a keep there.

        Args:
            found: With as many slots as were seen.
            runs: Simulations with more.
            unknown: Queues whose capacity is unknown.
        """
        changes = [
            choice
            for choice, one in zip(found.choices, found.verdicts, strict=True)
            if one.kind == "change"
        ]
        proofs = self._proofs(runs, changes)
        keeps = any(one.kind == "keep" for one in found.verdicts)
        others = self.simulated(runs, found.why).verdicts if keeps else found.verdicts
        verdicts = []
        for one, other in zip(found.verdicts, others, strict=True):
            proof = proofs.get(one.setting)
            holds = other.kind == one.kind if proof is None else proof.status == "proven"
            instead = other.sentence if proof is None else proof.reason
            holds = holds or one.kind == "no_answer"
            verdicts.append(one if holds else of_capacity(one, instead, unknown))
        return replace(
            found,
            verdicts=tuple(verdicts),
            unknown=unknown,
            depends=tuple(verdicts) != found.verdicts,
            n_simulated=found.n_simulated + runs.n_simulated,
            n_kept=found.n_kept + runs.n_kept,
            seconds=found.seconds + runs.seconds,
        )

    def _sweep(self, runs: Runs, period: Period, seed: int) -> Sweep:
        return Sweep(
            self.space,
            runs,
            period,
            self.options.objective,
            self.options.repeats,
            self.options.draw,
            seed,
        )

    def _refined(self, sweep: Sweep, boxes: list[Any], folder: Path | None) -> int:
        """Search: the keys that matter together, or each alone."""
        together = self.propose == "together"
        n_trials = 0
        for group in [boxes] if together else [[box] for box in boxes]:
            n_trials += refine(
                sweep, group, self.options.allowed,
                trials=self.options.trials, seed=self.options.seed, folder=folder,
            )  # fmt: skip
            polish(sweep, group, self.options.allowed, rounds=self.options.rounds)
        return n_trials

    def _choices(self, sweep: Sweep) -> list[tuple[tuple[str, ...], Choice]]:
        """Choose once for all keys, or once for each."""
        if self.propose == "together":
            return [(self.open_keys, self._fewest(sweep))]
        return [
            (
                (name,),
                choose(sweep.only(name), self.options.allowed, relevant=self.options.relevant),
            )
            for name in self.open_keys
        ]

    def _fewest(self, sweep: Sweep) -> Choice:
        """Choose for all keys; a key whose change does not lower the objective by its whole interval is left as it is, one after the other."""
        choice = choose(sweep, self.options.allowed, relevant=self.options.relevant)
        while len(choice.setting.values) > 1:
            fewer = self._without_idle(sweep, choice.setting)
            if fewer is None:
                break
            again = choose(
                sweep, self.options.allowed, relevant=self.options.relevant, prefer=fewer
            )
            if again.setting != fewer:
                break
            choice = again
        return choice

    def _without_idle(self, sweep: Sweep, setting: Setting) -> Setting | None:
        """Return a setting without the key that does least, if what it does may be nothing; null if each does something."""
        values = dict(setting.values)
        fewer = [Setting.of({k: v for k, v in values.items() if k != name}) for name in values]
        sweep.try_all(one for one in fewer if self.space.entries(one))
        told = {one: sweep.between(setting, one) for one in fewer if one in sweep.found}
        idle = {
            one: float(row["diff"])
            for one, row in told.items()
            if row is not None
            and (row["diff_lo"] is None or row["diff_lo"] <= 0 or row["diff"] < self.options.relevant / 2 * row["before"])
        }  # fmt: skip
        return min(idle, key=lambda one: idle[one], default=None)

    def _proofs(self, runs: Runs, choices: list[Choice]) -> dict[Setting, Proof]:
        if not choices:
            return {}
        later = self._sweep(runs, self.periods[1], self.options.seed + LATER)
        settings = [one.setting for one in choices]
        found = prove(later, settings, self.options.allowed, relevant=self.options.relevant)
        return dict(zip(settings, found, strict=True))

    def _case(self, names: tuple[str, ...], why: str) -> Case:
        return Case(
            space=self.space,
            keys=names,
            periods=self.periods,
            limits=self.options.allowed,
            draw=self.options.draw,
            objective=self.options.objective,
            relevant=self.options.relevant,
            seed=self.options.seed,
            created_at=self.created_at,
            archive_digest=None if self.archive is None else self.archive.digest,
            synthetic=self.archive is not None and self.archive.synthetic,
            why=why,
        )

    def _result(
        self,
        sweep: Sweep | None,
        choices: tuple[Choice, ...],
        verdicts: tuple[Verdict, ...],
        proofs: tuple[Proof, ...] = (),
        **more: Any,
    ) -> Calibration:
        runs = None if sweep is None else sweep.runs
        told: dict[str, Any] = {"boxes": (), "n_trials": 0, "valid": None, "why": "", **more}
        return Calibration(
            space=self.space,
            calibration=self.periods[0],
            proof_period=self.periods[1],
            objective=self.options.objective,
            limits=self.options.allowed,
            draw=self.options.draw,
            relevant=self.options.relevant,
            replications=self.options.repeats,
            screened=pl.DataFrame() if self.screened is None else self.screened,
            tried=pl.DataFrame() if sweep is None else sweep.table(),
            pareto=pl.DataFrame() if sweep is None else front(sweep),
            choices=choices,
            proofs=proofs,
            verdicts=verdicts,
            missing=() if runs is None else tuple(runs.missing),
            n_simulated=0 if runs is None else runs.n_simulated,
            n_kept=0 if runs is None else runs.n_kept,
            seconds=0.0 if runs is None else runs.seconds,
            seed=self.options.seed,
            **told,
        )


_NO_SENSITIVITY = pl.DataFrame(
    schema={"limit": pl.String, "factor": pl.Float64, "setting": pl.String}
)
