"""Threshold calibration on a simulation in closed form: keys, bad input, choice and limits, proof, what interrupts it."""

import os
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from datetime import datetime

import polars as pl
import pytest
from pydantic import ValidationError

from brokerlab.calibrate import thresholds
from brokerlab.calibrate.thresholds.outcomes import Outcome, Period
from brokerlab.calibrate.thresholds.settings import NOW, Setting, space_of
from brokerlab.calibrate.thresholds.simulations import Block, Runs, Simulations, Store
from brokerlab.calibrate.thresholds.tables import as_shown, effects
from brokerlab.errors import ConfigError, DataError, InsufficientDataError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import loads
from tests.unit.calibrate.threshold_toys import (
    CAP,
    CUTOFF,
    EARLY,
    LATE,
    Toy,
    calibrate_toy,
)

SMALL = {"n_boot": 200, "rounds": 2, "replications": 3, "most_replications": 6, "seed": 0, "workers": 1}  # fmt: skip


def calibrated(toy=None, **more):
    return calibrate_toy(toy or Toy(), **{"keys": [CAP], **SMALL, **more})


@pytest.fixture(scope="module")
def found():
    return calibrated()


def test_every_key_of_the_table_is_in_the_catalogue_and_its_grid_within_the_rails():
    assert len(thresholds.THRESHOLDS) == 33
    assert {known.judged_by for known in thresholds.THRESHOLDS} == {"screen", "simulation"}
    for known in thresholds.THRESHOLDS:
        grid = known.grid(known.row.default)
        numbers = [value for value in grid if value is not None]
        assert known.row.default in grid
        assert len(set(grid)) == len(grid) >= 9
        assert numbers == sorted(numbers)
        assert not [problem for value in numbers if (problem := known.problem(value))]
        assert known.grows
        assert known.shrinks


@pytest.mark.parametrize(("value", "said"), [(5, "outside"), (12.5, "whole"), ("x", "whole"), (True, "whole")])  # fmt: skip
def test_values_that_cannot_be_are_told(value, said):
    assert said in thresholds.threshold_of(CAP).problem(value)


@pytest.mark.parametrize("points", [1, 0, -1])
def test_a_grid_has_two_values_or_more(points):
    with pytest.raises(
        ConfigError, match=f"{CAP}: a grid of {points} values: allowed are 2 or more"
    ):
        thresholds.threshold_of(CAP).grid(150, points=points)


def test_the_planted_value_is_found_and_proven(found):
    assert found.verdict.kind == "change"
    value = dict(found.setting.values)[CAP]
    assert Toy().excess(Config.empty().with_values({CAP: value})) < 0.05
    assert found.verdict.sentence.startswith(f"Raise {CAP} from 150 to {value}: mean turnaround")
    row = found.judgement.quantity("turnaround_h")
    assert row["diff_hi"] < 0
    assert found.judgement.n_scored == 12
    assert found.n_tasks == 60
    assert found.validation is None


def test_the_proposal_says_all_that_is_needed(found):
    proposal = loads(found.proposal.to_json())
    assert proposal.kind == "change"
    change = proposal.changes[0]
    assert (change.place, change.old) == (f"jedi/jobbroker/{CAP}", 150)
    assert change.minimum <= change.new <= change.maximum
    effect = proposal.evidence.effects[0]
    assert effect.low < effect.difference < effect.high < 0
    assert [window.name for window in proposal.evidence.windows] == ["choice", "scored"]
    assert {one.who for one in proposal.evidence.helps} >= {"gshare Express"}
    assert proposal.evidence.hurts[0].who == "queue A"
    numbers = proposal.evidence.numbers
    assert numbers["settings_tried"] == found.tried["setting"].n_unique()
    assert "not another history" in numbers["intervals_hold"]
    assert numbers["measured_coverage"] is None  # of spans of simulated time none was measured


def test_the_best_is_kept():
    kept = calibrated(Toy(best={CAP: 150.0}))
    assert kept.verdict.kind == kept.proposal.kind == "keep"
    assert kept.setting == NOW
    assert kept.verdict.sentence.startswith(f"Keep {CAP} = 150: ")
    assert "would have been seen" in kept.verdict.sentence


