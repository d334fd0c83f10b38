"""Which settings matter, with the columns that the pages of before read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from brokerlab.brokerage.replay import Replay
from brokerlab.brokerage.studies import key_effects
from brokerlab.brokerage.studies.key_effects import JOBS, WORTH
from brokerlab.brokerage.studies.kinds import PRODUCTION, JobDecisions, Kind
from brokerlab.errors import ConfigError

__all__ = ["JOBS", "WORTH"]

REASONS = {
    "no_nuclei": "the archive cannot tell the choice of the nucleus",
    "not_read": "no check and no weight reads it under this rule set and these settings",
}
ENDS = {"shift_lo": "lo", "shift_hi": "hi"}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the keys would change; see `key_effects.KeyEffects`."""

    keys: pl.DataFrame
    curves: pl.DataFrame
    skipped: dict[str, str]


def check_keys(keys: Iterable[str], kind: Kind = PRODUCTION) -> None:
    """Refuse keys that the catalogue does not know for a brokerage, all at once."""
    try:
        key_effects.check_keys(keys, kind)
    except ConfigError as problem:
        raise ConfigError(f"keys: {problem}") from None


def studied(
    decisions: JobDecisions,
    nuclei: Replay | None,
    keys: Sequence[str],
    *,
    points: int,
    n_boot: int,
    seed: int,
    replay: Replay | None = None,
) -> Settings:
    """Try every key."""
    effects = key_effects.which_keys_matter(
        decisions, keys, nuclei=nuclei, replay=replay, points=points, n_boot=n_boot, seed=seed
    )
    return Settings(
        keys=effects.keys.rename(ENDS),
        curves=effects.curves.rename(ENDS),
        skipped={key: REASONS[reason] for key, reason in effects.skipped.iter_rows()},
    )
