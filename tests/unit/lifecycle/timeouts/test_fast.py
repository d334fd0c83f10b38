"""Fast rebrokerage of queues and shares."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from brokerlab.errors import SchemaError
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.timeouts import (
    FastRebrokerage,
    TimeoutRules,
    fast_rebrokerage,
    fast_rebrokerage_at,
)

KEYS = {"FAST_REBRO_THRESHOLD_NQUEUE_MC": 10}
BOTH = pytest.mark.parametrize("rules", ["document", "production"])


def stats(**queues: tuple[int, int]) -> pl.DataFrame:
    """Return (queued, running) of the share MC at each queue."""
    rows = [
        (name, "MC", status, njobs)
        for name, counts in queues.items()
        for status, njobs in zip(("activated", "running"), counts, strict=True)
    ]
    return pl.DataFrame(
        rows, orient="row", schema=["computingsite", "gshare", "jobstatus", "njobs"]
    )


def jobs_of(name: str, n: int, first: int = 0, status: str = "activated") -> pl.DataFrame:
    ids = pl.int_range(first, first + n, eager=True)
    return pl.DataFrame({"pandaid": ids}).with_columns(
        computingsite=pl.lit(name), gshare=pl.lit("MC"), jobstatus=pl.lit(status)
    )


def run(
    table: pl.DataFrame,
    rules: TimeoutRules | str = "document",
    keys: dict[str, Any] | None = None,
    **tables: pl.DataFrame,
) -> FastRebrokerage:
    return fast_rebrokerage(
        {"share_job_stats": table, **tables},
        rules=TimeoutRules(rules) if isinstance(rules, str) else rules,
        config=Config.empty().with_values(KEYS if keys is None else keys),
    )


def at(found: FastRebrokerage, name: str = "A") -> dict[str, Any]:
    return found.shares.row(by_predicate=pl.col("computingsite") == name, named=True)


@BOTH
@pytest.mark.parametrize(
    ("counts", "other", "conditions"),
    [
        ((31, 10), 20, (True, True, True)),
        ((30, 10), 20, (False, True, True)),  # nq/nr is 3, not larger
        ((30, 1), 70, (True, False, True)),  # nq/N is 0.3, not larger
        ((31, 1), 70, (True, True, True)),
        ((10, 1), 0, (True, True, False)),  # nq is L, not larger
        ((11, 1), 0, (True, True, True)),
        ((1, 0), 0, (True, True, False)),  # without running jobs the ratio is exceeded
        ((0, 0), 9, (False, False, False)),
    ],
)
def test_the_three_conditions(rules: str, counts: Any, other: int, conditions: Any) -> None:
    row = at(run(stats(A=counts, B=(other, 100)), rules))
    assert (row["ratio_ok"], row["fraction_ok"], row["threshold_ok"]) == conditions
    assert row["triggered"] == all(conditions)
    assert (row["excess"] is not None) == all(conditions)


@pytest.mark.parametrize(
    ("counts", "other", "excess"),
    [
        ((50, 10), 0, 20),  # 50 - 3 * 10
        ((50, 1), 0, 35),  # 50 - 0.3 * 50
        ((12, 0), 0, 2),  # 12 - 10
        ((31, 0), 70, 1),  # 31 - 0.3 * 101 = 0.7, up to 1
    ],
)
def test_the_number_of_jobs_to_move(counts: Any, other: int, excess: int) -> None:
    table, jobs = stats(A=counts, B=(other, 100)), jobs_of("A", counts[0])
    document, production = run(table, jobs=jobs), run(table, "production", jobs=jobs)
    assert at(document)["excess"] == at(production)["excess"] == excess
    assert at(document)["n_moved"] == excess
    assert at(production)["n_moved"] == excess - 1
    fixed = run(table, TimeoutRules("production", fr_row_limit_bug=False), jobs=jobs)
    assert at(fixed)["n_moved"] == excess
    assert at(run(table))["n_moved"] == excess  # without a table of jobs: what would move


def test_the_oldest_waiting_jobs_of_the_queue_move() -> None:
    jobs = pl.concat(
        [jobs_of("A", 5, 100, "starting"), jobs_of("A", 9, 0, "running"), jobs_of("B", 9, 50),
         jobs_of("A", 40, 200, "defined"), jobs_of("A", 5, 90, "assigned")]
    )  # fmt: skip
    found = run(stats(A=(50, 10), B=(9, 100)), jobs=jobs)
    assert found.moved["pandaid"].to_list() == [*range(90, 95), *range(100, 105), *range(200, 210)]
    few = run(stats(A=(50, 10), B=(9, 100)), jobs=jobs_of("A", 3))
    assert at(few)["n_moved"] == 3


@BOTH
@pytest.mark.parametrize("keys", [{}, {"FAST_REBRO_THRESHOLD_NQUEUE_MC": 0}])
def test_a_share_without_threshold_only_reports(rules: str, keys: dict[str, int]) -> None:
    found = run(stats(A=(50, 10)), rules, keys, jobs=jobs_of("A", 50))
    row = at(found)
    assert (row["dry_run"], row["threshold"], row["excess"]) == (True, 10, 20)
    assert (row["triggered"], row["n_moved"], found.moved.height) == (False, 0, 0)


@BOTH
def test_queues_with_slots_and_resource_work_queues_count_nowhere(rules: str) -> None:
    table = stats(A=(31, 1), B=(70, 9))
    assert at(run(table, rules))["nq_total"] == 101
    slots = pl.DataFrame({"pandaqueuename": ["B"]})
    found = run(table, rules, slots=slots)
    assert found.shares["computingsite"].to_list() == ["A"]
    assert at(found)["nq_total"] == 31
    marked = table.with_columns(workqueue_id=pl.when(computingsite="B").then(5))
    assert at(run(marked, rules, resource_work_queues=pl.DataFrame({"workqueue_id": [5]})))["nq_total"] == 31  # fmt: skip


@pytest.mark.parametrize("off", [{"status": "paused"}, {"catchall": "disableReassign"}])
def test_exempt_queues_move_nothing_but_count(off: dict[str, str]) -> None:
    queues = pl.DataFrame({"panda_queue": ["A"], **off})
    tables = {"queues": queues, "jobs": jobs_of("A", 50)}
    table = stats(A=(50, 10), B=(20, 100))
    exempt, moving = run(table, **tables), run(table, "production", **tables)
    assert (at(exempt)["triggered"], at(exempt)["exempt"], exempt.moved.height) == (False, True, 0)
    assert at(exempt, "B")["nq_total"] == 70
    assert (at(moving)["triggered"], at(moving)["exempt"], moving.moved.height) == (True, False, 19)


def test_keys_and_switches() -> None:
    table = stats(A=(20, 10))
    assert at(run(table))["ratio_ok"] is False
    assert at(run(table, keys={**KEYS, "FAST_REBRO_THRESHOLD_NQNR_RATIO": 1.5}))["triggered"]
    zero = {**KEYS, "FAST_REBRO_THRESHOLD_NQNR_RATIO": 0, "FAST_REBRO_THRESHOLD_NQUEUE_FRAC": 0}
    assert (at(run(table, keys=zero))["ratio"], at(run(table, keys=zero))["fraction"]) == (3, 0.3)
    idle = stats(A=(50, 0))
    assert at(run(idle))["triggered"]
    assert not at(run(idle, TimeoutRules(fr_zero_running_triggers=False)))["triggered"]


def test_shares_are_apart_and_statuses_add_up() -> None:
    rows = [
        ("A", "MC", status, 10, None)
        for status in ("defined", "assigned", "activated", "starting", "running", "holding")
    ]
    rows += [("A", "User", "activated", 99, 1)]
    table = pl.DataFrame(
        rows, orient="row", schema=["computingsite", "gshare", "jobstatus", "njobs", "workqueue_id"]
    )
    found = run(table).shares.select("gshare", "nq", "nr", "nq_total").rows()
    assert found == [("MC", 40, 10, 40), ("User", 99, 0, 99)]  # fmt: skip


def test_nothing_remains_and_bad_input() -> None:
    found = run(stats())
    assert found.shares.is_empty()
    assert {"triggered", "dry_run", "excess", "n_moved"} <= set(found.shares.columns)
    assert found.moved.is_empty()
    with pytest.raises(SchemaError, match=r"share_job_stats\.njobs"):
        run(stats(A=(1, 1)).with_columns(njobs=pl.lit("many")))


@BOTH
def test_many_instants_are_judged_one_by_one(rules: str) -> None:
    first, second = stats(A=(50, 10), B=(20, 0)), stats(A=(12, 0), B=(90, 3), S=(99, 0))
    slots = pl.DataFrame({"pandaqueuename": ["S"]})
    queues = pl.DataFrame({"panda_queue": ["B"], "status": ["paused"]})
    both = pl.concat(
        frame.with_columns(snapshot=pl.lit(n)) for n, frame in ((1, second), (0, first))
    )
    chosen, config = TimeoutRules(rules), Config.empty().with_values(KEYS)
    others = {"slots": slots, "queues": queues}
    found = fast_rebrokerage_at({"share_job_stats": both, **others}, rules=chosen, config=config)
    for number, frame in enumerate((first, second)):
        alone = run(frame, rules, **others).shares
        assert_frame_equal(
            found.filter(snapshot=number).drop("snapshot"), alone, check_dtypes=False
        )
    assert found["n_moved"].sum() > 0
