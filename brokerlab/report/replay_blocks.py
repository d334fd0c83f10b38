"""What pages of replayed brokerages share: parameters, caveats, and three sections.

The sections: where jobs really ran, document against production rules, and which keys matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import polars as pl
from pydantic import Field, field_validator

from brokerlab.archive.store import Archive, open_archive
from brokerlab.brokerage.studies.alternatives import (
    WORTH,
    KeyEffects,
    RuleSetComparison,
    check_keys,
)
from brokerlab.brokerage.studies.period import Kind, Period, replay_period
from brokerlab.brokerage.studies.tasks import ProductionTasks, UserTasks
from brokerlab.charts import primitives
from brokerlab.report import kit
from brokerlab.report.kit import Block, Caveat, Chart, Table, say
from brokerlab.report.needs import Needs, Rows
from brokerlab.report.switches import switch_table

MOST_REASONS = 8  # reasons against the queues where jobs ran that are drawn
SWITCH_SAMPLE = "brokerages to try single switches of the rules on, 0: none [1]"
CHANGES = {
    "pairs": "decided otherwise, in all",
    "gained": "candidates under the other rules only",
    "lost": "candidates under these rules only",
    "other_reason": "skipped under both, for another reason",
}
MOVED = {"jobs": "jobs", "nuclei": "choices of a nucleus"}
"""What goes elsewhere, by what a key decides."""
WHY_SKIPPED = {
    "no_nuclei": "the archive cannot tell the choice of the nucleus",
    "not_read": "no check and no weight reads it under these rules and settings",
}


class Params(kit.Params):
    """What may be asked of a replay; a report sets the brokerage and the usual keys."""

    kind: ClassVar[Kind]
    usual_keys: ClassVar[tuple[str, ...]]

    max_tasks: int = Field(0, ge=0, description="tasks replayed, drawn at random; 0: all [tasks]")
    every: kit.AnyDuration = Field(
        "1h", description="grid of the instants, empty for none [duration]"
    )
    keys: list[str] = Field([], description="gdpconfig keys to vary, empty: the usual [name]")
    points: int = Field(5, ge=3, description="values per key, beside its half and double [1]")
    switch_sample: int = Field(60, ge=0, description=SWITCH_SAMPLE)
    n_boot: int = Field(1000, ge=20, description="bootstrap replicates [1]")

    @field_validator("keys")
    @classmethod
    def _are_keys(cls, keys: list[str]) -> list[str]:
        kit.allowed(lambda: check_keys(keys, cls.kind))
        return keys

    def opened(self) -> Archive:
        """Return the archive."""
        return open_archive(self.archive)

    def replayed(self) -> Period:
        """Return what the brokerage saw over the period."""
        return replay_period(
            self.needs.opened(self.opened()),
            self.kind,
            start=self.start,
            end=self.end,
            rules=self.rules,
            max_tasks=self.max_tasks,
            every=self.every or None,
            seed=self.seed,
        )


def needs_of(kind: Kind, what: str) -> Needs:
    """Return what the replay of a brokerage reads of an archive."""
    own = pl.col("prodsourcelabel") == kind.label
    return Needs(tables=("jobs", "tasks", "queues"), rows=[Rows.tasks(what, own)])


def row(frame: pl.DataFrame, name: str, column: str = "part") -> dict[str, Any]:
    """Return the one row of a part."""
    return frame.row(by_predicate=pl.col(column) == name, named=True)


def history_blocks(agreement: pl.DataFrame, disagreement: pl.DataFrame) -> list[Block | None]:
    """Return whether jobs ran where the replay would have sent them; frames are those of `removal`."""
    if agreement.is_empty():
        return ["No job that ran belongs to a brokerage of the replay."]
    candidate = row(agreement, "candidate")
    return [
        Chart(
            draw=primitives.bars,
            frame=pl.concat([agreement.filter(part="candidate"), disagreement.head(MOST_REASONS)]),
            name="history",
            options={"value": "share", "label": "part", "title": "jobs that ran [%]"},
            finding=say(
                "{share:%} of the jobs ran at a candidate; queues drawn at random: {chance:%}",
                candidate,
                chance=row(agreement, "by_chance")["share"],
            ),
            sample=say("{whole:#job} of {n_units:#task}; 95 % intervals over tasks.", candidate),
            note="Below the candidates: the check that speaks against the queue where jobs ran.",
        )
    ]


def rule_set_blocks(comparison: RuleSetComparison) -> list[Block | None]:
    """Return how often the rule sets differ, by what, and which single difference makes most of it."""
    current, other = comparison.current, comparison.other
    totals = comparison.totals.with_columns(change=pl.col("part").replace_strict(CHANGES))
    if totals.is_empty():
        return ["There is no pair of task and queue to decide."]
    return [
        Table(
            name="rule_sets",
            frame=totals,
            caption=say(
                "With the {other} rules {share:%} of the brokerages get another best queue",
                row(comparison.brokerages, "best"),
                other=other,
            ),
            columns={
                "change": f"{current} → {other}",
                "total": "Pairs of task and queue",
                "share": "Share [% of pairs]",
            },
            note="95 % intervals over tasks.",
        ),
        switch_table(
            comparison.switches,
            {
                "n_changed": "Decides otherwise [pairs]",
                "explained": "Of the whole difference [%]",
                "shift": "Elsewhere [% of jobs]",
            },
            caption=say(
                "What each switch does on {n:#brokerage}, {pairs:#pair} of which {other} rules decide otherwise",
                n=comparison.n_sample,
                pairs=comparison.n_sample_pairs,
                other=other,
            ),
        ),
    ]


def key_blocks(effects: KeyEffects, *, note: str = "") -> list[Block | None]:
    """Return what other values of the keys would change; ``note`` says what else counts as elsewhere."""
    keys = effects.keys
    if keys.is_empty():
        return ["No key could be tried."]
    top = keys.row(0, named=True)
    marked = keys.with_columns(mark=pl.when("worth").then(pl.lit("worth calibrating")))
    return [
        Chart(
            draw=primitives.dots,
            frame=effects.steps,
            name="keys_near_and_far",
            options={
                "value": "share",
                "label": "key",
                "colour": "value",
                "title": "jobs that go elsewhere [%]",
            },
            finding=say(
                "Worth calibrating: {n} of {tried:#setting}; most moves with {key}: {shift:%} of the {what}",
                top,
                what=MOVED[top["decides"]],
                n=keys["worth"].sum(),
                tried=keys.height,
            ),
            sample="95 % intervals over tasks, here and below.",
        ),
        Table(
            name="keys",
            frame=marked,
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
                "Elsewhere: mean share of a task's expected jobs that another weight, candidate or check "
                f"sends to another queue.{note} Worth calibrating: halved or doubled within its range, the "
                f"interval begins at {100 * WORTH:g} % or more. Points: then less now."
            ),
        ),
    ]


def values(
    period: Period, tasks: ProductionTasks | UserTasks, comparison: RuleSetComparison
) -> dict[str, int]:
    """Return how much was replayed and compared."""
    others = comparison.totals.filter(part="pairs")["total"].sum()
    return {
        "n_tasks": period.n_replayed,
        "n_tasks_in_period": period.n_tasks,
        "n_brokerages": tasks.decided_tasks.height,
        "n_pairs": tasks.n_pairs,
        "n_pairs_other_rules": int(others),
        "n_sample_pairs": comparison.n_sample_pairs,
    }


def frames(comparison: RuleSetComparison, effects: KeyEffects) -> dict[str, pl.DataFrame]:
    """Return the frames behind the shared sections."""
    return kit.frames_of(comparison, "rule_") | kit.frames_of(effects, "key_")


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
    """Return what no replay of this period can tell; ``odd`` are messages of `errors.collect_warnings`."""
    n_instants = period.replay.instants.height
    return [
        Caveat(
            int(period.archive.synthetic),
            "The archive is synthetic and its jobs were placed by the generator: what removes queues, and where jobs "
            "ran, says nothing of a real system.",
        ),
        Caveat.of(
            period.n_tasks - period.n_replayed,
            "A sample: {replayed} of {all:#task}, drawn at random, are replayed.",
            replayed=period.n_replayed,
            all=period.n_tasks,
        ),
        *(Caveat(1, f"Odd input, taken as the rules say: {message}.") for message in odd),
        *(
            Caveat(1, f"{key} was not tried: {WHY_SKIPPED[reason]}.")
            for key, reason in effects.skipped.select("key", "reason").iter_rows()
        ),
        Caveat.of(
            n_instants,
            "Consequences: each of {n:#instant} is replayed in the state that history left, one change at a time; "
            "had other rules or settings been in force, queues and usage would have been others.",
        ),
        Caveat(
            n_instants if period.every else 0,
            f"Instants are rounded down to {period.every}: what changed within is not seen.",
        ),
    ]