def test_keep_needs_that_an_effect_which_matters_would_have_been_seen():
    """calibration.md, section 2: where it would not have been seen, there is no answer, and how much is missing is said."""
    blurred = calibrated(Toy(depth=0.0, noise=(0.3, 0.1), world=1))
    assert blurred.verdict.kind == "no_answer"
    assert blurred.judgement.case == "imprecise"
    assert blurred.proposal is None
    assert "spans of time more would do" in blurred.verdict.sentence


def test_a_limit_is_kept_and_the_best_within_it_is_found():
    toy = Toy(moved=0.2)
    limited = calibrated(toy, rounds=4, relevant=0.01)
    value = dict(limited.setting.values)[CAP]
    assert 150 < value <= 192  # 5 % more bytes are moved at 192
    moved = limited.proof.row(by_predicate=pl.col("quantity") == "moved_tb", named=True)
    assert moved["diff_pct"] <= moved["limit"] == 5
    assert moved["kept"]
    free = calibrated(toy, limits={"moved_pct": None})
    assert dict(free.setting.values)[CAP] > 500
    halved = limited.sensitivity.filter(limit="moved_pct")["setting"]
    assert halved.n_unique() == 2


def test_two_keys_are_refined_together_and_idle_ones_left_alone():
    toy = Toy(best={CAP: 800.0, CUTOFF: 60.0, "NW_QUEUE_IMPORTANCE": 0.5})
    both = calibrated(toy, keys=list(toy.best))
    assert set(both.setting.keys) == {CAP, CUTOFF}
    assert set(both.together) >= {CAP, CUTOFF}
    places = [change.place for change in both.proposal.changes]
    assert places == [f"jedi/jobbroker/{key}" for key in (CAP, CUTOFF)]


def test_a_simulation_that_is_wrong_is_not_used():
    class Wrong:
        ok, sentence = False, "No answer: the simulation does not reproduce waits."

    refused = calibrated(Toy(fails=(150,)), validation=lambda: Wrong)
    assert refused.verdict.kind == "no_answer"
    assert refused.verdict.sentence == Wrong.sentence
    assert refused.proposal is None
    assert refused.n_simulated == 0


def test_everything_wrong_is_told_at_once():
    with pytest.raises(ValidationError) as caught:
        thresholds.Options(
            keys=[CAP, CAP, "NQUEUED_SAT_CUP"], objective="turnaround", alpha=0, relevant=2, workers=0, n_boot=1,
            points=1, limits={"moved_pct": -1, "moved": 1}, replications=1, rounds=-1, seed=-1,
        )  # fmt: skip
    for said in (
        "is given twice", "did you mean 'NQUEUED_SAT_CAP'", "did you mean 'turnaround_h'", "moved_pct=-1", "unknown 'moved'",
        "alpha", "relevant", "rounds", "workers", "n_boot", "points", "replications", "seed",
    ):  # fmt: skip
        assert said in str(caught.value), said
    with pytest.raises(ValidationError, match="replications=6 is more than most_replications=5"):
        thresholds.Options(replications=6, most_replications=5)
    with pytest.raises(ConfigError) as refused:
        calibrated(
            keys=[CAP, CUTOFF],
            grids={CUTOFF: [5], CAP: [1, 20]},
            proof=Period(LATE[1], LATE[0]),
        )
    for said in ("a grid of 1 value", "outside the guard rails 10 to 10000", "no period"):
        assert said in str(refused.value), said
    with pytest.raises(ConfigError, match=r"proof: begins 2026-03-05.*prove on what was not looked at"):  # fmt: skip
        calibrated(proof=Period(datetime(2026, 3, 5), datetime(2026, 3, 9)))


def test_too_few_tasks_give_no_answer():
    few = calibrated(Toy(n_tasks=5))
    assert few.verdict.kind == "no_answer"
    assert "spans of time can be scored, 20 are needed" in few.verdict.sentence


