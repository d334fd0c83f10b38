"""Two sets of decisions side by side: who is decided differently, and by which check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.brokerage.engine.decisions import NOT_LOOKED_AT, TASK, PlaceDecisions
from brokerlab.brokerage.words import counted, number
from brokerlab.errors import DataError
from brokerlab.results import Result, Shows

CHANGES = ("gained", "lost", "other_reason")
CALLED = {"jobs": "the job brokerage", "analysis": "the analysis brokerage", "tasks": "the task brokerage"}  # fmt: skip
_SHOWN = 5

# over Comparison.every
N_CHANGED = pl.sum_horizontal(CHANGES)
OTHER_OUTCOME = pl.col("outcome_a") != pl.col("outcome_b")
OTHER_BEST = pl.col("best_a").ne_missing(pl.col("best_b"))
GOES_ELSEWHERE = OTHER_OUTCOME | OTHER_BEST | (pl.col("shift").fill_null(0) > 0)
CHANGED = GOES_ELSEWHERE | (N_CHANGED > 0)
"""The task has a pair, an outcome, a best place or shares that differ."""


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """What differs between decisions ``a`` and ``b`` on the same tasks and places.

    Attributes:
        pairs: One row per (task, place) decided differently, sorted: ``jeditaskid, snapshot``, ``panda_queue`` or
            ``nucleus``, ``check_a``, ``check_b`` (null: candidate), ``change``: ``gained`` (candidate in b only),
            ``lost`` (in a only), ``other_reason``. `NOT_LOOKED_AT` stands for a check where one side has no such pair.
        every: One row per task compared, sorted: ``outcome_a, outcome_b``, ``best_a, best_b``, ``shift``, the share of the
            task's expected jobs that goes elsewhere (0 to 1: total variation distance of the shares; 1 where only one side
            has candidates; null: neither has), ``n_pairs`` looked at on either side, and those of each kind of change.
    """

    shows = Shows(
        about="pairs of task and place decided differently, one row each",
        columns="jeditaskid, panda_queue, nucleus, check_a, check_b, change",
        keys=("jeditaskid", "snapshot", "panda_queue"),
        next=(
            ".by_check",
            ".tasks",
            "brokerage.explain(decisions, jeditaskid=..., panda_queue=...)",
        ),
    )

    pairs: pl.DataFrame
    every: pl.DataFrame

    @property
    def by_check(self) -> pl.DataFrame:
        """``change, check_a, check_b``, ``n_pairs``, ``n_tasks``; the most frequent first."""
        n_tasks = pl.struct(TASK).n_unique().cast(pl.Int64)
        by = ["change", "check_a", "check_b"]
        counts = self.pairs.group_by(by).agg(n_pairs=pl.len().cast(pl.Int64), n_tasks=n_tasks)
        return counts.sort("n_pairs", *by, descending=[True, False, False, False])

    @property
    def tasks(self) -> pl.DataFrame:
        """The rows of :attr:`every` whose outcome, best place or shares differ."""
        return self.every.filter(GOES_ELSEWHERE).drop("n_pairs", *CHANGES)

    @property
    def n_tasks(self) -> int:
        """Tasks compared."""
        return self.every.height

    @property
    def n_pairs(self) -> int:
        """Pairs compared."""
        return int(self.every["n_pairs"].sum())

    @property
    def n_outcomes(self) -> int:
        """Tasks whose outcome differs."""
        return self.every.filter(OTHER_OUTCOME).height

    @property
    def n_best(self) -> int:
        """Tasks whose best place differs."""
        return self.every.filter(OTHER_BEST).height

    @property
    def weight_shift(self) -> float | None:
        """Mean ``shift`` over the tasks that have candidates on either side; null where none has."""
        return self.every["shift"].mean()  # type: ignore[return-value]

    @property
    def n_tasks_changed(self) -> int:
        """Tasks with a pair, an outcome, a best place or shares that differ."""
        return self.every.filter(CHANGED).height

    def n_changed(self, change: str | None = None) -> int:
        """Return how many pairs changed, all or those of one kind of :data:`CHANGES`."""
        return self.pairs.height if change is None else int(self.every[change].sum())

    @property
    def text(self) -> str:
        """The comparison in a sentence or two."""
        kinds = ", ".join(
            f"{number(self.n_changed(kind))} {kind.replace('_', ' ')}" for kind in CHANGES
        )
        shift = (
            ""
            if self.weight_shift is None
            else f" On average {self.weight_shift:.1%} of a task's jobs move."
        )
        return (
            f"{counted(self.n_changed(), 'pair')} of {number(self.n_pairs)} decided differently ({kinds}), in "
            f"{number(self.n_tasks_changed)} of {counted(self.n_tasks, 'task')}; {number(self.n_outcomes)} end "
            f"otherwise, {number(self.n_best)} have another best place.{shift}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values."""
        frames = {name: getattr(self, name).to_dicts() for name in ("pairs", "by_check", "tasks")}
        names = ("n_tasks", "n_pairs", "n_outcomes", "n_best", "weight_shift")
        return frames | {name: getattr(self, name) for name in names}

    def headline(self) -> str:
        """Return what it says, in a line."""
        return self.text


