"""From keys to a proposal: search on one period, judge on both, and again where queues may have more slots than were seen.

Every key alone over its grid, the others beside the best one, and the values between say which settings are worth judging;
all of it looks at the first period alone, so that the later one scores what it had no part in finding. What a key does beside
the best one is asked of each, since one that starves tasks hides what the others do to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from brokerlab.calibrate.judge import Case as CaseOfJudge
from brokerlab.calibrate.judge import Judgement, Kind, Sums
from brokerlab.calibrate.simulation import Validation
from brokerlab.calibrate.thresholds.outcomes import LIMITS, GridWhatIf, WhatIf, quantity_of
from brokerlab.calibrate.thresholds.screening import NOTHING, Screen
from brokerlab.calibrate.thresholds.settings import NOW, Case, Key, Setting
from brokerlab.calibrate.thresholds.simulations import Block, Missing, Runs, Simulations, Store
from brokerlab.calibrate.thresholds.tables import (
    COVERS,
    action,
    affected,
    as_is,
    as_shown,
    by_queue,
    by_stratum,
    candidates_of,
    capacity_unknown,
    days,
    effects,
    proof_of,
    sensitivity_of,
    small,
    tried_frame,
)
from brokerlab.calibrate.verdict import Verdict, document_of, sentence_of
from brokerlab.gdpconfig.proposal import Evidence, Proposal, Window
from brokerlab.numerics import BoolArray

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


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Everything that was found out about some keys; tables are empty where nothing was simulated.

    Attributes:
        case: What was asked.
        screen: Without rows where all keys were simulated.
        validation: Whether the simulation gives back what was seen; null where the caller vouched for it, or was not asked.
        tried: See :func:`.tables.tried_frame`; ``strata`` and ``queues`` see :func:`.tables.by_stratum`, :func:`.tables.by_queue`.
        together: Names of the keys that were searched together.
        judgement: Null if nothing was simulated.
        table: The scored period before and after, see :func:`.tables.as_shown`.
        reason: Why the answer depends on slots that nobody knows; empty where it does not.
        n_tasks: Tasks of the scored period, ``n_tasks_judged`` of both.
        unknown: Queues of which only a lower bound of the slots is known.
        missing: Simulations that could not be made.
        n_simulated: Replications simulated now, ``n_kept`` found in the store.
        seconds: Time spent simulating [s].
        grid: The grid simulator; null: another simulation.
        warnings: What was odd in the settings, each once.
    """

    case: Case
    screen: Screen
    validation: Validation | None = None
    tried: pl.DataFrame = field(default_factory=pl.DataFrame)
    together: tuple[str, ...] = ()
    judgement: Judgement | None = None
    table: pl.DataFrame = field(default_factory=pl.DataFrame)
    reason: str = ""
    strata: pl.DataFrame = field(default_factory=pl.DataFrame)
    queues: pl.DataFrame = field(default_factory=pl.DataFrame)
    n_tasks: int = 0
    n_tasks_judged: int = 0
    unknown: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()
    n_simulated: int = 0
    n_kept: int = 0
    seconds: float = 0.0
    grid: GridWhatIf | None = None
    warnings: Sequence[str] = ()

    @cached_property
    def verdict(self) -> Verdict:
        """The answer in one sentence, and the proposal document if there is one."""
        return propose(self)

    @property
    def answer(self) -> Answer:
        """Why the answer is what it is."""
        judged = self.judgement
        if judged is not None:
            return "change" if judged.acts else "keep" if judged.kind == "keep" else judged.case
        if self.validation is not None:
            return "invalid"
        return "unchanged" if self.verdict.kind == "keep" else "nothing"

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
        return NOW if self.judgement is None else self.judgement.last_scored

    @property
    def proof(self) -> pl.DataFrame:
        """See :func:`.tables.proof_of`; empty where the choice was to leave all as it is."""
        unchanged = self.compared == NOW
        return pl.DataFrame() if unchanged else proof_of(self.table, self.case.options.objective)

    @property
    def candidates(self) -> pl.DataFrame:
        """See :func:`.tables.candidates_of`; empty if nothing was simulated."""
        judged = self.judgement
        return pl.DataFrame() if judged is None else candidates_of(judged, self.n_tasks_judged)

    @property
    def sensitivity(self) -> pl.DataFrame:
        """See :func:`.tables.sensitivity_of`; empty if nothing was simulated."""
        return pl.DataFrame() if self.judgement is None else sensitivity_of(self.judgement)

    @property
    def stable(self) -> bool:
        """Whether halving or doubling any limit leaves the choice on everything as it is."""
        judged = self.judgement
        return judged is None or bool((self.sensitivity["setting"] == judged.best.name).all())

    def to_dict(self) -> dict[str, Any]:
        """Return the facts that are not tables."""
        case, options, checked = self.case, self.case.options, self.validation
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
            "valid": None if checked is None else checked.ok,
            "validation": "" if checked is None else checked.sentence,
            "calibration": [at.isoformat() for at in case.periods[0]],
            "proof": [at.isoformat() for at in case.periods[1]],
            "n_settings": self.n_settings,
            "searched_together": list(self.together),
            "n_simulated": self.n_simulated,
            "n_kept": self.n_kept,
            "missing": [f"{one.config}: {one.reason}" for one in self.missing],
            "capacity_unknown": list(self.unknown),
            "seed": options.seed,
        }

    @property
    def n_settings(self) -> int:
        """Settings tried."""
        return self.tried["setting"].n_unique() if self.tried.height else 0

    @property
    def unknown_quantities(self) -> list[str]:
        """Labels of the quantities that the simulation does not know."""
        if self.tried.is_empty():
            return []
        labels = self.tried.filter(pl.col("before").is_null())["label"]
        return labels.unique(maintain_order=True).to_list()

    @property
    def unfinished_share(self) -> float:
        """Part of the tasks that are not over at the end of a simulation of what is now [1]."""
        if self.tried.is_empty():
            return 0.0
        shares = self.tried.filter(quantity="unfinished")["before"].drop_nulls()
        return float(shares[0]) if len(shares) else 0.0


