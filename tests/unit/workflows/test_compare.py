"""Comparisons: the same states for all, cells that are kept, processes that die, intervals, published shapes."""

import signal
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import polars as pl
import pytest

from brokerlab.errors import BrokerlabWarning, ConfigError, InsufficientDataError
from brokerlab.workflows import shapes, synthetic
from brokerlab.workflows.compare import BatchSystem, compare, differences, instants, shape_checks
from brokerlab.workflows.compare import cells as processes
from brokerlab.workflows.compare.cells import BESIDE, chosen
from brokerlab.workflows.compare.paired import mean_interval
from brokerlab.workflows.strategies import strategy
from tests.unit.workflows.wf_toys import chain, dag

TIMES = 4


@pytest.fixture(scope="module")
def system():
    return BatchSystem(synthetic.background(days=3, hosts=16, seed=2), 16, "easy", "toy")


@pytest.fixture(scope="module")
def flows():
    return {"fork": shapes.fork_join(12, runtime=600), "gauss": shapes.gaussian(5, runtime=300)}


@pytest.fixture(scope="module")
def found(system, flows):
    names = ("pilot_levels", "pilot_levels:paper_serial", "one_job", "one_job_per_task", "best_partition")  # fmt: skip
    other = BatchSystem(system.background, 16, "conservative", "toy")
    return compare(flows, {"easy": system, "conservative": other}, strategies=names, times=TIMES, workers=1, cell=3)  # fmt: skip


def test_every_strategy_runs_at_every_instant(found):
    counts = found.runs.group_by("system", "workflow", "strategy").len()
    assert counts["len"].unique().to_list() == [TIMES]
    assert set(BESIDE) <= set(found.runs["strategy"])
    assert found.complete
    for _, part in found.runs.group_by("system", "instant"):
        assert part["submit_time"].n_unique() == 1
    assert (found.done["wasted"] >= -1e-6).all()


def test_notes_bring_paper_along_and_the_other_way_round():
    assert set(chosen(["pilot_levels:paper", "level"])) == {*BESIDE, "level"}
    assert set(chosen(["level"])) == {"level"}
    with pytest.raises(ConfigError, match="each once"):
        chosen(["level", strategy("level")])


def test_too_many_levels_for_partitions_are_said(found):
    left_out = found.runs.filter(pl.col("problem").is_not_null())
    assert left_out["workflow"].unique().to_list() == ["gauss"]
    assert left_out["problem"][0] == "8 levels, partitions are tried up to 5"
    best = found.done.filter(pl.col("strategy") == "best_partition", pl.col("workflow") == "fork")
    whole = found.done.filter(pl.col("strategy") == "one_job", pl.col("workflow") == "fork")
    assert (best["turnaround"] <= whole["turnaround"] + 1e-6).all()


def test_a_comparison_goes_on_where_it_was(system, flows, tmp_path, monkeypatch):
    given = {"strategies": ["one_job"], "times": 5, "workers": 1, "cell": 2, "store": tmp_path}
    first = compare(flows, {"easy": system}, **given)
    kept = sorted(tmp_path.iterdir())
    assert len(kept) == 3
    assert not [path for path in kept if path.name.startswith(".")]
    kept[0].unlink()
    kept[1].write_bytes(b"half of it")
    ran = []
    real = processes.run_cell
    monkeypatch.setattr(processes, "run_cell", lambda plan, cell: ran.append(cell) or real(plan, cell))  # fmt: skip
    again = compare(flows, {"easy": system}, **given)
    assert len(ran) == 2
    assert again.runs.equals(first.runs)
    compare({"fork": flows["fork"]}, {"easy": system}, **given)
    assert len(ran) == 5  # other workflows are other cells


def killed(patch):
    """Kill the process of the second cell."""
    real = ProcessPoolExecutor.submit

    def submit(pool, function, cell):
        if cell.first == 2:
            return real(pool, signal.raise_signal, signal.SIGKILL)
        return real(pool, function, cell)

    patch.setattr(ProcessPoolExecutor, "submit", submit)


