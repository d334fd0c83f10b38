"""One judge of every setting: walk-forward choice, intervals over units, one of four verdicts.

What is judged is an `Outcomes`: units (tasks, replications) in the order of time, settings, and what every setting led to
for every unit. Nothing here knows what kind of setting it is.

Units are cut by time into blocks. For each block but the first a setting is chosen on the blocks before it and scored on
it, so that no unit judges a setting that it had helped to choose among; only the inner limit, one of four, is picked by
the scores: it is tightened until they keep the stated limit, so that the drift that really happened pays for its own
margin. Then the setting is chosen once more, on everything, with that inner limit; it is proposed only if it is better
there too.

Outcomes of a simulation have two kinds of chance: which units came, which intervals over units hold, and the noise of
the simulations that all units share, whose spread between replications is added to them in squares. The noise of each unit
alone spreads units and replications alike; it counts once, with the factor of the replications: few of them cannot tell it
from what is shared.

Source: walk-forward evaluation: Tashman, International Journal of Forecasting 16 (2000) 437,
doi:10.1016/S0169-2070(00)00065-0; intervals: `brokerlab.intervals.studentise`; adding independent errors to the ends of
intervals: Zou and Donner, Statistics in Medicine 27 (2008) 1693, doi:10.1002/sim.3095; what is counted twice:
Cameron, Gelbach and Miller, Journal of Business and Economic Statistics 29 (2011) 238, doi:10.1198/jbes.2010.07136.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import ceil
from typing import Any, Literal, cast

import numpy as np
import polars as pl

from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.intervals import ENDS, measured_coverage, studentise, t_factor
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.results import Result, Shows

Kind = Literal["change", "improve", "keep", "no_answer"]
Case = Literal[
    "lower_loss",
    "fewer_breaches",
    "better_not_within",
    "nothing_better",
    "few",
    "imprecise",
    "breach",
    "unconfirmed",
    "no_other",
    "depends",
]
"""Why a verdict is what it is.

lower_loss: the loss falls and the limits are kept; fewer_breaches: the current setting breaks a limit, the new one keeps
it; better_not_within: better, and a limit is still not kept; nothing_better: nothing is better, and an effect of the size
that matters would have been seen; few: too few units for any interval; imprecise: nothing is better, and such an effect
would not have been seen; breach: the current setting breaks a limit, and no other one is shown to be better by as much
as matters; unconfirmed: settings chosen on earlier units were better, and what is chosen on everything is not, or a limit
is not kept; no_other: no other setting keeps the limits, and some might be better without them, so that nothing can be said of what
could be gained; or no other one was tried, or the objective is 0 now, of which no gain is a part; depends: the verdict is
another one under another assumption of what the data cannot tell.
"""
MIN_UNITS = 20
"""Units from which anything is judged: with four blocks fifteen of them have scores."""
INNER = (1.0, 0.7, 0.5, 0.3)
"""Inner limits of the choice, as parts of the stated one."""
ONE_SIDED = 1.64
"""Standard errors that the scores must keep from the limit, where an inner limit can do so; of the normal distribution: with few
units or replications the margin is less than its level says, which the intervals of the verdict are not."""
BREACH = 0.2
"""The current setting breaks a limit where its rate lies above it by more than this part of the limit, by its interval: a rate
that lies at its limit is no reason to act."""
CHANGE = "change of the objective"
"""The objective's difference to the current setting, paired by unit."""
CELLS = 1_000_000
"""Units times settings looked at at once: about 8 MB per quantity."""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """What must be kept: the mean over units of a quantity is at most ``most``; a ``share`` lies between 0 and 1."""

    quantity: str
    most: float
    share: bool = True