def calibrate(
    case: Case,
    what_if: WhatIf,
    *,
    screen: Screen | None = None,
    validation: Validation | Callable[[], Validation] | None = None,
    store: str | Path | None = None,
    warnings: Sequence[str] = (),
) -> Calibration:
    """Find better values of some keys on history, judge them on a later period, or say that there are none.

    Which settings are judged is found on the first period alone; the setting chosen there is scored on a later
    period that nothing was chosen on, then one is chosen on both (see :mod:`brokerlab.calibrate.judge`). Nothing is proposed
    from a simulation that does not give back what was seen. Where the slots of queues are unknown, an answer counts that
    is the same with as many as were seen and with ``options.capacity_most`` times as many; else there is none.

    Args:
        case: Keys with values to try, periods, options.
        what_if: A simulation, such as ``grid.of_archive(archive, periods)``.
        screen: Of the keys: those that change no decision, or none that the simulation holds, are left out; null: all are
            simulated.
        validation: Whether the simulation is to be believed, or what finds that out; null: the caller vouches for it.
        store: Folder where results are kept: an interrupted study goes on, see :class:`.Runs`; null: nowhere.
        warnings: Of the input, kept with the result.

    Raises:
        ConfigError: A store, and a simulation that does not say what its results depend on.
        InsufficientDataError: The present settings cannot be simulated.

    Source: calibration.md 2 and 4; gdpconfig.md.
    """
    asked = case
    if screen is None:
        screen = Screen(case.periods[0], pl.DataFrame(), pl.DataFrame())
    else:
        names = set(screen.keys.filter("simulate")["key"])
        asked = replace(case, space=case.space.only(names))
    grid = what_if if isinstance(what_if, GridWhatIf) else None
    result = Calibration(case=case, screen=screen, grid=grid, warnings=warnings)
    if not asked.space.keys:
        return result
    checked = validation() if callable(validation) else validation
    result = replace(result, validation=checked)
    if checked is not None and not checked.ok:
        return result
    return _judge(result, asked, what_if, store)


