"""The funnel: how many places each check removes, in the order in which they are removed."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from brokerlab.brokerage.engine.decisions import TASK, PlaceDecisions
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
