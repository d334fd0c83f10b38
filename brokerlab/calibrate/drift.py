"""Does an accepted proposal still hold on later data? The judge asked again, with what was accepted as the current setting.

`LaterArchive` asks any proposal on an archive. Each kind of setting brings what it takes (`Again`); the answer is read off one
judgement in one way. Where a proof cannot be repeated on an archive, the answer is that, never that the proposal holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Literal, NamedTuple, ParamSpec

import polars as pl
from pydantic import ValidationError

from brokerlab.archive.store import Archive
from brokerlab.brokerage.network_weight import NetworkSettings
from brokerlab.calibrate.judge import MIN_UNITS, Judgement, Question, judge
from brokerlab.calibrate.network_curve import Evidence, files_per_unit, read_links, study_exchange
from brokerlab.calibrate.network_curve.study import DECIMALS, LOSS, gain_of
from brokerlab.calibrate.network_curve.study import KEYS as EXCHANGE_KEYS
from brokerlab.calibrate.percentiles.backtest import at_setting, backtest
from brokerlab.calibrate.percentiles.frames import JUDGED, compare, quantities_of
from brokerlab.calibrate.percentiles.history import Inputs, load
from brokerlab.calibrate.percentiles.parameters import (
    COMPONENTS,
    PARAMETERS,
    Assumptions,
    LossWeights,
    Parameter,
    Setting,
    current_setting,
)
from brokerlab.calibrate.percentiles.study import kills
from brokerlab.calibrate.simulation import Validation
from brokerlab.calibrate.thresholds import LIMITS, QUANTITIES, Options, Period, WhatIf, threshold_of
from brokerlab.calibrate.thresholds import settings as thresholds
from brokerlab.calibrate.thresholds.archive_study import too_short
from brokerlab.calibrate.thresholds.outcomes import of_archive, quantity_of
from brokerlab.calibrate.thresholds.settings import HOLDS
from brokerlab.calibrate.thresholds.simulations import LEAST_SPANS, PREFIX, Block, Runs, Simulations
from brokerlab.calibrate.thresholds.tables import as_shown, capacity_unknown, effects, small
from brokerlab.calibrate.verdict import limit_of
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import Filed, Proposal, find
from brokerlab.gdpconfig.proposal.document import tasks_in_words
from brokerlab.intervals import ENDS
from brokerlab.numerics import percent_of
from brokerlab.rulesets import NAMES, RuleSetName
from brokerlab.scouts import ScoutRules
from brokerlab.words import days_of, measured, number, short_percent

P = ParamSpec("P")
Status = Literal["holds", "does_not_hold", "cannot_tell", "cannot_be_checked"]
WORDS: Mapping[Status, str] = {
    "holds": "Holds",
    "does_not_hold": "Does not hold",
    "cannot_tell": "Cannot tell",
    "cannot_be_checked": "Cannot be checked",
}
WEIGHT: tuple[Status, ...] = ("holds", "cannot_be_checked", "cannot_tell", "does_not_hold")
"""Answers about parts, the last one decides about the whole."""
LAST_DAY = timedelta(days=1)
"""Tasks of it are not judged: they may end in it."""
SCHEMA = {
    "quantity": pl.String,
    "unit": pl.String,
    **dict.fromkeys(
        [f"{side}{end}" for side in ("stated", "measured") for end in ENDS],
        pl.Float64,
    ),
    "apart": pl.Boolean,
}
"""Columns of :attr:`Drift.effects`."""


NO_PROOF = (
    "no proof of {keys} can be repeated on an archive alone; run the report that proposed it on the later archive, and "
    "compare what it says then"
)


class NotRepeatableError(InsufficientDataError):
    """Raised when a proof cannot be repeated on any archive."""


@dataclass(frozen=True)
class Drift:
    """Whether a proposal still holds.

    Attributes:
        status: ``holds``; ``does_not_hold`` (refuted by an interval); ``cannot_tell`` (this archive does not say);
            ``cannot_be_checked`` (no archive could: the proof cannot be repeated).
        sentence: With numbers and their certainty.
        effects: What the proposal states against what the later data show, one row per effect: ``quantity, unit`` (of
            the difference proposed minus current; totals in per cent of current, for archives differ in length)``,
            stated, stated_lo, stated_hi, measured, measured_lo, measured_hi, apart`` (the intervals do not meet; null = no interval).
        judgement: Of the accepted setting on the later data; null = the judge was not asked.
        window: First and last time of what was scored; null = nothing was, or it is not known.
    """

    status: Status
    sentence: str
    effects: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SCHEMA))
    judgement: Judgement | None = None
    window: tuple[datetime, datetime] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, times as text."""
        return {
            "status": self.status,
            "sentence": self.sentence,
            "effects": self.effects.to_dicts(),
            "window": None if self.window is None else [time.isoformat() for time in self.window],
            "judgement": None if self.judgement is None else self.judgement.to_dict(),
        }


