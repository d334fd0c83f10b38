"""The sentences of the scout percentile report, every number taken from the study."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import polars as pl

from brokerlab.calibrate.backtest import Backtest, Setting
from brokerlab.calibrate.parameters import Parameter
from brokerlab.calibrate.verdict import days_of
from brokerlab.report.content import Verdict
from brokerlab.report.scout_percentiles.study import Study, Unanswered, differ
from brokerlab.words import listed, measured, percent, plural, thin, with_unit

NAMES = {"ramcount": "ramCount", "cputime": "cpuTime", "outdiskcount": "outDiskCount"}
"""The parameters as the documents write them."""


WEIGHTS = {
    "over": "what is reserved and not used",
    "killed_coreh": "core-hours of killed attempts",
    "n_exceed": "kills",
    "n_lost": "jobs killed in every attempt",
    "unreachable_coreh": "work that a part of the slots cannot take",
}
"""What the weights of the loss weigh, in words."""


def title(parameter: Parameter) -> str:
    """Return the heading of a parameter's part."""
    return f"{NAMES[parameter.name]}: {parameter.thing}"


def setting_words(parameter: Parameter, setting: Setting) -> str:
    """Name a setting.

    Example:
        >>> from brokerlab.calibrate.parameters import PARAMETERS
        >>> setting_words(PARAMETERS["ramcount"], (75, 10))
        'rank 75, margin 10 %'
    """
    rank, margin = setting
    return f"rank {rank}" if parameter.margin_key is None else f"rank {rank}, margin {margin} %"


def other_name(study: Study) -> str:
    """Return what the second setting is called on the page."""
    if study.kind == "change":
        return "Proposed"
    return "Chosen, not proven" if study.chosen else "Best other"


def proof_name(study: Study, days: str) -> str:
    """Return what the tasks of the proof are called on the page."""
    return f"Proof period, {days}" if study.divided else "All tasks"


def kills(row: dict[str, Any]) -> str:
    """Show the exceed rate of one ``by_setting`` row with its interval."""
    return percent(row["exceed_rate"], row["exceed_lo"], row["exceed_hi"])


def span(period: tuple[datetime, datetime] | None) -> str:
    """Show the days of a period."""
    return days_of(*period) if period else "no days"


def verdict(study: Study | Unanswered) -> Verdict:
    """Return the sentence that the page and the index show for a parameter; the proposal has the same."""
    subject = NAMES[study.parameter.name]
    if isinstance(study, Unanswered):
        return Verdict(kind="no_answer", subject=subject, sentence=f"No answer: {study.reason}")
    if study.verdict is None:
        return Verdict(kind="no_answer", subject=subject, sentence=_undivided(study))
    words = study.verdict.sentence
    if study.verdict.information_only:
        words += f" {subject}'s rank is fixed in the code: this is for its developers."
    return Verdict(kind=study.verdict.kind, subject=subject, sentence=thin(words))


def _undivided(study: Study) -> str:
    """Say what happened in tasks that are too few to prove anything."""
    n, tried = study.early.n_tasks, study.early
    settings = [study.proof.current, *([study.other] if study.other != study.proof.current else [])]
    done = [
        f"{setting_words(study.parameter, pair)} {verb} {percent(tried.setting(*pair)['exceed_rate'])} of jobs"
        for pair, verb in zip(settings, ("kills", "would kill"), strict=False)
    ]
    return (
        f"No answer: {n} {plural(n, 'task')} cannot be divided into some to choose on and later ones to "
        f"prove on. In these, {' and '.join(done)} (limit {limit_words(study.choice.max_exceed)})."
    )


def breach(study: Study) -> str:
    """Say that the current setting breaks the limit itself, if it does; else nothing."""
    row = study.late.setting(*study.proof.current)
    limit = study.choice.max_exceed
    if row["exceed_rate"] <= limit:
        return ""
    return (
        f"The current setting, {setting_words(study.parameter, study.proof.current)}, breaks the limit of "
        f"{limit_words(limit)} itself: {'on the proof period' if study.divided else 'here'} it kills "
        f"{kills(row)} of jobs."
    )


def reserved_words(study: Study) -> str:
    """Say how what is reserved changes, with the interval; more or less only if it is beyond doubt."""
    row = study.proof.quantity(f"reserved_{study.parameter.amount}")
    value, low, high = row["diff_pct"], row["diff_pct_lo"], row["diff_pct_hi"]
    thing = study.parameter.thing
    if value is None:
        return f"{thing} reserved unknown"
    if low is None or high is None or low <= 0 <= high:
        return f"{thing} reserved changes by {with_unit(measured(value, low, high), '%')}"
    less = value < 0
    bounds = (-high, -low) if less else (low, high)
    head, tail = measured(abs(value), *bounds).split(" (")
    return f"{head} % {'less' if less else 'more'} {thing} reserved ({tail}"


def kills_move(study: Study) -> str:
    """Say how kills change on the proof period, and the limit."""
    row, limit = study.proof.quantity("exceed_rate"), study.choice.max_exceed
    verb = "rise" if row["after"] > row["before"] else "fall"
    after = percent(row["after"], row["after_lo"], row["after_hi"])
    return f"kills {verb} from {percent(row['before'])} to {after} of jobs (limit {limit_words(limit)})"


def limit_words(limit: float) -> str:
    """Show the limit.

    Example:
        >>> limit_words(0.02)
        '2 %'
    """
    return f"{100 * limit:g} %"


