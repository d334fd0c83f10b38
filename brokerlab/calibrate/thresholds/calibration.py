"""From keys to a proposal: search on one period, judge on both, and again where queues may have more slots than were seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import polars as pl

from brokerlab.calibrate.judge import Case as CaseOfJudge
from brokerlab.calibrate.judge import Judgement, Kind, judge
from brokerlab.calibrate.thresholds.case import Case
from brokerlab.calibrate.thresholds.compare import (
    as_shown,
    by_queue,
    by_stratum,
    candidates_of,
    proof_of,
    sensitivity_of,
)
from brokerlab.calibrate.thresholds.outcomes import LIMITS, OfCapacity, WhatIf, quantity_of
from brokerlab.calibrate.thresholds.runs import Missing, Runs
from brokerlab.calibrate.thresholds.search import search
from brokerlab.calibrate.thresholds.settings import NOW, Setting
from brokerlab.calibrate.thresholds.simulations import Block, Simulations
from brokerlab.calibrate.thresholds.store import Store
from brokerlab.calibrate.thresholds.words import (
    COVERS,
    action,
    affected,
    as_is,
    capacity_unknown,
    days,
    effects,
    small,
)
from brokerlab.calibrate.verdict import Verdict, Wording, document_of, evidence_of, sentence_of
from brokerlab.gdpconfig.proposal import Evidence, Proposal, Window

LONG = 400
"""Characters of a title at most."""
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
        candidates: See :func:`.compare.candidates_of`.
        proof: The scored period before and after, see :func:`.compare.proof_of`; empty where the choice was to leave all as
            it is.
        strata: See :func:`.compare.by_stratum`.
        queues: See :func:`.compare.by_queue`.
        sensitivity: See :func:`.compare.sensitivity_of`.
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

    Source: calibration.md 2 and 4; gdpconfig.md.
    """
    screen = pl.DataFrame() if screened is None else screened
    if screened is not None and not screened["simulate"].any():
        if screened["state"].is_in(["changes nothing"]).all():
            return Calibration(
                case=case, answer="unchanged", verdict=_unchanged(case), screened=screen
            )
        why = "none of the keys both changes decisions and can be judged by the simulator; see the screen."
        return Calibration(
            case=case, answer="nothing", verdict=_refused(case, why), screened=screen
        )
    given = validation() if callable(validation) else validation
    case = replace(case, why="" if given is None else given.sentence)
    if given is not None and not given.ok:
        return Calibration(
            case=case,
            answer="invalid",
            verdict=_refused(case, case.why),
            screened=screen,
            valid=False,
        )
    if screened is not None:
        open_keys = set(screened.filter("simulate")["key"])
        case = replace(case, names=tuple(name for name in case.names if name in open_keys))
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
    return Simulations(case.space, options, Runs(what_if, held, options.workers), blocks)


def _judged(case: Case, what_if: WhatIf, store: str | Path | None) -> Calibration:
    """Search, judge, and judge again where slots are unknown."""
    options, simulations = case.options, _simulations(case, what_if, store)
    tried, together, judgement = _judge_keys(simulations, case.names)
    table, n_tasks = _scored(simulations, judgement)
    sentence = _sentence_on(case, judgement, table, n_tasks)
    runs, unknown = [simulations.runs], tuple[str, ...]()
    if isinstance(what_if, OfCapacity):
        unknown = what_if.unknown()
        if unknown and options.capacity_most > 1 and judgement.case != "few":
            larger = _simulations(case, what_if.larger(options.capacity_most), store)
            runs.append(larger.runs)
            other = _judge_again(larger, case.names, judgement)
            first, judgement = sentence, judgement.over_range([other])
            if judgement.case == "depends":
                more = _sentence_on(case, other, *_scored(larger, other))
                reason = capacity_unknown(unknown, first, more)
                sentence = _sentence_on(case, judgement, table, n_tasks, reason)
    current, chosen = simulations.current, _chosen(judgement)
    proof = strata = pl.DataFrame()
    if chosen != current:
        proof = proof_of(table, options.objective)
        strata = by_stratum(simulations, (current, chosen), 1)
    sides = [simulations.simulated(one, simulations.blocks[1]) for one in (current, chosen)]
    queues = by_queue(sides[0], sides[1], 1 - options.alpha)
    sensitivity = sensitivity_of(judgement)
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
        verdict=_verdict_on(case, judgement, sentence, table, strata, queues, numbers),
        screened=pl.DataFrame(),
        tried=tried,
        together=together,
        judgement=judgement,
        candidates=candidates_of(simulations, judgement),
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


def _judge_keys(
    simulations: Simulations, names: Sequence[str]
) -> tuple[pl.DataFrame, tuple[str, ...], Judgement]:
    """Search on the first period with few replications; judge what is worth it on all periods."""
    period, seeds = simulations.blocks[0]
    few = seeds[: simulations.options.replications]
    first = replace(simulations, blocks=(Block(period, few),))
    settings, tried, together = search(first, names)
    return tried, together, _judge(simulations, settings)