def test_a_store_keeps_results_and_the_search_goes_on_where_it_was(tmp_path, found):
    class StopError(Exception):
        pass

    calls = []

    class Stopping(Toy):
        def one(self, config, seeds, period):
            calls.append(config.digest)
            if len(calls) > 8:
                raise StopError
            return super().one(config, seeds, period)

    with pytest.raises(StopError):
        calibrated(Stopping(), store=tmp_path)
    again = calibrated(store=tmp_path)
    assert again.n_kept >= 8
    assert again.tried.equals(found.tried)
    assert again.verdict == found.verdict
    assert again.judgement.table.equals(found.judgement.table)
    third = calibrated(store=tmp_path)
    assert (third.n_simulated, third.verdict) == (0, found.verdict)
    other = calibrated(Toy(digest="another"), store=tmp_path, rounds=0)
    assert other.n_kept == 0
    nameless = Toy(digest="")
    with pytest.raises(ConfigError, match="has no attribute `digest`"):
        calibrated(nameless, store=tmp_path)


def test_a_damaged_result_is_made_again_and_no_half_result_stays(tmp_path):
    store = Store.at(tmp_path / "store", Toy())
    config, period = Config.empty(), Period(*EARLY)
    outcome = simulated(Toy())
    store.put(config, 1, period, outcome)
    store.put(config, 1, period, outcome)
    assert store.get(config, 1, period).tasks.equals(outcome.tasks)
    damaged = store.kept.folder / f"{store.key(config, 1, period)}.tasks.parquet"
    assert damaged.is_file()
    damaged.write_bytes(b"half")
    assert store.get(config, 1, period) is None
    store.put(config, 1, period, outcome)
    assert store.get(config, 1, period).tasks.equals(outcome.tasks)
    assert len(list(store.kept.folder.iterdir())) == 2  # nothing else is left
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="name a folder that can be made"):
        Store.at(tmp_path / "file", Toy())


@pytest.fixture(scope="module")
def gaps():
    """One setting of it fails."""
    return calibrated(Toy(fails=(56,)))


def test_a_failing_setting_is_missing_and_the_rest_goes_on(gaps):
    assert [one.reason for one in gaps.missing] == ["DataError: no simulation at 56"]
    assert f"{CAP} = 56" not in set(gaps.tried["setting"])
    assert gaps.verdict.kind == "change"
    with pytest.raises(
        InsufficientDataError, match="the settings as they are could not be simulated"
    ):
        calibrated(Toy(fails=(150,)))


def test_a_world_that_cannot_be_read_is_a_setting_that_is_missing(gaps):
    class Unread(Toy):
        def together(self, *_):
            raise InsufficientDataError("no job in this period")

    result = calibrated(Unread(fails=(56,)))
    assert [one.reason for one in result.missing] == [one.reason for one in gaps.missing]
    assert result.tried.equals(gaps.tried)


def test_settings_that_fail_side_by_side_are_simulated_one_by_one():
    """A simulation that does several at once gives the same; one that fails takes no other with it."""
    asked = []

    class Together(Toy):
        def __call__(self, configs, seeds, period):
            asked.append(len(configs))
            return super().__call__(configs, seeds, period)

    class Alone(Toy):
        def __call__(self, configs, seeds, period):
            if len(configs) > 1:
                raise DataError("one by one")
            return super().__call__(configs, seeds, period)

    alone, together = calibrated(Alone(fails=(56,))), calibrated(Together(fails=(56,)))
    assert max(asked) > 2
    assert [one.reason for one in together.missing] == ["DataError: no simulation at 56"]
    assert together.tried.equals(alone.tried)
    assert together.judgement.table.equals(alone.judgement.table)
    assert together.n_simulated == alone.n_simulated


