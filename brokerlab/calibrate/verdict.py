"""From a judgement to one sentence with numbers, and to a proposal document: `sentence_of`, `evidence_of`, `document_of`.

`propose` does so for the scout parameters; other kinds of settings bring their own `Wording` and effects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from brokerlab.calibrate.backtest import Backtest
from brokerlab.calibrate.comparison import Comparison
from brokerlab.calibrate.judge import MIN_UNITS, Judgement, Kind
from brokerlab.calibrate.parameters import Parameter, parameter_named
from brokerlab.calibrate.replay import Setting
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import Affected, Effect, Evidence, Proposal, Window
from brokerlab.gdpconfig.proposal.filters import filter_problems, tasks_in_words
from brokerlab.words import short_percent


@dataclass(frozen=True)
class Verdict:
    """The answer about one parameter.

    Attributes:
        kind: ``change``, ``improve``, ``keep`` or ``no_answer``.
        sentence: With numbers and their certainty.
        subject: The keys, or the parameter where the code fixes them.
        proposal: The document; None without an answer, where no key exists to set, or where only a part of the tasks was
            looked at and the keys act on all.
        information_only: What the sentence speaks of is fixed in the code: for its developers.
    """

    kind: Kind
    sentence: str
    subject: str
    proposal: Proposal | None
    information_only: bool

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the document."""
        return {
            "kind": self.kind,
            "sentence": self.sentence,
            "subject": self.subject,
            "information_only": self.information_only,
        }


def current_setting(config: Config, parameter: str) -> Setting:
    """Return the rank and margin [%] that act in a configuration; what the code fixes as it is.

    Example:
        >>> current_setting(Config.empty(), "ramcount")
        (75, 10)
        >>> current_setting(Config.empty(), "cputime")
        (95, 50)
    """
    chosen = parameter_named(parameter)
    rank = chosen.rank if chosen.rank_key is None else _whole(config, chosen.rank_key)
    margin = chosen.margin_pct if chosen.margin_key is None else _whole(config, chosen.margin_key)
    return rank, margin


def _whole(config: Config, key: str) -> int:
    """Return the whole number that acts for a key."""
    value = config.get(key)
    if not isinstance(value, int | float) or int(value) != value:
        raise ConfigError(f"gdpconfig.{key}: found {value!r}, allowed are whole numbers")
    return int(value)


def propose(
    judgement: Judgement,
    comparison: Comparison,
    tried: Backtest,
    config: Config,
    *,
    created_at: datetime,
    archive_digest: str | None = None,
    synthetic: bool = False,
    also: Mapping[str, int | None] | None = None,
    filters: Mapping[str, str] | None = None,
) -> Verdict:
    """Put a judgement into a sentence and, where there is something to set, into a proposal.

    Args:
        judgement: On the back-test's outcomes.
        comparison: Of the scored tasks, current setting against those chosen on earlier tasks.
        tried: The back-test.
        config: The configuration that acts now; the base of the proposal.
        created_at: UTC without zone; told by the caller.
        archive_digest: Of the archive.
        synthetic: The archive was generated: nothing of it may be set anywhere.
        also: Further keys that the chosen setting sets, null = removed; looked at in a change only.
        filters: Which tasks were looked at, such as gshare to its name; empty: all. Evidence from a part of them proposes
            no key that acts on others.

    Raises:
        ConfigError: The back-test compared with another setting than the configuration's.

    Source: spec of calibration, section 2.
    """
    parameter = tried.parameter
    acting = current_setting(config, parameter.name)
    if acting != _pair(judgement.current):
        raise ConfigError(
            f"the configuration has (rank, margin) {acting}, the back-test compared with {_pair(judgement.current)}: run it "
            f"with current={acting}"
        )
    further_keys = also or {}
    chosen_tasks = dict(filters or {})
    actions = [_actions(parameter, _pair(judgement.current), _pair(judgement.setting))]
    wording = Wording(
        actions=" and ".join([*actions, *_further(config, further_keys)]),
        kept=_actions(parameter, _pair(judgement.current), _pair(judgement.current)),
        effects=_effects(comparison, parameter, limit_of(judgement)),
        now=f"{short_percent(_now(judgement))} of first attempts killed",
        limit=short_percent(limit_of(judgement)),
        keeping=_keeping(judgement, parameter),
    )
    sentence = sentence_of(judgement, wording)
    acts = judgement.acts
    settable = _keys(parameter, _pair(judgement.current))
    beyond = filter_problems([*settable, *further_keys], chosen_tasks) if acts else []
    if chosen_tasks:
        refusal = ", so nothing is proposed: the keys act beyond them" if beyond else ""
        sentence = f"Measured on {tasks_in_words(chosen_tasks)}{refusal}. {sentence}"
    document = None
    if settable and not beyond:
        new = _keys(parameter, _pair(judgement.setting))
        values = {key: value for key, value in new.items() if settable[key] != value}
        document = document_of(
            judgement,
            config,
            {**values, **further_keys},
            list(settable),
            title=" and ".join([*actions, *_further(config, further_keys if acts else {})]),
            created_at=created_at,
            evidence=_evidence(
                sentence, judgement, comparison, tried, chosen_tasks, synthetic=synthetic
            ),
            archive_digest=archive_digest,
            rules_digest=tried.assumptions.rules.digest,
        )
    return Verdict(
        kind=judgement.kind,
        sentence=sentence,
        subject=" and ".join([*settable, *(further_keys if acts else ())]) or parameter.name,
        proposal=document,
        information_only=not settable,
    )


