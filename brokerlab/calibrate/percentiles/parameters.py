"""What can be set of a scout parameter, at what price, what its jobs then ask for, and what a back-test takes for granted.

A request is a straight line in the estimate x. The chapters write it as, before it is cut to whole numbers:

* ramcount: ``(x * C + base) * compensation`` MB, or ``x * compensation`` if the task's unit is not per core;
* cputime: ``x / 1000 * events / C / P / (eff / 100) + base`` seconds;
* outdiskcount: ``x * 1024 * events`` bytes (or per MB of input) and what a job may write besides.

Source: calibration.md 1; scouts.md sections 4, 5 and 15; production-jobs.md, checks on memory, walltime and scratch disk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from brokerlab.errors import ConfigError, nearest
from brokerlab.gdpconfig import Config
from brokerlab.numerics import FloatArray, IntArray, SortedGroups, interpolated
from brokerlab.scouts.parameters import whole_cputime, whole_outdisk_kb, whole_ram_mb
from brokerlab.scouts.quantities import DEFAULT_COREPOWER
from brokerlab.scouts.rules import ScoutRules
from brokerlab.slots import memory_per_core, positive
from brokerlab.units import GB, HOUR_S, KB, MB

# ---- what tasks are told: (n_tasks, n_margins) whole numbers of one rank; NaN without scouts


def ramcount_mb(
    scouts: SortedGroups, rank: int, margins: IntArray, least: FloatArray, rules: ScoutRules
) -> FloatArray:
    """Return RAM in whole MB; ``ram_min_per_job`` says whether margin and minimum act per job (docs/rules/scouts.md 5.2)."""
    if not rules.ram_min_per_job:
        return whole_ram_mb(scouts.percentile(rank)[:, None], margins, least)
    lower, upper, k = (each[:, None] for each in scouts.order_statistics(rank))
    low, high = (np.maximum(kb / KB * (1 + margins / 100), least) for kb in (lower, upper))
    whole = np.trunc(interpolated(low, high, k))
    return np.where(whole < 0, 1.0, whole)


def cputime_milli(
    scouts: SortedGroups, rank: int, margins: IntArray, _least: FloatArray, _rules: ScoutRules
) -> FloatArray:
    """Return mHS06 s per event."""
    return whole_cputime(scouts.percentile(rank)[:, None] * ((100 + margins) / 100))


def outdisk_kb(
    scouts: SortedGroups, rank: int, margins: IntArray, _least: FloatArray, rules: ScoutRules
) -> FloatArray:
    """Return kB per event or per MB of input; there is no margin."""
    whole = whole_outdisk_kb(scouts.percentile(rank)[:, None], rules)
    return np.broadcast_to(whole, (whole.size, margins.size))


# ---- what jobs ask for


@dataclass(frozen=True, kw_only=True)
class Line:
    """The requests of some jobs in the unit of their limit (MB of memory, s of walltime, bytes of output); all (n_jobs,).

    Attributes:
        asked: Estimates to requests, as the chapter writes it.
        slope: Request per unit of the estimate.
        offset: Request besides.
        amount: Amount reserved per unit of the request [amount unit].
        demand: What is asked of a queue per unit of the estimate: MB per core, HS06 s per core, MB.
        demand_besides: What is asked of a queue besides.
        base_s: Time that the queue must give besides [s].
    """

    asked: Callable[[FloatArray], FloatArray]
    slope: FloatArray
    offset: FloatArray
    used: FloatArray
    amount: FloatArray
    demand: FloatArray
    demand_besides: FloatArray
    base_s: FloatArray

    @property
    def used_at_least(self) -> FloatArray:
        """What the job used, a run of 0 s as one of 1 s."""
        return np.where(self.used > 0, self.used, 1.0)


def memory(jobs: pl.DataFrame, made: Assumptions) -> Line:
    """Return the requests of memory, for the whole job."""
    cores, part = column(jobs, "cores"), made.compensation
    per_core = jobs["ram_per_core"].fill_null(value=False).to_numpy()
    times = np.where(per_core, cores, 1.0)
    base = np.where(per_core, column(jobs, "baseramcount", default=0.0), 0.0)
    return Line(
        asked=partial(_memory, times=times, base=base, part=part),
        slope=times * part,
        offset=base * part,
        used=column(jobs, "maxpss_kb") / KB,
        amount=column(jobs, "duration_s") / HOUR_S / KB,
        demand=np.where(per_core, part, part / cores),
        demand_besides=base * part / cores,
        base_s=np.zeros_like(cores),
    )


def _memory(x: FloatArray, times: FloatArray, base: FloatArray, part: float) -> FloatArray:
    return (x * times + base) * part


def walltime(jobs: pl.DataFrame, made: Assumptions) -> Line:
    """Return the limits of walltime; a job of 0 events counts as a whole one."""
    cores, power = column(jobs, "cores"), column(jobs, "corepower")
    events = np.maximum(column(jobs, "n_events"), 1.0)
    share = column(jobs, "cpuefficiency", default=made.rules.default_cpu_efficiency) / 100
    base = column(jobs, "basewalltime", default=0.0)
    return Line(
        asked=partial(_walltime, factors=(events, cores, power, share), base=base),
        slope=events / cores / power / share / 1000,
        offset=base,
        used=column(jobs, "duration_s"),
        amount=cores / HOUR_S,
        demand=events / cores / share / 1000,
        demand_besides=np.zeros_like(cores),
        base_s=base,
    )


def _walltime(x: FloatArray, factors: tuple[FloatArray, ...], base: FloatArray) -> FloatArray:
    events, cores, power, share = factors
    return x / 1000 * events / cores / power / share + base


def disk(jobs: pl.DataFrame, made: Assumptions) -> Line:
    """Return the room for output."""
    events = np.maximum(column(jobs, "n_events", default=1.0), 1.0)
    per_event = jobs["outdisk_per_event"].fill_null(value=False).to_numpy()
    size = np.where(per_event, events, column(jobs, "input_mb", default=1.0))
    besides = np.full_like(size, made.disk_allowance_mb * MB)
    return Line(
        asked=partial(_disk, size=size, besides=besides),
        slope=KB * size,
        offset=besides,
        used=column(jobs, "outputfilebytes"),
        amount=np.full_like(size, 1 / GB),
        demand=KB * size / MB,
        demand_besides=np.zeros_like(size),
        base_s=np.zeros_like(size),
    )


def _disk(x: FloatArray, size: FloatArray, besides: FloatArray) -> FloatArray:
    return x * KB * size + besides


def column(jobs: pl.DataFrame, name: str, *, default: float | None = None) -> FloatArray:
    """Return a column of jobs as floats."""
    values = jobs[name].cast(pl.Float64)
    return (values if default is None else values.fill_null(default)).to_numpy()


# ---- what queues offer


OFFERED_TIME = (positive("maxtime") - pl.col("base_s")) * pl.coalesce(
    positive("corepower"), DEFAULT_COREPOWER
)
"""What a core of a queue can do after the base time [HS06 s]; null: no limit."""


MINIMUM_KEY = "SCOUT_RAMCOUNT_MIN"


class Setting(NamedTuple):
    """One setting that the deployed system can have: percentile rank, margin [%], SCOUT_RAMCOUNT_MIN [MB] (null: none)."""

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
        rank_key: gdpconfig key of the percentile rank; None where the rank is fixed in the code, as for ``margin_key``.
        rank: Deployed, as ``margin_pct`` [%]; the factor 1.5 of cputime is a margin of 50.
        margins: Margins of the default grid [%].
        amount: Suffix of the columns that hold what is reserved, used and wasted; ``amount_unit`` for people.
        thing: What is reserved, for sentences.
        over: Weight of what is reserved and not used [core h per unit]; ``why_over`` justifies it.
        value: What a scout says; null: nothing.
        scorable: Which jobs can be scored: everything their request and use are made of is known.
        estimate: What scouts write under a rank, margins and minima.
        line: What jobs ask for under an estimate.
        offered: What a queue offers, in the unit of a line's demand, after the base time ``base_s``; null: no limit.
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
    over: float
    why_over: str
    value: pl.Expr
    scorable: pl.Expr
    estimate: Callable[..., FloatArray]
    line: Callable[[pl.DataFrame, Assumptions], Line]
    offered: pl.Expr
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
            over=0.5,
            why_over=(
                "A grid slot offers 2 GB per core, so a GB-hour reserved and not used can keep half a "
                "core-hour from other work wherever memory is what fills the node."
            ),
            value=pl.col("ram_kb"),
            scorable=_RUN & (pl.col("maxpss_kb") > 0),
            estimate=ramcount_mb,
            line=memory,
            offered=memory_per_core(),
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
            over=0.05,
            why_over=(
                "A walltime limit reserves nothing that others could use once the job ends; a limit too "
                "long costs only in backfilling and draining, taken as a twentieth of the time."
            ),
            value=pl.when("cputime_eligible").then("cputime_hs06s"),
            scorable=_RUN & pl.col("n_events").is_not_null() & (pl.col("corepower") > 0),
            estimate=cputime_milli,
            line=walltime,
            offered=OFFERED_TIME,
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
            over=0.05,
            why_over=(
                "A slot offers about 20 GB of scratch per core for a job of an hour, so a GB set aside and "
                "not used can keep a twentieth of a core-hour from other work."
            ),
            value=pl.col("outdisk_bytes"),
            scorable=_RUN
            & pl.when("outdisk_per_event").then("n_events").otherwise("input_mb").is_not_null()
            & (pl.col("outputfilebytes") > 0),
            estimate=outdisk_kb,
            line=disk,
            offered=positive("maxwdir"),
            lacks="output, events or input size",
            at_zero="less than 1 kB per event is rounded down, only the allowance is left",
        ),
    )
}


def parameter_named(name: str) -> Parameter:
    """Return the parameter of that name."""
    if name not in PARAMETERS:
        raise ConfigError(f"parameter={name!r}: {nearest(name, PARAMETERS)}")
    return PARAMETERS[name]


def current_setting(config: Config, parameter: str = "ramcount") -> Setting:
    """Return the rank, margin [%] and minimum [MB] that act in a configuration; what the code fixes as it is.

    Raises:
        ConfigError: No configuration, no such parameter, or a value that is no whole number.

    Example:
        >>> current_setting(Config.empty(), "ramcount")
        Setting(rank=75, margin_pct=10, minimum_mb=None)
        >>> current_setting(Config.empty(), "cputime").pair
        (95, 50)
    """
    if not isinstance(config, Config):
        raise ConfigError(
            f"current_setting: given is a {type(config).__name__}; allowed is a configuration, such as "
            "calibrate.backtest(archive).inputs.config, whose study says .current itself"
        )
    chosen = parameter_named(parameter)
    rank = chosen.rank if chosen.rank_key is None else _whole(config, chosen.rank_key)
    margin = chosen.margin_pct if chosen.margin_key is None else _whole(config, chosen.margin_key)
    return Setting(rank, margin, config.get(MINIMUM_KEY) if parameter == "ramcount" else None)


def _whole(config: Config, key: str) -> int:
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

    ``loss = (over * amount reserved and not used by attempts that finished (GB h, core h or GB) + killed_coreh * core-hours of
    killed attempts + n_exceed * first attempts killed + n_lost * jobs killed in every attempt + unreachable_coreh * core-hours of
    work times the share of slots that cannot take its task) / core-hours of useful work``

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
        """Return the default weights of a parameter, single ones replaced."""
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