def test_what_is_short_is_simulated_side_by_side():
    """The first settings tell how long the others take; less than a minute is not cut for other processes."""
    asked = []

    class Counted(Toy):
        def __call__(self, configs, seeds, period):
            asked.append(len(configs))
            return super().__call__(configs, seeds, period)

    runs, block = Runs(Counted(n_tasks=12), workers=2), Block(Period(*EARLY), (1,))
    values = [Config.empty().with_values({CAP: value}) for value in range(100, 700, 100)]
    runs.ensure(values[:3], block)
    runs.ensure(values, block)
    assert asked == [1, 2, 3]


@pytest.mark.long
def test_a_killed_worker_is_replaced(monkeypatch):
    """As below, in processes that are killed; `test_long_work.py` kills one in every run."""
    monkeypatch.setenv("BROKERLAB_TOY_MAIN", str(os.getpid()))
    monkeypatch.setattr("brokerlab.calibrate.thresholds.simulations.PAYS_S", 0.0)
    config, block = Config.empty(), Block(Period(*EARLY), (1, 2))
    runs = Runs(Toy(n_tasks=12, kills=(900,)), workers=2)
    values = {value: config.with_values({CAP: value}) for value in (900, 300)}
    runs.ensure([config, *values.values()], block)
    assert [(one.config, one.reason) for one in runs.missing] == [
        (values[900].digest, "the process that simulated it was killed twice")
    ]
    assert runs.n_simulated == 4
    assert len(runs.outcomes(values[300], block)) == 2
    with pytest.raises(InsufficientDataError, match="killed twice"):
        runs.outcomes(values[900], block)


def test_settings_of_a_killed_worker_are_made_again_apart(monkeypatch):
    """Were they made again here, the study could be killed, too."""
    monkeypatch.setenv("BROKERLAB_TOY_MAIN", str(os.getpid()))
    there, kills = [], 900

    def in_processes(work, shared, tasks, **_):
        for task in tasks:
            values = [config.get(CAP) for config in task.configs]
            there.append(values)
            yield task, BrokenProcessPool() if kills in values else work(shared, task)

    monkeypatch.setattr("brokerlab.calibrate.thresholds.simulations.in_processes", in_processes)
    monkeypatch.setattr("brokerlab.calibrate.thresholds.simulations.PAYS_S", 0.0)
    runs = Runs(Toy(n_tasks=12, kills=(kills,)), workers=2)
    values = [Config.empty().with_values({CAP: value}) for value in (100, 300, kills, 400)]
    runs.ensure(values, Block(Period(*EARLY), (1,)))
    assert there == [[300, kills], [400], [300], [kills]]
    assert [(one.config, one.reason) for one in runs.missing] == [
        (values[2].digest, "the process that simulated it was killed twice")
    ]
    assert runs.n_simulated == 3
    assert len(runs.outcomes(values[3], Block(Period(*EARLY), (1,)))) == 1
    with pytest.raises(InsufficientDataError, match="killed twice"):
        runs.outcomes(values[2], Block(Period(*EARLY), (1,)))


def test_replications_are_added_to_rivals_only():
    """What is worse than now, or than the best, by its whole interval is neither simulated again nor judged."""
    found = calibrated(grids={CAP: [10, 180, 700, 800]}, rounds=0)
    judged = [one.name for one in found.judgement.settings]
    assert judged == ["as it is", f"{CAP} = 700", f"{CAP} = 800"]
    assert {f"{CAP} = 10", f"{CAP} = 180"} <= set(found.tried["setting"])
    little = found.tried.filter(setting=f"{CAP} = 180", quantity="turnaround_h")
    assert little["diff_lo"].item() < 0  # may be better than now, but not the best
    first, judged_again = 5 * 3, 3 * 3 + 3 * 6
    assert found.n_simulated == first + judged_again


def test_the_settings_that_are_judged_are_found_on_the_first_period_alone():
    """calibration.md, section 2: no unit judged a setting that it had helped to choose among."""

    class Elsewhere(Toy):
        def one(self, config, seeds, period):
            best = {CAP: 800.0 if period == Period(*EARLY) else 60.0}
            return Toy(**{**vars(self), "best": best}).one(config, seeds, period)

    one, other = calibrated(), calibrated(Elsewhere())
    assert one.tried.equals(other.tried)
    assert one.judgement.settings == other.judgement.settings
    assert one.judgement.chosen.tolist() == other.judgement.chosen.tolist()
    assert not other.judgement.acts  # what the choice promised is not there later
    assert other.setting == NOW