def _pair(setting: Any) -> Setting:
    """Return rank and margin of a setting, which may carry a minimum behind them."""
    rank, margin, *_ = setting
    return rank, margin


def _keys(parameter: Parameter, setting: Setting) -> dict[str, int]:
    """Return the keys that exist, with the values of a setting."""
    pairs = zip((parameter.rank_key, parameter.margin_key), setting, strict=True)
    return {key: value for key, value in pairs if key is not None}


@dataclass(frozen=True, kw_only=True)
class Wording:
    """What the sentences of a judgement say of one kind of setting.

    Attributes:
        actions: What is to be done, from its first word.
        kept: What is to stay, from its first word.
        effects: What changes.
        now: Where the current setting stands.
        limit: What must be kept.
        keeping: Which setting would keep it, where the proposed one does not.
        loss: The objective.
        units: What was judged on, in the plural.
        unknown: For ``depends``: what the data cannot tell, and what would settle it.
    """

    actions: str
    kept: str
    effects: str
    now: str
    limit: str
    keeping: str = ""
    loss: str = "the loss"
    units: str = "tasks"
    unknown: str = ""


SENTENCES = {
    "lower_loss": "{actions}: {effects}, {where}.",
    "fewer_breaches": "{actions}: {effects}, {where}; the current setting breaks the limit.",
    "better_not_within": "{actions}: {effects}, {where}; the limit is still not kept, {keeping}.",
    "nothing_better": (
        "{kept}: {now} (limit {limit}). No setting is shown to lower {loss}; a gain of more than {seen} would have been "
        "seen ({n} {units})."
    ),
    "few": "No answer: {n} {units} can be scored, {needed} are needed to tell an effect from chance.",
    "imprecise": (
        "No answer: no setting is shown to be better, and a gain of up to {seen} is not excluded; about {missing} {units} "
        "more would do."
    ),
    "breach": (
        "No answer: the current setting breaks the limit ({now}; limit {limit}), and no other one is shown to be better by as "
        "much as matters; {keeping}."
    ),
    "unconfirmed": (
        "No answer: settings chosen on earlier {units} lowered {loss} on later ones, and none is shown to do so on all {units} "
        "within the limit ({now}; limit {limit})."
    ),
    "no_other": "No answer: no other setting keeps the limit on all {units} ({now}; limit {limit}).",
    "depends": "No answer: {unknown}.",
}
"""One sentence for each case of the judge."""


def sentence_of(judgement: Judgement, wording: Wording) -> str:
    """Return the sentence of a judgement."""
    seen = judgement.smallest_seen
    return SENTENCES[judgement.case].format(
        **vars(wording),
        where=f"judged on {judgement.n_scored:,} {wording.units}",
        seen="" if seen is None else short_percent(seen),
        n=f"{judgement.n_units:,}",
        needed=MIN_UNITS,
        missing=f"{judgement.units_missing:,}",
    )


