"""What a calibration found out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from brokerlab.calibrate.thresholds.choice import Choice, Limits
from brokerlab.calibrate.thresholds.intervals import Draw
from brokerlab.calibrate.thresholds.outcomes import Period
from brokerlab.calibrate.thresholds.proof import Proof
from brokerlab.calibrate.thresholds.refine import Box
from brokerlab.calibrate.thresholds.runs import Missing
from brokerlab.calibrate.thresholds.settings import Space
from brokerlab.calibrate.thresholds.sweep import Replications
from brokerlab.calibrate.thresholds.verdict import Verdict
from brokerlab.gdpconfig.proposal import Proposal

ORDER = {"change": 0, "no_answer": 1, "keep": 2}
"""Verdicts, the most consequential first."""
Case = Literal[
    "change", "unchanged", "keep", "refuted", "invalid", "nothing", "capacity", "unknown"
]
"""Why an answer is what it is.

change: a choice was proven; unchanged: no value tried changes any decision; keep: no setting is provably better within the
limits; refuted: a choice was not proven; invalid: the simulation does not give back what was seen; nothing: no key both
changes decisions and can be simulated; capacity: the answer is another where queues of unknown capacity have more slots;
unknown: anything else, the verdict says it.
"""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Everything that was found out about some keys.

    Attributes:
        space: The keys, the configuration and the values tried.
        calibration: Period of the choice.
        proof_period: Period of the proof.
        objective: Name of the quantity that is to be small.
        limits: What was allowed to get worse.
        draw: How intervals were made.
        relevant: Smallest reduction that is worth a change, as a part of the current value.
        replications: How often settings were simulated.
        screened: One row per key, see :func:`.screening.screen`; empty without an archive.
        valid: Whether the simulation gives back what was seen; null where the caller vouched for it.
        why: What the validation said; empty without one.
        tried: One row per setting and quantity, see :meth:`.sweep.Sweep.table`; empty if nothing was simulated.
        boxes: The keys that matter and where they were searched together.
        n_trials: Trials of that search.
        pareto: See :func:`.pareto.front`.
        choices: Of the calibration period: one for all keys together, or one per key.
        proofs: Of the choices that change something.
        verdicts: One per choice.
        missing: Simulations that could not be made.
        n_simulated: Replications simulated now.
        n_kept: Replications found in the store.
        seconds: Time spent simulating [s].
        seed: Of everything.
        unknown: Queues of which only a lower bound of the slots is known.
        depends: Whether an answer was refused since it is another where these have more slots.
    """

    space: Space
    calibration: Period
    proof_period: Period
    objective: str
    limits: Limits
    draw: Draw
    relevant: float
    replications: Replications
    screened: pl.DataFrame
    valid: bool | None
    why: str
    tried: pl.DataFrame
    boxes: tuple[Box, ...]
    n_trials: int
    pareto: pl.DataFrame
    choices: tuple[Choice, ...]
    proofs: tuple[Proof, ...]
    verdicts: tuple[Verdict, ...]
    missing: tuple[Missing, ...]
    n_simulated: int
    n_kept: int
    seconds: float
    seed: int
    unknown: tuple[str, ...] = ()
    depends: bool = False

    @property
    def verdict(self) -> Verdict:
        """The most consequential one."""
        return min(self.verdicts, key=lambda one: ORDER[one.kind])

    @property
    def case(self) -> Case:
        """Why the answer is what it is, see `Case`."""
        chosen = self.choices[0] if self.choices else None
        if self.verdict.kind == "change":
            return "change"
        if self.depends and self.verdict.kind == "no_answer":
            return "capacity"
        if chosen is not None and chosen.status == "keep":
            return "unchanged" if chosen.candidates.is_empty() else "keep"
        if chosen is not None and self.verdict.kind == "keep":
            return "refuted"
        if self.valid is False:
            return "invalid"
        return "nothing" if self.tried.is_empty() else "unknown"

    @property
    def proposal(self) -> Proposal | None:
        """The document of the verdict; null without an answer."""
        return self.verdict.proposal

    @property
    def proof(self) -> Proof | None:
        """The proof of the verdict; null if nothing was chosen."""
        return next((one for one in self.proofs if one.setting == self.verdict.setting), None)

    @property
    def tested(self) -> Proof | None:
        """The proof of the verdict, else of the first choice that was not proven; null if nothing was chosen."""
        return self.proof or next(iter(self.proofs), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the facts that are not tables."""
        return {
            "verdict": self.verdict.to_dict(),
            "verdicts": [one.to_dict() for one in self.verdicts],
            "keys": [key.name for key in self.space.keys],
            "current": {key.name: key.current for key in self.space.keys},
            "objective": self.objective,
            "limits": {**self.limits.values(), "on": self.limits.on},
            "alpha": self.draw.alpha,
            "relevant": self.relevant,
            "valid": self.valid,
            "validation": self.why,
            "calibration": [at.isoformat() for at in self.calibration],
            "proof": [at.isoformat() for at in self.proof_period],
            "n_settings": self.tried["setting"].n_unique() if self.tried.height else 0,
            "n_trials": self.n_trials,
            "n_simulated": self.n_simulated,
            "n_kept": self.n_kept,
            "missing": [f"{one.config}: {one.reason}" for one in self.missing],
            "refined": [box.to_dict() for box in self.boxes],
            "capacity_unknown": list(self.unknown),
            "seed": self.seed,
        }
