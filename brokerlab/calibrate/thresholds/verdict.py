"""From choice and proof to one sentence with numbers, and to a proposal document or a reasoned keep."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

import polars as pl

from brokerlab.calibrate.thresholds.choice import RELATIVE, Choice, Limits
from brokerlab.calibrate.thresholds.intervals import Draw
from brokerlab.calibrate.thresholds.outcomes import Period, quantity_of
from brokerlab.calibrate.thresholds.proof import Proof
from brokerlab.calibrate.thresholds.settings import Setting, Space, shown
from brokerlab.gdpconfig.proposal import Affected, Effect, Evidence, Proposal, Window
from brokerlab.words import days_of

Kind = Literal["change", "keep", "no_answer"]
RULES = "document"
"""Name of the rule set that simulations decide with."""
NAMED = 5
"""Queues named in a sentence at most."""
LONG = 400
"""Characters of a title at most."""


@dataclass(frozen=True)
class Verdict:
    """The answer.

    Attributes:
        kind: ``change``, ``keep`` or ``no_answer``.
        sentence: With numbers and their certainty.
        subject: The keys.
        setting: The setting proposed; the current one unless ``change``.
        proposal: The document; None without an answer.
    """

    kind: Kind
    sentence: str
    subject: str
    setting: Setting
    proposal: Proposal | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the document."""
        return {
            "kind": self.kind,
            "sentence": self.sentence,
            "subject": self.subject,
            "setting": dict(self.setting.values),
        }


@dataclass(frozen=True, kw_only=True)
class Case:
    """What a verdict is made from.

    Attributes:
        space: Keys and configuration.
        keys: Names of the keys that the choice was between.
        periods: Calibration and proof.
        limits: What may get worse.
        draw: How intervals were made.
        objective: Name of the objective.
        relevant: Smallest reduction that is worth a change.
        seed: Of everything.
        created_at: Of the proposal.
        archive_digest: Null without an archive.
        synthetic: The archive was generated.
        why: What the validation of the simulation said.
    """

    space: Space
    keys: tuple[str, ...]
    periods: tuple[Period, Period]
    limits: Limits
    draw: Draw
    objective: str
    relevant: float
    seed: int
    created_at: datetime
    archive_digest: str | None
    synthetic: bool
    why: str


def days(period: Period) -> str:
    """Write the days of a period; its end is not part of it.

    Example:
        >>> days(Period(datetime(2026, 3, 1), datetime(2026, 3, 11)))
        '1 to 10 March 2026'
    """
    return days_of(period.start, period.end - timedelta(microseconds=1))


def refused(space: Space, reason: str) -> Verdict:
    """Say that nothing can be told, for a reason."""
    kept = reason if reason.startswith("No answer: ") else f"No answer: {_small(reason)}"
    return Verdict("no_answer", kept, subject(space, [key.name for key in space.keys]), Setting())


def of_capacity(one: Verdict, instead: str, unknown: tuple[str, ...]) -> Verdict:
    """Refuse an answer that another capacity of queues turns into another.

    Args:
        one: The answer with as many slots as were seen.
        instead: What is true with more.
        unknown: The queues.
    """
    names = ", ".join(unknown[:NAMED]) + (", ..." if len(unknown) > NAMED else "")
    sentence = (
        f"No answer: capacity of {len(unknown)} queues unknown ({names}), and the answer depends on it. With the slots seen in "
        f"use: {one.sentence} With more: {instead} Their slots would settle it: in the table slots, or as capacity."
    )
    return Verdict("no_answer", sentence, one.subject, Setting())


def subject(space: Space, names: tuple[str, ...] | list[str]) -> str:
    """Name the keys of a verdict."""
    known = [key.name for key in space.keys if key.name in names]
    return ", ".join(known) if len(known) <= 3 else f"{', '.join(known[:2])} and {len(known) - 2} more keys"  # fmt: skip


def judged(case: Case, choice: Choice, proof: Proof | None) -> Verdict:
    """Judge a choice and its proof together.

    A change needs both: chosen on the early period, proven on the late one. Otherwise: keep, with the reason; or no answer,
    where the data cannot tell.
    """
    about = subject(case.space, case.keys)
    if choice.status == "no_answer":
        return Verdict("no_answer", f"No answer: {_small(choice.reason)}", about, Setting())
    if proof is not None and proof.status == "no_answer":
        return Verdict("no_answer", f"No answer: {_small(proof.reason)}", about, Setting())
    if choice.status == "keep" or proof is None:
        sentence = f"Keep {as_is(case.space, case.keys)}. {choice.reason}"
    elif proof.status == "not_proven":
        tried = f"{choice.setting.name} was the choice of the early period and is not borne out: {_small(proof.reason)}"
        sentence = f"Keep {as_is(case.space, case.keys)}. {tried[:1].upper()}{tried[1:]}"
    else:
        sentence = f"{action(case.space, choice.setting)}: {effects(case, proof)}."
        return Verdict("change", sentence, about, choice.setting, _change(case, choice, proof, sentence))  # fmt: skip
    return Verdict("keep", sentence, about, Setting(), _keep(case, choice, sentence))


def _small(text: str) -> str:
    """Let a sentence go on in the middle of another."""
    return text[:1].lower() + text[1:]


def as_is(space: Space, names: tuple[str, ...] | list[str]) -> str:
    """Say what the keys are now."""
    known = [key for key in space.keys if key.name in names]
    if len(known) > 3:
        return f"all {len(known)} keys as they are"
    return ", ".join(f"{key.name}{' as it is' if key.mixed else f' = {shown(key.current)}'}" for key in known)  # fmt: skip


