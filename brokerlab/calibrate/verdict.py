"""From choice and proof to one sentence with numbers, and to a proposal document or a reasoned keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal

import polars as pl

from brokerlab.calibrate.backtest import Backtest
from brokerlab.calibrate.choice import Choice
from brokerlab.calibrate.parameters import Parameter, parameter_named
from brokerlab.calibrate.periods import Periods
from brokerlab.calibrate.proof import Proof
from brokerlab.calibrate.replay import Setting
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import Affected, Effect, Evidence, Proposal, Window
from brokerlab.words import days_of, short_percent

Kind = Literal["change", "keep", "no_answer"]


@dataclass(frozen=True)
class Verdict:
    """The answer about one parameter.

    Attributes:
        kind: ``change``, ``keep`` or ``no_answer``.
        sentence: With numbers and their certainty.
        subject: The keys, or the parameter where the code fixes them.
        proposal: The document; None without an answer, or where no key exists to set.
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
    choice: Choice,
    proof: Proof,
    late: Backtest,
    periods: Periods,
    config: Config,
    *,
    created_at: datetime,
    archive_digest: str | None = None,
    synthetic: bool = False,
    also: Mapping[str, int | None] | None = None,
) -> Verdict:
    """Judge choice and proof together.

    A change needs both: chosen on the early period, proven on the late one. Otherwise: keep, with the
    reason; or no answer, where the data cannot tell.

    Args:
        choice: Of the early period.
        proof: Of ``choice.setting`` on the late period.
        late: The back-test behind the proof.
        periods: Windows of both.
        config: The configuration that acts now; the base of the proposal.
        created_at: UTC without zone; told by the caller.
        archive_digest: Of the archive.
        synthetic: The archive was generated: nothing of it may be set anywhere.
        also: Further keys that choice and proof set, null = removed; looked at in a change only.

    Returns:
        A :class:`Verdict`.

    Raises:
        ConfigError: The back-test compared with another setting than the configuration's.

    Source: report-page.md, 1; design.md, idea 6.
    """
    parameter = late.parameter
    acting = current_setting(config, parameter.name)
    if acting != choice.current or proof.current != choice.current:
        raise ConfigError(
            f"the configuration has (rank, margin) {acting}, the choice compared with {choice.current}, "
            f"the proof with {proof.current}: run the back-tests with current={acting}"
        )
    further_keys = also or {}
    further = _further(config, further_keys)
    kind, sentence = _sentence(choice, proof, parameter, periods, further)
    keys = _keys(parameter, choice.setting)
    settable = _keys(parameter, choice.current)
    document = None
    if kind != "no_answer" and settable:
        evidence = _evidence(sentence, choice, proof, late, periods, synthetic=synthetic)
        values = {key: value for key, value in keys.items() if settable[key] != value}
        changing = kind == "change"
        wanted = {**values, **further_keys}
        make = (
            partial(Proposal.to_change, config, wanted)
            if changing
            else partial(Proposal.to_keep, config, settable)
        )
        document = make(
            title=sentence.split(":")[0].split(". ")[0],
            created_at=created_at,
            evidence=evidence,
            archive_digest=archive_digest,
            rules_digest=late.assumptions.rules.digest,
        )
    return Verdict(
        kind=kind,
        sentence=sentence,
        subject=" and ".join([*settable, *(further_keys if kind == "change" else ())])
        or parameter.name,
        proposal=document,
        information_only=not settable,
    )


def _keys(parameter: Parameter, setting: Setting) -> dict[str, int]:
    """Return the keys that exist, with the values of a setting."""
    pairs = zip((parameter.rank_key, parameter.margin_key), setting, strict=True)
    return {key: value for key, value in pairs if key is not None}


def _sentence(
    choice: Choice, proof: Proof, parameter: Parameter, periods: Periods, further: Sequence[str]
) -> tuple[Kind, str]:
    """Return the kind of answer and its sentence."""
    if choice.status == "no_answer":
        return "no_answer", f"No answer: {_small(choice.reason)}"
    kept = _actions(parameter, choice.current, choice.current)
    if choice.status == "keep" or choice.setting == choice.current:
        return "keep", f"{kept}. {choice.reason}"
    if proof.proposed != choice.setting:
        raise ConfigError(f"the proof is of {proof.proposed}, the choice is {choice.setting}")
    if proof.status == "no_answer":
        return "no_answer", f"No answer: {_small(proof.reason)}"
    if proof.status == "not_proven":
        rank, margin = choice.setting
        refuted = (
            f"rank {rank} with margin {margin} % was the choice of the early period and is not borne "
            f"out: {_small(proof.reason)}"
        )
        exceed = proof.quantity("exceed_rate")
        if exceed["before_lo"] > proof.max_exceed:  # to advise it would be to advise a breach
            return "no_answer", (
                f"No answer: the current setting does not meet the limit "
                f"({short_percent(exceed['before'])} killed, {short_percent(exceed['before_lo'])} to "
                f"{short_percent(exceed['before_hi'])}, limit {short_percent(proof.max_exceed)}), and {refuted}"
            )
        return "keep", f"{kept}. {refuted[:1].upper()}{refuted[1:]}"
    done = " and ".join([_actions(parameter, choice.current, choice.setting), *further])
    return "change", f"{done}: {_effects(proof, parameter)}, {_where(proof, periods)}."


