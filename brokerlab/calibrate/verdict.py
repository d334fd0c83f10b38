"""From a judgement to one sentence with numbers, and to a proposal document, in the words and with the effects of its kind of setting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.calibrate.judge import MIN_UNITS, Judgement, Kind
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import Affected, Effect, Evidence, Proposal, Window
from brokerlab.results import Result, Shows
from brokerlab.words import short_percent


@dataclass(frozen=True, repr=False)
class Verdict(Result):
    """The answer about one parameter.

    Attributes:
        kind: ``change``, ``improve``, ``keep`` or ``no_answer``.
        sentence: With numbers and their certainty.
        subject: The keys, or the parameter where the code fixes them.
        proposal: The document; None without an answer, where no key exists to set, or where only a part of the tasks was
            looked at and the keys act on all.
        information_only: What the sentence speaks of is fixed in the code: for its developers.
    """

    shows = Shows(
        about="the answer about one parameter, one row",
        columns="kind, subject, sentence, information_only",
        keys=("subject",),
        next=(".proposal", "gdpconfig.proposal.Proposal.applied_to(config)"),
    )

    kind: Kind
    sentence: str
    subject: str
    proposal: Proposal | None
    information_only: bool

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the document."""
        names = ("kind", "sentence", "subject", "information_only")
        return {name: getattr(self, name) for name in names}

    def frame(self) -> pl.DataFrame:
        """Return one row: ``kind, subject, sentence, information_only``."""
        return pl.DataFrame([self.to_dict()])

    def headline(self) -> str:
        """Return what it says, in a line."""
        return self.sentence


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
        "No answer: no setting is shown to be better, and a gain of up to {seen} is not excluded; {missing} would do."
    ),
    "breach": (
        "No answer: the current setting breaks the limit ({now}; limit {limit}), and no other one is shown to be better by as "
        "much as matters; {keeping}."
    ),
    "unconfirmed": (
        "No answer: settings chosen on earlier {units} lowered {loss} on later ones, and none is shown to do so on all {units} "
        "within the limit ({now}; limit {limit})."
    ),
    "no_other": (
        "No answer: no other setting that was tried keeps the limit on all {units} and has a gain that can be told ({now}; "
        "limit {limit})."
    ),
    "depends": "No answer: {unknown}.",
}
"""One sentence for each case of the judge."""


def sentence_of(
    judgement: Judgement,
    *,
    keeping: str = "",
    unknown: str = "",
    loss: str = "the loss",
    units: str = "tasks",
    **words: str,
) -> str:
    """Return the sentence of a judgement, in the words of its kind of setting.

    ``actions`` (what is to be done) and ``kept`` (what is to stay) from their first word; ``effects`` (what changes), ``now`` (where the
    current setting stands), ``limit`` (what must be kept), ``keeping`` (which setting would keep it, where the proposed one does not),
    ``unknown`` (for ``depends``: what the data cannot tell, and what would settle it), ``units`` (what was judged on, in the plural).
    """
    seen, n = judgement.smallest_seen, judgement.units_missing
    return SENTENCES[judgement.case].format(
        **words,
        keeping=keeping,
        unknown=unknown,
        loss=loss,
        units=units,
        where=f"judged on {judgement.n_scored:,} {units}",
        seen="" if seen is None else short_percent(seen),
        n=f"{judgement.n_units:,}",
        needed=MIN_UNITS,
        missing=f"about {n:,} {units} more" if n else f"more {units}",
    )


def steps_of(keys: Iterable[tuple[str, Any, Any]], write: Callable[[Any], str] = str) -> str:
    """Say what to do with keys, each with its old and its new value: keep, raise, lower; set, where one of these is null."""
    steps = []
    for key, old, new in keys:
        if old is None or new is None:
            steps.append(f"set {key} to {write(new)}")
        elif old == new:
            steps.append(f"keep {key} = {write(old)}")
        else:
            word = "raise" if new > old else "lower"
            steps.append(f"{word} {key} from {write(old)} to {write(new)}")
    text = " and ".join(steps)
    return text[:1].upper() + text[1:]


def side_of(low: float | None, high: float | None, below: str, above: str) -> str:
    """Return on which side of 0 an interval lies, in words; open where it holds 0 or is not known."""
    if low is None or high is None:
        return "open"
    return below if high < 0 else above if low > 0 else "open"


def limit_of(judgement: Judgement) -> float:
    """Return the first limit."""
    return judgement.question.limits[0].most


def document_of(
    judgement: Judgement,
    sentence: str,
    config: Config,
    changes: Mapping[str, Any],
    kept: Sequence[str],
    *,
    effects: pl.DataFrame,
    windows: Sequence[Window],
    units: str,
    numbers: Mapping[str, float | int | str | None],
    helps: Sequence[Affected] = (),
    hurts: Sequence[Affected] = (),
    synthetic: bool = False,
    filters: Mapping[str, str] | None = None,
    **about: Any,
) -> Proposal | None:
    """Return the document of a judgement, with what a reader needs to judge the values; None without an answer.

    ``effects`` has ``label, unit, before, after, diff, diff_lo, diff_hi, coverage`` (a keep compares nothing); ``units`` says
    what was judged on, in the plural, as it stands in names of numbers; ``about`` is of :meth:`.Proposal.to_change`.
    """
    if judgement.kind == "no_answer":
        return None
    question = judgement.question
    compared = tuple(
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
        "verdict": judgement.kind,
        "blocks": judgement.blocks.height,
        "relevant": question.relevant,
        units: judgement.n_units,
        f"{units}_scored": judgement.n_scored,
        "smallest_gain_seen": judgement.smallest_seen,
        "measured_coverage": judgement.coverage,
        "bootstrap_replicates": question.n_boot,
        "seed": question.seed,
    }
    evidence = Evidence(
        sentence,
        compared,
        tuple(windows),
        tuple(helps),
        tuple(hurts),
        {**common, **numbers},
        synthetic,
        filters=dict(filters or {}),
    )
    if judgement.acts:
        return Proposal.to_change(config, changes, evidence=evidence, **about)
    return Proposal.to_keep(config, kept, evidence=evidence, **about)