@dataclass(frozen=True, kw_only=True)
class Again:
    """What a kind of setting brings to be asked again.

    Attributes:
        judgement: On later data, with what was accepted as the current setting.
        table: The setting before the proposal, of a keep the accepted one, and the accepted one on all units, see
            :meth:`Judgement.between`.
        where: The data, in words.
        findings: What the table says, in words.
        better: The setting that the judge proposes, in words.
        effects: Label and unit of an effect to its row, and whether it is a total, which is compared in per cent of before.
        units: What was judged on, in the plural.
        notes: What the data cannot tell, in sentences.
    """

    judgement: Judgement
    table: pl.DataFrame
    where: str
    findings: str
    better: str
    effects: Mapping[tuple[str, str], tuple[Mapping[str, Any], bool]]
    units: str
    window: tuple[datetime, datetime]
    notes: Sequence[str] = ()


def answered(
    again: Callable[Concatenate[Proposal, P], Again],
) -> Callable[Concatenate[Proposal, P], Drift]:
    """Say whether a proposal holds, by what its kind brings; where nothing can be scored, why not.

    ``does_not_hold``: another setting is shown to be better now, or the accepted one breaks a limit by its interval, or it
    costs more than the one before, which keeps the limits. ``holds``: nothing is better and an effect that matters would have
    been seen, or the limits are kept and, for a change, the setting before costs more or breaks a limit, by their
    intervals. ``cannot_tell``: anything between, or too few units.
    """

    @wraps(again)
    def ask(proposal: Proposal, /, *args: P.args, **how: P.kwargs) -> Drift:
        try:
            if proposal.sources or proposal.takes_back:
                kind = "merged from others" if proposal.sources else "one that takes another back"
                raise NotRepeatableError(
                    f"the proposal is {kind}: ask of each of those it comes from"
                )
            asked = again(proposal, *args, **how)
        except InsufficientDataError as error:
            return refused(error)
        judgement = asked.judgement
        status = _status(judgement, asked.table, keep=proposal.kind == "keep")
        beside = _effects_beside(proposal, asked.effects)
        parts = [asked.findings, _judge_in_words(judgement, asked.better, asked.units)]
        known = beside.drop_nulls("apart")
        if known.height:
            names = known.filter("apart")["quantity"].to_list()
            apart = f"{len(names)} of {known.height} effects lie apart from the proposal's"
            parts.append(": ".join([apart, ", ".join(names)]) if names else apart)
        where = f"{WORDS[status]} on {asked.where}: {'; '.join(parts)}."
        return Drift(status, " ".join([where, *asked.notes]), beside, judgement, asked.window)

    return ask


def refused(error: InsufficientDataError) -> Drift:
    """Return the answer where nothing was scored."""
    status: Status = "cannot_be_checked" if isinstance(error, NotRepeatableError) else "cannot_tell"
    return Drift(status, f"{WORDS[status]}: {error}")