@dataclass(frozen=True, kw_only=True)
class Question:
    """How settings are judged.

    Attributes:
        objective: Quantity whose mean should be low.
        limits: What must be kept.
        reported: Further quantities that are compared; no verdict rests on them.
        relevant: Smallest effect that matters, as a part of the current mean: ``keep`` is said only if one as large on the
            objective would have been seen, and a broken limit is a reason to act only if it is broken less by as much.
        blocks: Blocks of time.
        confidence: Two-sided, of every interval.
        n_boot: Bootstrap replicates.
    """

    objective: str = "loss"
    limits: tuple[Limit, ...] = ()
    reported: tuple[str, ...] = ()
    relevant: float = 0.05
    blocks: int = 4
    confidence: float = 0.95
    n_boot: int = 2000
    seed: int = 1

    def __post_init__(self) -> None:
        """Refuse what cannot be asked, all at once."""
        checks = {
            "relevant": (0 < self.relevant <= 1, "above 0, at most 1"),
            "blocks": (2 <= self.blocks <= 20, "2 to 20"),
            "confidence": (0.5 <= self.confidence < 1, "0.5 to below 1"),
            "n_boot": (self.n_boot >= 20, "at least 20"),
        }
        wrong = [
            f"{name}={getattr(self, name)!r}: allowed is {allowed}"
            for name, (good, allowed) in checks.items()
            if not good
        ]
        wrong += [
            f"limit of {limit.quantity} {limit.most!r}: allowed is a share from 0 to 1"
            for limit in self.limits
            if limit.share and not 0 <= limit.most <= 1
        ]
        if wrong:
            raise ConfigError("; ".join(wrong))

    @property
    def quantities(self) -> tuple[str, ...]:
        """The objective, what is limited, what is reported."""
        return (self.objective, *(limit.quantity for limit in self.limits), *self.reported)

    def interval(
        self,
        name: str,
        values: FloatArray,
        weights: FloatArray,
        *,
        share: bool = False,
        enough: bool = True,
        noise: float = 0.0,
    ) -> dict[str, float | None]:
        """Return a weighted mean over (n,) values as ``name, name_lo, name_hi``; ends are null where not ``enough`` units are there.

        Of a ``share`` they lie between 0 and 1; ``noise`` is the half width of what units share by the noise of simulations.
        """
        if not enough:
            mean = float(weights @ values / weights.sum())
            return {name: mean, f"{name}_lo": None, f"{name}_hi": None}
        mean, low, high = studentise(
            values,
            weights,
            confidence=self.confidence,
            n_boot=self.n_boot,
            seed=self.seed,
            share=share,
        )
        low, high = mean - np.hypot(mean - low, noise), mean + np.hypot(high - mean, noise)
        return {name: mean, f"{name}_lo": float(low), f"{name}_hi": float(high)}

    def paired(
        self,
        before: FloatArray,
        after: FloatArray,
        weights: FloatArray,
        *,
        share: bool = False,
        enough: bool = True,
        noise: Sequence[float] = (0.0, 0.0, 0.0),
    ) -> dict[str, float | None]:
        """Return the same units under two settings as ``before, after, diff``, each with its ``noise`` as :meth:`interval` does."""
        return {
            **self.interval("before", before, weights, share=share, enough=enough, noise=noise[0]),
            **self.interval("after", after, weights, share=share, enough=enough, noise=noise[1]),
            **self.interval("diff", after - before, weights, enough=enough, noise=noise[2]),
        }


@dataclass(frozen=True, kw_only=True)
class Outcomes:
    """What every setting led to, for every unit.

    Attributes:
        units: One row per unit, sorted by ``time`` and ``unit``: ``unit``, ``time`` (UTC), ``weight`` (above 0), and perhaps
            ``block`` (ascending), where units come in blocks that were made apart; else blocks have equal numbers of units.
        settings: In any form that is their own.
        current: Place of the current one.
        values: Takes places of settings; returns quantity to (n_units, n_places), finite.
        efforts: How much each setting changes, such as a number of keys: of settings whose means differ by less than half of
            what matters the one of least effort is chosen. Empty: they are alike.
        replications: Takes places of settings; returns quantity to (n_replications, n_units, n_places), finite, of at least
            two simulations with common random numbers, of which ``values`` gives the means. Null: nothing was simulated.
    """

    units: pl.DataFrame
    settings: tuple[Any, ...]
    current: int
    values: Callable[[Sequence[int]], dict[str, FloatArray]]
    efforts: tuple[int, ...] = ()
    replications: Callable[[Sequence[int]], dict[str, FloatArray]] | None = None

    @property
    def n_units(self) -> int:
        """Number of units."""
        return self.units.height

    @property
    def weight(self) -> FloatArray:
        """(n_units,) weights."""
        return self.units["weight"].cast(pl.Float64).to_numpy()

    def edges(self, blocks: int) -> IntArray:
        """Return (n_blocks + 1,) places of units at which blocks begin, and the end."""
        if "block" not in self.units.columns:
            return np.linspace(0, self.n_units, min(blocks, self.n_units) + 1).astype(np.int64)
        first = np.flatnonzero(self.units["block"].rle_id().diff().fill_null(1).to_numpy())
        return np.append(first, self.n_units).astype(np.int64)


