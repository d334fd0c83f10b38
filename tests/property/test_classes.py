"""What holds for every archive: many instants at once are one at a time, and the order of rows says nothing."""

from __future__ import annotations

import random
from datetime import timedelta

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from brokerlab.lifecycle import classification
from brokerlab.lifecycle.classification import ClassRules
from tests.examples import examples
from tests.parity.test_classes import everything, same
from tests.unit.lifecycle.classification.toys import NOW, drawn

WAIT = st.integers(0, 400_000_000).map(lambda ms: ms / 1000)  # waits are never denormal
AGE = st.integers(0, 345_600)


@settings(max_examples=examples(4), deadline=None)
@given(st.integers(0, 10_000), st.lists(st.integers(-170, 5), min_size=2, max_size=3, unique=True))
def test_many_instants_at_once_are_one_at_a_time(seed: int, hours: list[int]) -> None:
    tables = drawn(seed, size=80)
    at = sorted(NOW + timedelta(hours=hour) for hour in hours)
    together = everything(tables, at)
    for number, instant in enumerate(at):
        alone = everything(tables, [instant])
        for name, frame in alone.items():
            mine = together[name].filter(pl.col("snapshot") == number)
            renamed = mine.with_columns(pl.lit(0, pl.Int64).alias("snapshot"))
            if name == "usage" and renamed.is_empty():  # no job at this instant: nothing to share
                continue
            assert_frame_equal(renamed, frame, check_exact=True)


@settings(max_examples=examples(3), deadline=None)
@given(st.integers(0, 10_000))
def test_the_order_of_rows_says_nothing(seed: int) -> None:
    tables, at = drawn(seed, size=80), [NOW, NOW - timedelta(hours=30)]
    mixed = {
        name: frame.sample(fraction=1, shuffle=True, seed=seed) for name, frame in tables.items()
    }
    same(everything(mixed, at), everything(tables, at))


@given(st.lists(st.tuples(WAIT, AGE), min_size=1, max_size=30), st.integers(0, 100))
def test_weighted_limits_do_not_depend_on_the_order_and_scale(
    jobs: list[tuple[float, int]], seed: int
) -> None:
    waits, ages = zip(*jobs, strict=True)
    limit = classification.weighted_upper_limit(waits, ages)
    shuffled = random.Random(seed).sample(jobs, len(jobs))  # noqa: S311 - not a secret
    other = classification.weighted_upper_limit(*zip(*shuffled, strict=True))
    assert abs(limit.w_mean - other.w_mean) <= 1e-9 * max(limit.w_mean, 1e-300)
    double = classification.weighted_upper_limit([2 * wait for wait in waits], ages)
    assert double.w_mean == 2 * limit.w_mean
    if limit.upper is not None and double.upper is not None:
        assert limit.upper >= min(limit.w_mean, 999_999)
        assert double.upper == min(2 * limit.upper, 999_999) or limit.upper == 999_999


@given(
    st.lists(st.tuples(st.floats(0, 50_000), st.integers(0, 6), st.floats(0, 50_000)), max_size=12)
)
def test_classes_follow_the_ranking(rows: list[tuple[float, int, float]]) -> None:
    """Under the page's rules no hi queue ranks above a lo one, and every queue with statistics has a class."""
    names = [f"Q{number:02}" for number in range(len(rows))]
    stats = pl.DataFrame(
        [(name, *row) for name, row in zip(names, rows, strict=True)],
        schema={
            "computingsite": pl.String,
            "w_cl95upp": pl.Float64,
            "long_q_n": pl.Int64,
            "long_q_mean": pl.Float64,
        },
        orient="row",
    )
    queues = pl.DataFrame(
        {"panda_queue": names, "resource_type": "GRID"},
        schema={"panda_queue": pl.String, "resource_type": pl.String},
    )
    busy = pl.DataFrame(
        {"computingsite": names, "analysis_starts_1d": 1},
        schema={"computingsite": pl.String, "analysis_starts_1d": pl.Int64},
    )
    found = classification.site_classes(stats, queues, busy, rules=ClassRules()).classes
    assert found["class"].null_count() == 0
    hi = found.filter(pl.col("class") == 1)["ranking"].max()
    lo = found.filter(pl.col("class") == -1)["ranking"].min()
    assert hi is None or lo is None or hi < lo


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 1000)), min_size=1, max_size=8),
)
def test_targets_add_up_to_what_runs(leaves: list[tuple[int, int]]) -> None:
    names = [f"S{number}" for number in range(len(leaves))]
    shares = pl.DataFrame({"name": names, "value": [value for value, _ in leaves], "parent": None})
    running = [float(hs) for _, hs in leaves]
    stats = pl.DataFrame({"gshare": names, "jobstatus": "running", "hs": running})
    found = classification.share_usage(shares.cast({"parent": pl.String}), stats).ranked_leaves()
    assert abs(found["target_hs"].sum() - sum(running)) <= 1e-9 * sum(running)
    assert found["rank"].to_list() == list(range(1, len(leaves) + 1))
    ratios = found["usage_perc"].to_list()
    assert ratios == sorted(ratios)