def compare(a: PlaceDecisions, b: PlaceDecisions) -> Comparison:
    """Compare two sets of decisions on the same tasks and queues (or nuclei).

    Args:
        a: What was decided, such as under the settings in force.
        b: What was decided otherwise: other settings, another rule set.

    Returns:
        The comparison.

    Raises:
        DataError: Decisions of different brokerages, on different tasks or on different queues.
    """
    _check(a, b)
    pairs = _pairs(a, b)
    changed = _changed(pairs, a.place)
    kinds = {kind: (pl.col("change") == kind).sum().cast(pl.Int64) for kind in CHANGES}
    every = _tasks(a, b)
    for counts in (
        pairs.group_by(TASK).agg(n_pairs=pl.len().cast(pl.Int64)),
        changed.group_by(TASK).agg(**kinds),
    ):
        every = every.join(counts, on=TASK, how="left", maintain_order="left")
    return Comparison(changed, every.with_columns(pl.col("n_pairs", *CHANGES).fill_null(0)))


def _check(a: PlaceDecisions, b: PlaceDecisions) -> None:
    kinds = [CALLED[each.world.brokerage.stage] for each in (a, b)]
    if kinds[0] != kinds[1]:
        raise DataError(f"compare: a is of {kinds[0]}, b of {kinds[1]}; give two of one kind")
    problems = []
    for name, one, other in (("a", a, b), ("b", b, a)):
        alone = one.tasks.select(TASK).join(other.tasks.select(TASK), on=TASK, how="anti")
        if alone.height:
            shown = ", ".join(str(row) for row in alone.head(_SHOWN).rows())
            problems.append(
                f"{alone.height} tasks of {name} are not in the other, (jeditaskid, snapshot) {shown}"
            )
        here, there = (set(each.world.facts.queues[each.place]) for each in (one, other))
        only = sorted(here - there)
        if only:
            problems.append(
                f"{len(only)} queues of {name} are not in the other, such as {', '.join(only[:_SHOWN])}"
            )
    if problems:
        raise DataError(f"compare: {'; '.join(problems)}: decide both on the same tasks and queues")


def _pairs(a: PlaceDecisions, b: PlaceDecisions) -> pl.DataFrame:
    """Return every pair of either side with ``check_a, check_b`` and whether each side looked at it."""
    keys, first, second = [*TASK, a.place], a.pairs, b.pairs
    looked = {"in_a": pl.lit(value=True), "in_b": pl.lit(value=True)}
    same = first.schema[a.place] == second.schema[b.place]
    if same and first.select(keys).equals(second.select(keys)):
        both = first.rename({"check": "check_a"})
        return both.with_columns(second["check"].alias("check_b"), **looked)
    one, other = (
        side.with_columns(pl.col(a.place).cast(pl.String)).rename({"check": f"check_{n}"})
        for side, n in ((first, "a"), (second, "b"))
    )
    joined = one.with_columns(in_a=looked["in_a"]).join(
        other.with_columns(in_b=looked["in_b"]), on=keys, how="full", coalesce=True
    )
    return joined.with_columns(pl.col("in_a", "in_b").fill_null(value=False))


def _changed(pairs: pl.DataFrame, place: str) -> pl.DataFrame:
    kinds = {pairs.schema["check_a"], pairs.schema["check_b"]}
    if len(kinds) > 1:
        pairs = pairs.with_columns(pl.col("check_a", "check_b").cast(pl.String))
    differs = pl.col("check_a").ne_missing(pl.col("check_b")) | ~pl.col("in_a") | ~pl.col("in_b")
    texts = pairs.filter(differs).with_columns(
        pl.when(f"in_{n}")
        .then(pl.col(f"check_{n}").cast(pl.String))
        .otherwise(pl.lit(NOT_LOOKED_AT))
        .alias(f"check_{n}")
        for n in "ab"
    )
    before, after = pl.col("check_a"), pl.col("check_b")
    change = (
        pl.when(after.is_null())
        .then(pl.lit("gained"))
        .when(before.is_null())
        .then(pl.lit("lost"))
        .otherwise(pl.lit("other_reason"))
    )
    keys = [*TASK, place]
    return texts.select(*keys, "check_a", "check_b", change=change).sort(keys)


def _tasks(a: PlaceDecisions, b: PlaceDecisions) -> pl.DataFrame:
    keys = [*TASK, a.place]
    one, other = (
        side.shares.with_columns(pl.col(side.place).cast(pl.String)).rename({"share": f"share_{n}"})
        for side, n in ((a, "a"), (b, "b"))
    )
    moved = (pl.col("share_a").fill_null(0) - pl.col("share_b").fill_null(0)).abs().sum() / 2
    some = [pl.col(f"share_{n}").is_not_null().any().alias(f"some_{n}") for n in "ab"]
    shifts = one.join(other, on=keys, how="full", coalesce=True).sort(keys).group_by(TASK).agg(
        *some, moved=moved
    )  # fmt: skip
    both = pl.col("some_a") & pl.col("some_b")
    shifts = shifts.select(*TASK, shift=pl.when(both).then("moved").otherwise(1.0))
    sides = [
        side.ends.rename({"outcome": f"outcome_{n}", "best": f"best_{n}"})
        for side, n in ((a, "a"), (b, "b"))
    ]
    tasks = sides[0].join(sides[1], on=TASK).join(shifts, on=TASK, how="left")
    return tasks.select(*TASK, "outcome_a", "outcome_b", "best_a", "best_b", "shift").sort(TASK)
