"""What pages of replayed brokerages share: parameters, caveats, and three sections.

The sections: where jobs really ran, document against production rules, and which keys matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

import polars as pl
from pydantic import Field, field_validator

from brokerlab.archive.store import open_archive
from brokerlab.brokerage.studies.key_effects import WORTH, KeyEffects, check_keys
from brokerlab.brokerage.studies.kinds import Kind
from brokerlab.brokerage.studies.period import Period, replay_period
from brokerlab.brokerage.studies.rule_sets import RuleSetComparison
from brokerlab.charts.primitives import bars, dots
from brokerlab.errors import ConfigError
from brokerlab.report import kit
from brokerlab.report.kit import Block, Caveat, Chart, Table, say
from brokerlab.times import duration_us

OVER_TASKS = "In brackets: 95 % intervals over tasks."
MOST_REASONS = 8
"""Reasons against the queues where jobs ran that are drawn."""
SWITCH_SAMPLE = "brokerages to try single rule differences on, 0: none [1]"
PLACES = {
    "candidate": "at a candidate",
    "best_three": "at one of its best three",
    "first": "at its first",
    "by_chance": "at a candidate, were queues drawn at random",
}
CHANGES = {
    "pairs": "decided otherwise, in all",
    "gained": "candidates under the other rules only",
    "lost": "candidates under these rules only",
    "other_reason": "skipped under both, for another reason",
}
WHY_SKIPPED = {
    "no_nuclei": "the archive cannot tell the choice of the nucleus",
    "not_read": "no check and no weight reads it under these rules and settings",
}


class Params(kit.Params):
    """What may be asked of a replay; a report sets the brokerage and the usual keys."""

    kind: ClassVar[Kind]
    usual_keys: ClassVar[tuple[str, ...]]

    max_tasks: int = Field(0, ge=0, description="tasks replayed, drawn at random; 0: all [tasks]")
    every: str = Field("1h", description="grid of the instants, empty for none [duration]")
    keys: list[str] = Field([], description="gdpconfig keys to vary, empty: the usual [name]")
    points: int = Field(5, ge=3, description="values per key, beside its half and double [1]")
    switch_sample: int = Field(60, ge=0, description=SWITCH_SAMPLE)
    n_boot: int = Field(1000, ge=20, description="bootstrap replicates [1]")

    @field_validator("every")
    @classmethod
    def _is_duration(cls, every: str) -> str:
        if every:
            _refuse(lambda: duration_us(every))
        return every

    @field_validator("keys")
    @classmethod
    def _are_keys(cls, keys: list[str]) -> list[str]:
        _refuse(lambda: check_keys(keys, cls.kind))
        return keys

    def replayed(self) -> Period:
        """Return what the brokerage saw over the period."""
        return replay_period(
            open_archive(self.archive),
            self.kind,
            start=self.start,
            end=self.end,
            rules=self.rules,
            max_tasks=self.max_tasks,
            every=self.every or None,
            seed=self.seed,
        )


def _refuse(check: Callable[[], object]) -> None:
    """Turn what a library call refuses into what a parameter may not be."""
    try:
        check()
    except ConfigError as error:
        raise ValueError(str(error)) from None


def wide(shares: pl.DataFrame, by: str) -> pl.DataFrame:
    """Return one row per group, the largest first: `intervals.shares` with the parts beside each other.

    Args:
        shares: With the column ``by``.
        by: Column of the groups.

    Returns:
        ``by, whole, n_units``; for each part ``part, part_lo, part_hi``.
    """
    ends = ("", "_lo", "_hi")
    names = shares["part"].unique(maintain_order=True).to_list()
    return (
        shares.group_by(by, "whole", "n_units")
        .agg(
            pl.col(f"share{end}").filter(pl.col("part") == name).first().alias(f"{name}{end}")
            for name in names
            for end in ends
        )
        .sort("whole", by, descending=[True, False])
    )


def history_blocks(agreement: pl.DataFrame, disagreement: pl.DataFrame) -> list[Block | None]:
    """Return whether jobs ran where the replay would have sent them.

    Args:
        agreement: From `history.agreement_shares`.
        disagreement: From `history.disagreement_shares`.
    """
    if agreement.is_empty():
        return ["No job that ran belongs to a brokerage of the replay."]
    row = dict(agreement.select("part", "share").iter_rows())
    n_jobs, n_tasks = agreement.select("whole", "n_units").row(0)
    candidate = agreement.filter(pl.col("part") == "candidate")
    where = pl.concat([candidate, disagreement.head(MOST_REASONS)])
    return [
        Chart(
            draw=bars,
            frame=where,
            name="history",
            options={
                "value": "share",
                "label": "part",
                "title": "jobs that ran [%]",
            },
            finding=say(
                "{share:%} of the jobs ran at a candidate; queues drawn at random: {chance:%}",
                candidate.row(0, named=True),
                chance=row["by_chance"],
            ),
            sample=say(
                "{jobs} jobs of {tasks} tasks; 95 % intervals over tasks.",
                jobs=n_jobs,
                tasks=n_tasks,
            ),
            note="Below the candidates: the check that speaks against the queue where jobs ran.",
        ),
        Table(
            name="agreement",
            frame=agreement.with_columns(where=pl.col("part").replace_strict(PLACES)),
            caption="Where jobs ran, by what the replay says of the queue",
            columns={"where": "Where", "share": "Jobs [%]"},
            note=OVER_TASKS,
        ),
    ]


def rule_set_blocks(comparison: RuleSetComparison) -> list[Block | None]:
    """Return how often the rule sets differ, by what, and which single difference makes most of it."""
    current, other = comparison.current, comparison.other
    totals = comparison.totals.with_columns(change=pl.col("part").replace_strict(CHANGES))
    frame = pl.concat([totals, comparison.moves.with_columns(change="part")])
    if frame.is_empty():
        return ["There is no pair of task and queue to decide."]
    brokerages = {row["part"]: row for row in comparison.brokerages.iter_rows(named=True)}
    switches = comparison.switches.filter((pl.col("n_changed") > 0) | (pl.col("shift") > 0))
    idle = comparison.switches.height - switches.height
    return [
        Table(
            name="rule_sets",
            frame=frame,
            caption=say(
                "Pairs of task and queue, {current} → {other} rules; {share:%} of the brokerages get another best queue",
                brokerages["best"],
                current=current,
                other=other,
            ),
            columns={
                "change": f"{current} → {other}",
                "total": "Pairs",
                "share": "Share [% of pairs]",
            },
            note=f"{OVER_TASKS} Below the first four lines: the most frequent changes.",
        ),
        Table(
            name="switches",
            frame=switches,
            caption=f"Single differences of the rule sets, tried alone on {comparison.n_sample} brokerages",
            columns={
                "switch": "Difference",
                "row": "Row",
                "n_changed": "Changes [pairs]",
                "explained": "Of the whole difference [%]",
                "shift": "Elsewhere [% of a task's jobs]",
            },
            note=(
                "A pair may need two differences, or follow from either: shares need not add up to 100 %. "
                f"matching: all text rules together. {idle} others change nothing."
            ),
        )
        if switches.height
        else None,
    ]


def key_blocks(effects: KeyEffects, *, note: str = "") -> list[Block | None]:
    """Return what other values of the keys would change, the key that matters most first.

    Args:
        effects: From `key_effects.which_keys_matter`.
        note: What else counts as elsewhere, a sentence.
    """
    keys = effects.keys
    if keys.is_empty():
        return ["No key could be tried."]
    worth = keys.filter("worth")
    frame = keys.with_columns(
        name=pl.when(pl.col("unit") == "")
        .then("key")
        .otherwise(pl.format("{} [{}]", "key", "unit")),
        mark=pl.when("worth").then(pl.lit("worth calibrating")),
    )
    steps = {"half": "halved", "double": "doubled", "shift": "at the value that moves most"}
    drawn = pl.concat(
        keys.select(
            "key",
            share=column,
            share_lo=f"{column}_lo",
            share_hi=f"{column}_hi",
            value=pl.lit(words),
        )
        for column, words in steps.items()
    ).drop_nulls("share")
    top = keys.row(0, named=True)
    return [
        Chart(
            draw=dots,
            frame=drawn,
            name="keys_near_and_far",
            options={
                "value": "share",
                "label": "key",
                "colour": "value",
                "title": "jobs that go elsewhere [%]",
            },
            finding=say(
                "Worth calibrating: {n} of {tried} settings; most moves with {key}: {shift:%} of the jobs",
                top,
                n=worth.height,
                tried=keys.height,
            ),
            sample="95 % intervals over tasks.",
        ),
        Table(
            name="keys",
            frame=frame,
            caption="Each setting alone, over its whole sensible range, at the value that moves most",
            columns={
                "name": "Key",
                "current": "Current",
                "least": "From",
                "most": "To",
                "at": "At",
                "shift": "Elsewhere [% of jobs]",
                "without": "Without a queue [% points]",
                "reachable": "Slots in reach [% points]",
            },
            mark="mark",
            note=(
                f"{OVER_TASKS} Elsewhere: mean share of a task's expected jobs that another weight, candidate or check "
                f"sends to another queue.{note} Worth calibrating: halved or doubled, the interval begins at "
                f"{100 * WORTH:g} % or more. Points: then less now."
            ),
        ),
    ]


def facts(period: Period) -> dict[str, str]:
    """Return how a replay was made, and what it approximates."""
    return {
        "Instants": say(
            "{n}, rounded down to {grid}",
            n=period.replay.instants.height,
            grid=period.every or "nothing",
        ),
        "Approximated": "; ".join(period.replay.notes),
    }


def caveats(period: Period, effects: KeyEffects, odd: Iterable[str]) -> list[Caveat]:
    """Return what no replay of this period can tell.

    Args:
        period: The period.
        effects: The keys tried on it.
        odd: Messages of `errors.collect_warnings`.
    """
    n_instants = period.replay.instants.height
    return [
        Caveat(
            n=int(period.archive.synthetic),
            text=(
                "The archive is synthetic and its jobs were placed by the generator: what removes queues, and where jobs "
                "ran, says nothing of a real system."
            ),
        ),
        Caveat(
            n=period.n_tasks - period.n_replayed,
            text=say(
                "A sample: {n} of {all} tasks, drawn at random, are replayed.",
                n=period.n_replayed,
                all=period.n_tasks,
            ),
        ),
        *(Caveat(n=1, text=f"Odd input, taken as the rules say: {message}.") for message in odd),
        *(
            Caveat(n=1, text=f"{key} was not tried: {WHY_SKIPPED[reason]}.")
            for key, reason in effects.skipped.select("key", "reason").iter_rows()
        ),
        Caveat(
            n=n_instants,
            text=say(
                "Consequences: each of {n} instants is replayed in the state that history left, one change at a time; "
                "had other rules or settings been in force, queues and usage would have been others.",
                n=n_instants,
            ),
        ),
        Caveat(
            n=n_instants if period.every else 0,
            text=f"Instants are rounded down to {period.every}: what changed within is not seen.",
        ),
    ]