def limit_of(judgement: Judgement) -> float:
    """Return the limit on first attempts killed."""
    return judgement.question.limits[0].most


def _now(judgement: Judgement) -> float:
    """Return the kill rate of the current setting over all tasks."""
    rate = judgement.candidates.filter("is_current")["exceed_rate"][0]
    return float(rate)


def _keeping(judgement: Judgement, parameter: Parameter) -> str:
    """Say which setting would keep the limit on all tasks, and at what price against the one that is to act."""
    cheapest = judgement.cheapest_within
    if cheapest is None:
        return "no setting of the grid does with certainty"
    if cheapest == judgement.setting:
        return "though on all tasks this setting would"
    losses = [
        judgement.candidates.filter(place=judgement.settings.index(setting))["loss"][0]
        for setting in (cheapest, judgement.setting)
    ]
    price = losses[0] - losses[1]
    rank, margin, *minimum = cheapest
    named = f"rank {rank}" + ("" if parameter.margin_key is None else f" with margin {margin} %")
    named += "".join(f" and a minimum of {least} MB" for least in minimum if least is not None)
    return f"{named} would keep it on all tasks (stated loss {price:+.3f})"


def _actions(parameter: Parameter, old: Setting, new: Setting) -> str:
    """Say what to do with rank and margin: keep, raise, lower."""
    names = (parameter.rank_key, parameter.margin_key)
    spoken = ("the rank", "the margin")
    parts = []
    for key, word, before, after in zip(names, spoken, old, new, strict=True):
        if key is None and (parameter.rank_key or word == "the margin"):
            continue  # fixed in the code, and another key is there to speak of
        name = key or f"{word} of {parameter.name} (fixed in the code)"
        if before == after:
            parts.append(f"keep {name} = {before}")
        else:
            parts.append(
                f"{'raise' if after > before else 'lower'} {name} from {before} to {after}"
            )
    text = " and ".join(parts)
    return text[:1].upper() + text[1:]


def _further(config: Config, also: Mapping[str, int | None]) -> list[str]:
    """Say what to do with further keys."""
    return [
        f"remove {key} = {config.get(key)}" if value is None else f"set {key} = {value}"
        for key, value in also.items()
    ]


def _effects(comparison: Comparison, parameter: Parameter, limit: float) -> str:
    """Say what changes: reserved, killed, the limit, and the loss where it does not fall."""
    reserved = comparison.quantity(f"reserved_{parameter.amount}")
    exceed, loss = comparison.quantity("exceed_rate"), comparison.quantity("loss")
    change, low, high = (reserved[f"diff_pct{end}"] for end in ("", "_lo", "_hi"))
    if change is None or low is None or high is None:
        amount = f"{parameter.thing} reserved compared without an interval"
    elif high < 0:
        amount = f"{-change:.1f} % less {parameter.thing} reserved ({-high:.1f} to {-low:.1f})"
    elif low > 0:
        amount = f"{change:.1f} % more {parameter.thing} reserved ({low:.1f} to {high:.1f})"
    else:
        amount = (
            f"{parameter.thing} reserved changes by {change:+.1f} % ({low:+.1f} to {high:+.1f})"
        )
    before, after = exceed["before"], exceed["after"]
    verb = "rise" if after > before else "fall" if after < before else "stay"
    kills = f"kills {verb} from {100 * before:.1f} to {100 * after:.1f} %"
    if exceed["after_lo"] is None:
        return f"{amount}, {kills} (limit {100 * limit:g} %)"
    ends = f"{100 * exceed['after_lo']:.1f} to {100 * exceed['after_hi']:.1f}"
    inside = ", inside the interval" if exceed["after"] <= limit < exceed["after_hi"] else ""
    text = f"{amount}, {kills} ({ends}; limit {100 * limit:g} %{inside})"
    if loss["diff_hi"] < 0:
        return text
    low, high = (f"{loss[f'diff_{end}']:+.3f}" for end in ("lo", "hi"))
    return f"{text}, the stated loss changes by {loss['diff']:+.3f} ({low} to {high}; the limit decides)"


