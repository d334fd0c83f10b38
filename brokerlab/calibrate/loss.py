"""The stated loss: what a setting costs, in core-hours per core-hour of useful work, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from brokerlab.calibrate.parameters import parameter_named
from brokerlab.errors import ConfigError, nearest

COMPONENTS = ("over", "killed_coreh", "n_exceed", "n_lost", "unreachable_coreh")
"""What is weighed, in this order: see :class:`LossWeights`."""

WHY: dict[str, dict[str, str]] = {
    "over": {
        "ramcount": (
            "A grid slot offers 2 GB per core, so a GB-hour reserved and not used can keep half a "
            "core-hour from other work wherever memory is what fills the node."
        ),
        "cputime": (
            "A walltime limit reserves nothing that others could use once the job ends; a limit too "
            "long costs only in backfilling and draining, taken as a twentieth of the time."
        ),
        "outdiskcount": (
            "A slot offers about 20 GB of scratch per core for a job of an hour, so a GB set aside and "
            "not used can keep a twentieth of a core-hour from other work."
        ),
    },
    "killed_coreh": {
        "": "A core-hour burnt by a killed attempt does no work: it counts as itself, the unit of the loss."
    },
    "n_exceed": {
        "": (
            "Each kill costs a second brokerage and a second wait in a queue, about half an hour at the "
            "median, for one core at least."
        )
    },
    "n_lost": {
        "": (
            "A job killed in every attempt stops its task until a person looks at it: ten core-hours "
            "stand for that."
        )
    },
    "unreachable_coreh": {
        "": (
            "Work that only a part of the slots can take waits longer; without a model of waiting a "
            "tenth of its core-hours is charged for the share of slots that cannot take it."
        )
    },
}


@dataclass(frozen=True)
class LossWeights:
    """Weights of the loss, all in core-hours; every one carries a sentence of justification.

    ``loss = (over * amount + killed_coreh * core-hours + n_exceed * kills + n_lost * losses
    + unreachable_coreh * core-hours that cannot run everywhere) / core-hours of useful work``

    Attributes:
        over: Per unit reserved and not used by the attempt that finished (GB-hour, core-hour or GB).
        killed_coreh: Per core-hour of a killed attempt.
        n_exceed: Per killed first attempt.
        n_lost: Per job killed in every attempt.
        unreachable_coreh: Per core-hour of work times the share of slots that cannot take its task.

    Example:
        >>> LossWeights.default("ramcount").over
        0.5
    """

    over: float
    killed_coreh: float = 1.0
    n_exceed: float = 0.5
    n_lost: float = 10.0
    unreachable_coreh: float = 0.1

    def __post_init__(self) -> None:
        """Refuse weights that are negative, not finite, or all 0."""
        values = self.to_dict()
        bad = [f"{k}={v}" for k, v in values.items() if not 0 <= v < float("inf")]
        if bad or not any(values.values()):
            raise ConfigError(
                f"loss weights {', '.join(bad) or 'all 0'}: allowed are finite numbers of at least 0, "
                "one of them above 0"
            )

    @classmethod
    def default(cls, parameter: str, **weights: float) -> LossWeights:
        """Return the default weights of a parameter, single ones replaced.

        Raises:
            ConfigError: Unknown weight or parameter.
        """
        over = {"ramcount": 0.5, "cputime": 0.05, "outdiskcount": 0.05}[
            parameter_named(parameter).name
        ]
        unknown = [
            f"{name}: {nearest(name, COMPONENTS)}" for name in weights if name not in COMPONENTS
        ]
        if unknown:
            raise ConfigError("no such loss weight: " + "; ".join(unknown))
        return cls(**{"over": over, **weights})

    def scaled(self, name: str, factor: float) -> LossWeights:
        """Return the weights with one of them multiplied."""
        return replace(self, **{name: getattr(self, name) * factor})

    def to_dict(self) -> dict[str, float]:
        """Return every weight by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def why(self, parameter: str) -> Mapping[str, str]:
        """Return the sentence that justifies the default of every weight."""
        return {name: WHY[name].get(parameter, WHY[name].get("", "")) for name in COMPONENTS}