def _judge_again(simulations: Simulations, names: Sequence[str], judgement: Judgement) -> Judgement:
    """Ask under other assumptions: of a change whether it holds, of anything else the whole question."""
    if judgement.acts:
        return _judge(simulations, [judgement.setting])
    return _judge_keys(simulations, names)[2]


def _judge(simulations: Simulations, settings: Sequence[Setting]) -> Judgement:
    known = simulations.among(settings)
    return judge(simulations.outcomes(known), simulations.question(known))


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


# --- the judgement as a sentence and a document ---------------------------------------------------------------------


def _refused(case: Case, reason: str) -> Verdict:
    """Say that nothing can be told, for a reason."""
    sentence = reason if reason.startswith("No answer: ") else f"No answer: {small(reason)}"
    return _verdict(case, "no_answer", sentence, None)


def _unchanged(case: Case) -> Verdict:
    """Keep keys of which no value changes any decision."""
    sentence = (
        f"Keep {as_is(case.space, case.names)}. No value between the guard rails that was tried changes any decision of "
        "the calibration period."
    )
    windows = _windows(case)[:1]
    evidence = Evidence(sentence, (), windows, (), (), _numbers(case), case.synthetic)
    document = Proposal.to_keep(
        case.space.config, _places(case), evidence=evidence, **_about(case, NOW)
    )
    return _verdict(case, "keep", sentence, document)


def _sentence_on(
    case: Case, judgement: Judgement, table: pl.DataFrame, n_tasks: int, unknown: str = ""
) -> str:
    """Put a judgement into a sentence.

    Args:
        case: What was asked.
        judgement: The judgement.
        table: The scored period before and after, see :func:`.compare.as_shown`.
        n_tasks: Its tasks.
        unknown: What the data cannot tell, and what would settle it.
    """
    quantity = quantity_of(case.options.objective)
    now = judgement.candidates.filter("is_current")[quantity.name][0]
    limits = [
        f"{name} +{most:g}{' %' if LIMITS[name].relative else ''}"
        for name, most in case.options.allowed.items()
    ]
    wording = Wording(
        actions=action(case.space, judgement.setting),
        kept=f"Keep {as_is(case.space, case.names)}",
        effects=f"{effects(quantity.name, table)}, {n_tasks:,} tasks of {days(case.periods[1])}",
        now=f"{small(quantity.label)} {now:.3g} {quantity.unit}",
        limit=", ".join(limits) or "none",
        loss=f"the {small(quantity.label)}",
        units="spans of time",
        unknown=unknown,
    )
    return sentence_of(judgement, wording)


def _verdict_on(
    case: Case,
    judgement: Judgement,
    sentence: str,
    table: pl.DataFrame,
    strata: pl.DataFrame,
    queues: pl.DataFrame,
    numbers: Mapping[str, float | int | str | None],
) -> Verdict:
    """Return the verdict of a judgement, with its document.

    Args:
        case: What was asked.
        judgement: The judgement.
        sentence: Its sentence.
        table: The scored period before and after, see :func:`.compare.as_shown`.
        strata: See :func:`.compare.by_stratum`.
        queues: See :func:`.compare.by_queue`.
        numbers: Further numbers of the document.
    """
    evidence = evidence_of(
        judgement,
        sentence,
        effects=table,
        windows=_windows(case),
        units="spans",
        numbers={**_numbers(case), **numbers, "inner_limit": judgement.inner},
        helps=affected(strata, queues, ("gains", "emptier")),
        hurts=affected(strata, queues, ("loses", "fuller")),
        synthetic=case.synthetic,
    )
    document = document_of(
        judgement,
        case.space.config,
        case.space.entries(judgement.setting),
        _places(case),
        evidence=evidence,
        **_about(case, judgement.setting),
    )
    return _verdict(case, judgement.kind, sentence, document)


def _verdict(case: Case, kind: Kind, sentence: str, document: Proposal | None) -> Verdict:
    names = [key.name for key in case.space.keys if key.name in case.names]
    subject = ", ".join(names)
    if len(names) > 3:
        subject = f"{', '.join(names[:2])} and {len(names) - 2} more keys"
    return Verdict(kind, sentence, subject, document, information_only=False)


def _windows(case: Case) -> tuple[Window, ...]:
    choice, scored = case.periods
    return Window("choice", *choice), Window("scored", *scored)


def _places(case: Case) -> list[str]:
    return [place for key in case.space.keys if key.name in case.names for place in key.places]


def _about(case: Case, setting: Setting) -> dict[str, Any]:
    title = action(case.space, setting) or f"Keep {as_is(case.space, case.names)}"
    return {
        "title": title if len(title) <= LONG else f"{title[: LONG - 3]}...",
        "created_at": case.created_at,
        "archive_digest": case.archive_digest,
        "rules_digest": case.rules,
    }


def _numbers(case: Case) -> dict[str, float | int | str | None]:
    options = case.options
    return {
        "objective": options.objective,
        "alpha": options.alpha,
        "replications": options.most_replications,
        "capacity_most": options.capacity_most,
        "intervals_hold": COVERS,
        "validation": case.why or "none: the caller vouched for the simulation",
        **{f"limit_{name}": value for name, value in options.allowed.items()},
    }