def by_place(arrays: Mapping[str, FloatArray]) -> Callable[[Sequence[int]], dict[str, FloatArray]]:
    """Return what takes places of settings out of arrays of quantities whose last axis is the settings: see `Outcomes`."""
    return lambda places: {name: values[..., list(places)] for name, values in arrays.items()}


def cap_weights(sizes: FloatArray) -> FloatArray:
    """Return weights of units: their size, and for those larger than the median unit the median size.

    A few giants hold most of the jobs, and no interval from fifty units can know them: weights by size without a cap give
    95 % intervals that cover 82 to 91 % (calibration.md 2).

    Example:
        >>> cap_weights(np.array([1.0, 2.0, 1000.0])).tolist()
        [1.0, 2.0, 2.0]
    """
    return np.minimum(sizes, np.median(sizes))


@dataclass(frozen=True, kw_only=True, repr=False)
class Judgement(Result):
    """What the judge says.

    Attributes:
        case: Why, see `Case`.
        setting: The setting proposed; the current one for ``keep`` and ``no_answer``.
        best: The setting that the last choice, on everything, fell on, whatever the verdict.
        table: One row per quantity over the scored units, ``before`` (current), ``after`` (settings chosen on earlier blocks)
            and ``diff``, each with ``_lo, _hi``; ``limit`` (null: none), ``kept``.
        blocks: One row per block: ``block, start, end, n_units``, ``place`` (of the setting chosen on the blocks before it),
            and ``QUANTITY_before, QUANTITY_after`` (null, as ``place``, for the first).
        candidates: One row per setting over all units: ``place``, ``QUANTITY`` and ``QUANTITY_se`` (of the mean), ``gain`` over
            the current setting (part of the current mean), ``gain_lo`` (lower end, in the unit of the objective), ``most_gain``
            (largest one that its paired interval does not exclude, part of the current mean), ``kept`` (all limits, with a
            margin of `ONE_SIDED` standard errors), ``is_current``, ``is_best``.
        chosen: (n_units,) place of the setting that each unit was scored under; -1 in the first block.
        inner: Inner limit, as a part of the stated one.
        broken: Limited quantities that the current setting breaks.
        over: Limited quantities that the chosen settings do not keep.
        cheapest_within: The setting of least objective that keeps all limits on all units; null: none does.
        smallest_seen: Largest gain that is not excluded for some setting within the limits, as a part of the current mean: a
            larger one would have been seen; null where it is not known.
        units_missing: For ``no_answer`` for want of units: how many more would do; else 0.
        coverage: What intervals of the nominal level covered on a synthetic superpopulation with about as many units [1];
            null where that was not measured.
    """

    shows = Shows(
        about="what the judge says, one row per quantity",
        columns="quantity, before, after, diff, diff_lo, diff_hi, limit, kept",
        keys=("quantity",),
        next=(".candidates", ".blocks", ".rechoose(objective)"),
    )

    kind: Kind
    case: Case
    setting: Any
    best: Any
    current: Any
    table: pl.DataFrame
    blocks: pl.DataFrame
    candidates: pl.DataFrame
    chosen: IntArray
    inner: float
    broken: tuple[str, ...]
    over: tuple[str, ...]
    cheapest_within: Any | None
    smallest_seen: float | None
    units_missing: int
    coverage: float | None
    question: Question
    outcomes: Outcomes = field(repr=False, compare=False)
    sums: Sums = field(repr=False, compare=False)

    @property
    def settings(self) -> tuple[Any, ...]:
        """The settings, in the order of their places."""
        return self.outcomes.settings

    @property
    def n_units(self) -> int:
        """Units in all."""
        return self.chosen.size

    @property
    def last_scored(self) -> Any:
        """The setting that the last block was scored under."""
        return self.settings[int(self.chosen[-1])]

    def cannot_tell(self) -> Judgement:
        """Return no answer, for it depends on what the data cannot tell."""
        return replace(self, kind="no_answer", case="depends", setting=self.current)

    @property
    def acts(self) -> bool:
        """Whether another setting is to be set."""
        return self.kind in ("change", "improve")

    @property
    def n_scored(self) -> int:
        """Units that scored a setting which they had not helped to choose."""
        return int((self.chosen >= 0).sum())

    def quantity(self, name: str) -> dict[str, Any]:
        """Return one row of the table."""
        return self.table.row(by_predicate=pl.col("quantity") == name, named=True)

    def between(self, before: Any, after: Any) -> pl.DataFrame:
        """Compare two settings on all units, see ``table``; their intervals hold if neither was chosen on these units."""
        return compare_settings(self.outcomes, self.question, before, after)

    def rechoose(
        self,
        objective: Mapping[str, float] | None = None,
        limits: Mapping[str, float] | None = None,
    ) -> Any:
        """Return the setting of the last choice under other weights of quantities (of ``also`` too), or with other limits."""
        every, most = range(self.sums.n_blocks), limits or {}
        others = [replace(o, most=most.get(o.quantity, o.most)) for o in self.question.limits]
        mean = None
        if objective is not None:
            mean = np.asarray(sum(w * self.sums.mean(name, every) for name, w in objective.items()))
        asked = replace(self.sums, question=replace(self.question, limits=tuple(others)))
        return self.settings[asked.choose(every, self.inner, objective=mean)]

    def to_dict(self) -> dict[str, Any]:
        """Return the facts that are not tables."""
        names = ("kind", "case", "setting", "best", "current", "inner", "broken", "over", "cheapest_within", "smallest_seen")  # fmt: skip
        return {name: getattr(self, name) for name in names} | {
            "units": self.n_units,
            "units_scored": self.n_scored,
            "units_missing": self.units_missing,
            "measured_coverage": self.coverage,
        }

    def headline(self) -> str:
        """Return what it says, in a line."""
        return f"{self.kind}: from {self.current} to {self.setting}, {self.n_scored:,} units scored"


