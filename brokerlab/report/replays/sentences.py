"""Sentences that reports of replayed brokerages share, every number taken from what was found."""

from __future__ import annotations

import polars as pl

from brokerlab.report.content import Verdict
from brokerlab.report.replays.rulesets import RuleSets
from brokerlab.report.replays.settings import JOBS, WORTH, Settings
from brokerlab.report.replays.words import of
from brokerlab.words import listed, percent, thin

NAMED = 3
"""Keys named with their numbers."""
MOST_WORTH = 5
"""Keys named as worth calibrating."""
UNITLESS = ("", "weight", "fraction", "factor", "ratio")


def keys_in_short(found: Settings) -> str:
    """Say which keys are worth calibrating."""
    moved = found.keys.filter(pl.col("shift").fill_null(0) > 0)
    if moved.is_empty():
        return "None of the settings tried moves a job."
    unset = pl.col("half").is_null() & pl.col("double").is_null()
    worth = moved.filter("worth", ~unset)["key"].to_list()
    off = moved.filter("worth", unset)["key"].to_list()
    n, part = found.keys.height, f"{100 * WORTH:g} % of the jobs"
    if not worth:
        sentence = f"None of {n} settings tried moves {part} beyond doubt when halved or doubled."
    else:
        some = f"{listed(worth[:MOST_WORTH])}{' and others' if len(worth) > MOST_WORTH else ''}"
        sentence = f"Worth calibrating, of {n} settings tried: {some}; halved or doubled, each moves {part} or more beyond doubt."
    if not off:
        return sentence
    return f"{sentence} Without a value to halve or double, {listed(off)} can move as much."


def settings(found: Settings) -> Verdict:
    """Say which settings matter."""
    if found.keys.is_empty():
        return Verdict(
            kind="no_answer", subject="Settings", sentence="No answer: no key could be tried."
        )
    top = [
        f"{row['key']} ({percent(row['shift'], row['lo'], row['hi'])} of the {_things(row['decides'])} at "
        f"{row['at']:g}{_unit(row['unit'])})"
        for row in found.keys.filter(pl.col("shift") > 0).head(NAMED).iter_rows(named=True)
    ]
    if not top:
        return Verdict(kind="finding", subject="Settings", sentence=keys_in_short(found))
    still = found.keys.filter(pl.col("shift").fill_null(0) == 0)["key"].to_list()
    none = f" {listed(still)} {'moves' if len(still) == 1 else 'move'} nothing." if still else ""
    return Verdict(
        kind="finding",
        subject="Settings",
        sentence=thin(
            f"Over their sensible range most goes elsewhere with {listed(top)}. {keys_in_short(found)}{none}"
        ),
    )


def _things(decides: str) -> str:
    return "jobs" if decides == JOBS else "tasks"


def _unit(unit: str) -> str:
    return "" if unit in UNITLESS else f" {unit}"


def rules(found: RuleSets) -> Verdict:
    """Say how often the rule sets differ, and by what."""
    single = ""
    if found.switches.height and found.n_sample_pairs:
        row = found.switches.row(0, named=True)
        single = (
            f" One difference, {row['switch']} ({row['rows']}), makes {percent(row['explained'])} of those in a sample "
            f"of {found.n_sample} brokerages."
        )
    same = found.comparison.n_changed() == 0
    sentence = (
        f"The {found.other} rules decide every pair as the {found.current} rules do."
        if same
        else f"The {found.other} rules decide {of(found.totals, 'pairs')} of the pairs otherwise than the {found.current} "
        f"rules; {of(found.brokerages, 'best')} of the brokerages get another best queue, "
        f"{of(found.brokerages, 'outcome')} end otherwise.{single}"
    )
    return Verdict(kind="finding", subject="Rule sets", sentence=thin(sentence))


def history(agreement: pl.DataFrame, *, synthetic: bool) -> str:
    """Say how the replay agrees with where jobs ran, and against what chance.

    Args:
        agreement: From `history.agreement`.
        synthetic: Whether the archive was generated.
    """
    jobs = int(agreement["whole"][0]) if agreement.height else 0
    if not jobs:
        return "No job that ran belongs to a brokerage of the replay."
    sentence = (
        f"Of {jobs:,} jobs that really ran, {of(agreement, 'candidate')} ran at a queue that the replay calls a candidate, "
        f"{of(agreement, 'best_three')} at one of its best three and {of(agreement, 'first')} at its first; queues drawn at random "
        f"from those looked at would be candidates for {of(agreement, 'by_chance')}."
    )
    if synthetic:
        sentence += (
            " The archive is synthetic: its jobs were placed by the generator, not by a brokerage, so this says "
            "nothing of how well the replay follows the real system."
        )
    return thin(sentence)
