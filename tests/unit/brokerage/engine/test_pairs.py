"""Facts of pairs are looked up by position: the same as a join finds."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.engine.pairs import looked_up, matched
from tests.brokerage_toys import World


def test_looking_up_is_joining() -> None:
    world = World().queue("A", running=5).queue("B", pilots=0).queue("C").task(2, nucleus=None)
    facts = world.task(3, site="B").decided().world.facts
    of_sides = [name for side in facts.sides for name in side.missing]
    keys = {*(side.task_key for side in facts.sides), *(side.queue_key for side in facts.sides)}
    wanted = {"t_prio", "q_corecount", "p_maxwdir", *of_sides, *keys}
    pairs = matched(facts)
    found = looked_up(facts, pairs, wanted)
    joined = pairs
    for frame, key in ((facts.tasks, "t"), (facts.queues, "q")):
        names = [key, *sorted(wanted & {*frame.columns} - {key})]
        joined = joined.join(frame.select(names), on=key, how="left", maintain_order="left")
    for side in facts.sides:
        on = [side.task_key, side.queue_key]
        rows = side.rows.select(*on, *side.missing)
        joined = joined.join(rows, on=on, how="left", maintain_order="left").with_columns(
            pl.col(name).fill_null(value)
            for name, value in side.missing.items()
            if value is not None
        )
    assert pairs["t"].unique().to_list() == [0, 1, 2]
    assert found.select(sorted(found.columns)).equals(joined.select(sorted(found.columns)))
