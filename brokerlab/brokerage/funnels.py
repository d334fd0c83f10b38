"""How many places each check removes, in the order in which they are removed, and which single checks stand in the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from brokerlab.brokerage import check_table
from brokerlab.brokerage.engine.decide import trial
from brokerlab.brokerage.engine.decisions import TASK, PlaceDecisions, QueueDecisions
from brokerlab.brokerage.explaining.question import Subject, subject
from brokerlab.errors import ConfigError, nearest
from brokerlab.lazy import call


@call("brokerage.funnel")
def funnel(
    decisions: PlaceDecisions, by: Sequence[str] = (), *, tasks: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Return what each check removed.

    A queue is removed by one check: the first persistent one it fails, or the last temporary one where it fails no
    persistent one before; temporary ones remove together, at their step. What is left after the last row are the
    candidates.

    Args:
        decisions: Of any brokerage; of user tasks the locality loop that decided is counted.
        by: Group by these columns, or this one, of the tasks (``gshare``, ``resource_type``, ``outcome``...), by ``day`` (of the
            instant), by ``panda_queue`` (``nucleus``), by ``loop`` or ``task_class`` of user tasks, or by a column of
            ``tasks``.
        tasks: More columns: ``jeditaskid``, perhaps ``snapshot``, one row per task.

    Returns:
        One row per group and check that exists, sorted by group, then in the order of removal: the columns of ``by``,
        ``step`` (1...), ``check``, ``stage`` (temporary problems share one), ``kind``, ``n_pairs``, ``n_tasks`` and
        ``n_queues`` (``n_nuclei``) removed, ``n_left`` pairs after it, ``share`` of the pairs looked at. Tasks that end
        before any queue is looked at have no pairs.

    Raises:
        ConfigError: An unknown column in ``by``.

    Source: production-jobs.md 2, production-tasks.md 3, analysis-jobs.md 4 and 8.
    """
    place, by = decisions.place, [*dict.fromkeys([by] if isinstance(by, str) else by)]
    pairs = _group(decisions, by, tasks)
    removed = pairs.drop_nulls("check").group_by(*by, "check").agg(
        n_pairs=pl.len().cast(pl.Int64),
        n_tasks=pl.col("task").n_unique().cast(pl.Int64),
        n_places=pl.col(place).n_unique().cast(pl.Int64),
    )  # fmt: skip
    if by:
        groups = pairs.group_by(by).agg(looked_at=pl.len().cast(pl.Int64)).sort(by, nulls_last=True)
    else:
        groups = pl.DataFrame({"looked_at": [pairs.height]}, schema={"looked_at": pl.Int64})
    steps = decisions.order.with_row_index("step", offset=1).with_columns(
        pl.col("step").cast(pl.Int64)
    )
    table = groups.join(steps, how="cross", maintain_order="left_right").join(
        removed, on=[*by, "check"], how="left", nulls_equal=True, maintain_order="left"
    )
    counts = ["n_pairs", "n_tasks", "n_places"]
    table = table.with_columns(pl.col(counts).fill_null(0))
    so_far = pl.col("n_pairs").cum_sum()
    left = pl.col("looked_at") - (so_far.over(by) if by else so_far)
    share = pl.when(pl.col("looked_at") > 0).then(pl.col("n_pairs") / pl.col("looked_at"))
    named = {"n_places": "n_queues" if place == "panda_queue" else "n_nuclei"}
    return table.with_columns(n_left=left, share=share).select(
        *by, "step", "check", "stage", "kind", *counts, "n_left", "share"
    ).rename(named)  # fmt: skip


def _group(decisions: PlaceDecisions, by: list[str], tasks: pl.DataFrame | None) -> pl.DataFrame:
    """Return the pairs with ``task``, the number of their task, and the columns to group by."""
    about, place = decisions.about, decisions.place
    if tasks is not None:
        keys = [name for name in TASK if name in tasks.columns]
        own = tasks.unique(keys, keep="first", maintain_order=True)
        about = about.drop(set(own.columns) - set(TASK), strict=False).join(
            own, on=keys, how="left", maintain_order="left"
        )
    allowed = {*about.columns, place} - {"check"}
    unknown = [name for name in by if name not in allowed]
    if unknown:
        hints = "; ".join(f"'{name}': {nearest(name, allowed)}" for name in unknown)
        raise ConfigError(f"funnel cannot group by {hints}")
    wanted = [name for name in by if name not in (*TASK, place)]
    numbered = about.with_row_index("task").select(*TASK, "task", *wanted)
    return decisions.pairs.join(numbered, on=TASK, how="left", maintain_order="left")


_SCHEMA: dict[str, Any] = {
    "check": pl.String,
    "kind": pl.String,
    **dict.fromkeys(("n_skipped", "n_alone", "n_gained", "n_candidates"), pl.Int64),
    "change": pl.String,
    **dict.fromkeys(("keys", "queue_fields", "task_fields"), pl.List(pl.String)),
}