def _status(judgement: Judgement, table: pl.DataFrame, *, keep: bool) -> Status:
    """Return the answer that follows from the judge and from the settings before (``before``) and accepted (``after``)."""
    if judgement.case == "few":
        return "cannot_tell"
    objective = pl.col("quantity") == judgement.question.objective
    low, high = table.filter(objective).select("diff_lo", "diff_hi").row(0)
    limits = table.drop_nulls("limit")
    kept_before = (limits["before"] <= limits["limit"]).all()
    worse = not keep and low > 0 and kept_before
    if judgement.acts or judgement.case == "breach" or worse:
        return "does_not_hold"
    gained = keep or high < 0 or (limits["before_lo"] > limits["limit"]).any()
    kept = (limits["after"] <= limits["limit"]).all()
    return "holds" if judgement.kind == "keep" or (gained and kept) else "cannot_tell"


def _judge_in_words(judgement: Judgement, better: str, units: str) -> str:
    if judgement.case == "few":
        return f"{MIN_UNITS} {units} are needed"
    if judgement.acts:
        return f"{better} is better now"
    if judgement.case == "breach":
        return "it breaks the limit, and no other setting is shown to be better"
    if judgement.case == "unconfirmed":
        return "settings chosen on earlier units were better, the last choice is not"
    if judgement.smallest_seen is None:
        return "no other setting that was tried keeps the limit and has a gain that can be told"
    seen = short_percent(judgement.smallest_seen)
    if judgement.kind == "keep":
        return f"nothing tried is better, a gain of more than {seen} would have been seen"
    return f"nothing tried is shown to be better, a gain of up to {seen} is not excluded"


def _effects_beside(
    proposal: Proposal, effects: Mapping[tuple[str, str], tuple[Mapping[str, Any], bool]]
) -> pl.DataFrame:
    """Set what a proposal says beside what is seen now, see :attr:`Drift.effects`."""
    rows = []
    for effect in proposal.evidence.effects:
        row, total = effects.get((effect.quantity, effect.unit), ({}, False))
        if not row or effect.difference is None:
            continue
        stated: list[float | None] = [effect.difference, effect.low, effect.high]
        if total:
            stated = [percent_of(end, effect.current) for end in stated]
        name = "diff_pct" if total else "diff"
        here = [row[f"{name}{end}"] for end in ENDS]
        if stated[0] is None or here[0] is None:
            continue
        unit = "% of before" if total else effect.unit
        rows.append((effect.quantity, unit, *stated, *here, None))
    below = pl.col("stated_hi") < pl.col("measured_lo")
    above = pl.col("measured_hi") < pl.col("stated_lo")
    return pl.DataFrame(rows, schema=SCHEMA, orient="row").with_columns(apart=below | above)