def judge(outcomes: Outcomes, question: Question, *, also: Sequence[str] = ()) -> Judgement:
    """Choose block by block, score forward, and say what follows.

    Below `MIN_UNITS` the best setting is scored on the very units that it was chosen on: that describes them, and the
    verdict is ``no_answer``. Of the quantities ``also`` sums are kept, for `Judgement.rechoose`.

    Raises:
        ConfigError: Enough units, all of one block.
        InsufficientDataError: There are no units.
    """
    n = outcomes.n_units
    if n == 0:
        raise InsufficientDataError("no unit has outcomes: there is nothing to judge")
    sums = Sums.of(outcomes, question, also)
    every, enough = range(sums.n_blocks), n >= MIN_UNITS
    if enough and sums.n_blocks < 2:
        raise ConfigError(
            f"units.block: all {n} units are of one block, so that none is later than a choice; give two or more blocks, or "
            "leave the column out: blocks are then cut by time"
        )
    inner, walked = _walk(sums)
    best = sums.choose(every, inner)
    scored = every[1:] if walked else every
    places = walked or [best] * len(every)
    chosen = np.full(n, -1, dtype=np.int64)
    chosen[sums.edges[scored[0]] :] = np.repeat(places, np.diff(sums.edges)[list(scored)])
    now = [outcomes.current] * len(scored)
    table = sums.compare(now, places, scored, enough=enough)
    candidates = sums.frame()
    within = candidates.filter("kept").sort(question.objective, "place")
    rows = {row["quantity"]: row for row in table.iter_rows(named=True)}
    limits = {limit.quantity: limit for limit in question.limits}
    lows = {}
    if enough:  # of the current setting, which nothing was chosen by, over all units
        values, w = outcomes.values([outcomes.current]), outcomes.weight
        for name, one in limits.items():
            ends = question.interval(name, values[name][:, 0], w, share=one.share)
            lows[name] = cast("float", ends[f"{name}_lo"])
    broken = tuple(name for name, low in lows.items() if low > limits[name].most)
    far = tuple(n for n in broken if lows[n] > limits[n].most * (1 + BREACH))
    over = tuple(name for name in limits if not rows[name]["kept"])
    tried = _tried(sums, candidates)
    seen = float(tried["most_gain"].max()) if tried.height else None  # type: ignore[arg-type]  # of floats
    confirmed = _confirmed(sums, candidates, best, far, over)
    kind, case = _verdict(rows, broken, far, over, seen, confirmed, n, question)
    acts = kind in ("change", "improve")
    covered = None
    if enough and outcomes.replications is None:
        covered = measured_coverage(int((chosen >= 0).sum()), question.confidence)
    return Judgement(
        kind=kind,
        case=case,
        setting=outcomes.settings[best if acts else outcomes.current],
        best=outcomes.settings[best],
        current=outcomes.settings[outcomes.current],
        table=table,
        blocks=sums.by_block(walked),
        candidates=candidates.with_columns(is_best=pl.col("place") == best),
        chosen=chosen,
        inner=inner,
        broken=broken,
        over=over,
        cheapest_within=outcomes.settings[within["place"][0]] if within.height else None,
        smallest_seen=seen if enough else None,
        units_missing=_missing(n, case, tried, question),
        coverage=covered,
        question=question,
        outcomes=outcomes,
        sums=sums,
    )


