"""What can be set of a scout parameter, at what price, and what a back-test of it takes for granted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, NamedTuple

import polars as pl

from brokerlab.calibrate.percentiles import requests
from brokerlab.errors import ConfigError, nearest
from brokerlab.gdpconfig import Config
from brokerlab.numerics import FloatArray
from brokerlab.scouts.rules import ScoutRules
from brokerlab.units import KB

MINIMUM_KEY = "SCOUT_RAMCOUNT_MIN"


class Setting(NamedTuple):
    """One setting that the deployed system can have.

    Attributes:
        rank: Percentile rank.
        margin_pct: Margin [%].
        minimum_mb: SCOUT_RAMCOUNT_MIN [MB], of ramcount only; null: none.
    """

    rank: int
    margin_pct: int
    minimum_mb: int | None = None

    @property
    def pair(self) -> tuple[int, int]:
        """Rank and margin."""
        return self.rank, self.margin_pct

    def words(self, parameter: Parameter, *, minimum: bool = False) -> str:
        """Return the setting in words, with its minimum if that is asked for.

        Example:
            >>> Setting(75, 10, 500).words(PARAMETERS["ramcount"], minimum=True)
            'rank 75, margin 10 %, minimum 500 MB'
            >>> Setting(95, 50).words(PARAMETERS["cputime"])
            'rank 95'
        """
        parts = [f"rank {self.rank}"]
        if parameter.margin_key is not None:
            parts.append(f"margin {self.margin_pct} %")
        if minimum and parameter.name == "ramcount":
            least = self.minimum_mb
            parts.append("no minimum" if least is None else f"minimum {least} MB")
        return ", ".join(parts)


@dataclass(frozen=True)
class Limit:
    """The limit that a parameter becomes.

    Attributes:
        cause: What a kill at it is called.
        column: Of ``jobs``: what a job was given.
        used: Of the quantities, in the unit of ``column``.
    """

    cause: Literal["memory", "walltime"]
    column: str
    used: pl.Expr


@dataclass(frozen=True, kw_only=True, eq=False)
class Parameter:
    """One scout parameter: what it trades, what can be set, and how outcomes under a setting are made.

    Attributes:
        name: Task column that scouts write.
        rank_key: gdpconfig key of the percentile rank; None where the rank is fixed in the code.
        margin_key: gdpconfig key of the margin; None where the margin is fixed in the code.
        rank: Deployed percentile rank.
        margin_pct: Deployed margin [%]; the factor 1.5 of cputime is a margin of 50.
        margins: Margins of the default grid [%].
        amount: Suffix of the columns that hold what is reserved, used and wasted.
        amount_unit: The same for people.
        thing: What is reserved, for sentences.
        value_unit: Unit of the estimate in ``by_task``.
        over: Weight of what is reserved and not used [core h per unit]; ``why_over`` justifies it.
        reads: Columns of the quantities, besides those that all parameters read.
        value: What a scout says; null: nothing.
        scorable: Which jobs can be scored: everything their request and use are made of is known.
        told: What scouts write under a rank, margins and minima.
        line: What jobs ask for under an estimate.
        offered: What a queue offers, after a base time [s]; null: no limit.
        limit: What jobs are killed at; None: nothing that is recorded.
        killed_at_limit: A killed attempt ends when the limit is reached.
        lacks: What a job that cannot be scored lacks, for a caveat.
        at_zero: What follows from an estimate of 0, for a caveat.

    Source: scouts.md 5.1 to 5.3; gdpconfig.csv.
    """

    name: str
    rank_key: str | None
    margin_key: str | None
    rank: int
    margin_pct: int
    margins: tuple[int, ...]
    amount: str
    amount_unit: str
    thing: str
    value_unit: str
    over: float
    why_over: str
    reads: tuple[str, ...]
    value: pl.Expr
    scorable: pl.Expr
    told: Callable[..., FloatArray]
    line: Callable[[pl.DataFrame, Assumptions], requests.Line]
    offered: Callable[[float], pl.Expr]
    limit: Limit | None = None
    killed_at_limit: bool = False
    lacks: str
    at_zero: str

    def keys(self, setting: Setting) -> dict[str, int]:
        """Return the keys of rank and margin that exist, with the values of a setting."""
        pairs = zip((self.rank_key, self.margin_key), setting.pair, strict=True)
        return {key: value for key, value in pairs if key is not None}


_RUN = pl.col("duration_s").is_not_null() & (pl.col("cores") > 0)
PARAMETERS = {
    p.name: p
    for p in (
        Parameter(
            name="ramcount",
            rank_key="SCOUT_RAMCOUNT_RANK",
            margin_key="SCOUT_RAMCOUNT_MARGIN",
            rank=75,
            margin_pct=10,
            margins=tuple(range(31)),
            amount="gbh",
            amount_unit="GB h",
            thing="memory",
            value_unit="MB",
            over=0.5,
            why_over=(
                "A grid slot offers 2 GB per core, so a GB-hour reserved and not used can keep half a "
                "core-hour from other work wherever memory is what fills the node."
            ),
            reads=("ram_kb", "ram_per_core", "maxpss_kb"),
            value=pl.col("ram_kb"),
            scorable=_RUN & (pl.col("maxpss_kb") > 0),
            told=requests.ramcount_mb,
            line=requests.memory,
            offered=requests.offered_memory,
            limit=Limit("memory", "minramcount", pl.col("maxpss_kb") / KB),
            lacks="maxpss, duration or cores",
            at_zero="their requests are the base alone",
        ),
        Parameter(
            name="cputime",
            rank_key="SCOUT_CPUTIME_RANK",
            margin_key=None,
            rank=95,
            margin_pct=50,
            margins=(50,),
            amount="coreh",
            amount_unit="core h",
            thing="walltime limit",
            value_unit="mHS06 s per event",
            over=0.05,
            why_over=(
                "A walltime limit reserves nothing that others could use once the job ends; a limit too "
                "long costs only in backfilling and draining, taken as a twentieth of the time."
            ),
            reads=("cputime_hs06s", "cputime_eligible", "corepower", "n_events"),
            value=pl.when("cputime_eligible").then("cputime_hs06s"),
            scorable=_RUN & pl.col("n_events").is_not_null() & (pl.col("corepower") > 0),
            told=requests.cputime_milli,
            line=requests.walltime,
            offered=requests.offered_time,
            limit=Limit("walltime", "maxwalltime", pl.col("duration_s")),
            killed_at_limit=True,
            lacks="times, events or core power",
            at_zero="their limits are the base time alone",
        ),
        Parameter(
            name="outdiskcount",
            rank_key=None,
            margin_key=None,
            rank=75,
            margin_pct=0,
            margins=(0,),
            amount="gb",
            amount_unit="GB",
            thing="output disk",
            value_unit="kB per event or per MB of input",
            over=0.05,
            why_over=(
                "A slot offers about 20 GB of scratch per core for a job of an hour, so a GB set aside and "
                "not used can keep a twentieth of a core-hour from other work."
            ),
            reads=("outdisk_bytes", "outdisk_per_event", "outputfilebytes", "n_events", "input_mb"),
            value=pl.col("outdisk_bytes"),
            scorable=_RUN
            & pl.when("outdisk_per_event").then("n_events").otherwise("input_mb").is_not_null()
            & (pl.col("outputfilebytes") > 0),
            told=requests.outdisk_kb,
            line=requests.disk,
            offered=requests.offered_disk,
            lacks="output, events or input size",
            at_zero="less than 1 kB per event is rounded down, only the allowance is left",
        ),
    )
}


def parameter_named(name: str) -> Parameter:
    """Return the parameter of that name.

    Raises:
        ConfigError: No such parameter.

    Example:
        >>> parameter_named("ramcount").rank
        75
    """
    if name not in PARAMETERS:
        raise ConfigError(f"parameter={name!r}: {nearest(name, PARAMETERS)}")
    return PARAMETERS[name]


def current_setting(config: Config, parameter: str) -> Setting:
    """Return the rank, margin [%] and minimum [MB] that act in a configuration; what the code fixes as it is.

    Raises:
        ConfigError: No such parameter, or a value that is no whole number.

    Example:
        >>> current_setting(Config.empty(), "ramcount")
        Setting(rank=75, margin_pct=10, minimum_mb=None)
        >>> current_setting(Config.empty(), "cputime").pair
        (95, 50)
    """
    chosen = parameter_named(parameter)
    rank = chosen.rank if chosen.rank_key is None else _whole(config, chosen.rank_key)
    margin = chosen.margin_pct if chosen.margin_key is None else _whole(config, chosen.margin_key)
    return Setting(rank, margin, config.get(MINIMUM_KEY) if parameter == "ramcount" else None)


def _whole(config: Config, key: str) -> int:
    """Return the whole number that acts for a key."""
    value = config.get(key)
    if not isinstance(value, int | float) or int(value) != value:
        raise ConfigError(f"gdpconfig.{key}: found {value!r}, allowed are whole numbers")
    return int(value)


COMPONENTS = ("over", "killed_coreh", "n_exceed", "n_lost", "unreachable_coreh")
"""What is weighed, in this order: see :class:`LossWeights`."""

WHY = {
    "killed_coreh": "A core-hour burnt by a killed attempt does no work: it counts as itself, the unit of the loss.",
    "n_exceed": (
        "Each kill costs a second brokerage and a second wait in a queue, about half an hour at the "
        "median, for one core at least."
    ),
    "n_lost": (
        "A job killed in every attempt stops its task until a person looks at it: ten core-hours "
        "stand for that."
    ),
    "unreachable_coreh": (
        "Work that only a part of the slots can take waits longer; without a model of waiting a "
        "tenth of its core-hours is charged for the share of slots that cannot take it."
    ),
}
"""What justifies the default of each weight that is the same for all parameters."""


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
        over = parameter_named(parameter).over
        unknown = [
            f"{name}: {nearest(name, COMPONENTS)}" for name in weights if name not in COMPONENTS
        ]
        if unknown:
            raise ConfigError("no such loss weight: " + "; ".join(unknown))
        return cls(**{"over": over, **weights})

    def to_dict(self) -> dict[str, float]:
        """Return every weight by name."""
        return asdict(self)

    def why(self, parameter: str) -> Mapping[str, str]:
        """Return the sentence that justifies the default of every weight."""
        return {"over": parameter_named(parameter).why_over, **WHY}


ScoutsUsed = Literal["half", "all"]
KilledAs = Literal["lower_bound", "exclude"]


@dataclass(frozen=True)
class Assumptions:
    """Everything a back-test takes for granted; part of its provenance.

    Attributes:
        rules: Rule set of the estimate.
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
        disk_allowance_mb: What a job may write beyond its expected output [MB]: the 300 MB that every
            request of disk adds for the work directory.
    """

    rules: ScoutRules = field(default_factory=ScoutRules)
    scouts_used: ScoutsUsed = "half"
    trigger_period_s: int = 0
    min_scored: int = 20
    min_scouts: int = 1
    compensation: float = 1.0
    retry_factors: tuple[float, ...] = (2.0,)
    killed_after: float = 1.0
    killed_as: KilledAs = "lower_bound"
    disk_allowance_mb: float = 300.0

    def __post_init__(self) -> None:
        """Refuse impossible values, all at once."""
        checks = {
            "scouts_used": (self.scouts_used in ("half", "all"), "half or all"),
            "killed_as": (self.killed_as in ("lower_bound", "exclude"), "lower_bound or exclude"),
            "trigger_period_s": (self.trigger_period_s >= 0, "at least 0"),
            "min_scored": (self.min_scored >= 1, "at least 1"),
            "min_scouts": (self.min_scouts >= 1, "at least 1"),
            "compensation": (0 < self.compensation <= 2, "above 0, at most 2"),
            "killed_after": (0 <= self.killed_after <= 1, "0 to 1"),
            "disk_allowance_mb": (self.disk_allowance_mb >= 0, "at least 0"),
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