def document_of(
    judgement: Judgement,
    config: Config,
    changes: Mapping[str, Any],
    kept: Sequence[str],
    **about: Any,
) -> Proposal | None:
    """Return the document of a judgement; None without an answer.

    Args:
        judgement: The judgement.
        config: The configuration that acts.
        changes: Keys or places to their values, for a judgement that acts.
        kept: Keys or places that stay, for one that keeps.
        **about: Further arguments of :meth:`Proposal.to_change` and :meth:`Proposal.to_keep`.
    """
    if judgement.kind == "no_answer":
        return None
    if judgement.acts:
        return Proposal.to_change(config, changes, **about)
    return Proposal.to_keep(config, kept, **about)


def evidence_of(
    judgement: Judgement,
    sentence: str,
    *,
    effects: pl.DataFrame,
    windows: Sequence[Window],
    units: str,
    numbers: Mapping[str, float | int | str | None],
    helps: Sequence[Affected] = (),
    hurts: Sequence[Affected] = (),
    synthetic: bool = False,
    filters: Mapping[str, str] | None = None,
) -> Evidence:
    """Collect what a reader needs to judge the values.

    Args:
        judgement: The judgement.
        sentence: Its sentence.
        effects: ``label, unit, before, after, diff, diff_lo, diff_hi, coverage``; a keep compares nothing.
        windows: The data.
        units: What was judged on, in the plural, as it stands in names of numbers.
        numbers: Further numbers.
        helps: Whom the change helps.
        hurts: Whom it hurts.
        synthetic: The archive was generated.
        filters: Which part of the archive was looked at.
    """
    question = judgement.question
    told = tuple(
        Effect(
            quantity=row["label"],
            unit=row["unit"],
            current=row["before"],
            proposed=row["after"],
            difference=row["diff"],
            low=row["diff_lo"],
            high=row["diff_hi"],
            level=None if row["diff_lo"] is None else question.confidence,
            coverage=row["coverage"],
        )
        for row in effects.iter_rows(named=True)
        if judgement.acts and row["before"] is not None
    )
    common: dict[str, float | int | str | None] = {
        "blocks": judgement.blocks.height,
        "relevant": question.relevant,
        units: judgement.n_units,
        f"{units}_scored": judgement.n_scored,
        "smallest_gain_seen": judgement.smallest_seen,
        "measured_coverage": judgement.coverage,
        "bootstrap_replicates": question.n_boot,
        "seed": question.seed,
    }
    return Evidence(
        sentence,
        told,
        tuple(windows),
        tuple(helps),
        tuple(hurts),
        {**common, **numbers},
        synthetic,
        filters=dict(filters or {}),
    )


def _evidence(
    sentence: str,
    judgement: Judgement,
    comparison: Comparison,
    tried: Backtest,
    filters: dict[str, str],
    *,
    synthetic: bool,
) -> Evidence:
    """Collect the evidence on a scout parameter."""
    blocks = judgement.blocks
    second = timedelta(seconds=1)
    windows = [Window("first choice", blocks["start"][0], blocks["end"][0] + second)]
    if blocks.height > 1:
        windows.append(Window("scored", blocks["start"][1], blocks["end"][-1] + second))
    sides = [_affected(comparison, side) if judgement.acts else () for side in ("gains", "loses")]
    return evidence_of(
        judgement,
        sentence,
        effects=comparison.table,
        windows=windows,
        units="tasks",
        numbers={
            "max_exceed": limit_of(judgement),
            "inner_limit": judgement.inner * limit_of(judgement),
            **{f"weight_{name}": value for name, value in tried.weights.to_dict().items()},
        },
        helps=sides[0],
        hurts=sides[1],
        synthetic=synthetic,
        filters=filters,
    )


def _affected(comparison: Comparison, side: str) -> tuple[Affected, ...]:
    """Name the levels whose loss falls, or rises, by their interval."""
    rows = comparison.by_stratum.filter(pl.col("verdict") == side).iter_rows(named=True)
    return tuple(
        Affected(
            f"{row['stratum']} {row['level']}",
            f"loss {row['loss_diff']:+.3f} ({row['loss_diff_lo']:+.3f} to {row['loss_diff_hi']:+.3f}), "
            f"kills {short_percent(row['exceed_rate_before'])} to {short_percent(row['exceed_rate_after'])}, "
            f"{row['n_tasks']} tasks",
        )
        for row in rows
    )