EVERY = slice(None)
"""All settings, each by itself; else there is a setting for each block."""


@dataclass(frozen=True)
class Sums:
    """Sums over the units of each block, by setting: enough to choose on any run of blocks.

    Attributes:
        edges: (n_blocks + 1,) places of units at which blocks begin.
        weight: (n_blocks,) sum of the weights, ``weight2`` of their squares.
        sums: Quantity, `CHANGE` among them, to (3, n_blocks, n_settings) sums of weight times value, squared weight times value,
            and the square of weight times value; of quantities of which no error is asked, (1, ...), the first alone.
        draws: Quantity to (n_replications, n_units, n_settings); without quantities where nothing was simulated.
    """

    outcomes: Outcomes
    question: Question
    edges: IntArray
    weight: FloatArray
    weight2: FloatArray
    sums: dict[str, FloatArray]
    draws: dict[str, FloatArray]

    @classmethod
    def of(cls, outcomes: Outcomes, question: Question, also: Sequence[str] = ()) -> Sums:
        """Sum once over everything, some settings at a time; of further quantities the first sums only."""
        n, n_settings = outcomes.n_units, len(outcomes.settings)
        edges, w = outcomes.edges(question.blocks), outcomes.weight
        names = (*question.quantities, CHANGE)
        shape = (edges.size - 1, n_settings)
        sums = {name: np.zeros((1, *shape)) for name in also}
        sums |= {name: np.zeros((3, *shape)) for name in names}
        now = outcomes.values([outcomes.current])[question.objective]
        step = max(1, CELLS // n)
        for start in range(0, n_settings, step):
            places = list(range(start, min(start + step, n_settings)))
            columns = dict(outcomes.values(places))
            columns[CHANGE] = columns[question.objective] - now
            for name, of_name in sums.items():
                weighed = w[:, None] * columns[name]
                parts = [weighed] if name not in names else [weighed, w[:, None] * weighed, weighed**2]  # fmt: skip
                for total, part in zip(of_name, parts, strict=True):
                    total[:, places] = np.add.reduceat(part, edges[:-1], axis=0)
        draws = {}
        if outcomes.replications is not None:
            simulated = dict(outcomes.replications(range(n_settings)))
            objective = simulated[question.objective]
            simulated[CHANGE] = objective - objective[:, :, [outcomes.current]]
            draws = {name: simulated[name] for name in names}
        weight, weight2 = (np.add.reduceat(x, edges[:-1]) for x in (w, w**2))
        return cls(outcomes, question, edges, weight, weight2, sums, draws)

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return self.weight.size

    def n_units(self, blocks: Sequence[int]) -> int:
        """Return the number of units of some blocks."""
        return int(np.diff(self.edges)[list(blocks)].sum())

    def mean(self, name: str, blocks: Sequence[int], places: Any = EVERY) -> FloatArray:
        """Return (n_settings,) weighted means over some blocks."""
        rows = list(blocks)
        return np.asarray(self.sums[name][0][rows, places].sum(axis=0) / self.weight[rows].sum())

    def error(self, name: str, blocks: Sequence[int]) -> FloatArray:
        """Return (n_settings,) standard errors of those means."""
        return np.hypot(self.own_error(name, blocks), self.shared_error(name, blocks))

    def own_error(self, name: str, blocks: Sequence[int]) -> FloatArray:
        """Return the part of those standard errors that is of the units that came."""
        n, weight = self.n_units(blocks), self.weight[list(blocks)].sum()
        with np.errstate(all="ignore"):  # one unit has no spread to go by
            return np.asarray(np.sqrt(self._squares(name, blocks) * n / (n - 1.0)) / weight)

    def _squares(self, name: str, blocks: Sequence[int], places: Any = EVERY) -> FloatArray:
        """Sum the squares of weight times distance from the mean."""
        rows, mean = list(blocks), self.mean(name, blocks, places)
        cross, second = (sums[rows, places].sum(axis=0) for sums in self.sums[name][1:])
        square = second - 2 * mean * cross + mean**2 * self.weight2[rows].sum()
        return np.asarray(np.maximum(square, 0.0))

    def shared_error(self, name: str, blocks: Sequence[int], places: Any = EVERY) -> FloatArray:
        """Return errors of what units share by the noise of simulations: (n_settings,), or of a setting for each block."""
        runs, alone = self._noise(name, blocks, places)
        return np.asarray(np.sqrt(np.maximum(runs - alone, 0.0)))

    def _noise(
        self, name: str, blocks: Sequence[int], places: Any = EVERY, against: Any = None
    ) -> FloatArray:
        """Return squared errors of the mean over replications: by their spread, and the part that is each unit's own noise."""
        one = places is not EVERY
        if not self.draws:
            return np.zeros((2,) if one else (2, len(self.outcomes.settings)))
        draws = self.draws[name]
        runs, alone = np.zeros((len(draws), 1)), np.zeros(1)
        whole = self.weight[list(blocks)].sum()
        for number, block in enumerate(blocks):
            units = slice(*self.edges[block : block + 2])
            values = draws[:, units, [places[number]] if one else places]
            if against is not None:
                values = values - draws[:, units, [against[number]]]
            w = self.outcomes.weight[units, None] / whole
            apart = values - values.mean(axis=0)
            mean, n = (w * apart).sum(axis=1), apart.shape[1]
            own = apart - mean[:, None] / w.sum()
            alone = alone + ((w * own) ** 2).sum(axis=(0, 1)) * n / max(n - 1, 1)
            runs = runs + mean  # blocks may share the noise of a simulation, too
        squares = np.stack([(runs**2).sum(axis=0), alone]) / (len(draws) - 1) / len(draws)
        return np.asarray(squares[:, 0] if one else squares)

    def walked(self, name: str, places: Sequence[int]) -> tuple[float, float]:
        """Return the mean of a quantity and its standard error over the blocks but the first, each under its own setting."""
        scored = range(1, self.n_blocks)
        own = np.sqrt(self._squares(name, scored, places)) / self.weight[1:].sum()
        error = np.hypot(own, self.shared_error(name, scored, places))
        return float(self.mean(name, scored, places)), float(error)

    def shared_half(
        self, name: str, blocks: Sequence[int], places: Any = EVERY, against: Any = None
    ) -> FloatArray:
        """Return half widths that, added in squares to those over units, hold this noise as well, see :meth:`shared_error`.

        What the interval over units holds of each unit's own noise, by its own factor, is taken from an interval over
        replications. Where nothing but noise differs, that interval is what is left: its level is exact, however few
        replications. The factor of few times the difference of the squares would be none in half of the cases with little
        shared noise, and a level of 85 % with two replications.
        """
        runs, alone = self._noise(name, blocks, places, against)
        if not self.draws:
            return np.asarray(runs)
        units = len(self.draws[name]), max(self.n_units(blocks), 2)
        factor, held = (t_factor(n, self.question.confidence) for n in units)
        return np.asarray(np.sqrt(np.maximum(factor**2 * runs - held**2 * alone, 0.0)))

    def paired_reach(self) -> FloatArray:
        """Return (n_settings,) half widths of the intervals of the objective's differences to the current setting, over all units."""
        every, factor = range(self.n_blocks), t_factor(self.edges[-1], self.question.confidence)
        return np.hypot(factor * self.own_error(CHANGE, every), self.shared_half(CHANGE, every))

    def excess(self, blocks: Sequence[int], inner: float, errors: float) -> FloatArray:
        """Return how far each setting lies above its limits, as parts of them: 0 where all are kept."""
        worst = np.zeros(len(self.outcomes.settings))
        for limit in self.question.limits:
            margin = errors * self.error(limit.quantity, blocks) if errors else 0.0
            reach = self.mean(limit.quantity, blocks) + np.nan_to_num(margin, nan=0.0, posinf=0.0)
            above = reach - inner * limit.most
            worst = np.maximum(worst, np.where(above > 0, above / max(limit.most, 1e-12), 0))
        return worst

    def choose(
        self, blocks: Sequence[int], inner: float, objective: FloatArray | None = None
    ) -> int:
        """Return the place of the setting of least objective within the inner limits; else of the least excess.

        Limits are asked of the mean and one standard error: the cheapest of many settings is a lucky one. Among equals the
        current one; where settings differ in their effort, the least one that costs less than half of what matters.
        """
        question, current = self.question, self.outcomes.current
        excess = self.excess(blocks, inner, errors=1.0)
        pool = np.flatnonzero(excess <= excess.min())
        mean = self.mean(question.objective, blocks) if objective is None else objective
        if self.outcomes.efforts:
            spare = question.relevant / 2 * abs(mean[current])
            pool = pool[mean[pool] <= mean[pool].min() + spare]
            efforts = np.asarray(self.outcomes.efforts)[pool]
            pool = pool[efforts == efforts.min()]
        best = int(pool[np.argmin(mean[pool])])
        return current if current in pool and mean[current] <= mean[best] else best

    def frame(self) -> pl.DataFrame:
        """Return all settings over all units: see `Judgement.candidates`."""
        every, outcomes, question = range(self.n_blocks), self.outcomes, self.question
        columns: dict[str, FloatArray] = {}
        for name in question.quantities:
            columns |= {name: self.mean(name, every), f"{name}_se": self.error(name, every)}
        places = np.arange(len(outcomes.settings))
        mean = columns[question.objective]
        gain = mean[outcomes.current] - mean
        with np.errstate(all="ignore"):  # below two units nothing is excluded
            reach = self.paired_reach()
            base = abs(mean[outcomes.current]) or np.nan
            most = np.maximum(gain + reach, 0) / base
        return pl.DataFrame(
            {
                "place": places,
                **columns,
                "gain": pl.Series(gain / base, nan_to_null=True),
                "gain_lo": pl.Series(gain - reach, nan_to_null=True),
                "most_gain": pl.Series(most, nan_to_null=True),
                "kept": self.excess(every, 1.0, ONE_SIDED) == 0,
                "is_current": places == outcomes.current,
            }
        )

    def compare(
        self, before: Sequence[int], after: Sequence[int], blocks: Sequence[int], *, enough: bool
    ) -> pl.DataFrame:
        """Compare settings, ``before`` and ``after`` with a place for each of the blocks, on their units: see `Judgement.table`."""
        question, limits = self.question, {one.quantity: one for one in self.question.limits}
        w = self.outcomes.weight[self.edges[blocks[0]] : self.edges[blocks[-1] + 1]]
        now, then = (self._under(blocks, places) for places in (before, after))
        rows = []
        for name in question.quantities:
            limit = limits.get(name)
            sides = ((before, None), (after, None), (after, before))
            noise = [float(self.shared_half(name, blocks, *side)) for side in sides]
            share, row = bool(limit and limit.share), dict[str, Any](quantity=name)
            row |= question.paired(
                now[name], then[name], w, share=share, enough=enough, noise=noise
            )
            row["limit"] = limit.most if limit else None
            row["kept"] = row["after"] <= limit.most if limit else None
            rows.append(row)
        floats = [f"{key}{end}" for key in ("before", "after", "diff") for end in ENDS]
        schema = {
            "quantity": pl.String,
            **dict.fromkeys([*floats, "limit"], pl.Float64),
            "kept": pl.Boolean,
        }
        return pl.DataFrame(rows, schema=schema)

    def _under(self, blocks: Sequence[int], places: Sequence[int]) -> dict[str, FloatArray]:
        """Return what the units of some blocks have, each block under its own setting."""
        distinct = sorted(set(places))
        parts = [
            (slice(*self.edges[block : block + 2]), distinct.index(place))
            for block, place in zip(blocks, places, strict=True)
        ]
        return {
            name: np.concatenate([values[part] for part in parts])
            for name, values in self.outcomes.values(distinct).items()
        }

    def by_block(self, settings: Sequence[int]) -> pl.DataFrame:
        """Return the blocks, those but the first with the settings that scored there: see `Judgement.blocks`."""
        times, rows = self.outcomes.units["time"], []
        for block, (first, end) in enumerate(pairwise(self.edges.tolist())):
            place = settings[block - 1] if block and settings else None
            row: dict[str, Any] = {"block": block + 1, "start": times[first], "end": times[end - 1]}
            row |= {"n_units": end - first, "place": place}
            for name in self.question.quantities:
                means = self.mean(name, [block])
                row[f"{name}_before"] = float(means[self.outcomes.current])
                row[f"{name}_after"] = None if place is None else float(means[place])
            rows.append(row)
        return pl.DataFrame(rows, infer_schema_length=None, schema_overrides={"place": pl.Int64})


def _walk(sums: Sums) -> tuple[float, tuple[int, ...]]:
    """Return an inner limit, and the settings chosen under it for the blocks but the first; none where units are too few.

    The limit is tightened until the scores keep the stated one with room for chance; else until they keep it.
    """
    limits = sums.question.limits
    if sums.outcomes.n_units < MIN_UNITS:
        return 1.0, ()
    walks = []
    for inner in INNER if limits else (1.0,):
        places = tuple(sums.choose(range(block), inner) for block in range(1, sums.n_blocks))
        scores = [(*sums.walked(one.quantity, places), one.most) for one in limits]
        if all(mean + ONE_SIDED * error <= most for mean, error, most in scores):
            return inner, places
        walks.append((all(mean <= most for mean, _, most in scores), (inner, places)))
    return next((walk for kept, walk in walks if kept), walks[-1][1])


def compare_settings(
    outcomes: Outcomes,
    question: Question,
    before: Any,
    after: Any,
    *,
    blocks: Sequence[int] | None = None,
    fewest: int = MIN_UNITS,
) -> pl.DataFrame:
    """Compare two settings on the units of some blocks (null: all): see `Judgement.table`; below ``fewest`` units without intervals."""
    sums = Sums.of(outcomes, question)
    some = list(range(sums.n_blocks) if blocks is None else blocks)
    now, then = ([outcomes.settings.index(one)] * len(some) for one in (before, after))
    return sums.compare(now, then, some, enough=sums.n_units(some) >= fewest)


def _tried(sums: Sums, candidates: pl.DataFrame) -> pl.DataFrame:
    """Return the other settings whose means keep the limits, and whose gain is known.

    Where none keeps them, all others if none of them may gain as much as matters: then the limits take nothing away.
    """
    within = sums.excess(range(sums.n_blocks), 1.0, errors=0.0) == 0
    others = candidates.with_columns(within=pl.Series(within)).filter(~pl.col("is_current"))
    known = others.drop_nulls("most_gain")
    none = known.height == others.height and (known["most_gain"] <= sums.question.relevant).all()
    kept = known.filter("within")
    return known if kept.is_empty() and none else kept


def _confirmed(
    sums: Sums,
    candidates: pl.DataFrame,
    best: int,
    far: Sequence[str],
    over: Sequence[str],
) -> tuple[bool, bool]:
    """Return whether the setting chosen on everything is better there: by a lower objective, by less of the broken limits.

    Limits that the scores keep must be kept here, too.
    """
    question, current = sums.question, sums.outcomes.current
    if best == current:
        return False, False
    now, then = (candidates.row(place, named=True) for place in (current, best))
    kept = all(
        then[one.quantity] <= one.most for one in question.limits if one.quantity not in over
    )
    fewer = all(then[name] <= (1 - question.relevant) * now[name] for name in {*far, *over})
    gains = then["gain_lo"] is not None and then["gain_lo"] > 0
    return kept and gains and (fewer or not over), kept and fewer


def _verdict(
    rows: dict[str, dict[str, Any]],
    broken: Sequence[str],
    far: Sequence[str],
    over: Sequence[str],
    seen: float | None,
    confirmed: tuple[bool, bool],
    n: int,
    question: Question,
) -> tuple[Kind, Case]:
    """Return the verdict and why, from the ``rows`` of the scores by quantity.

    The current setting breaks the limits ``broken`` by its interval, ``far`` ones by as much as matters; the scores do not keep
    those ``over``. ``seen`` is the largest gain that is not excluded; null: no other setting keeps the limits and has one.
    """
    if n < MIN_UNITS:
        return "no_answer", "few"

    def fewer(names: Sequence[str]) -> bool:
        """Tell whether limited quantities fall, by their intervals and by as much as matters."""
        return all(
            rows[name]["diff_hi"] < 0
            and -rows[name]["diff"] >= question.relevant * rows[name]["before"]
            for name in names
        )

    lower = rows[question.objective]["diff_hi"] < 0
    lower_confirmed, fewer_confirmed = confirmed
    cheaper = lower and lower_confirmed
    if cheaper or (far and fewer(far) and fewer_confirmed):
        if not over:
            return "change", "lower_loss" if cheaper else "fewer_breaches"
        if fewer(over):
            return "improve", "better_not_within"
    if broken:
        return "no_answer", "breach"
    if lower:
        return "no_answer", "unconfirmed"
    if seen is None:
        return "no_answer", "no_other"
    return ("keep", "nothing_better") if seen <= question.relevant else ("no_answer", "imprecise")


def _missing(n: int, case: Case, tried: pl.DataFrame, question: Question) -> int:
    """Return how many more units would do: widths fall with the root of their number, the gain itself stays.

    A gain that is as large as matters, or nearly so, must come to exclude 0, a smaller one what matters, if it does not yet.
    """
    if case == "few":
        return MIN_UNITS - n
    if case != "imprecise":
        return 0
    not_yet = tried.filter(pl.col("most_gain") > question.relevant)
    gain, most = (not_yet[name].to_numpy() for name in ("gain", "most_gain"))
    reach, far = most - gain, np.maximum(gain, question.relevant - gain)
    return max(0, ceil(n * (float(np.max(reach / far)) ** 2 - 1)))