def _simulations(case: Case, what_if: WhatIf, store: str | Path | None) -> Simulations:
    """Return the simulations of both periods, each with seeds of its own; nothing is run yet."""
    options = case.options
    blocks = tuple(
        Block(period, tuple(range(first, first + options.most_replications)))
        for period, first in zip(case.periods, (options.seed, options.seed + LATER), strict=True)
    )
    return Simulations(
        case.space, options, Runs(what_if, Store.at(store, what_if), options.workers), blocks
    )


def _judge(
    result: Calibration, case: Case, what_if: WhatIf, store: str | Path | None
) -> Calibration:
    """Search, judge, and judge again where slots are unknown."""
    options, simulations = case.options, _simulations(case, what_if, store)
    tried, together, judgement = _judge_keys(simulations)
    table, n_tasks = _score(simulations, judgement)
    reason = ""
    runs, unknown = [simulations.runs], what_if.unknown()
    if unknown and options.capacity_most > 1 and judgement.kind != "no_answer":
        larger = _simulations(case, what_if.larger(options.capacity_most), store)
        runs.append(larger.runs)
        # of a change whether it holds, of anything else the whole question
        again = judgement.acts
        other = larger.judge([judgement.setting]) if again else _judge_keys(larger)[2]
        if (other.kind, other.setting) != (judgement.kind, judgement.setting):
            seen = _sentence_on(case, judgement, table, n_tasks)
            more = _sentence_on(case, other, *_score(larger, other))
            reason = capacity_unknown(unknown, seen, more)
            judgement = judgement.cannot_tell()
    current, chosen = simulations.current, judgement.last_scored
    strata = pl.DataFrame()
    if chosen != current:
        strata = by_stratum(simulations, (current, chosen))
    sides = [simulations.simulated(one, simulations.blocks[1]) for one in (current, chosen)]
    return replace(
        result,
        tried=tried,
        together=together,
        judgement=judgement,
        table=table,
        reason=reason,
        strata=strata,
        queues=by_queue(sides[0], sides[1], 1 - options.alpha),
        n_tasks=n_tasks,
        n_tasks_judged=simulations.n_tasks(),
        unknown=unknown,
        missing=tuple(one for run in runs for one in run.missing),
        n_simulated=sum(run.n_simulated for run in runs),
        n_kept=sum(run.n_kept for run in runs),
        seconds=sum(run.seconds for run in runs),
    )


def _judge_keys(simulations: Simulations) -> tuple[pl.DataFrame, tuple[str, ...], Judgement]:
    """Search on the first period with few replications; judge what is worth it on all periods."""
    period, seeds = simulations.blocks[0]
    few = seeds[: simulations.options.replications]
    first = replace(simulations, blocks=(Block(period, few),))
    settings, tried, together = search(first)
    return tried, together, simulations.judge(settings)


def _score(simulations: Simulations, judgement: Judgement) -> tuple[pl.DataFrame, int]:
    n_tasks = simulations.n_tasks([1] if judgement.n_scored < judgement.n_units else None)
    return as_shown(judgement.table, n_tasks), n_tasks


# --- which settings are worth judging ---------------------------------------------------------------------------------


MOST_JUDGED = 6
"""Settings that are judged at most, those of the least objective: each takes many more simulations."""
STEP = 0.03
"""Steps smaller than this part of a value are not halved: nothing is proposed to more digits."""


