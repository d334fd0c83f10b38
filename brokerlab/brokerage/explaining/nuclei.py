"""Why a task was, or was not, given to a nucleus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from brokerlab.brokerage.engine.decide import without_checks
from brokerlab.brokerage.engine.decisions import PlaceDecisions
from brokerlab.brokerage.explaining.question import Explanation, Question
from brokerlab.brokerage.words import counted, filled, listed, number

ENDED = {
    "input_not_readable": "no site can send its input",
    "parent_missing": "its parent task is not known",
    "abort": "a nucleus before it has no endpoint for an output, at which the deployed code gives up",
    "no_queue_at_all": "no queue could run it",
    "no_candidates": "nothing passed all checks",
}
FACTORS = (
    "work {work}: {rw} HS06 s of work {which} are left there",
    "data {data}: {input}",
    "tape {tape}",
    "space fraction {space_fraction}: {space} of {space_total} GB",
    "space amount {space_amount} TB, at most {free_disk_cutoff_tb} TB count",
)
SPACE = "{space_free} GB free and {space_expired} GB expired"
LEFT = "{usable_gb} GB usable, less the {demand_gb} GB that work assigned asks for,"
NUMBERS = ("weight", "probability", "work", "data", "tape", "space_fraction", "space_amount")


class OfNucleus(Question):
    """Why a task was, or was not, given to a nucleus."""

    NOUN = ("nucleus", "nuclei")

    @property
    def not_sent(self) -> str:
        """The verb of a nucleus that was skipped."""
        return "was not given to"

    def ending(self) -> str:
        """Say in a clause why the task has no nucleus."""
        outcome = self.who.row["outcome"]
        return f"{ENDED.get(outcome, outcome)} ({outcome})"

    def goes_to(self, seen: PlaceDecisions) -> str:  # noqa: ARG002 - of queues
        """Say which nucleus the task has, after its name."""
        row = self.who.row
        if row["already_assigned"]:
            return f"had its nucleus already, {row['nucleus']}: nothing was checked."
        n = counted(row["n_passed"], *self.NOUN)
        return f"goes to nucleus {row['nucleus']}, drawn from {n} of {number(row['n_nuclei'])}."

    def explained(self) -> Explanation:
        """Return the answer."""
        who, again = self.who, self.who.again()
        every = who.rows(self.decisions.nuclei)
        here = every.filter(pl.col("nucleus") == self.name)
        if who.row["already_assigned"]:
            already = (
                f"{who.text} had its nucleus already, {who.row['nucleus']}: nothing was checked."
            )
            return self.answer("task_ended", already, *again)
        if not every.height:
            return self.answer(
                "task_ended", f"{who.text} was given to no nucleus: {self.ending()}.", *again
            )
        if not here.height:
            names = every["nucleus"].to_list()
            among = f"the {counted(len(names), *self.NOUN)} of {who.text.lower()}"
            hint = self.near(names, f"they are {listed(names)}.")
            return self.answer("unknown", f"{self.name} is not among {among}; {hint}", *again)
        row = here.row(0, named=True)
        return self._candidate(row) if row["check"] is None else self._skipped(row)

    def _skipped(self, row: Mapping[str, Any]) -> Explanation:
        world = self.decisions.world
        t = self.who.rows(world.tasks)["t"].item()
        version = pl.col("q_version") == self.who.snapshot
        queues = world.facts.queues.filter(version, pl.col("nucleus") == self.name)
        result = without_checks(self.decisions, t, queues["q"].item())
        return self.skipped(row["check"], self.obstacles(result, row["failed"]))

    def _candidate(self, row: Mapping[str, Any]) -> Explanation:
        who, chosen = self.who, self.who.row["nucleus"]
        chance = f"{100 * row['probability']:.3g} %"
        head = f"was given to {self.name}: it was drawn with a chance of {chance}"
        if self.name != chosen:
            head = (
                f"could have gone to {self.name} with a chance of {chance}, but {chosen} was drawn"
            )
        n = counted(who.row["n_passed"], *self.NOUN)
        rules = self.decisions.world.rules
        counts_all = rules.work_of_weight == "all"
        which = "of all priorities" if counts_all else "at this priority and above"
        values = {
            **row,
            "which": which,
            "space": filled(LEFT if rules.weight_after_demand else SPACE, row),
            "input": "the task has no input that counts",
        }
        if row["tot_size"]:
            values["input"] = filled("{ava_size_any} of {tot_size} B of the input are there", row)
        return self.answer(
            "candidate",
            f"{who.text} {head} among {n} (weight {number(row['weight'])}).",
            self.made_of(),
            *(f"  {filled(factor, values)}" for factor in FACTORS),
            *who.again(),
            numbers={name: row[name] for name in NUMBERS},
        )