# --- any proposal -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LaterArchive:
    """An archive that proposals are asked on, from ``start`` to before ``end`` (UTC, null: no bound); read once for all.

    The parts of merged proposals are looked for in the folder ``reports``.
    """

    archive: Archive
    start: datetime | None = None
    end: datetime | None = None
    reports: Path | None = None
    _scouts: dict[str, Inputs] = field(default_factory=dict, repr=False, compare=False)

    def ask(self, proposal: Proposal) -> Drift:
        """Return whether a proposal still holds; where its proof cannot be made again, that is the answer."""
        try:
            if proposal.sources and not proposal.takes_back:
                return all_of([(part.title, self.ask(part)) for part in self._parts(proposal)])
            keys = {change.key for change in proposal.changes}
            if keys <= KEYS.keys():
                return percentiles_drift(proposal, self._tasks(_rules_of(proposal)))
            if is_of_thresholds(proposal):
                return self._thresholds(proposal)
            if is_of_exchange(proposal):
                return self._exchange(proposal)
            raise NotRepeatableError(NO_PROOF.format(keys=", ".join(sorted(keys))))
        except InsufficientDataError as error:
            return refused(error)

    def _parts(self, proposal: Proposal) -> list[Proposal]:
        """Return the proposals that one was merged from, found in the folder of reports."""
        filed = find(self.reports) if self.reports is not None and self.reports.exists() else []
        known = {one.proposal.digest: one.proposal for one in filed if isinstance(one, Filed)}
        missing = [source.title for source in proposal.sources if source.digest not in known]
        if missing:
            raise NotRepeatableError(
                f"the proposal is merged from others, and {', '.join(missing)} do not lie in {self.reports}: say where "
                "(--reports)"
            )
        return [known[source.digest] for source in proposal.sources]

    def _tasks(self, rules: RuleSetName) -> Inputs:
        """Read what scouts say, once for a rule set, as the report that made the proposal did."""
        if rules not in self._scouts:
            whole = self.archive.derive()
            self._scouts[rules] = load(whole, start=self.start, end=self.end, rules=rules)
        return self._scouts[rules]

    def _exchange(self, proposal: Proposal) -> Drift:
        """Ask of the metrics of links from after the proposal's own data."""
        since = data_end(proposal)
        begin = max((at for at in (self.start, since) if at is not None), default=None)
        later = read_links(self.archive.path, start=begin, end=self.end)
        if since is None and proposal.digests.archive in later.digests:
            raise InsufficientDataError("the archive is the one that the proposal was made from")
        evidence = later.evidence.get("metrics")
        if evidence is None:
            missing = f"{self.archive.path} has no metrics of links (network_matrix)"
            raise InsufficientDataError(later.refused.get("metrics", missing))
        rules = _rules_of(proposal)
        return exchange_drift(proposal, evidence, config=later.config, rules=rules)

    def _thresholds(self, proposal: Proposal) -> Drift:
        """Simulate the archive under the proposal's conditions, if the simulation gives back what was seen there."""
        period = self._later_period(proposal)
        if short := too_short(self.archive, {"later": period}):
            raise InsufficientDataError(short[0])
        config = Config.recorded(self.archive, period.end)
        decide = {threshold_of(change.key).stage for change in proposal.changes}
        stage = next((name for name, held in HOLDS.items() if decide <= {*held}), "jobs")
        conditions = {"stage": stage, "cycle": "", "capacity": ""}
        stated = proposal.evidence.numbers or {}
        conditions |= {name: str(stated[name]) for name in conditions if stated.get(name)}
        try:
            simulation = of_archive(self.archive, [period], rules=_rules_of(proposal), **conditions)
        except ConfigError as error:
            raise NotRepeatableError(f"it was made with known slots; {error}") from error
        validation = simulation.validate(period)
        return thresholds_drift(proposal, simulation, period, config=config, validation=validation)

    def _later_period(self, proposal: Proposal) -> Period:
        """Return the part of the archive that a proposal was not made from."""
        path, window = self.archive.path, self.archive.manifest.window
        if window is None:
            raise InsufficientDataError(f"{path} has no jobs")
        first, last = (datetime.fromisoformat(text) for text in window)
        since = data_end(proposal)
        start, end = self.start or first, self.end or last
        period = Period(start if since is None else max(start, since), end)
        if period.start >= period.end:
            raise InsufficientDataError(
                f"{path} ends {period.end}, before what the proposal was not made from begins ({period.start})"
            )
        if period.end - period.start <= LAST_DAY:
            raise InsufficientDataError(
                f"{path} ends {period.end}, a day or less after what the proposal was not made from begins ({period.start}), and "
                "tasks of the last day may not be over"
            )
        return period


def _rules_of(proposal: Proposal) -> RuleSetName:
    """Return the rule set that a proposal was made under, ``document`` where it names none."""
    named = (proposal.digests.rules or "").split(" ")[0]
    return "production" if named == "production" else "document"


