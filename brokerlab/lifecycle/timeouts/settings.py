"""The gdpconfig keys of the timeouts, looked up once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from brokerlab.gdpconfig import Config
from brokerlab.units import HOUR_S

HEARTBEAT = "HEARTBEAT_TIMEOUT_<workflow>"
ANALY_TIMEOUT = "ANALY_TIMEOUT[_<workinggroup>]"
RATIO = "FAST_REBRO_THRESHOLD_NQNR_RATIO"
FRACTION = "FAST_REBRO_THRESHOLD_NQUEUE_FRAC"
NQUEUE = "FAST_REBRO_THRESHOLD_NQUEUE_<gshare>"
PRODUCTION, ANALYSIS = "production", "analysis"


def number(config: Config, key: str) -> float:
    """Return a number of which 0 means the default (docs/rules/waiting.md 1, "0/undef")."""
    value: float = config.get(key) or Config.empty().get(key)
    return value


@dataclass(frozen=True)
class Limits:
    """Limits of the timeouts."""

    defined_s: int  # TIMEOUT_defined [s]
    holding_s: int  # TIMEOUT_holding [s]
    # workflow to its limit [s]; ``production`` and ``analysis`` always, others where they are defined
    heartbeat_s: Mapping[str, int]
    own: frozenset[str]  # workflows whose limit is set, not a default

    @classmethod
    def of(cls, config: Config, workflows: Iterable[str]) -> Limits:
        """Look the limits up (docs/rules/waiting.md 1)."""
        heartbeat, own = {}, set()
        for workflow in (PRODUCTION, ANALYSIS, *sorted(set(workflows))):
            result = config.found(HEARTBEAT, workflow=workflow)
            if result.value is not None:
                heartbeat[workflow] = result.value * HOUR_S
            if result.entry is not None:
                own.add(workflow)
        return cls(
            defined_s=int(number(config, "TIMEOUT_defined") * HOUR_S),
            holding_s=int(number(config, "TIMEOUT_holding") * HOUR_S),
            heartbeat_s=heartbeat,
            own=frozenset(own),
        )

    @property
    def further(self) -> tuple[str, ...]:
        """Workflows with a limit, besides the two that always have one."""
        return tuple(name for name in self.heartbeat_s if name not in (PRODUCTION, ANALYSIS))


def analysis_limit_s(config: Config, workinggroup: str | None) -> int:
    """Return after how long waiting analysis jobs are brokered again [s]; a group's limit of 0 is none."""
    general: int = config.get(ANALY_TIMEOUT, workinggroup=None)
    own = config.get(ANALY_TIMEOUT, workinggroup=workinggroup) if workinggroup else 0
    return (own or general) * HOUR_S


def share_threshold(config: Config, gshare: str) -> tuple[float, bool]:
    """Return the least queued jobs of a share at a queue [jobs], and whether that is for reporting only."""
    result = config.found(NQUEUE, gshare=gshare)
    stored = result.value if result.entry is not None else None
    least: float = stored or Config.empty().get(NQUEUE, gshare=gshare)
    return least, not stored