def told_of(patch):
    """Say that the process of the second cell was killed; `test_long_work.py` kills one in every run."""

    def in_processes(work, shared, cells, **_):
        for cell in cells:
            yield cell, BrokenProcessPool() if cell.first == 2 else work(shared, cell)

    patch.setattr(processes, "in_processes", in_processes)


@pytest.mark.parametrize("kill", [told_of, pytest.param(killed, marks=pytest.mark.long)])
def test_a_process_that_is_killed_takes_its_cell_with_it_and_nothing_else(
    kill, system, flows, monkeypatch, tmp_path
):
    given = {"strategies": ["one_job"], "times": 4, "cell": 2, "store": tmp_path}
    with monkeypatch.context() as patch:
        kill(patch)
        found = compare({"fork": flows["fork"]}, {"easy": system}, workers=2, **given)
    assert found.missing == {"easy, instants 3 to 4": "its process was killed"}
    assert found.runs["instant"].to_list() == [0, 1]
    assert not found.complete
    again = compare({"fork": flows["fork"]}, {"easy": system}, workers=1, **given)
    assert again.complete
    assert again.runs["instant"].to_list() == [0, 1, 2, 3]


def test_differences_are_paired(found):
    rows = differences(found.done, reference="one_job")
    one = rows.filter(pl.col("system") == "easy", pl.col("workflow") == "fork", pl.col("strategy") == BESIDE[1]).row(0, named=True)  # fmt: skip
    mine = found.done.filter(pl.col("system") == "easy", pl.col("workflow") == "fork").pivot("strategy", index="instant", values="turnaround")  # fmt: skip
    gap = (mine[BESIDE[1]] - mine["one_job"]).to_numpy()
    assert one["diff"] == pytest.approx(gap.mean())
    assert one["n"] == TIMES
    assert one["better"] == (gap < 0).mean()
    assert differences(found.done, reference="one_job", by=()).height == rows["strategy"].n_unique()


def test_the_interval_of_a_mean():
    values = np.random.default_rng(1).normal(10, 2, 400)
    low, high = mean_interval(values)
    assert low < values.mean() < high
    assert 0.3 < high - low < 0.5
    assert mean_interval(np.full(5, 3.0)) == (3.0, 3.0)
    assert mean_interval(np.array([3.0])) == (None, None)


def autoregressive(rng, n, r=0.8):
    values = np.zeros(n + 100)
    for place, noise in enumerate(rng.normal(size=n + 99), start=1):
        values[place] = r * values[place - 1] + noise
    return values[100:]


@pytest.mark.parametrize(
    ("n", "draw", "truth"),
    [(6, lambda rng, n: rng.lognormal(size=n), np.exp(0.5)), (30, autoregressive, 0.0)],
)
def test_few_instants_and_those_that_hang_together_keep_the_level(n, draw, truth):
    """The BCa interval covered 86 % of six skewed values and 82 % of thirty that hang together, where 95 % is said."""
    ends = [mean_interval(draw(np.random.default_rng([i, n]), n), n_boot=200) for i in range(400)]
    assert np.mean([low <= truth <= high for low, high in ends]) >= 0.92


def test_instants_in_a_row_that_are_alike_tell_less():
    noise = np.random.default_rng(2).normal(size=200)
    slow = np.convolve(noise, np.ones(10) / 10, "valid")[:100]
    low, high = mean_interval(slow)
    shuffled = np.random.default_rng(3).permutation(slow)
    narrow = mean_interval(shuffled)
    assert high - low > 1.7 * (narrow[1] - narrow[0])


def test_machines_that_share_their_instants_are_not_observations_more(found):
    """The same machine under a second name tells nothing new: the interval stays as it is."""
    easy = found.done.filter(pl.col("system") == "easy")
    twice = pl.concat([easy, easy.with_columns(system=pl.lit("again"))])
    one, two = (differences(runs, reference="one_job", by=(), n_boot=200) for runs in (easy, twice))
    assert one.equals(two)
    assert one["n"].unique().to_list() == [TIMES]