def all_of(parts: Sequence[tuple[str, Drift]]) -> Drift:
    """Return the answer about a merged proposal: the worst of its parts, the effects of all with the number of their part."""
    worst = max((drift.status for _, drift in parts), key=WEIGHT.index)
    n = sum(drift.status == "holds" for _, drift in parts)
    sentences = " ".join(
        f"({i}) {title}: {drift.sentence}" for i, (title, drift) in enumerate(parts, start=1)
    )
    beside = [
        drift.effects.with_columns(quantity=pl.format("({}) {}", pl.lit(i), "quantity"))
        for i, (_, drift) in enumerate(parts, start=1)
    ]
    head = f"{WORDS[worst]}: {n} of {len(parts)} parts hold"
    return Drift(worst, f"{head}. {sentences}", pl.concat(beside))


def how_judged(proposal: Proposal) -> dict[str, Any]:
    """Return the options of the judge's question that a proposal tells; others have their defaults."""
    numbers = proposal.evidence.numbers or {}
    try:
        options = {name: cast(numbers[key]) for name, key, cast in JUDGED_BY if numbers.get(key)}
    except ValueError as error:
        raise NotRepeatableError(f"a number of the proposal is none: {error}") from error
    return {"seed": 0, **options}


JUDGED_BY: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("relevant", "relevant", float),
    ("n_boot", "bootstrap_replicates", int),
    ("seed", "seed", int),
)
"""Option of a question, the name of its number in a document, and its type."""


def data_end(proposal: Proposal) -> datetime | None:
    """Return the end of the data that a proposal was made from; null = it does not tell."""
    return max((window.end for window in proposal.evidence.windows), default=None)


# --- percentiles of the scouts: replayed on later tasks -----------------------------------------------------------------


POOLED = ("First attempts killed", "share of jobs")
"""What older documents call the share of all jobs: now the mean over tasks has the shorter name."""
KEYS = {key: p for p in PARAMETERS.values() for key in (p.rank_key, p.margin_key) if key}
"""Key to its parameter."""


class Asked(NamedTuple):
    """Two settings of a scout parameter (the same for a keep), and how they were judged."""

    parameter: Parameter
    current: Setting
    proposed: Setting
    assumptions: Assumptions
    weights: LossWeights
    question: Question


def question_of(proposal: Proposal, config: Config) -> Asked:
    """Return what a proposal on the percentiles of the scouts asks."""
    keys = sorted({change.key for change in proposal.changes})
    if others := ", ".join(key for key in keys if key not in KEYS):
        raise NotRepeatableError(
            f"no back-test of an archive alone scores {others}: run its report again"
        )
    parameter = KEYS[keys[0]]
    if len({KEYS[key].name for key in keys}) > 1:
        raise NotRepeatableError(
            f"{', '.join(keys)} are of several parameters: ask of one at a time"
        )
    if filters := proposal.evidence.filters:
        raise NotRepeatableError(
            f"the proposal was measured on {tasks_in_words(filters)}: run its report again with that filter"
        )
    numbers = proposal.evidence.numbers or {}
    limit = numbers.get("max_exceed")
    if not isinstance(limit, int | float):
        raise NotRepeatableError("the proposal does not tell its limit (max_exceed)")
    digest = proposal.digests.rules
    rules = [each for each in map(ScoutRules, NAMES) if each.digest == digest]
    if not rules:  # single switches that differ cannot be known from there
        raise NotRepeatableError(f"made under rules that are not those of this version: {digest}")
    stated = {name: numbers.get(f"weight_{name}") for name in COMPONENTS}
    weights = {name: float(w) for name, w in stated.items() if isinstance(w, int | float)}

    def setting(values: Mapping[str, Any]) -> Setting:
        """What the proposal leaves alone is as it acts."""
        try:
            return current_setting(config.with_values(values), parameter.name)
        except ConfigError as error:
            raise NotRepeatableError(str(error)) from error

    return Asked(
        parameter=parameter,
        current=setting({one.place: one.old for one in proposal.changes}),
        proposed=setting({one.place: one.new for one in proposal.changes}),
        assumptions=Assumptions(rules=rules[0]),
        weights=LossWeights.default(parameter.name, **weights),
        question=kills(float(limit), **how_judged(proposal)),
    )


