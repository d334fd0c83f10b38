"""What holds for a task at an instant: null keys mean every task or instant."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.inputs.frames import first_valid_for, valid_for, without_instants
from tests.unit.brokerage.production_tasks.world import TB, decided, endpoint, the_task, world

LEFT = pl.DataFrame({"jeditaskid": [1, 2], "snapshot": [10, 20]})
KEYS = {"jeditaskid": pl.Int64, "snapshot": pl.Int64}


def table(*rows: tuple[int | None, int | None, str]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=KEYS | {"v": pl.String}, orient="row")


def test_a_null_key_holds_for_all() -> None:
    rows = valid_for(LEFT, table((1, 10, "a"), (None, 20, "b"), (2, None, "c"), (None, None, "d"), (1, 20, "e")))  # fmt: skip
    assert sorted(rows.rows()) == [(1, 10, "a"), (1, 10, "d"), (2, 20, "b"), (2, 20, "c"), (2, 20, "d")]  # fmt: skip
    assert valid_for(LEFT, table()).columns == ["jeditaskid", "snapshot", "v"]


def test_the_own_row_comes_before_the_one_for_all() -> None:
    rows = first_valid_for(LEFT, table((None, None, "all"), (2, 20, "own"), (2, 20, "second")))
    assert rows.rows() == [(1, 10, "all"), (2, 20, "own")]
    assert first_valid_for(LEFT, table()).rows() == [(1, 10, None), (2, 20, None)]


def test_a_table_that_never_changes_is_looked_through_once() -> None:
    instants = pl.DataFrame({"snapshot": [1, 2]})
    same = pl.DataFrame({"snapshot": [1, 2, 1, 2], "v": ["a", "a", "b", "b"]})
    assert without_instants(same, instants)["snapshot"].null_count() == 2
    changed = same.head(3)
    assert without_instants(changed, instants) is changed
    asked_elsewhere = pl.DataFrame({"snapshot": [1, 3]})
    assert without_instants(same, asked_elsewhere) is same


def test_an_endpoint_of_the_instant_comes_before_one_for_every_instant() -> None:
    rows = [endpoint("A_DATADISK"), endpoint("A_DATADISK", snapshot=1, space_free=1.0 * TB)]
    result = decided(world("A", storage_endpoints=rows))
    assert the_task(result)["stage"] == "disk_space"
    assert result.nuclei.height == 1
