"""From keys to a proposal: search on one period, judge on both, and again where queues may have more slots than were seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import polars as pl

from brokerlab.calibrate.judge import Case as CaseOfJudge
from brokerlab.calibrate.judge import Judgement, judge
from brokerlab.calibrate.thresholds import check
from brokerlab.calibrate.thresholds.check import Given
from brokerlab.calibrate.thresholds.compare import Comparison, as_shown, by_queue, by_stratum
from brokerlab.calibrate.thresholds.grid import of_archive
from brokerlab.calibrate.thresholds.keys import HOLDS, KEYS
from brokerlab.calibrate.thresholds.options import Options
from brokerlab.calibrate.thresholds.outcomes import OfCapacity, Period, WhatIf
from brokerlab.calibrate.thresholds.runs import Missing, Runs
from brokerlab.calibrate.thresholds.screening import screen
from brokerlab.calibrate.thresholds.search import Found, search
from brokerlab.calibrate.thresholds.settings import NOW, Setting
from brokerlab.calibrate.thresholds.simulations import Block, Simulations
from brokerlab.calibrate.thresholds.store import Store
from brokerlab.calibrate.thresholds.verdict import Case, affected, capacity_unknown
from brokerlab.calibrate.verdict import Verdict
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import Proposal

if TYPE_CHECKING:
    from brokerlab.archive import Archive

LATER = 1_000_000
"""Seeds of the second period lie so far from those of the first."""
Answer = Literal["change", "unchanged", "keep", "invalid", "nothing"] | CaseOfJudge
"""Why an answer is what it is.