@answered
def percentiles_drift(proposal: Proposal, inputs: Inputs) -> Again:
    """Score a proposal's setting against the one before it on later tasks, see calibration.md 2.

    Tasks created before the end of the proposal's own data are left out, and those without a ``creationdate``.
    """
    asked = question_of(proposal, inputs.config)
    before, accepted = asked.current, asked.proposed
    tried = backtest(
        replace(inputs, tasks=_later(inputs.tasks, data_end(proposal))),
        asked.parameter.name,
        current=accepted,
        also=[before],
        loss=asked.weights,
        assumptions=asked.assumptions,
    )
    outcomes = tried.outcomes()
    judgement = judge(outcomes, asked.question)
    table = judgement.between(before, accepted)
    rows = outcomes.units.select(jeditaskid="unit", weight="weight").join(
        tried.under(sorted({before, accepted})), on="jeditaskid", maintain_order="left"
    )
    now, then = (at_setting(rows, each) for each in (before, accepted))
    compared = compare(table, now, then, asked.parameter, asked.question)
    lines = {(line.label, line.unit): line for line in quantities_of(asked.parameter)}
    lines[POOLED] = next(line for line in lines.values() if line.name == "exceed_rate_jobs")
    window = outcomes.units["time"][0], outcomes.units["time"][-1]
    return Again(
        judgement=judgement,
        table=table,
        where=f"{days_of(*window)}, {outcomes.n_units:,} tasks",
        findings=_findings(judgement, table, keep=proposal.kind == "keep"),
        better="rank {} with margin {} %".format(*Setting(*judgement.setting).pair),
        effects={
            about: (compared.quantity(line.name), not line.over and line.name not in JUDGED)
            for about, line in lines.items()
        },
        units="tasks",
        window=window,
        notes=inputs.caveats,
    )


def _later(tasks: pl.DataFrame, since: datetime | None) -> pl.DataFrame:
    """Return the tasks that the proposal cannot have seen."""
    dated = tasks.filter(pl.col("creationdate").is_not_null())
    later = dated if since is None else dated.filter(pl.col("creationdate") >= since)
    if later.is_empty():
        raise InsufficientDataError(
            f"of {tasks.height} tasks none was created after the proposal's own data, which end {since} UTC"
        )
    return later


def _findings(judgement: Judgement, table: pl.DataFrame, *, keep: bool) -> str:
    rows = {row["quantity"]: row for row in table.iter_rows(named=True)}
    killed, loss = rows["exceed_rate"], rows["loss"]
    limit = f"limit {short_percent(limit_of(judgement))}"
    text = f"{short_percent(killed['after'])} of first attempts killed"
    if killed["after_lo"] is None:
        return f"{text} ({limit})"
    ends = f"{short_percent(killed['after_lo'])} to {short_percent(killed['after_hi'])}"
    text = f"{text} ({ends}; {limit})"
    if keep:
        return text
    return (
        f"{text}, {short_percent(killed['before'])} under the setting before, loss {loss['diff']:+.4f} "
        f"({loss['diff_lo']:+.4f} to {loss['diff_hi']:+.4f})"
    )


# --- importance of the queue in the network weight: later links --------------------------------------------------------


IMPORTANCE, CAP = EXCHANGE_KEYS


def is_of_exchange(proposal: Proposal) -> bool:
    """Whether a proposal is on the importance of the queue in the network weight."""
    keys = {change.key for change in proposal.changes}
    return IMPORTANCE in keys and keys <= {IMPORTANCE, CAP}