def search(first: Simulations) -> tuple[tuple[Setting, ...], pl.DataFrame, tuple[str, ...]]:
    """Search the first period: return the settings worth judging, what was tried, and the keys that were searched together.

    Worth judging are, of those that may be the best (their interval reaches below that of the best within the limits, and below
    0), the `MOST_JUDGED` best, at least one.
    """
    options = first.options
    known = first.among(one for key in first.space.keys for one in first.space.single(key.name))
    values = _best_values(first, known)
    for _ in range(1, options.most_keys):
        best = dict(_best(first, known).values)
        beside = [
            Setting.of({**best, **value})
            for name, some in values.items()
            if name not in best
            for value in some
        ]
        new = [one for one in beside if one not in known]
        if not new:
            break
        known = first.among([*known, *new])
    names = list(dict.fromkeys([*_best(first, known).keys, *values]))[: options.most_keys]
    keys = [first.space.key(name) for name in names]
    for _ in range(options.rounds):
        best_now = _best(first, known)
        middles = [middle for key in keys for middle in _middles(key, best_now, known)]
        new = [one for one in middles if one not in known and first.space.entries(one)]
        if not new:
            break
        known = first.among([*known, *new])
    tried = tried_frame(first, known)
    rows = tried.filter(pl.col("quantity") == options.objective).sort("diff", "setting")
    good = [known[at].name for at in np.flatnonzero(_within(_sums(first, known)))]
    within = rows.filter(pl.col("setting").is_in(good))
    least = within["diff_hi"].min()
    most = min(0.0, float(least)) if isinstance(least, float) else 0.0
    rivals = rows.filter(~(pl.col("diff_lo") > most).fill_null(value=False))["setting"]
    judged = {*rivals.head(MOST_JUDGED), *rows["setting"].head(1), *within["setting"].head(1)}
    kept = tuple(one for one in known if one.name in judged)
    return kept, tried, tuple(names)


def _best(first: Simulations, known: Sequence[Setting]) -> Setting:
    sums = _sums(first, known)
    return known[sums.choose(range(sums.n_blocks), 1.0)]


def _best_values(first: Simulations, known: Sequence[Setting]) -> dict[str, list[dict[str, Any]]]:
    """Return each key with its best other value, the key with the least objective first.

    Of a key all of whose values do the same, as one that starves tasks hides it, both ends: none of them is the best.
    """
    sums = _sums(first, known)
    mean = sums.mean(first.options.objective, range(sums.n_blocks))
    within = _within(sums)
    places: dict[str, list[int]] = {}
    for at in sorted(range(len(known)), key=lambda at: (not within[at], mean[at])):
        if at != sums.outcomes.current:
            places.setdefault(known[at].keys[0], []).append(at)
    return {
        name: [
            dict(known[at].values)
            for at in ((some[0], some[-1]) if len(set(mean[some])) == 1 < len(some) else some[:1])
        ]
        for name, some in places.items()
    }


def _sums(first: Simulations, known: Sequence[Setting]) -> Sums:
    """Return the sums of settings, of which none is preferred for its small effort."""
    return Sums.of(replace(first.outcomes(known), efforts=()), first.question(known))


def _within(sums: Sums) -> BoolArray:
    """Return which settings keep their limits, one standard error off."""
    return np.asarray(sums.excess(range(sums.n_blocks), 1.0, errors=1.0) == 0)


def _middles(key: Key, best: Setting, known: Iterable[Setting]) -> list[Setting]:
    """Return the settings half way to the values of a key that were tried beside the best, the other keys as there."""
    values = dict(best.values)
    others = {name: value for name, value in values.items() if name != key.name}
    here = values.get(key.name, key.current)
    if here is None:
        return []
    tried = {value for value in key.grid if value is not None}
    for one in known:
        rest = dict(one.values)
        value = rest.pop(key.name, key.current)
        if rest == others and value is not None:
            tried.add(value)
    sides = [
        max((v for v in tried if v < here), default=None),
        min((v for v in tried if v > here), default=None),
    ]
    log = key.threshold.scale == "log"
    result = []
    for side in (side for side in sides if side is not None):
        half = (side * here) ** 0.5 if log and side > 0 and here > 0 else (side + here) / 2
        value = key.threshold.snapped(half)
        apart = abs(half - here) > STEP * max(abs(half), abs(here))
        if value not in tried and value != here and apart:
            result.append(Setting.of({**others, key.name: value}))
    return result


# --- the judgement as a sentence and a document ---------------------------------------------------------------------


NOT_SIMULATED = (
    "none of the keys both changes decisions and can be judged by the simulator; see the screen."
)


