"""What a calibration of thresholds may be asked for: the one place where its parameters are named, bounded and described."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from brokerlab.calibrate.thresholds.keys import threshold_of
from brokerlab.calibrate.thresholds.outcomes import LIMITS, QUANTITIES
from brokerlab.errors import ConfigError, nearest
from brokerlab.times import duration_us


class Options(BaseModel):
    """Keys, values to try, objective, limits, and how often is simulated.

    Reports take over these fields, so that their defaults are plain values; impossible ones raise
    ``pydantic.ValidationError``, all at once.

    Example:
        >>> Options(keys=["NQUEUED_SAT_CAP"], limits={"moved_pct": None}).allowed
        {'lost_pct': 1.0, 'unfairness': 0.02, 'unfinished': 0.01}
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    keys: list[str] = Field([], description="keys to look at, empty for all thresholds [gdpconfig key]")  # fmt: skip
    points: int = Field(
        5,
        ge=2,
        description="values per key between its guard rails, the current one not counted [1]",
    )
    objective: str = Field(
        "turnaround_h", description="what is to be small, or waiting_h, moved_tb... [name]"
    )
    limits: dict[str, float | None] = Field(
        {},
        description="limits other than the defaults, by name, such as moved_pct; null for none [%]",
    )
    relevant: float = Field(
        0.05, gt=0, le=1, description="smallest effect that matters, part of what is now [1]"
    )
    alpha: float = Field(0.05, gt=0, le=0.5, description="intervals hold all but this part [1]")
    replications: int = Field(4, ge=2, description="simulations of every setting [1]")
    most_replications: int = Field(
        8, ge=2, description="simulations of settings that are judged [1]"
    )
    most_keys: int = Field(3, ge=1, description="keys of that search at most [1]")
    rounds: int = Field(3, ge=0, description="halvings of the steps beside the best value [1]")
    n_boot: int = Field(2000, ge=20, description="bootstrap replicates [1]")
    seed: int = Field(1, ge=0, description="seed of simulations, bootstrap and search")
    cycle: str = Field(
        "", description="from one brokerage to the next, empty: as the archive shows [duration]"
    )
    capacity: str = Field(
        "", description="file of known slots (panda_queue, slots, perhaps ts), empty: none [path]"
    )
    capacity_most: float = Field(
        4.0,
        ge=1,
        description="most slots of a queue that was never full, 1: none more than seen [times its busiest time]",
    )
    workers: int = Field(2, ge=1, description="processes for simulations, at most [1]")

    @field_validator("keys")
    @classmethod
    def _known_keys(cls, keys: list[str]) -> list[str]:
        problems = []
        for name in keys:
            try:
                threshold_of(name)
            except ConfigError as problem:
                problems.append(str(problem))
        problems += [f"{name!r} is given twice" for name in dict.fromkeys(keys) if keys.count(name) > 1]  # fmt: skip
        if problems:
            raise ValueError("; ".join(problems))
        return keys

    @field_validator("objective")
    @classmethod
    def _known_objective(cls, name: str) -> str:
        names = [quantity.name for quantity in QUANTITIES]
        if name not in names:
            raise ValueError(nearest(name, names))
        return name

    @field_validator("limits")
    @classmethod
    def _known_limits(cls, limits: dict[str, float | None]) -> dict[str, float | None]:
        known = list(LIMITS)
        problems = [f"unknown {name!r}: {nearest(name, known)}" for name in limits if name not in known]  # fmt: skip
        problems += [f"{name}={value}: 0 or more, or none" for name, value in limits.items() if value is not None and not value >= 0]  # fmt: skip
        if problems:
            raise ValueError("; ".join(problems))
        return limits

    @field_validator("cycle")
    @classmethod
    def _a_duration(cls, text: str) -> str:
        if text:
            try:
                duration_us(text, "it")
            except ConfigError as problem:
                raise ValueError(str(problem)) from None
        return text

    @model_validator(mode="after")
    def _more_at_most(self) -> Self:
        if self.replications > self.most_replications:
            raise ValueError(
                f"replications={self.replications} is more than most_replications={self.most_replications}"
            )
        return self

    @property
    def allowed(self) -> dict[str, float]:
        """What may get worse, and by how much: the limits that there are."""
        most = {name: limited.most for name, limited in LIMITS.items()} | self.limits
        return {name: value for name, value in most.items() if value is not None}