change: another setting is better; unchanged: no value tried changes any decision; keep: nothing is better, and what matters
would have been seen; invalid: the simulation does not give back what was seen; nothing: no key both changes decisions and
can be simulated; else why the judge gives no answer: depends: it is another one where queues of unknown capacity have more
slots.
"""


class Validated(Protocol):
    """Whether the simulation gives back what was seen; see ``simulate.Validation``."""

    @property
    def ok(self) -> bool:
        """It may be used."""

    @property
    def sentence(self) -> str:
        """The verdict in words."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Everything that was found out about some keys.

    Attributes:
        case: Keys, periods, options: what was asked.
        answer: Why the answer is what it is.
        verdict: The answer.
        screened: One row per key, see :func:`.screening.screen`; empty without an archive.
        valid: Whether the simulation gives back what was seen; null where the caller vouched for it, or was not asked.
        why: What the validation said; empty without one.
        found: What was tried; null if nothing was simulated.
        judgement: What the judge says; null if nothing was simulated.
        candidates: One row per setting that was judged, least objective first: ``setting, n_keys``, ``after`` (mean of the
            objective over both periods), ``diff, diff_lo, diff_hi, diff_pct, diff_pct_lo, diff_pct_hi``, ``broken``
            (limits, comma list), ``lowers`` (by its whole interval).
        table: The scored period before and after, see :func:`.compare.as_shown`.
        strata: See :func:`.compare.by_stratum`.
        queues: See :func:`.compare.by_queue`.
        sensitivity: The choice again with each limit halved and doubled: ``limit, factor, setting``.
        n_tasks: Tasks of the scored period.
        unknown: Queues of which only a lower bound of the slots is known.
        missing: Simulations that could not be made.
        n_simulated: Replications simulated now.
        n_kept: Replications found in the store.
        seconds: Time spent simulating [s].
    """

    case: Case
    answer: Answer
    verdict: Verdict
    screened: pl.DataFrame
    valid: bool | None = None
    why: str = ""
    found: Found | None = None
    judgement: Judgement | None = None
    candidates: pl.DataFrame = field(default_factory=pl.DataFrame)
    table: pl.DataFrame = field(default_factory=pl.DataFrame)
    strata: pl.DataFrame = field(default_factory=pl.DataFrame)
    queues: pl.DataFrame = field(default_factory=pl.DataFrame)
    sensitivity: pl.DataFrame = field(default_factory=pl.DataFrame)
    n_tasks: int = 0
    unknown: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()
    n_simulated: int = 0
    n_kept: int = 0
    seconds: float = 0.0

    @property
    def proposal(self) -> Proposal | None:
        """The document of the verdict; null without an answer."""
        return self.verdict.proposal

    @property
    def setting(self) -> Setting:
        """The setting proposed; the current one unless another one is."""
        return NOW if self.judgement is None else self.judgement.setting

    @property
    def tried(self) -> pl.DataFrame:
        """See :func:`.search.tried_frame`; empty if nothing was simulated."""
        return pl.DataFrame() if self.found is None else self.found.tried

    @property
    def compared(self) -> Setting:
        """The setting that was chosen on the first period, which the table and the strata compare with now."""
        if self.judgement is None:
            return NOW
        chosen: Setting = self.judgement.settings[int(self.judgement.chosen[-1])]
        return chosen

    @property
    def stable(self) -> bool:
        """Whether halving or doubling any limit leaves the choice on everything as it is."""
        best = "" if self.judgement is None else self.judgement.best.name
        return self.sensitivity.is_empty() or (self.sensitivity["setting"] == best).all()

    def to_dict(self) -> dict[str, Any]:
        """Return the facts that are not tables."""
        case, options = self.case, self.case.options
        judgement = {} if self.judgement is None else self.judgement.to_dict()
        names = ("setting", "best", "current", "cheapest_within")
        plain = {
            name: dict(value.values) if name in names and value is not None else value
            for name, value in judgement.items()
        }
        return {
            "verdict": {**self.verdict.to_dict(), "setting": dict(self.setting.values)},
            "judgement": plain or None,
            "keys": [key.name for key in case.space.keys],
            "current": {key.name: key.current for key in case.space.keys},
            "objective": options.objective,
            "limits": options.allowed,
            "alpha": options.alpha,
            "relevant": options.relevant,
            "valid": self.valid,
            "validation": self.why,
            "calibration": [at.isoformat() for at in case.periods[0]],
            "proof": [at.isoformat() for at in case.periods[1]],
            "n_settings": self.tried["setting"].n_unique() if self.tried.height else 0,
            "searched_together": [] if self.found is None else list(self.found.keys),
            "n_simulated": self.n_simulated,
            "n_kept": self.n_kept,
            "missing": [f"{one.config}: {one.reason}" for one in self.missing],
            "capacity_unknown": list(self.unknown),
            "seed": options.seed,
        }


def calibrate(
    archive: Archive | None,
    options: Options,
    *,
    calibration: Given,
    proof: Given,
    created_at: datetime,
    config: Config | None = None,
    grids: Mapping[str, Iterable[Any]] | None = None,
    shares: Sequence[str] | None = None,
    store: str | Path | None = None,
    what_if: WhatIf | None = None,
    capacity: pl.DataFrame | str | Path | None = None,
    validation: Validated | Callable[[], Validated] | None = None,
    validate: bool = True,
    screened: pl.DataFrame | None = None,
    screening: bool = True,
) -> Calibration:
    """Find better values of some keys on history, judge them on a later period, or say that there are none.

    Which settings are judged is found on the calibration period alone; the setting chosen there is scored on a later
    period that nothing was chosen on, then one is chosen on both (see :mod:`brokerlab.calibrate.judge`). Nothing is proposed
    from a simulation that does not give back what was seen. Where the slots of queues are unknown, an answer counts that
    is the same with as many as were seen and with ``options.capacity_most`` times as many; else there is none.

    Args:
        archive: An archive; null: ``what_if`` and ``config`` are needed, and nothing is screened.
        options: Keys (patterns are set for every share that occurs; none: all thresholds), objective, limits, simulations.
        calibration: Period of the choice, from and before, UTC without zone.
        proof: A later period.
        created_at: Time of the proposal, UTC without zone.
        config: The configuration that acts; null: the archive's at the end of the calibration period.
        grids: Values to try, by key; others have the default grid.
        shares: Global shares for patterns; null: those of the archive.
        store: Folder where results are kept: an interrupted study goes on where it was; null: nowhere.
        what_if: A simulation instead of the grid simulator of production jobs, such as ``grid.of_archive(archive, periods,
            stage="analysis")``; its attribute ``stages``, if it has one, says of which stages it holds keys.
        capacity: Known slots of queues for the grid simulator, see :func:`.grid.of_archive`; null: as ``options`` say.
        validation: Whether the simulation is to be believed, or what finds that out; null: the grid simulator's own check.
        validate: False: the caller vouches for it; allowed with ``what_if`` only.
        screened: A screen that was made already.
        screening: Leave out keys that change no decision.

    Raises:
        ConfigError: Unknown keys, values out of the guard rails, grids of one value and other arguments that cannot be.
        InsufficientDataError: The archive is too short for the periods, or the present settings cannot be simulated.

    Source: design.md, ideas 5 and 7; calibration.md, sections 2 and 4; gdpconfig.md, Calibration.
    """
    if archive is None and (what_if is None or config is None):
        raise ConfigError("without an archive, what_if and config are needed")
    if what_if is None and not validate:
        raise ConfigError("validate=False: only for a simulation of your own (what_if)")
    keys = options.keys or KEYS["key"].to_list()
    periods, space = check.checked(
        archive,
        keys,
        calibration=calibration,
        proof=proof,
        config=config,
        grids=grids,
        points=options.points,
        shares=shares,
    )
    if screened is None and screening and archive is not None:
        screened = screen(
            archive,
            keys,
            period=periods[0],
            config=space.config,
            grids={key.name: key.grid for key in space.keys},
            stages=getattr(what_if, "stages", HOLDS["jobs"]),
        )
    open_keys = None if screened is None else set(screened.filter("simulate")["key"])
    names = tuple(key for key in keys if open_keys is None or key in open_keys)
    case = Case(
        space=space,
        names=names or tuple(keys),
        periods=periods,
        options=options,
        created_at=created_at,
        archive_digest=None if archive is None else archive.digest,
        synthetic=archive is not None and archive.synthetic,
        why="",
    )
    screen_frame = pl.DataFrame() if screened is None else screened
    if not names:
        return _unsimulated(case, screen_frame)
    given = validation() if callable(validation) else validation
    if what_if is None and archive is not None and (given is None or given.ok):
        known = options.capacity if capacity is None else capacity
        simulation = of_archive(archive, periods, cycle=options.cycle, capacity=known)
        what_if, given = simulation, given or simulation.validate(periods[0])
    if what_if is None or (given is not None and not given.ok):
        why = "" if given is None else given.sentence
        verdict = replace(case, names=tuple(keys)).refuse(why)
        return Calibration(case=case, answer="invalid", verdict=verdict, screened=screen_frame, valid=False, why=why)  # fmt: skip
    case = replace(case, why="" if given is None else given.sentence)
    found = _judged(case, what_if, store, _simulations(case, what_if, store))
    return replace(
        found, screened=screen_frame, valid=None if given is None else True, why=case.why
    )


def _unsimulated(case: Case, screened: pl.DataFrame) -> Calibration:
    """Return what is known without any simulation: no key is worth one."""
    if screened["state"].is_in(["changes nothing"]).all():
        return Calibration(case=case, answer="unchanged", verdict=case.unchanged(), screened=screened)  # fmt: skip
    why = "none of the keys both changes decisions and can be judged by the simulator; see the screen."
    return Calibration(case=case, answer="nothing", verdict=case.refuse(why), screened=screened)


def _simulations(case: Case, what_if: WhatIf, store: str | Path | None) -> Simulations:
    """Return the simulations of both periods, each with seeds of its own; nothing is run yet."""
    held = Store.at(store, check.digest_of(what_if)) if store is not None else None
    options = case.options
    blocks = tuple(
        Block(period, tuple(range(first, first + options.most_replications)))
        for period, first in zip(case.periods, (options.seed, options.seed + LATER), strict=True)
    )
    return Simulations(case.space, Runs(what_if, held, options.workers), blocks)


def _judged(
    case: Case, what_if: WhatIf, store: str | Path | None, simulations: Simulations
) -> Calibration:
    """Search, judge, and judge again where slots are unknown."""
    options = case.options
    found, judgement = judge_keys(simulations, options, case.names)
    unknown = what_if.unknown() if isinstance(what_if, OfCapacity) else ()
    table, n_tasks = _scored(simulations, judgement)
    sentence = case.sentence(judgement, table, n_tasks)
    runs = [simulations.runs]
    if unknown and options.capacity_most > 1 and judgement.case != "few":
        larger = _simulations(case, what_if.larger(options.capacity_most), store)  # type: ignore[attr-defined]  # OfCapacity
        runs.append(larger.runs)
        other = judge_again(larger, options, case.names, judgement)
        first, judgement = sentence, judgement.over_range([other])
        if judgement.case == "depends":
            more = case.sentence(other, *_scored(larger, other))
            told = capacity_unknown(unknown, first, more)
            sentence = case.sentence(judgement, table, n_tasks, told)
    chosen: Setting = judgement.settings[int(judgement.chosen[-1])]
    sides = (simulations.current, chosen)
    strata = by_stratum(simulations, options, sides, 1) if chosen != simulations.current else pl.DataFrame()  # fmt: skip
    outcomes = [simulations.outcome(one, simulations.blocks[1]) for one in sides]
    queues = by_queue(outcomes[0], outcomes[1], 1 - options.alpha)
    sensitivity = _sensitivity(judgement, options)
    stable = (sensitivity["setting"] == judgement.best.name).all()
    verdict = case.judged(
        judgement,
        sentence,
        table,
        (
            affected(strata, queues, ("gains", "emptier")),
            affected(strata, queues, ("loses", "fuller")),
        ),
        {
            "settings_tried": found.tried["setting"].n_unique() if found.tried.height else 0,
            "tasks_scored": n_tasks,
            "capacity_unknown": len(unknown),
            "stable_under_halved_and_doubled_limits": str(stable).lower(),
        },
    )
    answers: dict[str, Answer] = {"change": "change", "improve": "change", "keep": "keep"}
    return Calibration(
        case=case,
        answer=answers.get(judgement.kind, judgement.case),
        verdict=verdict,
        screened=pl.DataFrame(),
        found=found,
        judgement=judgement,
        candidates=_candidates(simulations, options, judgement),
        table=table,
        strata=strata,
        queues=queues,
        sensitivity=sensitivity,
        n_tasks=n_tasks,
        unknown=unknown,
        missing=tuple(one for run in runs for one in run.missing),
        n_simulated=sum(run.n_simulated for run in runs),
        n_kept=sum(run.n_kept for run in runs),
        seconds=sum(run.seconds for run in runs),
    )


def judge_keys(
    simulations: Simulations, options: Options, names: Sequence[str]
) -> tuple[Found, Judgement]:
    """Search on the first period with few replications; judge what is worth it on all periods."""
    period, seeds = simulations.blocks[0]
    first = replace(simulations, blocks=(Block(period, seeds[: options.replications]),))
    found = search(first, options, names)
    return found, _judge(simulations, options, found.settings)


def judge_again(
    simulations: Simulations, options: Options, names: Sequence[str], judgement: Judgement
) -> Judgement:
    """Ask under other assumptions: of a change whether it holds, of anything else the whole question."""
    if judgement.acts:
        return _judge(simulations, options, [judgement.setting])
    return judge_keys(simulations, options, names)[1]


def _judge(simulations: Simulations, options: Options, settings: Sequence[Setting]) -> Judgement:
    known = simulations.among(settings)
    return judge(simulations.outcomes(known), simulations.question(options, known))


def _scored(simulations: Simulations, judgement: Judgement) -> tuple[pl.DataFrame, int]:
    """Return the scored period before and after in words and units, and its tasks."""
    blocks = (
        simulations.blocks[1:] if judgement.n_scored < judgement.n_units else simulations.blocks
    )
    n_tasks = sum(simulations.tasks(block).height for block in blocks)
    return as_shown(judgement.table, n_tasks), n_tasks


def _candidates(simulations: Simulations, options: Options, judgement: Judgement) -> pl.DataFrame:
    """Return :attr:`Calibration.candidates`."""
    comparison = Comparison.of(simulations, options, judgement.settings)
    rows = []
    for one in judgement.settings:
        if one == judgement.current:
            continue
        raw = comparison.raw(judgement.current, one)
        table = as_shown(raw, comparison.n_tasks())
        row = table.row(by_predicate=pl.col("quantity") == options.objective, named=True)
        beyond = raw.filter(pl.col("kept").not_())
        broken = [name.removeprefix("limit_") for name in beyond["quantity"]]
        lowers = row["diff_hi"] is not None and row["diff_hi"] < 0
        numbers = {name: row[name] for name in _CANDIDATES if name in row}
        rows.append({"setting": one.name, "n_keys": len(one.values), **numbers, "broken": ", ".join(broken), "lowers": lowers})  # fmt: skip
    return pl.DataFrame(rows, schema=_CANDIDATES).sort("diff", "n_keys", "setting")


_CANDIDATES = {
    "setting": pl.String,
    "n_keys": pl.Int64,
    **dict.fromkeys(
        ("after", "diff", "diff_lo", "diff_hi", "diff_pct", "diff_pct_lo", "diff_pct_hi"),
        pl.Float64,
    ),
    "broken": pl.String,
    "lowers": pl.Boolean,
}


def _sensitivity(judgement: Judgement, options: Options) -> pl.DataFrame:
    """Choose on everything again, each limit halved and doubled."""
    question, sums = judgement.question, judgement.sums
    rows = []
    for name in options.allowed:
        for factor in (0.5, 2.0):
            limits = tuple(
                replace(one, most=one.most * factor) if one.quantity == f"limit_{name}" else one
                for one in question.limits
            )
            place = sums.choose(range(sums.n_blocks), replace(question, limits=limits), judgement.inner)  # fmt: skip
            rows.append((name, factor, judgement.settings[place].name))
    schema = {"limit": pl.String, "factor": pl.Float64, "setting": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


__all__ = ["Calibration", "Period", "Validated", "calibrate", "judge_again", "judge_keys"]