def _small(text: str) -> str:
    """Let a sentence go on in the middle of another."""
    return text[:1].lower() + text[1:]


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


def _effects(proof: Proof, parameter: Parameter) -> str:
    """Say what changes: reserved, killed, and the limit."""
    reserved = proof.quantity(f"reserved_{parameter.amount}")
    exceed = proof.quantity("exceed_rate")
    change, low, high = (reserved[f"diff_pct{end}"] for end in ("", "_lo", "_hi"))
    if high < 0:
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
    interval = f"{100 * exceed['after_lo']:.1f} to {100 * exceed['after_hi']:.1f}"
    inside = ", inside the interval" if exceed["after_hi"] > proof.max_exceed else ""
    text = f"{amount}, {kills} ({interval}; limit {100 * proof.max_exceed:g} %{inside})"
    loss = proof.quantity("loss")
    if loss["diff_hi"] < 0:
        return text
    low, high = (f"{loss[f'diff_{end}']:+.3f}" for end in ("lo", "hi"))
    return f"{text}, the stated loss changes by {loss['diff']:+.3f} ({low} to {high}; the limit decides)"


def _where(proof: Proof, periods: Periods) -> str:
    """Say on what it was proven; where the bound passes the limit, it only held."""
    days = "the late period" if periods.late_window is None else days_of(*periods.late_window)
    beyond_doubt = proof.quantity("exceed_rate")["after_hi"] <= proof.max_exceed
    return f"{'proven' if beyond_doubt else 'held'} on {days}, {proof.n_tasks:,} tasks"


def _evidence(
    sentence: str,
    choice: Choice,
    proof: Proof,
    late: Backtest,
    periods: Periods,
    *,
    synthetic: bool,
) -> Evidence:
    """Collect what a reader needs to judge the values."""
    confidence = late.assumptions.confidence
    measured = choice.status == "change"  # a keep compares nothing
    effects = tuple(
        Effect(
            quantity=row["label"],
            unit=row["unit"],
            current=row["before"],
            proposed=row["after"],
            difference=row["diff"],
            low=row["diff_lo"],
            high=row["diff_hi"],
            level=None if row["diff_lo"] is None else confidence,
        )
        for row in proof.table.iter_rows(named=True)
        if measured and row["before"] is not None
    )
    windows = tuple(
        Window(name, span[0], span[1] + timedelta(seconds=1))
        for name, span in (("choice", periods.early_window), ("proof", periods.late_window))
        if span is not None
    )
    sides = [_affected(proof, side) if measured else () for side in ("gains", "loses")]
    numbers: dict[str, float | int | str | None] = {
        "max_exceed": choice.max_exceed,
        "limit_on": choice.limit_on,
        "limit_on_proof": proof.limit_on,
        "tasks_proof": proof.n_tasks,
        "bootstrap_replicates": proof.n_boot,
        "seed": proof.seed,
        "stable_under_halved_and_doubled_weights": str(choice.stable).lower(),
        **({"caveats_of_choice": " ".join(choice.caveats)} if choice.caveats else {}),
        **{f"weight_{name}": value for name, value in choice.weights.to_dict().items()},
    }
    return Evidence(sentence, effects, windows, sides[0], sides[1], numbers, synthetic)


def _affected(proof: Proof, side: str) -> tuple[Affected, ...]:
    """Name the levels whose loss falls, or rises, beyond doubt."""
    rows = proof.by_stratum.filter(pl.col("verdict") == side).iter_rows(named=True)
    return tuple(
        Affected(
            f"{row['stratum']} {row['level']}",
            f"loss {row['loss_diff']:+.3f} ({row['loss_diff_lo']:+.3f} to {row['loss_diff_hi']:+.3f}), "
            f"kills {short_percent(row['exceed_rate_before'])} to {short_percent(row['exceed_rate_after'])}, "
            f"{row['n_tasks']} tasks",
        )
        for row in rows
    )