def test_instants_stay_in_the_order_of_time_where_a_workflow_has_no_run():
    """Of ten instants the first workflow has the last five only; the differences rise with time all the same."""
    rows = [
        ("m", workflow, strategy, instant, float(instant) if strategy == "other" else 0.0)
        for workflow, first in (("a", 5), ("b", 0))
        for instant in range(first, 10)
        for strategy in ("base", "other")
    ]
    columns = ["system", "workflow", "strategy", "instant", "turnaround"]
    runs = pl.DataFrame(rows, schema=columns, orient="row")
    row = differences(runs, reference="base", by=()).row(0, named=True)
    assert (row["diff_lo"], row["diff_hi"]) == mean_interval(np.arange(10.0))


def test_the_difference_of_the_rules_is_told(found):
    rows = found.rules_difference()
    assert rows["strategy"].unique().to_list() == [BESIDE[0]]
    assert rows["reference"].unique().to_list() == [BESIDE[1]]
    for name in ("one_job_notes", "one_job_paper", "task_by_task_notes", "task_by_task_paper"):
        assert rows[name].is_between(0, 1).all()


def test_published_shapes_have_an_answer_whichever_way_they_come_out(found):
    rows = shape_checks(found)
    assert rows["check"].to_list() == ["S1", "S2a", "S2b", "S3", "S4", "S5", "S6", "S7"]
    assert set(rows["outcome"]) <= {"holds", "fails", "not tested"}
    assert rows.filter(pl.col("check") == "S5")["outcome"].to_list() == ["not tested"]
    assert all(rows["found"].str.len_chars() > 10)


def test_random_instants_are_inside_the_load_and_repeat(system):
    first, last = system.span
    drawn = instants(system, 50, seed=4)
    assert drawn == instants(system, 50, seed=4) != instants(system, 50, seed=5)
    assert first < min(drawn) <= max(drawn) < last
    assert list(drawn) == sorted(drawn)


def test_published_shapes_need_their_three_strategies(system):
    found = compare({"chain": chain(10)}, {"easy": system}, strategies=["one_job"], times=2, workers=1)  # fmt: skip
    with pytest.raises(
        InsufficientDataError, match="no run of pilot_levels:paper, one_job_per_task"
    ):
        shape_checks(found)


def test_what_cannot_be_compared_is_told_at_once(system):
    with pytest.raises(ConfigError, match=r"workflows: nothing.*strategies: nothing.*workers=0"):
        compare({}, {"easy": system}, strategies=[], workers=0)
    wrong = {0: "times=0", 2.5: r"times=2\.5"}
    for times, told in wrong.items():
        with pytest.raises(ConfigError, match=told):
            compare({"chain": chain(10)}, {"easy": system}, strategies=["one_job"], times=times)
    with pytest.raises(
        ConfigError, match=r"'eazy' is no machine: did you mean 'easy'.*none are given for easy"
    ):
        compare(
            {"chain": chain(10)}, {"easy": system}, strategies=["one_job"], times={"eazy": [5.0]}
        )


def test_a_task_wider_than_the_machine_has_no_run_and_says_so(system):
    wide = dag({"a": 1}, hosts={"a": 99})
    found = compare({"wide": wide, "chain": chain(10)}, {"easy": system}, strategies=["one_job"], times=2, workers=1)  # fmt: skip
    assert found.done["workflow"].unique().to_list() == ["chain"]
    assert "99" in found.runs.filter(pl.col("workflow") == "wide")["problem"][0]


def test_generated_shapes():
    assert len(shapes.gaussian(20, runtime=1).levels) == 38
    with pytest.raises(ConfigError, match="width=0"):
        shapes.pipelines(0, 2, runtime=1)


def test_instants_outside_of_the_load_are_told(system):
    with pytest.warns(BrokerlabWarning, match="1 instants of easy are before the first or after"):
        compare({"chain": chain(10)}, {"easy": system}, strategies=["one_job"], times={"easy": [1e9]}, workers=1)  # fmt: skip
    with pytest.raises(ConfigError, match="none are given for easy"):
        compare({"chain": chain(10)}, {"easy": system}, strategies=["one_job"], times={}, workers=1)


def test_machines_with_the_same_load_get_the_same_instants(found):
    plan = found.plan
    assert plan.times["easy"] == plan.times["conservative"]