def test_periods_have_seeds_of_their_own(tmp_path):
    log = tmp_path / "log"
    calibrated(Toy(log=str(log)), grids={CAP: [150, 800]}, rounds=0)
    seeds = {int(line.split()[1]) for line in log.read_text().splitlines()}
    assert seeds == {*range(6), *range(1_000_000, 1_000_006)}


def test_patterns_are_set_for_every_share():
    config = Config.empty().with_values({"NQUEUELIMITSITE_Express": 5})
    space = space_of(config, ["NQUEUELIMITSITE_<gshare>"], shares=["Express", "MC"])
    key = space.keys[0]
    assert key.places == (
        "jedi/jobbroker/NQUEUELIMITSITE_Express",
        "jedi/jobbroker/NQUEUELIMITSITE_MC",
    )
    assert key.mixed
    changed = space.configured(Setting.of({key.name: 5}))
    assert changed.get("NQUEUELIMITSITE_MC") == 5
    assert space.entries(Setting.of({key.name: 5})) == {"jedi/jobbroker/NQUEUELIMITSITE_MC": 5}
    with pytest.raises(ConfigError, match="no global share is known"):
        space_of(config, ["NQUEUELIMITSITE_<gshare>"])


def simulated(toy: Toy) -> Outcome:
    """Return one replication of a toy as it is set now."""
    return Outcome.by_seed(toy.one(Config.empty(), (1,), Period(*EARLY)))[1]


class Given:
    """A simulation that says what it is told to, by the value of the first key."""

    def __init__(self, outcomes):
        self.outcomes = outcomes

    def __call__(self, configs, seeds, _period):
        return [self.one(config, seeds) for config in configs]

    def one(self, config, seeds):
        tasks = self.outcomes[config.get(CAP)].tasks
        parts = [tasks.with_columns(seed=pl.lit(seed)) for seed in seeds]
        fair = pl.concat([part.head(1) for part in parts])
        return type("Simulated", (), {
            "tasks": pl.concat(parts).with_columns(
                turnaround_s=3600 * pl.col("turnaround_h"), mean_waiting_s=3600 * pl.col("waiting_h"),
                transferred_bytes=1e12 * pl.col("moved_tb"), lost_core_s=3600 * pl.col("lost_core_h"),
                used_core_s=3600 * pl.col("used_core_h"), censored=pl.col("unfinished"),
            ),
            "fairness": fair.select("seed", by=pl.lit("gshare"), jain=1 - pl.col("unfairness")),
            "queues": pl.DataFrame(schema=["seed", "panda_queue", "n_jobs", "used_core_s", "capacity_core_s"]),
        })  # fmt: skip


def between(before, after, n_boot=200, **options):
    """Compare two outcomes of one replication each, simulated alike by every seed."""
    simulations = Simulations(
        space_of(Config.empty(), [CAP]),
        thresholds.Options(keys=[CAP], n_boot=n_boot, **options),
        Runs(Given({150: before, 800: after})),
        (Block(Period(*EARLY), (1, 2)),),
    )
    known = simulations.among([Setting.of({CAP: 800})])
    found = as_shown(simulations.compare(*known), simulations.n_tasks())
    return {row["quantity"]: row for row in found.to_dicts()}


def test_limits_on_bytes_are_for_the_same_work():
    """Half of the bytes for half of the work is as much as now; bytes for no work are too many, however few."""
    one = simulated(Toy())
    for part, done, for_same in ((0.5, 0.5, 0.0), (0.5, 1.0, -50.0), (2.0, 2.0, 0.0)):
        less = one.tasks.with_columns(
            moved_tb=part * pl.col("moved_tb"), n_finished=done * pl.col("n_finished")
        )
        row = between(one, replace(one, tasks=less))["moved_tb"]
        assert row["diff_pct"] == pytest.approx(100 * (part - 1))
        assert row["limited"] == pytest.approx(for_same, abs=1e-9)
        assert row["kept"]
    nothing = one.tasks.with_columns(moved_tb=0.01 * pl.col("moved_tb"), n_finished=pl.lit(0.0))
    assert not between(one, replace(one, tasks=nothing))["moved_tb"]["kept"]