def action(space: Space, setting: Setting) -> str:
    """Say what to do with each key: raise, lower, set.

    Values that change nothing are left out.
    """
    parts = []
    for name, value in setting.values:
        key = space.key(name)
        if not space.entries(Setting.of({name: value})):
            continue
        if key.mixed or key.current is None or value is None:
            parts.append(f"set {name} to {shown(value)}")
        else:
            word = "raise" if value > key.current else "lower"
            parts.append(f"{word} {name} from {shown(key.current)} to {shown(value)}")
    text = " and ".join(parts)
    return text[:1].upper() + text[1:]


def effects(case: Case, proof: Proof) -> str:
    """Say what changes: the objective, what the limits are on, and where it was proven."""
    row = proof.quantity(case.objective)
    label = _small(quantity_of(case.objective).label)
    if row["diff_pct"] is not None and row["diff_pct_lo"] is not None:
        gain = f"{label} {-row['diff_pct']:.1f} % less ({-row['diff_pct_hi']:.1f} to {-row['diff_pct_lo']:.1f}; {row['before']:.3g} to {row['after']:.3g} {row['unit']})"
    else:
        gain = f"{label} {row['diff']:+.3g} {row['unit']} ({row['diff_lo']:+.3g} to {row['diff_hi']:+.3g})"
    parts = [gain, *(_within(proof, name, value) for name, value in case.limits.values().items())]
    where = f"proven on {days(proof.period)}, {proof.n_tasks:,} tasks, {proof.replications} simulations of each"
    return ", ".join([part for part in parts if part] + [where])


def _within(proof: Proof, name: str, limit: float) -> str:
    """Say how far a limit is used; nothing where the quantity does not change."""
    row = proof.quantity(RELATIVE.get(name, name))
    if row["diff"] is None or not row["diff"]:
        return ""
    label = _small(row["label"])
    if name in RELATIVE and row["diff_pct"] is not None:
        return f"{label} {row['diff_pct']:+.1f} % (limit +{limit:g} %)"
    return f"{label} {row['diff']:+.3g} (limit +{limit:g})"


def _evidence(case: Case, sentence: str, choice: Choice, proof: Proof | None) -> Evidence:
    """Collect what a reader needs to judge the values."""
    table = pl.DataFrame() if proof is None else proof.table
    told = tuple(
        Effect(
            quantity=row["label"],
            unit=row["unit"],
            current=row["before"],
            proposed=row["after"],
            difference=row["diff"],
            low=row["diff_lo"],
            high=row["diff_hi"],
            level=None if row["diff_lo"] is None else case.draw.confidence,
        )
        for row in table.iter_rows(named=True)
        if row["before"] is not None
    )
    names = ("choice", "proof")
    numbers: dict[str, float | int | str | None] = {
        "objective": case.objective,
        "relevant": case.relevant,
        "alpha": case.draw.alpha,
        "bootstrap_replicates": case.draw.n_boot,
        "seed": case.seed,
        "settings_tried": choice.candidates.height,
        "stable_under_halved_and_doubled_limits": str(choice.stable).lower(),
        "validation": case.why or "none: the caller vouched for the simulation",
        **{f"limit_{name}": value for name, value in case.limits.values().items()},
    }
    if proof is not None:
        numbers |= {"tasks_proof": proof.n_tasks, "replications": proof.replications, "p": proof.p, "p_holm": proof.p_holm}  # fmt: skip
    return Evidence(
        sentence,
        told,
        tuple(Window(name, *period) for name, period in zip(names, case.periods, strict=True)),
        affected(proof, ("gains", "emptier")),
        affected(proof, ("loses", "fuller")),
        numbers,
        case.synthetic,
    )


def affected(proof: Proof | None, verdicts: tuple[str, str]) -> tuple[Affected, ...]:
    """Name the levels whose objective falls, or rises, by its whole interval, and the queues that get emptier, or fuller."""
    if proof is None or proof.strata.is_empty():
        return ()
    levels = [
        Affected(
            f"{row['stratum']} {row['level']}",
            f"{row['diff']:+.3g} ({row['diff_lo']:+.3g} to {row['diff_hi']:+.3g}), {row['n_tasks']} tasks",
        )
        for row in proof.strata.filter(pl.col("verdict") == verdicts[0]).iter_rows(named=True)
    ]
    queues = [
        Affected(
            f"queue {row['panda_queue']}",
            f"{verdicts[1]}: {100 * row['used_before']:.1f} to {100 * row['used_after']:.1f} % of its slots used",
        )
        for row in proof.queues.filter(pl.col("verdict") == verdicts[1]).head(5).iter_rows(named=True)
    ]  # fmt: skip
    return (*levels, *queues)


def _change(case: Case, choice: Choice, proof: Proof, sentence: str) -> Proposal:
    title = action(case.space, choice.setting)
    return Proposal.to_change(
        case.space.config,
        case.space.entries(choice.setting),
        title=title if len(title) <= LONG else f"{title[: LONG - 3]}...",
        created_at=case.created_at,
        evidence=_evidence(case, sentence, choice, proof),
        archive_digest=case.archive_digest,
        rules_digest=RULES,
    )


def _keep(case: Case, choice: Choice, sentence: str) -> Proposal:
    places = [place for key in case.space.keys if key.name in case.keys for place in key.places]
    return Proposal.to_keep(
        case.space.config,
        places,
        title=f"Keep {as_is(case.space, case.keys)}"[:LONG],
        created_at=case.created_at,
        evidence=_evidence(case, sentence, choice, None),
        archive_digest=case.archive_digest,
        rules_digest=RULES,
    )