def propose(result: Calibration) -> Verdict:
    """Put a calibration into a sentence and, where there is an answer, into a document.

    Source: calibration.md 2.
    """
    case, judgement, checked = result.case, result.judgement, result.validation
    document: Proposal | None = None
    kind: Kind = "no_answer"
    if judgement is not None:
        kind = judgement.kind
        if result.screen.keys.height:  # others were not simulated
            simulated = set(result.screen.keys.filter("simulate")["key"])
            case = replace(case, space=case.space.only(simulated))
        sentence = _sentence_on(case, judgement, result.table, result.n_tasks, result.reason)
        document = document_of(
            judgement,
            sentence,
            case.space.config,
            case.space.entries(judgement.setting),
            case.places,
            effects=result.table,
            windows=_windows(case),
            units="spans",
            numbers={
                **_numbers(case, checked),
                "settings_tried": result.n_settings,
                "tasks_scored": result.n_tasks,
                "capacity_unknown": len(result.unknown),
                "stable_under_halved_and_doubled_limits": str(result.stable).lower(),
                "inner_limit": judgement.inner,
                **({} if result.grid is None else result.grid.conditions),
            },
            helps=affected(result.strata, result.queues, ("gains", "emptier")),
            hurts=affected(result.strata, result.queues, ("loses", "fuller")),
            synthetic=case.synthetic,
            **_about(case, judgement.setting),
        )
    elif checked is None and (result.screen.keys["state"] == NOTHING).all():
        kind = "keep"
        sentence = (
            f"Keep {as_is(case.space.keys)}. No value between the guard rails that was tried changes any decision of the "
            "calibration period."
        )
        evidence = Evidence(
            sentence, (), _windows(case)[:1], (), (), _numbers(case), case.synthetic
        )
        document = Proposal.to_keep(
            case.space.config, case.places, evidence=evidence, **_about(case, NOW)
        )
    else:
        reason = NOT_SIMULATED if checked is None else checked.sentence
        sentence = reason if reason.startswith("No answer: ") else f"No answer: {small(reason)}"
    names = [key.name for key in case.space.keys]
    subject = ", ".join(names)
    if len(names) > 3:
        subject = f"{', '.join(names[:2])} and {len(names) - 2} more keys"
    return Verdict(kind, sentence, subject, document, information_only=False)


def _sentence_on(
    case: Case, judgement: Judgement, table: pl.DataFrame, n_tasks: int, unknown: str = ""
) -> str:
    quantity = quantity_of(case.options.objective)
    now = judgement.candidates.filter("is_current")[quantity.name][0]
    limits = [
        f"{name} +{most:g}{' %' if LIMITS[name].of else ''}"
        for name, most in case.options.allowed.items()
    ]
    return sentence_of(
        judgement,
        actions=action(case.space, judgement.setting),
        kept=f"Keep {as_is(case.space.keys)}",
        effects=f"{effects(quantity.name, table)}, {n_tasks:,} tasks of {days(case.periods[1])}",
        now=f"{small(quantity.label)} {now:.3g} {quantity.unit}",
        limit=", ".join(limits) or "none",
        loss=f"the {small(quantity.label)}",
        units="spans of time",
        unknown=unknown,
    )


def _windows(case: Case) -> tuple[Window, ...]:
    choice, scored = case.periods
    return Window("choice", *choice), Window("scored", *scored)


def _about(case: Case, setting: Setting) -> dict[str, Any]:
    title = action(case.space, setting) or f"Keep {as_is(case.space.keys)}"
    return {
        "title": title if len(title) <= LONG else f"{title[: LONG - 3]}...",
        "created_at": case.created_at,
        "archive_digest": case.archive_digest,
        "rules_digest": case.rules,
    }


def _numbers(case: Case, checked: Validation | None = None) -> dict[str, float | int | str | None]:
    options = case.options
    return {
        "objective": options.objective,
        "alpha": options.alpha,
        "replications": options.most_replications,
        "capacity_most": options.capacity_most,
        "intervals_hold": COVERS,
        "validation": checked.sentence
        if checked
        else "none: the caller vouched for the simulation",
        **{f"limit_{name}": value for name, value in options.allowed.items()},
    }