class Hides(Toy):
    """Where the cap is low, the cutoff changes nothing."""

    def excess(self, config):
        keys = [CAP] if config.get(CAP) < 300 else list(self.best)
        return replace(self, best={key: self.best[key] for key in keys}).plain(config)

    def plain(self, config):
        return Toy.excess(self, config)


def test_of_a_key_that_another_one_hides_both_ends_are_tried_beside_it():
    now = float(Config.empty().get(CUTOFF))
    toy = Hides(best={CAP: 800.0, CUTOFF: 1.2 * now}, noise=(0.0, 0.0))
    found = calibrated(toy, keys=[CAP, CUTOFF], rounds=0, most_keys=2, points=3)
    alone = found.tried.filter(pl.col("key") == CUTOFF, quantity="turnaround_h")
    assert alone["diff"].to_list() == [0.0] * alone.height
    beside = found.tried.filter(pl.col("n_keys") == 2)["setting"].unique()
    ends = alone["value"].sort()
    for value in (ends[0], ends[-1]):
        assert any(name.endswith(f"{CUTOFF} = {value:.0f}") for name in beside)


def test_work_that_starved_may_move_what_it_needs():
    """Tasks that never finished a job move a hundred times as much once they run: the others move as before."""
    one = simulated(Toy())
    starves = pl.int_range(pl.len()) % 3 == 0
    before = one.tasks.with_columns(
        moved_tb=pl.when(starves).then(0.0).otherwise("moved_tb"),
        n_finished=pl.when(starves).then(0.0).otherwise(10.0),
    )
    after = before.with_columns(
        moved_tb=pl.when(starves).then(100.0).otherwise("moved_tb"), n_finished=pl.lit(10.0)
    )
    row = between(replace(one, tasks=before), replace(one, tasks=after))["moved_tb"]
    assert row["diff"] > 0
    assert (row["limited"], row["kept"]) == (0, True)


def test_lost_core_hours_are_limited_by_what_is_used():
    """Ten times as many lost core-hours are kept to while they are less than 1 % of those used."""
    one = simulated(Toy())
    of = {"lost_core_h": pl.lit(1.0), "used_core_h": pl.lit(1000.0)}
    now = replace(one, tasks=one.tasks.with_columns(**of))
    for lost, limited in ((10.0, 0.9), (12.0, 1.1)):
        more = now.tasks.with_columns(lost_core_h=pl.lit(lost))
        row = between(now, replace(one, tasks=more))["lost_core_h"]
        assert row["limited"] == pytest.approx(limited)
        assert row["kept"] == (limited < 1)
        assert row["limit_unit"] == "% of the core-hours used"


def test_what_gets_worse_without_a_limit_is_said():
    """No limit on bytes: that they double is said all the same."""
    one = simulated(Toy())
    more = replace(one, tasks=one.tasks.with_columns(moved_tb=2 * pl.col("moved_tb")))
    for limits, words in (({"moved_pct": None}, "not limited"), ({}, "% of now, limit +5)")):
        rows = between(one, more, limits=limits)
        said = effects("turnaround_h", pl.DataFrame(list(rows.values()), infer_schema_length=None))
        assert "bytes moved +100.0 %" in said
        assert words in said
        assert "lost core-hours" not in said  # they stay


def test_where_nothing_is_lost_now_the_limit_is_said_in_its_own_unit():
    """Nothing is lost now, so that there is no per cent of it; the limit is 1 % of the core-hours used."""
    one = simulated(Toy())
    of = {"lost_core_h": pl.lit(0.0), "used_core_h": pl.lit(1000.0)}
    now = replace(one, tasks=one.tasks.with_columns(**of))
    more = replace(one, tasks=now.tasks.with_columns(lost_core_h=pl.lit(12.0)))
    rows = between(now, more)
    assert rows["lost_core_h"]["diff_pct"] is None
    said = effects("turnaround_h", pl.DataFrame(list(rows.values()), infer_schema_length=None))
    assert "core h (for the same work +1.2 % of the core-hours used, limit +1)" in said


