"""From keys to a proposal: search on one period, judge on both, and again where queues may have more slots than were seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import polars as pl

from brokerlab.calibrate.judge import Case as CaseOfJudge
from brokerlab.calibrate.judge import Judgement, judge
from brokerlab.calibrate.thresholds.case import Case
from brokerlab.calibrate.thresholds.compare import Comparison, as_shown, by_queue, by_stratum
from brokerlab.calibrate.thresholds.options import Options
from brokerlab.calibrate.thresholds.outcomes import OfCapacity, WhatIf
from brokerlab.calibrate.thresholds.runs import Missing, Runs
from brokerlab.calibrate.thresholds.search import search
from brokerlab.calibrate.thresholds.settings import NOW, Setting
from brokerlab.calibrate.thresholds.simulations import PREFIX, Block, Simulations
from brokerlab.calibrate.thresholds.store import Store
from brokerlab.calibrate.thresholds.verdict import (
    capacity_unknown,
    refused,
    sentence_on,
    unchanged,
    verdict_on,
)
from brokerlab.calibrate.verdict import Verdict
from brokerlab.gdpconfig.proposal import Proposal

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
        screened: One row per key, see :func:`.screening.summed`; empty without a screen.
        valid: Whether the simulation gives back what was seen; null where the caller vouched for it, or was not asked.
        tried: See :func:`.search.tried_frame`; empty if nothing was simulated.
        together: Names of the keys that were searched together.
        judgement: What the judge says; null if nothing was simulated.
        candidates: One row per setting that was judged, least objective first: ``setting, n_keys``, ``after`` (mean of the
            objective over both periods), ``diff, diff_lo, diff_hi, diff_pct, diff_pct_lo, diff_pct_hi``, ``broken``
            (limits, comma list), ``lowers`` (by its whole interval), ``role`` (chosen; null: not).
        proof: The quantities of the scored period that the simulation knows, before and after, see :func:`.compare.as_shown`,
            with ``role`` (objective, beyond its limit; null: neither); empty where the choice was to leave all as it is.
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
    tried: pl.DataFrame = field(default_factory=pl.DataFrame)
    together: tuple[str, ...] = ()
    judgement: Judgement | None = None
    candidates: pl.DataFrame = field(default_factory=pl.DataFrame)
    proof: pl.DataFrame = field(default_factory=pl.DataFrame)
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
    def compared(self) -> Setting:
        """The setting that was chosen on the first period, which the proof and the strata compare with now."""
        return NOW if self.judgement is None else _chosen(self.judgement)

    @property
    def stable(self) -> bool:
        """Whether halving or doubling any limit leaves the choice on everything as it is."""
        best = "" if self.judgement is None else self.judgement.best.name
        return self.sensitivity.is_empty() or (self.sensitivity["setting"] == best).all()

    def to_dict(self) -> dict[str, Any]:
        """Return the facts that are not tables."""
        case, options = self.case, self.case.options
        judgement = {} if self.judgement is None else self.judgement.to_dict()
        plain = {
            name: dict(value.values) if isinstance(value, Setting) else value
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
            "validation": case.why,
            "calibration": [at.isoformat() for at in case.periods[0]],
            "proof": [at.isoformat() for at in case.periods[1]],
            "n_settings": self.tried["setting"].n_unique() if self.tried.height else 0,
            "searched_together": list(self.together),
            "n_simulated": self.n_simulated,
            "n_kept": self.n_kept,
            "missing": [f"{one.config}: {one.reason}" for one in self.missing],
            "capacity_unknown": list(self.unknown),
            "seed": options.seed,
        }


def calibrate(
    case: Case,
    what_if: WhatIf,
    *,
    screened: pl.DataFrame | None = None,
    validation: Validated | Callable[[], Validated] | None = None,
    store: str | Path | None = None,
) -> Calibration:
    """Find better values of some keys on history, judge them on a later period, or say that there are none.

    Which settings are judged is found on the first period alone; the setting chosen there is scored on a later
    period that nothing was chosen on, then one is chosen on both (see :mod:`brokerlab.calibrate.judge`). Nothing is proposed
    from a simulation that does not give back what was seen. Where the slots of queues are unknown, an answer counts that
    is the same with as many as were seen and with ``options.capacity_most`` times as many; else there is none.

    Args:
        case: Keys with values to try, periods, options.
        what_if: A simulation, such as ``grid.of_archive(archive, periods)``.
        screened: A screen of the keys, see :func:`.screening.summed`: keys that change no decision, or none that the
            simulation holds, are left out; null: all are simulated.
        validation: Whether the simulation is to be believed, or what finds that out; null: the caller vouches for it.
        store: Folder where results are kept: an interrupted study goes on where it was; null: nowhere.

    Raises:
        ConfigError: A store, and a simulation that does not say what its results depend on.
        InsufficientDataError: The present settings cannot be simulated.

    Source: design.md, ideas 5 and 7; calibration.md, sections 2 and 4; gdpconfig.md, Calibration.
    """
    screen = pl.DataFrame() if screened is None else screened
    if screened is not None and not screened["simulate"].any():
        if screened["state"].is_in(["changes nothing"]).all():
            return Calibration(
                case=case, answer="unchanged", verdict=unchanged(case), screened=screen
            )
        why = "none of the keys both changes decisions and can be judged by the simulator; see the screen."
        return Calibration(case=case, answer="nothing", verdict=refused(case, why), screened=screen)
    given = validation() if callable(validation) else validation
    case = replace(case, why="" if given is None else given.sentence)
    if given is not None and not given.ok:
        return Calibration(
            case=case,
            answer="invalid",
            verdict=refused(case, case.why),
            screened=screen,
            valid=False,
        )
    if screened is not None:
        case = replace(case, names=tuple(screened.filter("simulate")["key"]))
    return replace(
        _judged(case, what_if, store), screened=screen, valid=None if given is None else True
    )


def _simulations(case: Case, what_if: WhatIf, store: str | Path | None) -> Simulations:
    """Return the simulations of both periods, each with seeds of its own; nothing is run yet."""
    held = Store.at(store, what_if) if store is not None else None
    options = case.options
    blocks = tuple(
        Block(period, tuple(range(first, first + options.most_replications)))
        for period, first in zip(case.periods, (options.seed, options.seed + LATER), strict=True)
    )
    return Simulations(case.space, Runs(what_if, held, options.workers), blocks)


def _judged(case: Case, what_if: WhatIf, store: str | Path | None) -> Calibration:
    """Search, judge, and judge again where slots are unknown."""
    options, simulations = case.options, _simulations(case, what_if, store)
    tried, together, judgement = judge_keys(simulations, options, case.names)
    table, n_tasks = _scored(simulations, judgement)
    sentence = sentence_on(case, judgement, table, n_tasks)
    runs, unknown = [simulations.runs], tuple[str, ...]()
    if isinstance(what_if, OfCapacity):
        unknown = what_if.unknown()
        if unknown and options.capacity_most > 1 and judgement.case != "few":
            larger = _simulations(case, what_if.larger(options.capacity_most), store)
            runs.append(larger.runs)
            other = judge_again(larger, options, case.names, judgement)
            first, judgement = sentence, judgement.over_range([other])
            if judgement.case == "depends":
                more = sentence_on(case, other, *_scored(larger, other))
                reason = capacity_unknown(unknown, first, more)
                sentence = sentence_on(case, judgement, table, n_tasks, reason)
    current, chosen = simulations.current, _chosen(judgement)
    proof = strata = pl.DataFrame()
    if chosen != current:
        proof = _proof(table, options.objective)
        strata = by_stratum(simulations, options, (current, chosen), 1)
    sides = [simulations.simulated(one, simulations.blocks[1]) for one in (current, chosen)]
    queues = by_queue(sides[0], sides[1], 1 - options.alpha)
    sensitivity = _sensitivity(judgement, options)
    stable = (sensitivity["setting"] == judgement.best.name).all()
    numbers: dict[str, float | int | str | None] = {
        "settings_tried": tried["setting"].n_unique() if tried.height else 0,
        "tasks_scored": n_tasks,
        "capacity_unknown": len(unknown),
        "stable_under_halved_and_doubled_limits": str(stable).lower(),
    }
    answers: dict[str, Answer] = {"change": "change", "improve": "change", "keep": "keep"}
    return Calibration(
        case=case,
        answer=answers.get(judgement.kind, judgement.case),
        verdict=verdict_on(case, judgement, sentence, table, strata, queues, numbers),
        screened=pl.DataFrame(),
        tried=tried,
        together=together,
        judgement=judgement,
        candidates=_candidates(simulations, options, judgement),
        proof=proof,
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
) -> tuple[pl.DataFrame, tuple[str, ...], Judgement]:
    """Search on the first period with few replications; judge what is worth it on all periods."""
    period, seeds = simulations.blocks[0]
    first = replace(simulations, blocks=(Block(period, seeds[: options.replications]),))
    settings, tried, together = search(first, options, names)
    return tried, together, _judge(simulations, options, settings)


def judge_again(
    simulations: Simulations, options: Options, names: Sequence[str], judgement: Judgement
) -> Judgement:
    """Ask under other assumptions: of a change whether it holds, of anything else the whole question."""
    if judgement.acts:
        return _judge(simulations, options, [judgement.setting])
    return judge_keys(simulations, options, names)[2]


def _judge(simulations: Simulations, options: Options, settings: Sequence[Setting]) -> Judgement:
    known = simulations.among(settings)
    return judge(simulations.outcomes(known), simulations.question(options, known))


def _chosen(judgement: Judgement) -> Setting:
    """Return the setting that was chosen on the first period."""
    chosen: Setting = judgement.settings[int(judgement.chosen[-1])]
    return chosen


def _scored(simulations: Simulations, judgement: Judgement) -> tuple[pl.DataFrame, int]:
    """Return the scored period before and after in words and units, and its tasks."""
    blocks = (
        simulations.blocks[1:] if judgement.n_scored < judgement.n_units else simulations.blocks
    )
    n_tasks = sum(simulations.tasks(block).height for block in blocks)
    return as_shown(judgement.table, n_tasks), n_tasks


def _proof(table: pl.DataFrame, objective: str) -> pl.DataFrame:
    """Return :attr:`Calibration.proof`."""
    beyond = pl.when(pl.col("kept").not_()).then(pl.lit("beyond its limit"))
    role = beyond.when(pl.col("quantity") == objective).then(pl.lit("objective"))
    return table.filter(pl.col("before").is_not_null()).with_columns(role=role)


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
        broken = raw.filter(pl.col("kept").not_())["quantity"].str.strip_prefix(PREFIX)
        about = {
            "setting": one.name,
            "n_keys": len(one.values),
            "broken": ", ".join(broken),
            "lowers": row["diff_hi"] is not None and row["diff_hi"] < 0,
            "role": "chosen" if one == judgement.best else None,
        }
        rows.append({name: about[name] if name in about else row[name] for name in _CANDIDATES})
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
    "role": pl.String,
}


def _sensitivity(judgement: Judgement, options: Options) -> pl.DataFrame:
    """Choose on everything again, each limit halved and doubled."""
    question, sums = judgement.question, judgement.sums
    rows = []
    for name in options.allowed:
        for factor in (0.5, 2.0):
            limits = tuple(
                replace(one, most=one.most * factor) if one.quantity == f"{PREFIX}{name}" else one
                for one in question.limits
            )
            asked = replace(question, limits=limits)
            place = sums.choose(range(sums.n_blocks), asked, judgement.inner)
            rows.append((name, factor, judgement.settings[place].name))
    schema = {"limit": pl.String, "factor": pl.Float64, "setting": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")
