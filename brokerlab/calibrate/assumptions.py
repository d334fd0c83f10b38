"""What a back-test takes for granted, in one frozen object that is part of its provenance."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from brokerlab.calibrate.estimates import Rule
from brokerlab.calibrate.sample import KilledAs
from brokerlab.calibrate.scout_sets import ScoutsUsed
from brokerlab.errors import ConfigError
from brokerlab.scouts.rules import ScoutRules


@dataclass(frozen=True)
class Assumptions:
    """Everything a back-test takes for granted; part of its provenance.

    Attributes:
        rules: Rule set of the estimate.
        rule: ``percentile`` (deployed), or ``conformal`` (rank = promised coverage in per cent).
        scouts_used: ``half``: those finished at the first trigger; ``all``.
        trigger_period_s: The first trigger is looked at only every so many seconds (600 deployed), so
            that more scouts are in; 0: at once, the fewest scouts.
        min_scored: Fewest other jobs of a task that is scored.
        min_scouts: Fewest scouts with a value.
        compensation: Factor on memory requests, 1 in the document; 0.95 and 0.90 were seen deployed.
        retry_factors: How much more each retry gets, as multiples of the first request.
        killed_after: Share of its run after which a job over its request is killed (memory, disk); 1:
            the killed attempt's whole use is waste. A job over its walltime limit is killed at it.
        killed_as: How jobs enter that were killed and not retried: their use as a ``lower_bound`` of
            their need, or ``exclude``.
        ram_min_mb: SCOUT_RAMCOUNT_MIN [MB]; None: no minimum.
        disk_allowance_mb: What a job may write beyond its expected output [MB]: the 300 MB that every
            request of disk adds for the work directory.
        confidence: Two-sided, of every interval.
    """

    rules: ScoutRules = field(default_factory=ScoutRules)
    rule: Rule = "percentile"
    scouts_used: ScoutsUsed = "half"
    trigger_period_s: int = 0
    min_scored: int = 20
    min_scouts: int = 1
    compensation: float = 1.0
    retry_factors: tuple[float, ...] = (2.0,)
    killed_after: float = 1.0
    killed_as: KilledAs = "lower_bound"
    ram_min_mb: int | None = None
    disk_allowance_mb: float = 300.0
    confidence: float = 0.95

    def __post_init__(self) -> None:
        """Refuse impossible values, all at once."""
        checks = {
            "rule": (self.rule in ("percentile", "conformal"), "percentile or conformal"),
            "scouts_used": (self.scouts_used in ("half", "all"), "half or all"),
            "killed_as": (self.killed_as in ("lower_bound", "exclude"), "lower_bound or exclude"),
            "trigger_period_s": (self.trigger_period_s >= 0, "at least 0"),
            "min_scored": (self.min_scored >= 1, "at least 1"),
            "min_scouts": (self.min_scouts >= 1, "at least 1"),
            "compensation": (0 < self.compensation <= 2, "above 0, at most 2"),
            "killed_after": (0 <= self.killed_after <= 1, "0 to 1"),
            "disk_allowance_mb": (self.disk_allowance_mb >= 0, "at least 0"),
            "confidence": (0.5 <= self.confidence < 1, "0.5 to below 1"),
        }
        wrong = [
            f"{name}={getattr(self, name)!r}: allowed is {allowed}"
            for name, (good, allowed) in checks.items()
            if not good
        ]
        if wrong:
            raise ConfigError("back-test assumptions: " + "; ".join(wrong))

    def to_dict(self) -> dict[str, Any]:
        """Return every assumption by name, the rule set spelled out."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**values, "rules": self.rules.to_dict()}