def test_differences_are_exact_and_pairs_are_checked():
    one, other = simulated(Toy()), simulated(Toy(best={CAP: 150.0}))
    rows = between(one, other)
    row = rows["turnaround_h"]
    assert row["diff"] == pytest.approx(
        other.tasks["turnaround_h"].mean() - one.tasks["turnaround_h"].mean()
    )
    assert row["diff_lo"] < row["diff"] < row["diff_hi"] < 0
    assert row["diff_pct"] == pytest.approx(100 * row["diff"] / row["before"])
    moved = rows["moved_tb"]
    assert moved["before"] == pytest.approx(one.tasks["moved_tb"].sum())
    assert (moved["diff"], moved["diff_lo"], moved["diff_hi"]) == (0, 0, 0)
    with pytest.raises(DataError, match="cannot be paired"):
        between(one, simulated(Toy(n_tasks=11)))


def test_a_change_of_almost_nothing_has_no_percentage():
    outcome = simulated(Toy())

    def with_lost(core_h: float, unfairness: float) -> Outcome:
        lost = {"lost_core_h": pl.lit(core_h), "unfairness": pl.lit(unfairness)}
        return Outcome(outcome.tasks.with_columns(**lost), outcome.queues)

    dust, much = with_lost(1e-13, 1e-16), with_lost(0.5, 0.02)
    rows = between(dust, much)
    for name, change in (("lost_core_h", 30.0), ("unfairness", 0.02)):
        assert rows[name]["diff"] == pytest.approx(change)
        assert [rows[name][end] for end in ("diff_pct", "diff_pct_lo", "diff_pct_hi")] == [None] * 3
    assert rows["turnaround_h"]["diff_pct"] == 0

    def broken(rows):
        return {name for name, row in rows.items() if row["kept"] is False}

    assert broken(rows) == {"lost_core_h"}  # something is lost where nothing was
    less = between(dust, with_lost(2e-13, 2e-16))
    assert broken(less) == set()  # twice almost nothing is almost nothing
    assert between(much, dust)["lost_core_h"]["diff_pct"] == pytest.approx(-100)


class Starving(Toy):
    """A simulation in which the slots of two queues are unknown: with more of them, another one."""

    def unknown(self):
        return ("A", "B")

    def larger(self, most):
        return Toy(**(vars(self) | ALTERED[self.digest][1] | {"digest": f"{most:g} times"}))


KEPT, CHANGED = {"best": {CAP: 150.0}}, {"best": {CAP: 800.0}}
ALTERED = {
    "change, change": (CHANGED, {"luck": 0.2}),
    "keep, keep": (KEPT, {"luck": 0.2}),
    "change, keep": (CHANGED, KEPT),
    "keep, change": (KEPT, CHANGED),
}
"""The answers with the slots that were seen and with more: the simulations of both."""


@pytest.mark.parametrize("case", ALTERED)
def test_an_answer_counts_that_holds_over_the_range_of_unknown_capacity(case):
    """calibration.md, section 4: if it does not hold, the capacity of N queues is unknown; never keep."""
    toy = Starving(**ALTERED[case][0], digest=case)
    found = calibrated(toy)
    first, second = case.split(", ")
    assert found.unknown == ("A", "B")
    if first == second:
        assert (found.verdict.kind, found.answer) == (first, first)
        return
    assert (found.verdict.kind, found.answer) == ("no_answer", "depends")
    assert found.proposal is None
    assert found.verdict.sentence.startswith("No answer: capacity of 2 queues unknown (A, B)")
    assert "Their slots would settle it" in found.verdict.sentence
    vouched = calibrated(toy, capacity_most=1)
    assert vouched.verdict.kind == first  # who asks for no range takes the slots seen for all