def sensitivity(study: Study) -> str:
    """Say whether other weights would choose otherwise."""
    choice = study.choice
    if choice.status == "no_answer":
        return "Without a choice there is nothing that other weights of the loss could change."
    if choice.stable:
        return "Halving or doubling any weight of the loss leaves the choice as it is."
    rank, margin = choice.setting
    moved = choice.sensitivity.filter((pl.col("rank") != rank) | (pl.col("margin_pct") != margin))
    causes: dict[Setting, list[str]] = {}
    for row in moved.iter_rows(named=True):
        share = "half" if row["factor"] < 1 else "twice"
        cause = f"{share} the weight of {WEIGHTS[row['weight']]}"
        causes.setdefault((row["rank"], row["margin_pct"]), []).append(cause)
    words = [
        f"{setting_words(study.parameter, setting)} would be chosen with {listed(found, 'or')}"
        for setting, found in causes.items()
    ]
    return f"The choice depends on the weights of the loss: {'; '.join(words)}."


def exchange(alike: pl.DataFrame) -> str:
    """Say whether the two periods are alike under the current setting."""
    rows = {
        row["quantity"]: row for row in alike.filter(pl.col("level") == "all").iter_rows(named=True)
    }
    kills_row, gap_row = rows["exceed_rate"], rows["log_gap"]
    if kills_row["alike"] is None:
        return "Whether the two periods are alike cannot be said: too few tasks."
    ends = [100 * kills_row[name] for name in ("difference", "lo", "hi")]
    text = (
        f"Under the current setting the two periods are {'alike' if kills_row['alike'] else 'not alike'} in "
        f"kills: from the earlier to the later one the mean over tasks changes by {measured(*ends)} percentage "
        "points"
    )
    if gap_row["alike"] is None:
        return f"{text}."
    same = "alike" if gap_row["alike"] else "not alike"
    return f"{text}. In how scouts differ from the rest of their task they are {same}."


def asked_of_the_proof(study: Study) -> str:
    """Say what had to meet the limit on the proof period, and why; nothing where no setting was chosen."""
    if not study.chosen:
        return ""
    asked = (
        "On the proof period the rate of kills itself must meet the limit; its upper bound was asked of the "
        "choice."
        if study.choice.limit_on == "upper"
        else "On the proof period, as in the choice, the rate of kills itself must meet the limit."
    )
    if not differ(study.alike):
        return asked
    bound = study.proof.quantity("exceed_rate")["after_hi"]
    met = "meets it too" if bound <= study.proof.max_exceed else "does not meet it"
    return f"{asked} The periods are not alike; the upper bound on the proof period {met}."


def dearer(study: Study) -> str:
    """Say that only the limit speaks for the chosen setting, where its stated loss is higher beyond doubt."""
    if not study.chosen:
        return ""
    row = study.early.setting(*study.chosen)
    if not row["loss_diff_lo"] > 0:
        return ""
    difference = measured(row["loss_diff"], row["loss_diff_lo"], row["loss_diff_hi"])
    return (
        f"On the calibration period the stated loss of {setting_words(study.parameter, study.chosen)} is higher "
        f"than the current one beyond doubt, by {difference} core h per core h of work: only the limit of "
        f"{limit_words(study.choice.max_exceed)} speaks for it."
    )


def gap(late: Backtest) -> str:
    """Say how scouts differ from the rest of their task."""
    row = late.gap_summary.filter(pl.col("measure") == "ratio_median").row(0, named=True)
    if row["ratio"] is None:
        return "Scouts cannot be compared with the rest of their tasks."
    value, low, high = (None if v is None else v - 1 for v in (row["ratio"], row["lo"], row["hi"]))
    side = "heavier" if value is not None and value >= 0 else "lighter"
    if low is None or high is None or low <= 0 <= high:
        return (
            f"At the median scouts do not differ from the rest of their task beyond doubt: they are heavier by "
            f"{percent(value, low, high)}"
        )
    if value is not None and value < 0:
        value, low, high = -value, None if high is None else -high, None if low is None else -low
    return (
        f"Scouts are {percent(value, low, high)} {side} than the rest of their task at the median"
    )


def _overlapping(studies: Sequence[Study | Unanswered], n_jobs: int) -> tuple[str, ...]:
    """Say that jobs of the calibration tasks ended when the proof period had begun."""
    divided = any(not isinstance(study, Unanswered) and study.divided for study in studies)
    if not divided or n_jobs == 0:
        return ()
    told = (
        f"{n_jobs:,} {plural(n_jobs, 'job')} of the calibration's tasks ended when the proof period had begun: no "
        "task is in both periods, but a choice made at that instant could not have known these jobs."
    )
    return (told,)


def cannot_tell(
    studies: Sequence[Study | Unanswered], *, n_overlapping: int = 0
) -> tuple[str, ...]:
    """Collect what the studies cannot tell; a sentence that is true of one parameter only says which.

    Args:
        studies: One per parameter.
        n_overlapping: Of `Periods`: jobs of early tasks that ended after the instant between the periods.
    """
    found: dict[str, list[str]] = {}
    for study in studies:
        if isinstance(study, Unanswered):
            continue
        sentences = list(study.late.caveats)
        if study.choice.status != "no_answer":  # without a choice there is no lucky one
            sentences += study.choice.caveats
        if study.alike is not None and differ(study.alike):
            sentences.append(
                f"{exchange(study.alike)} What was learnt on the first holds less surely later."
            )
        for sentence in sentences:
            found.setdefault(sentence, []).append(NAMES[study.parameter.name])
    shared = [s for s, names in found.items() if len(names) == len(studies)]
    single = [f"{', '.join(n)}: {s}" for s, n in found.items() if len(n) < len(studies)]
    waiting = (
        "Waiting: a back-test replays requests, not queues; the share of slots that can take a task is "
        "all it says of where work could run."
    )
    return (*shared, *single, *_overlapping(studies, n_overlapping), waiting)
