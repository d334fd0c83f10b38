"""What must not matter to the scouts, and what must follow from what."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import polars as pl
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from brokerlab import scouts
from brokerlab.numerics import SortedGroups, percentile
from tests.examples import examples
from tests.scout_toys import Toy, at, by_name

few = settings(derandomize=True, deadline=None, max_examples=examples(12))
many = settings(derandomize=True, deadline=None, max_examples=200)
rule_sets = st.sampled_from(["document", "production"])


def maybe(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from([None, *values])


job = st.fixed_dictionaries(
    {
        "seconds": st.one_of(st.none(), st.integers(0, 100_000)),
        "events": st.one_of(st.none(), st.integers(0, 5000)),
        "input_mb": st.integers(0, 5000),
        "start": st.integers(0, 100_000),
        "computingsite": st.sampled_from(["Q", "FAST", "ELSEWHERE"]),
        "actualcorecount": st.sampled_from([None, 0, 1, 1, 4, 8]),
        "corecount": maybe(0, 1, 8),
        "maxpss": st.one_of(st.none(), st.integers(-1, 20_000_000)),
        "outputfilebytes": st.one_of(st.none(), st.integers(0, 10**11)),
        "inputfilebytes": st.one_of(st.none(), st.integers(0, 10**11)),
        "totrbytes": st.one_of(st.none(), st.integers(0, 10**8)),
        "totwbytes": st.one_of(st.none(), st.integers(0, 10**8)),
        "memory_leak": st.one_of(st.none(), st.integers(-50, 50)),
        "memory_leak_x2": st.one_of(st.none(), st.integers(-50, 50).map(lambda n: n / 4)),
        "cpuconsumptiontime": st.one_of(st.none(), st.integers(0, 200_000)),
        "jobmetrics": maybe("coreCount=2 vmPeakMax=900000", "workDirSize=73400320"),
        "jobstatus": st.sampled_from(["finished"] * 4 + ["failed"]),
        "specialhandling": maybe("sj", "sc"),
        "eventservice": st.sampled_from([None] * 5 + [1, 2, 4]),
        "jobsetid": st.integers(1, 2),
        "nevents": st.integers(0, 500),
    }
)
task = st.fixed_dictionaries(
    {
        "splitrule": st.sampled_from([None, "US=2", "US=2,NF=2,SS=5", "US=3,NE=10", "US=2,IL=1"]),
        "ramunit": st.sampled_from(["MBPerCore", "MBPerCore", "MB", None]),
        "outdiskunit": st.sampled_from(["kBPerEvent", "kB", None]),
        "cpuefficiency": st.sampled_from([None, 100, 90, 37]),
        "basewalltime": st.sampled_from([None, 0, 600]),
        "baseramcount": maybe(0, 500),
        "orig_cputime": maybe(0, 3.5, 100),
        "orig_cputimeunit": maybe("HS06sPerEvent", "mHS06sPerEvent"),
        "workdiskcount": maybe(1, 100),
        "walltime": maybe(-1, 3, 1000),
        "nfiles": st.integers(0, 1000),
    }
)


@st.composite
def toys(draw: st.DrawFn, n_tasks: int = 1, min_jobs: int = 1) -> Toy:
    toy = Toy(**draw(task)).queue("FAST", 23.7, maxinputsize=-1)
    for number in range(2, n_tasks + 1):
        toy.task(number, **draw(task))
    for pandaid, columns in enumerate(draw(st.lists(job, min_size=min_jobs, max_size=12)), start=1):
        toy.job(pandaid, task=draw(st.integers(1, n_tasks)), **columns)
    return toy


def check_same(one: scouts.ScoutResult, other: scouts.ScoutResult) -> None:
    assert_frame_equal(one.parameters, other.parameters, check_exact=True)
    assert_frame_equal(one.tags, other.tags)


@few
@given(toys(n_tasks=3), rule_sets, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(toy: Toy, rules: str, draw: random.Random) -> None:
    before = toy.result(rules, max_scouts=5)
    for table in (toy.jobs, toy.files, toy.tasks, toy.datasets, toy.queues):
        draw.shuffle(table)
    check_same(toy.result(rules, max_scouts=5), before)


@few
@given(toys(), rule_sets, job)
def test_a_failed_job_changes_nothing(toy: Toy, rules: str, extra: dict[str, Any]) -> None:
    before = toy.result(rules)
    toy.job(1000, **extra | {"jobstatus": "failed"}, file={"status": "ready", "nevents": 0})
    check_same(toy.result(rules), before)


@few
@given(toys(), rule_sets)
def test_a_secondary_dataset_changes_nothing(toy: Toy, rules: str) -> None:
    before = toy.result(rules)
    for row in list(toy.jobs):
        toy.file(row["pandaid"], dataset=2, fsize=10**10, nevents=10**6)
    check_same(toy.result(rules), before)


def in_milli(row: dict[str, Any]) -> int:
    return int(row["cputime"]) * (1 if row["cputimeunit"] == "mHS06sPerEvent" else 1000)


@few
@given(toys(min_jobs=3), rule_sets)
def test_twice_the_corepower_is_twice_the_cputime(toy: Toy, rules: str) -> None:
    """Up to rounding up, and the change of the unit at 10."""
    toy.queue("ELSEWHERE", 10.0)
    one = toy.parameters(rules)
    for queue in toy.queues:
        queue["corepower"] *= 2
    two = toy.parameters(rules)
    assume(one["cputime"] is not None)
    step_one, step_two = (
        1 if row["cputimeunit"] == "mHS06sPerEvent" else 1000 for row in (one, two)
    )
    assert in_milli(two) - step_two < 2 * in_milli(one)
    assert 2 * (in_milli(one) - step_one) < in_milli(two) or in_milli(one) == 0


FIXED: list[tuple[dict[str, Any], set[str], str]] = [
    (
        {"orig_cputimeunit": "HS06sPerEventFixed"},
        {"cputime", "cputimeunit", "exec_time", "old_cputime"},
        "cpuTime",
    ),
    ({"ramunit": "MBPerCoreFixed"}, {"ramcount", "ramunit"}, "ramCount"),
    ({"outdiskunit": "kBPerEventFixed"}, {"outdiskcount", "outdiskunit", "newng"}, "outDiskCount"),
]


@few
@given(toys(), rule_sets, st.sampled_from(FIXED))
def test_fixed_removes_its_parameter_only(
    toy: Toy, rules: str, fixed: tuple[dict[str, Any], set[str], str]
) -> None:
    change, removed, tag = fixed
    before = toy.result(rules)
    toy.tasks[0] |= change
    after = toy.result(rules)
    row = after.parameters.row(0, named=True)
    assert [row[name] for name in removed - {"old_cputime"}] == [None] * len(
        removed - {"old_cputime"}
    )
    assert_frame_equal(
        after.parameters.drop(removed), before.parameters.drop(removed), check_exact=True
    )
    assert_frame_equal(after.tags, before.tags.filter(pl.col("parameter") != tag))


@few
@given(
    toys(min_jobs=3),
    rule_sets,
    st.lists(st.integers(0, 100), min_size=4, max_size=4, unique=True).map(sorted),
    maybe(500, 3000),
)
def test_a_higher_rank_never_gives_less(
    toy: Toy, rules: str, ranks: list[int], minimum: int | None
) -> None:
    rows = [
        toy.parameters(
            rules,
            config={"SCOUT_CPUTIME_RANK": rank, "SCOUT_RAMCOUNT_RANK": rank}
            | ({} if minimum is None else {"SCOUT_RAMCOUNT_MIN": minimum}),
        )
        for rank in ranks
    ]
    if rows[0]["cputime"] is not None:
        # what is rounded up to whole HS06 s may stand just above 10 000 milli
        cputimes = [in_milli(row) for row in rows]
        assert cputimes == sorted(cputimes)
    if rows[0]["ramcount"] is not None:
        memories = [row["ramcount"] for row in rows]
        assert memories == sorted(memories)


@few
@given(toys(n_tasks=4), rule_sets)
def test_many_tasks_at_once_are_one_after_the_other(toy: Toy, rules: str) -> None:
    together = toy.result(rules)
    rule_set = scouts.ScoutRules(rules)
    jobs, files, tasks, datasets, queues = toy.tables()
    alone = [
        scouts.estimate(by_name((jobs, files, one, datasets, queues)), rules=rule_set)
        for one in tasks.partition_by("jeditaskid")
    ]
    parameters = pl.concat([result.parameters for result in alone])
    tags = pl.concat([result.tags for result in alone])
    assert_frame_equal(parameters, together.parameters, check_exact=True)
    assert_frame_equal(tags, together.tags)


@few
@given(toys(n_tasks=3), st.integers(0, 200_000))
def test_a_replay_is_the_archive_cut_off(toy: Toy, seconds: int) -> None:
    """Looking back to an instant is looking at the jobs that had ended by then."""
    for row in toy.jobs:
        row["eventservice"] = None  # jobsets have a test of their own
    looked_back = toy.result(at=at(seconds)).parameters
    kept = {
        row["pandaid"]
        for row in toy.jobs
        if row["modificationtime"] is not None and row["modificationtime"] <= at(seconds)
    }
    for file in toy.files:
        if file["pandaid"] not in kept:
            file |= {"status": "running"}
    cut = toy.result().parameters
    counts = ["expected_jobs", "new_jobs", "nfiles", "nfilesfinished"]
    assert_frame_equal(looked_back.drop(counts), cut.drop(counts), check_exact=True)


# ---- exact numerics


@many
@given(
    st.lists(st.lists(st.floats(-1e12, 1e12, allow_nan=False), max_size=30), max_size=12),
    st.one_of(st.integers(0, 100), st.floats(0, 100)),
    st.randoms(use_true_random=False),
)
def test_grouped_percentiles_are_the_scalar_ones_bit_for_bit(
    groups: list[list[float]], rank: float, draw: random.Random
) -> None:
    pairs = [(number, value) for number, values in enumerate(groups) for value in values]
    draw.shuffle(pairs)
    found = SortedGroups.of(
        np.array([number for number, _ in pairs], dtype=np.int64),
        np.array([value for _, value in pairs], dtype=np.float64),
        len(groups),
    )
    expected = [percentile(values, rank) if values else (np.nan, [np.nan]) for values in groups]
    ours = found.percentile(rank)
    lower, upper, _ = found.order_statistics(rank)
    # -0.0 and 0.0 sort as equals, in either order
    np.testing.assert_array_equal(ours, np.array([value for value, _ in expected], dtype=float))
    np.testing.assert_array_equal(lower, np.array([o[0] for _, o in expected], dtype=float))
    np.testing.assert_array_equal(upper, np.array([o[-1] for _, o in expected], dtype=float))


@settings(derandomize=True, deadline=None, max_examples=examples(20))
@given(st.integers(1, 400), st.integers(0, 2**32 - 1), st.integers(0, 100))
def test_large_ragged_groups(n_groups: int, seed: int, rank: int) -> None:
    draw = np.random.default_rng(seed)
    sizes = draw.choice([0, 1, 2, 7, 100, 999], n_groups)
    group = np.repeat(np.arange(n_groups), sizes)
    values = np.round(draw.lognormal(10, 1, group.size), draw.integers(-3, 5))
    found = SortedGroups.of(group, values, n_groups).percentile(rank)
    for number in draw.choice(n_groups, 10):
        own = values[group == number].tolist()
        expected = percentile(own, rank)[0] if own else np.nan
        np.testing.assert_array_equal(found[number], expected)
