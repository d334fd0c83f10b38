"""The rules that systems deploy today, as estimators: what everything else is measured against."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
import polars as pl

from brokerlab.compiled import compiled_in_place
from brokerlab.estimators.estimator import Ordered, Past, Predicted, codes, known
from brokerlab.estimators.records import Quantity, check_quantity, checked
from brokerlab.estimators.seen import Seen
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.scouts.parameters import CPUTIME_SAFETY, whole_cputime, whole_ram_mb
from brokerlab.scouts.quantities import DEFAULT_COREPOWER, LONG_JOB_S, floats
from brokerlab.units import KB


class Formula(Protocol):
    """What a rule says of each job from what was seen when it is decided."""

    def __call__(self, records: pl.DataFrame, events: IntArray) -> FloatArray:
        """Return (n,) bounds [MB or s]; NaN where too little was seen."""
        ...


@dataclass(frozen=True)
class Recorded:
    """A column as it is recorded: what was asked for, or what the system gave."""

    column: str  # ``requested`` or ``sent``

    def __call__(self, records: pl.DataFrame, events: IntArray) -> FloatArray:  # noqa: ARG002
        """Return the column; NaN where it is null."""
        return floats(records, self.column)


@dataclass(frozen=True)
class Anew:
    """One formula until another one has seen enough."""

    first: Formula  # says what it says until then
    later: Formula  # is NaN until then

    def __call__(self, records: pl.DataFrame, events: IntArray) -> FloatArray:
        """Return what the later formula says; where it says nothing, what the first does."""
        later = self.later(records, events)
        return np.where(np.isnan(later), self.first(records, events), later)


class Rule(Ordered):
    """A deployed rule behind the interface of every estimator.

    A rule knows one number, not a distribution: it is the bound at every level and the point. Where the
    rule has seen too little it is what was requested, and infinite where nothing was. There is nothing
    to fit or to calibrate, only finished jobs of the same task to be seen.
    """

    def __init__(self, name: str, formula: Formula) -> None:
        self.name = name
        self.formula = formula
        self._past = Past()

    def __repr__(self) -> str:
        return f"Rule({self.name!r})"

    def fit(self, records: Any) -> Self:  # noqa: ARG002 - rules learn nothing from other tasks
        """Forget what was seen; other tasks say nothing to a rule."""
        self._past.clear()
        return self

    def conformalize(self, records: Any) -> Self:  # noqa: ARG002 - see fit
        """Change nothing: a rule is not calibrated."""
        return self

    def update(self, records: Any) -> Self:
        """See finished jobs, in the order of their ends; those that never end are not seen."""
        self._past.add(checked(records))
        return self

    def bound_events(
        self, frame: pl.DataFrame, events: IntArray, levels: tuple[float, ...]
    ) -> Predicted:
        """Put what was seen of the tasks before the events, and ask the formula."""
        together, walked, past = self._past.before(frame, events, others=False)
        values = self.formula(together, walked)[past:]
        requested = frame["requested"].fill_null(np.inf).to_numpy()
        bound = np.where(np.isnan(values), requested, values)
        return Predicted(
            pandaid=frame["pandaid"].to_numpy(),
            seen=known(together, walked)[past:],
            levels=levels,
            bounds=np.repeat(bound[:, None], len(levels), axis=1),
            point=bound,
        )


@dataclass(frozen=True)
class ScoutWalltime:
    """PanDA's cpuTime, HS06 seconds per event, as a limit on the wall time of a job.

    A finished job says ``h = (wall - base) x corepower x cores x efficiency / events``, 0 if it was not
    longer than the base; only if it had 10 events per core or ran 6 h, else it is one of those seen and says nothing. The percentile with its safety
    is rounded up, and a job gets ``int(h x events / (cores x corepower x efficiency) + base)``. A
    job of unknown events gets the percentile of the task's wall times, with the same safety: a log of a
    batch system knows no events. Jobs killed at a limit say nothing; an unknown core power is 10.

    Source: scouts.md, sections 3, 5.1 (production: S04) and 15; calibration.md 1.
    """

    seen: Seen  # which finished jobs, which rank
    safety: float = CPUTIME_SAFETY  # factor on the percentile
    base_s: float = 600.0  # wall time that does not grow with the events [s]
    efficiency_pct: float = 90.0  # CPU efficiency of one core [%], above 0

    def __call__(self, records: pl.DataFrame, events: IntArray) -> FloatArray:
        """Return the limit [s]; NaN where too few jobs have finished."""
        task, _ = codes(records, "jeditaskid")
        wall_s = np.where(records["censored"].to_numpy(), np.nan, floats(records, "used"))
        n_events, cores = floats(records, "events"), floats(records, "cores")
        n_events = np.where(n_events > 0, n_events, np.nan)
        power = floats(records.with_columns(pl.col("corepower").fill_null(0)), "corepower")
        power = np.where(power > 0, power, DEFAULT_COREPOWER)
        beyond = np.maximum(np.floor(wall_s) - self.base_s, 0.0)  # 3.1: fractions are dropped
        work = beyond * power * cores * self.efficiency_pct / 100
        eligible = (n_events >= 10 * cores) | (wall_s > LONG_JOB_S)
        per_event = np.where(eligible, work / n_events, np.nan)
        # jobs of few events are seen: they are of the first ones, and no later job takes their place
        per_event = np.where(self.seen.first(events, task, ~np.isnan(wall_s)), per_event, np.nan)
        result = replace(self.seen, least=1).percentile(events, task, per_event) * self.safety
        scale = cores * power * self.efficiency_pct / 100
        limit = np.trunc(whole_cputime(result) / 1000 * n_events / scale + self.base_s)
        plain = self.seen.percentile(events, task, wall_s) * self.safety
        return np.where(np.isnan(n_events) | np.isnan(plain), plain, limit)


@dataclass(frozen=True)
class PercentileWalltime:
    """A percentile of the wall times seen, of the task or of the user, at most the request.

    A job that was killed counts with the time it ran.

    Source: sizing.md, sections 7 and 8; Tsafrir, Etsion, Feitelson, IEEE TPDS 18 (2007) 789,
    doi:10.1109/TPDS.2007.70606.
    """

    seen: Seen  # which finished jobs, which rank
    of_request: bool = False  # take shares of the request instead, and multiply by the request

    def __call__(self, records: pl.DataFrame, events: IntArray) -> FloatArray:
        """Return the wall time [s]; NaN where too few jobs have finished."""
        task, _ = codes(records, "jeditaskid")
        used, requested = floats(records, "used"), floats(records, "requested")
        unit = np.where(requested > 0, requested, np.nan) if self.of_request else 1.0
        result = self.seen.percentile(events, task, used / unit) * unit
        return np.where(requested < result, requested, result)


@dataclass(frozen=True)
class MeanWalltime:
    """The mean of the wall times seen, of the task or of the user, at most the request."""

    def __call__(self, records: pl.DataFrame, events: IntArray) -> FloatArray:
        """Return the wall time [s]; NaN where no job has finished."""
        task, n_tasks = codes(records, "jeditaskid")
        used, requested = floats(records, "used"), floats(records, "requested")
        result = np.full(used.size, np.nan)
        _walk_mean(events, task, used, np.zeros(n_tasks), np.zeros(n_tasks, np.int64), result)
        return np.where(requested < result, requested, result)


@compiled_in_place
def _walk_mean(
    events: IntArray,
    task: IntArray,
    used: FloatArray,
    total: FloatArray,
    count: IntArray,
    means: FloatArray,
) -> None:
    for event in events:
        if event >= 0:
            total[task[event]] += used[event]
            count[task[event]] += 1
        elif count[task[~event]]:
            means[~event] = total[task[~event]] / count[task[~event]]


@dataclass(frozen=True)
class ScoutMemory:
    """PanDA's ramCount as an estimate of the whole job.

    Percentile of the finished jobs of the task, with margin, cut to whole MB. Where the job and those
    that were seen differ in cores: per core, after subtracting a base; the job then gets
    ``ramCount x cores + base``. Jobs killed at a limit say nothing, as in production.

    Source: scouts.md, section 5.2 (production); sizing.md, sections 6 and 7.
    """

    seen: Seen  # which finished jobs, which rank
    margin_pct: float = 10  # margin [%]
    minimum_mb: float | None = None  # SCOUT_RAMCOUNT_MIN [MB]; None: no minimum
    base_mb: float = 0.0  # memory that does not grow with the cores [MB]; above 0: always per core
    per_core: bool = False  # always per core, as in a task whose unit is MBPerCore

    def __call__(self, records: pl.DataFrame, events: IntArray) -> FloatArray:
        """Return the memory [MB]; NaN where too few jobs have finished."""
        task, _ = codes(records, "jeditaskid")
        cores = floats(records, "cores")
        used_kb = _finished(records) * KB
        per_core_kb = np.ceil((used_kb - self.base_mb * KB) / cores)
        per_core = self._megabytes(self.seen.percentile(events, task, per_core_kb))
        if self.per_core or self.base_mb > 0:
            return per_core * cores + self.base_mb
        whole = self._megabytes(self.seen.percentile(events, task, used_kb))
        several = several_cores(events, task, cores, used_kb, self.seen)
        return np.where(several, per_core * cores, whole)

    def _megabytes(self, kilobytes: FloatArray) -> FloatArray:
        minimum = -np.inf if self.minimum_mb is None else self.minimum_mb
        return whole_ram_mb(kilobytes, self.margin_pct, minimum)


@dataclass(frozen=True)
class PercentileMemory:
    """A percentile of what was seen, times a factor; per core where cores differ.

    A job that was killed counts with what it had used by then.

    Source: sizing.md, sections 4 and 6.
    """

    seen: Seen  # which finished jobs, which rank
    factor: float = 1.0  # margin as a factor
    minimum_mb: float = 0.0  # least answer [MB]

    def __call__(self, records: pl.DataFrame, events: IntArray) -> FloatArray:
        """Return the memory [MB]; NaN where too few jobs have finished."""
        task, _ = codes(records, "jeditaskid")
        cores, used = floats(records, "cores"), floats(records, "used")
        whole = self.seen.percentile(events, task, used)
        per_core = self.seen.percentile(events, task, used / cores)
        several = several_cores(events, task, cores, used, self.seen)
        result = np.where(several, per_core * cores, whole) * self.factor
        return np.maximum(result, self.minimum_mb)


def several_cores(
    events: IntArray, task: IntArray, cores: FloatArray, values: FloatArray, seen: Seen
) -> np.ndarray:
    """Tell where a job and the jobs that its estimate is made of do not all have as many cores."""
    counted = np.where(np.isnan(values), np.nan, cores)
    largest = replace(seen, rank=100)
    most = largest.percentile(events, task, counted)
    fewest = -largest.percentile(events, task, -counted)
    return np.asarray((fewest != cores) | (most != cores))


def _finished(records: pl.DataFrame) -> FloatArray:
    """Return what was used by jobs that were not killed at a limit; NaN for the others."""
    return np.where(records["censored"].to_numpy(), np.nan, floats(records, "used"))


SCOUT_JOBS = 10
SECOND_TRIGGER = 100
MOST_JOBS = 1000
SCOUTS_MEMORY = "PanDA scouts p75 x 1.1"
SCOUTS_WALLTIME = "PanDA scouts p95 x 1.5"
DEPLOYED: dict[Quantity, str] = {"memory": SCOUTS_MEMORY, "walltime": SCOUTS_WALLTIME}
"""The rule that PanDA applies to each quantity."""
_LAST_TWO = PercentileWalltime(Seen(50, least=2, most=2))


def rules(quantity: Quantity, *, scouts: int = SCOUT_JOBS) -> list[Rule]:
    """Return the deployed rules of a quantity, nothing seen yet; the one of PanDA first.

    Source: sizing.md, sections 4, 6 and 8; scouts.md, sections 5 and 7.
    """
    check_quantity(quantity)
    return _memory(scouts) if quantity == "memory" else _walltime(scouts)


def _scouts(rank: float, scouts: int) -> tuple[Seen, Seen, Seen]:
    """Return what is seen by the first estimate, by the one at the second trigger, and by one made anew each time."""
    first = Seen(rank, least=(scouts + 1) // 2, most=scouts, latest=False)
    at_trigger = Seen(rank, least=SECOND_TRIGGER, most=SECOND_TRIGGER, latest=False)
    return first, at_trigger, replace(first, most=max(MOST_JOBS, scouts))


def _memory(scouts: int) -> list[Rule]:
    first, second, always = (ScoutMemory(seen) for seen in _scouts(75, scouts))
    return [
        Rule(SCOUTS_MEMORY, first),
        Rule("PanDA scouts, again at the 100th job", Anew(first, second)),
        Rule("PanDA scouts, re-estimated", always),
        Rule("requested", Recorded("requested")),
        Rule("as sent", Recorded("sent")),
        Rule("largest seen", PercentileMemory(Seen(100, most=None))),
        Rule("p95 seen", PercentileMemory(Seen(95))),
        Rule("Kubernetes p90 x 1.15", PercentileMemory(Seen(90), factor=1.15, minimum_mb=250.0)),
    ]


def _walltime(scouts: int) -> list[Rule]:
    first, second, always = (ScoutWalltime(seen) for seen in _scouts(95, scouts))
    return [
        Rule(SCOUTS_WALLTIME, first),
        Rule("PanDA scouts, again at the 100th job", Anew(first, second)),
        Rule("PanDA scouts, re-estimated", always),
        Rule("requested", Recorded("requested")),
        Rule("as sent", Recorded("sent")),
        Rule("last two", _LAST_TWO),
        *_of_users(),
    ]


def _of_users() -> list[Rule]:
    return [
        Rule("largest of last 10", PercentileWalltime(Seen(100, most=10))),
        Rule(
            "request x p95 of last 20",
            PercentileWalltime(Seen(95, least=5, most=20), of_request=True),
        ),
    ]


def log_rules() -> list[Rule]:
    """Return the simple rules of batch systems, that know a user's own finished jobs only, nothing seen yet.

    One that has not seen enough jobs of the user says the request.

    Source: sizing.md, section 8.
    """
    return [
        Rule("requested", Recorded("requested")),
        Rule("last one", PercentileWalltime(Seen(50, most=1))),
        Rule("mean of the user", MeanWalltime()),
        *_of_users(),
        Rule("p95 of last 200", PercentileWalltime(Seen(95, least=5, most=200))),
        Rule("last two", _LAST_TWO),
    ]