@answered
def exchange_drift(
    proposal: Proposal, evidence: Evidence, *, config: Config, rules: RuleSetName = "document"
) -> Again:
    """Judge the accepted importance of the queue on later links: network-weight.md 1, D2, D6; calibration.md 2.

    ``config`` is for what is not in the proposal.
    """
    before, accepted = _settings(proposal, config)
    if not evidence.later_queues:
        raise InsufficientDataError("one snapshot of links has nothing later to be delivered")
    judgement = study_exchange(
        evidence,
        accepted,
        rules=rules,
        also=(before.queue_importance,),
        **how_judged(proposal),
    ).judgement
    table = judgement.between(*(f"{one.queue_importance:g}" for one in (before, accepted)))
    gain = gain_of(table.row(by_predicate=pl.col("quantity") == LOSS, named=True))
    files = [f"{files_per_unit(one, rules):.0f}" for one in (before, accepted)]
    text = (
        "rank correlation of the network weight with how soon the queue of a link is delivered "
        f"{gain['after']:.{DECIMALS}f} with {files[1]} waiting files per unit of throughput weight"
    )
    beside = {}
    if proposal.kind != "keep":
        beside = {(one.quantity, one.unit): (gain, False) for one in proposal.evidence.effects}
        difference = measured(gain["diff"], gain["diff_lo"], gain["diff_hi"], DECIMALS)
        text += (
            f", {gain['before']:.{DECIMALS}f} with {files[0]} as before, difference {difference}"
        )
    window = evidence.spans[0][0], evidence.spans[-1][1]
    return Again(
        judgement=judgement,
        table=table,
        where=f"{window[0]:%Y-%m-%d} to {window[1]:%Y-%m-%d}, {number(judgement.n_units)} links",
        findings=text,
        better=f"{IMPORTANCE} = {judgement.setting}",
        effects=beside,
        units="links",
        window=window,
    )


def _settings(proposal: Proposal, config: Config) -> tuple[NetworkSettings, NetworkSettings]:
    """Return the importance before a proposal and the accepted one, of a keep the same; the cap is as before in both."""
    places = {one.key: one.place for one in proposal.changes}
    (change,) = (one for one in proposal.changes if one.key == IMPORTANCE)
    accepted = change.old if proposal.kind == "keep" else change.new
    for share in (change.old, accepted):
        if not isinstance(share, int | float) or not 0 < share < 1:
            raise NotRepeatableError(f"{IMPORTANCE} = {share!r} is no share between 0 and 1")
    try:
        before = config.with_values({one.place: one.old for one in proposal.changes})
        after = before.with_values({places[IMPORTANCE]: accepted})
        return NetworkSettings.of(before), NetworkSettings.of(after)
    except ConfigError as error:
        raise NotRepeatableError(str(error)) from error


# --- thresholds: simulated on a later period ----------------------------------------------------------------------------


LATER = 2_000_000
"""Seeds lie so far from those of the choice; those of the scored period lie between."""


def is_of_thresholds(proposal: Proposal) -> bool:
    """Whether a proposal was made by simulating thresholds."""
    numbers = proposal.evidence.numbers or {}
    return "objective" in numbers and "settings_tried" in numbers


def thresholds_drift(
    proposal: Proposal,
    what_if: WhatIf,
    period: Period,
    *,
    config: Config,
    validation: Validation | None = None,
) -> Drift:
    """Simulate the values before a proposal and those it asks for on a period after its own data, and ask the judge.

    The accepted values are the current setting; the setting before is the other one, and what limits compare with; ``config`` is
    for keys that are not in the proposal. Where the slots of queues are unknown, the answer must be the same with the slots seen
    and with so many times as many as the proposal was made with. A keep, which compared many settings, cannot be checked. Without
    a validation the caller vouches for the simulation.

    Source: calibration.md, sections 2 and 4.
    """
    drift = _simulate(proposal, what_if, period, config, validation)
    if drift.judgement is None or drift.status == "cannot_tell":
        return drift
    most = _to_simulate(proposal, config)[2].capacity_most
    if most == 1 or not (unknown := what_if.unknown()):
        return drift
    more = _simulate(proposal, what_if.larger(most), period, config, validation)
    if more.status == drift.status or more.judgement is None:
        return more if more.judgement is None else drift
    reason = capacity_unknown(unknown, drift.sentence, more.sentence)
    return replace(drift, status="cannot_tell", sentence=f"{WORDS['cannot_tell']}: {reason}.")