def single_obstacles(
    decisions: PlaceDecisions, *, jeditaskid: int | None = None, snapshot: int | None = None
) -> pl.DataFrame:
    """Return the pairs that one single check keeps apart.

    Args:
        decisions: Of any brokerage.
        jeditaskid: Only this task; null = all.
        snapshot: Only this instant; null = all.

    Returns:
        ``jeditaskid, snapshot``, the place (``panda_queue`` or ``nucleus``), ``check``, sorted: the place fails this check
        and no other of the checks of single places; or it fails none of these and one of the rules that look at all
        places together skips it, behind which others of those rules may wait. Of user tasks the locality loop that decided is looked at.
    """
    pairs, place = decisions.places.drop_nulls("check"), decisions.world.brokerage.place
    if jeditaskid is not None:
        pairs = pairs.filter(pl.col("jeditaskid") == jeditaskid)
    if snapshot is not None:
        pairs = pairs.filter(pl.col("snapshot") == snapshot)
    failed = pl.col("failed")
    one = (failed & (failed - 1)) == 0
    names = {1 << bit: check.name for bit, check in enumerate(decisions.checks)}
    own = failed.replace_strict(names, default=None, return_dtype=pl.String)
    reason = pl.col("check").cast(pl.String)
    alone = pairs.filter(one & ((failed == 0) | (own == reason)))
    return alone.select(*TASK, place, "check").sort(*TASK, place)


def what_would_help(
    decisions: PlaceDecisions, *, jeditaskid: int, snapshot: int | None = None
) -> pl.DataFrame:
    """Return which single checks keep queues (or nuclei) from a task, and what could change them.

    Args:
        decisions: Of any brokerage.
        jeditaskid: The task.
        snapshot: The instant; null = the last one of the task.

    Returns:
        One row per check that skips a place of the task, those that help most first: ``check``, ``kind``;
        ``n_skipped`` places it was the reason for; ``n_alone`` of them that fail no other check of single places, see
        :func:`single_obstacles`; ``n_gained`` candidates more if the check did not exist, and ``n_candidates`` then:
        caps, weights and ranks are computed again (``rank``: if more than ten were taken). User tasks are decided again in both locality loops, and ``badsite`` stands as the marks that
        make a queue problematic (``user_queue, bad_jobs, no_running``; a queue may have several); ``change``, what could change it in words, and as lists ``keys`` of gdpconfig,
        ``queue_fields``, ``task_fields``.

    Raises:
        DataError: There is no such task.

    Source: production-jobs.md.
    """
    who = subject(decisions.tasks, jeditaskid, snapshot)
    table = pl.DataFrame(_rows(decisions, who), schema=_SCHEMA, orient="row").with_row_index(
        "order"
    )
    table = table.sort("n_gained", "n_alone", "order", descending=[True, True, False])
    return table.drop("order")


def _rows(decisions: PlaceDecisions, who: Subject) -> list[tuple[object, ...]]:
    """Return a line for each reason that skips a place, marks in the place of the reason that stands for them."""
    world = decisions.world
    task, pairs = who.rows(world.facts.tasks), who.rows(decisions.places)
    if not task.height:  # it ended before any place was looked at
        return []
    decide = trial(decisions, task["t"].item())
    skipped, candidates = pairs.drop_nulls("check"), pairs["check"].null_count()
    alone = single_obstacles(decisions, jeditaskid=who.jeditaskid, snapshot=who.snapshot)
    n_skipped = _counts(skipped) | _marks(decisions, skipped, most=len(decisions.marks))
    n_alone = _counts(alone) | _marks(decisions, alone, most=1)
    rows: list[tuple[object, ...]] = []
    # of two reasons with one name the last is told
    reasons = {reason.name: reason for reason in (*decisions.reasons, *decisions.marks)}
    for name, reason in reasons.items():
        if name not in n_skipped or name == world.brokerage.marked:
            continue
        stands_alone, after = n_alone.get(name, 0), candidates
        if name == world.brokerage.last:  # without it all that were too many are candidates
            after += stands_alone
        elif stands_alone:
            after = decide(frozenset({name})).pairs["check"].null_count()
        counts = (n_skipped[name], stands_alone, after - candidates, after)
        queue, of_task = (
            check_table.fields(reason.inputs, each)
            for each in (check_table.QUEUE, check_table.TASK)
        )
        change = check_table.in_words(reason.keys, queue, of_task)
        rows.append((name, reason.kind, *counts, change, list(reason.keys), queue, of_task))
    return rows


def _counts(pairs: pl.DataFrame) -> dict[str, int]:
    return dict(pairs.group_by(pl.col("check").cast(pl.String)).len().iter_rows())


def _marks(decisions: PlaceDecisions, pairs: pl.DataFrame, *, most: int) -> dict[str, int]:
    """Return how many of the problematic queues have each mark, of queues with so many marks at most."""
    names = [rule.name for rule in decisions.marks]
    if not names or not isinstance(decisions, QueueDecisions):
        return {}
    marked = decisions.weighed.filter(pl.col("check") == decisions.world.brokerage.marked)
    marks = marked.join(pairs, on=[*TASK, "panda_queue"], how="semi").select(names)
    marks = marks.filter(pl.sum_horizontal(pl.all().cast(pl.Int64)) <= most)
    return {name: n for name in names if (n := int(marks[name].sum()))}