@answered
def _simulate(
    proposal: Proposal,
    what_if: WhatIf,
    period: Period,
    config: Config,
    validation: Validation | None,
) -> Again:
    """Ask the judge under one assumption about slots."""
    space, setting, options = _to_simulate(proposal, config)
    if validation is not None and not validation.ok:
        raise InsufficientDataError(validation.sentence.removeprefix("No answer: "))
    first = options.seed + LATER
    block = Block(period, tuple(range(first, first + options.most_replications)))
    simulations = Simulations(
        space, options, Runs(what_if), (block,), current=setting, least=2 * LEAST_SPANS
    )
    judgement = simulations.judge([thresholds.NOW])
    table = judgement.between(thresholds.NOW, setting)
    n_tasks = simulations.n_tasks()
    shown = as_shown(table, n_tasks)
    broken = table.filter(pl.col("kept").not_())["quantity"].str.strip_prefix(PREFIX)
    limits = [small(quantity_of(LIMITS[name].quantity).label) for name in broken]
    beyond = f"; the limit on {' and '.join(limits)} is broken" if limits else ""
    rows = {row["quantity"]: row for row in shown.to_dicts()}
    other = judgement.setting  # there is one: that before the proposal
    return Again(
        judgement=judgement,
        table=table,
        where=(
            f"{days_of(period.start, period.end)}, {n_tasks:,} tasks, {options.most_replications} simulations of each"
        ),
        findings=f"{effects(options.objective, shown)}{beyond}",
        better="the setting before" if other == thresholds.NOW else other.name,
        effects={(q.label, q.unit): (rows[q.name], q.total) for q in QUANTITIES},
        units="spans of time",
        window=(period.start, period.end),
    )


def _to_simulate(
    proposal: Proposal, config: Config
) -> tuple[thresholds.Space, thresholds.Setting, Options]:
    """Return the configuration before a proposal with its keys, the setting that it asks for, and how to simulate."""
    if proposal.kind == "keep":
        raise NotRepeatableError(
            "a keep of thresholds has compared many settings: run the report that wrote it on the later archive"
        )
    numbers = proposal.evidence.numbers or {}
    objective = str(numbers.get("objective"))
    if objective not in [quantity.name for quantity in QUANTITIES]:
        raise NotRepeatableError(f"the proposal does not tell its objective ({objective})")
    changes = [change for change in proposal.changes if change.action != "none"]
    before = config.with_values(
        {change.place: None if change.before is None else change.old for change in changes}
    )
    replications = numbers.get("replications", 4)
    fields = {
        **how_judged(proposal),
        **{name: numbers.get(name) for name in ("objective", "alpha", "capacity_most")},
        "replications": replications,
        "most_replications": replications,
        "limits": {name: numbers.get(f"{PREFIX}{name}") for name in LIMITS},
    }
    known = {name: value for name, value in fields.items() if value is not None}
    try:
        keys = tuple(
            thresholds.Key(change.place, threshold_of(change.key), (change.place,), change.old, mixed=False, grid=(change.old, change.new))
            for change in changes
        )  # fmt: skip
        options = Options.model_validate(known)
    except ConfigError as error:
        raise NotRepeatableError(str(error)) from error
    except ValidationError as error:
        raise NotRepeatableError(f"the proposal's numbers are no options: {error}") from error
    setting = thresholds.Setting.of({change.place: change.new for change in changes})
    return thresholds.Space(before, keys), setting, options
