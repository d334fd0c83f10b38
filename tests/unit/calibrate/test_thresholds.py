"""Threshold calibration on a simulation in closed form: keys, bad input, choice and limits, proof, what interrupts it."""

import os

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError

from brokerlab.calibrate import thresholds
from brokerlab.calibrate.thresholds.choice import choose
from brokerlab.calibrate.thresholds.intervals import Draw, Pair, compared
from brokerlab.calibrate.thresholds.outcomes import Outcome, Period
from brokerlab.calibrate.thresholds.pareto import not_dominated
from brokerlab.calibrate.thresholds.proof import holm
from brokerlab.calibrate.thresholds.runs import Runs
from brokerlab.calibrate.thresholds.settings import Setting, space_of
from brokerlab.calibrate.thresholds.store import Store
from brokerlab.calibrate.thresholds.sweep import Replications, Sweep
from brokerlab.errors import ConfigError, DataError, InsufficientDataError, SchemaError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import loads
from tests.unit.calibrate.threshold_toys import CAP, CUTOFF, EARLY, LATE, Toy, calibrate_toy

SMALL = {"n_boot": 200, "trials": 3, "rounds": 2, "replications": 3, "most_replications": 6, "seed": 0, "workers": 1}  # fmt: skip


def calibrated(toy=None, **more):
    return calibrate_toy(toy or Toy(), **{"keys": [CAP], **SMALL, **more})


@pytest.fixture(scope="module")
def found():
    return calibrated()


def test_every_key_of_the_table_is_in_the_catalogue_and_its_grid_within_the_rails():
    table = thresholds.KEYS
    assert table.height == len(thresholds.THRESHOLDS) == 33
    assert table["judged_by"].unique().sort().to_list() == ["screen", "simulation"]
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


def test_the_planted_value_is_found_and_proven(found):
    assert found.verdict.kind == "change"
    value = dict(found.verdict.setting.values)[CAP]
    assert Toy().excess(Config.empty().with_values({CAP: value})) < 0.05
    assert found.verdict.sentence.startswith(f"Raise {CAP} from 150 to {value}: mean turnaround")
    assert found.proof.quantity("turnaround_h")["diff_hi"] < 0
    assert found.proof.p_holm == found.proof.p <= 0.05
    assert found.valid is None


def test_the_proposal_says_all_that_is_needed(found):
    proposal = loads(found.proposal.to_json())
    assert proposal.kind == "change"
    change = proposal.changes[0]
    assert (change.place, change.old) == (f"jedi/jobbroker/{CAP}", 150)
    assert change.minimum <= change.new <= change.maximum
    effect = proposal.evidence.effects[0]
    assert effect.low < effect.difference < effect.high < 0
    assert [window.name for window in proposal.evidence.windows] == ["choice", "proof"]
    assert {one.who for one in proposal.evidence.helps} >= {"gshare Express"}
    assert proposal.evidence.hurts[0].who == "queue A"
    assert proposal.evidence.numbers["settings_tried"] == found.choices[0].candidates.height


def test_the_best_is_kept():
    kept = calibrated(Toy(best={CAP: 150.0}))
    assert kept.verdict.kind == kept.choices[0].status == kept.proposal.kind == "keep"
    assert kept.proofs == ()
    assert f"Keep {CAP} = 150." in kept.verdict.sentence


def test_a_limit_is_kept_and_the_best_within_it_is_found():
    toy = Toy(moved=0.2)
    limited = calibrated(toy, rounds=4)
    value = dict(limited.verdict.setting.values)[CAP]
    assert 150 < value <= 192  # 5 % more bytes are moved at 192
    assert limited.proof.quantity("moved_tb")["diff_pct"] <= 5
    free = calibrated(toy, limits={"moved_pct": None})
    assert dict(free.verdict.setting.values)[CAP] > 500
    assert not limited.choices[0].stable


def test_two_keys_are_refined_together_and_idle_ones_left_alone():
    toy = Toy(best={CAP: 800.0, CUTOFF: 60.0, "NW_QUEUE_IMPORTANCE": 0.5})
    both = calibrated(toy, keys=list(toy.best))
    assert set(both.verdict.setting.keys) == {CAP, CUTOFF}
    assert {box.key.name for box in both.boxes} >= {CAP, CUTOFF}
    assert both.n_trials == 3
    places = [change.place for change in both.proposal.changes]
    assert places == [f"jedi/jobbroker/{key}" for key in (CAP, CUTOFF)]
    front = both.pareto.filter("on_front")
    assert 0 < front.height < both.pareto.height
    assert both.pareto["setting"][0] == "as it is"


def test_several_proposals_are_proven_together():
    toy = Toy(best={CAP: 800.0, CUTOFF: 60.0})
    each = calibrated(toy, keys=[CAP, CUTOFF], propose="each", trials=0, n_boot=1000)
    assert [one.kind for one in each.verdicts] == ["change", "change"]
    assert [proof.setting.keys for proof in each.proofs] == [(CAP,), (CUTOFF,)]
    assert each.proofs[0].p_holm >= each.proofs[0].p
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])


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
            keys=[CAP, CAP, "NQUEUED_SAT_CUP"], objective="turnaround", alpha=0, relevant=1, trials=-1, workers=0, n_boot=1,
            points=1, limits={"moved_pct": -1, "moved": 1}, limit_on="lower", replications=1, precision=0, seed=-1,
        )  # fmt: skip
    for said in (
        "is given twice", "did you mean 'NQUEUED_SAT_CAP'", "did you mean 'turnaround_h'", "moved_pct=-1", "unknown 'moved'",
        "alpha", "relevant", "trials", "workers", "n_boot", "points", "limit_on", "replications", "precision", "seed",
    ):  # fmt: skip
        assert said in str(caught.value), said
    with pytest.raises(ValidationError, match="replications=6 is more than most_replications=5"):
        thresholds.Options(replications=6, most_replications=5)
    with pytest.raises(ConfigError) as refused:
        calibrated(keys=[CAP, CUTOFF], grids={CUTOFF: [5], CAP: [1, 20]}, proof=(LATE[1], LATE[0]))
    for said in ("a grid of 1 value", "outside the guard rails 10 to 10000", "no period"):
        assert said in str(refused.value), said
    with pytest.raises(ConfigError, match=r"proof: begins 2026-03-05.*prove on what was not looked at"):  # fmt: skip
        calibrated(proof=("2026-03-05", "2026-03-09"))
    with pytest.raises(ConfigError, match="without an archive, what_if and config are needed"):
        calibrated(config=None)


def test_too_few_tasks_give_no_answer():
    few = calibrated(Toy(n_tasks=5))
    assert few.verdict.kind == "no_answer"
    assert "5 tasks in the calibration period; 10 are needed" in few.verdict.sentence


def test_a_store_keeps_results_and_the_search_goes_on_where_it_was(tmp_path, found):
    class StopError(Exception):
        pass

    calls = []

    class Stopping(Toy):
        def __call__(self, config, seeds, period):
            calls.append(config.digest)
            if len(calls) > 8:
                raise StopError
            return super().__call__(config, seeds, period)

    with pytest.raises(StopError):
        calibrated(Stopping(), store=tmp_path)
    again = calibrated(store=tmp_path)
    assert again.n_kept >= 8
    assert again.tried.equals(found.tried)
    assert again.verdict == found.verdict
    third = calibrated(store=tmp_path)
    assert (third.n_simulated, third.verdict) == (0, found.verdict)
    other = calibrated(Toy(digest="another"), store=tmp_path, trials=0, rounds=0)
    assert other.n_kept == 0
    nameless = Toy(digest="")
    with pytest.raises(ConfigError, match="has no attribute `digest`"):
        calibrated(nameless, store=tmp_path)


def test_a_damaged_result_is_made_again_and_no_half_result_stays(tmp_path):
    store = Store.at(tmp_path / "store", "toy")
    config, period = Config.empty(), Period(*EARLY)
    outcome = Outcome.of(Toy()(config, (1,), period))
    store.put(config, 1, period, outcome)
    store.put(config, 1, period, outcome)
    assert store.get(config, 1, period).tasks.equals(outcome.tasks)
    (store.place(config, 1, period) / "tasks.parquet").write_bytes(b"half")
    assert store.get(config, 1, period) is None
    assert not [path for path in store.folder.rglob("*") if path.is_file()]
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="name a folder that can be made"):
        Store.at(tmp_path / "file", "toy")


def test_a_failing_setting_is_missing_and_the_rest_goes_on():
    gaps = calibrated(Toy(fails=(56,)))
    assert [one.reason for one in gaps.missing] == ["DataError: no simulation at 56"]
    assert f"{CAP} = 56" not in set(gaps.tried["setting"])
    assert gaps.verdict.kind == "change"
    with pytest.raises(
        InsufficientDataError, match="the settings as they are could not be simulated"
    ):
        calibrated(Toy(fails=(150,)))


def test_a_killed_worker_is_replaced(monkeypatch):
    monkeypatch.setenv("BROKERLAB_TOY_MAIN", str(os.getpid()))
    monkeypatch.setattr("brokerlab.calibrate.thresholds.runs.PAYS_S", 0.0)
    config, period = Config.empty(), Period(*EARLY)
    runs = Runs(Toy(n_tasks=12, kills=(900,)), workers=2)
    values = {value: config.with_values({CAP: value}) for value in (900, 300)}
    runs.ensure([config, *values.values()], (1, 2), period)
    assert [(one.config, one.reason) for one in runs.missing] == [
        (values[900].digest, "the process that simulated it was killed twice")
    ]
    assert runs.n_simulated == 4
    assert runs.outcome(values[300], (1, 2), period).seeds == (1, 2)
    assert runs.outcome(values[900], (1, 2), period) is None


def test_replications_are_added_to_rivals_only():
    toy = Toy(noise=(0.05, 0.01))
    space = space_of(Config.empty(), [CAP], grids={CAP: [10, 700, 800]})
    sweep = Sweep(
        space,
        Runs(toy),
        Period(*EARLY),
        "turnaround_h",
        Replications(3, 12, 3, 0.001),
        Draw(n_boot=300),
    )
    sweep.try_all(space.single(CAP))
    used = {one.values[0][1]: n for one, n in sweep.seeds_used.items()}
    assert used[10] == 3
    assert sweep.stopped[Setting.of({CAP: 10})] == "beaten"
    assert used[700] > 3
    assert choose(sweep, thresholds.Limits(), relevant=0.01).status == "change"
    assert sweep.table()["replications"].max() == max(used.values())


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


def test_differences_are_exact_and_pairs_are_checked():
    config, period = Config.empty(), Period(*EARLY)
    one, other = (
        Outcome.of(toy(config, (1, 2), period)) for toy in (Toy(), Toy(best={CAP: 150.0}))
    )
    table = compared(Pair.of(one, other), Draw(n_boot=200))
    row = table.row(by_predicate=pl.col("quantity") == "turnaround_h", named=True)
    assert row["diff"] == pytest.approx(
        other.tasks["turnaround_h"].mean() - one.tasks["turnaround_h"].mean()
    )
    assert row["diff_lo"] < row["diff"] < row["diff_hi"] < 0
    assert row["diff_pct"] == pytest.approx(100 * row["diff"] / row["before"])
    moved = table.row(by_predicate=pl.col("quantity") == "moved_tb", named=True)
    assert (moved["diff"], moved["diff_lo"], moved["diff_hi"]) == (0, 0, 0)
    with pytest.raises(DataError, match="cannot be paired"):
        Pair.of(one, Outcome.of(Toy(n_tasks=11)(config, (1, 2), period)))
    single = compared(Pair.of(one.of_seed(1), other.of_seed(1)), Draw(n_boot=200))
    assert single["diff_lo"].null_count() == single.height
    with pytest.raises(SchemaError, match=r"tasks\.turnaround_s"):
        Outcome.of(type("Wrong", (), {"tasks": pl.DataFrame({"seed": [1], "jeditaskid": [1]})}))


def test_a_change_of_almost_nothing_has_no_percentage():
    config, period = Config.empty(), Period(*EARLY)
    outcome = Outcome.of(Toy()(config, (1, 2), period))

    def with_lost(core_h: float, unfairness: float) -> Outcome:
        tasks = outcome.tasks.with_columns(lost_core_h=pl.lit(core_h))
        return Outcome(tasks, outcome.queues, outcome.system.with_columns(unfairness=pl.lit(unfairness)))  # fmt: skip

    dust, much = with_lost(1e-13, 1e-16), with_lost(0.5, 0.02)
    rows = {row["quantity"]: row for row in compared(Pair.of(dust, much), Draw(n_boot=200)).to_dicts()}  # fmt: skip
    for name, change in (("lost_core_h", 30.0), ("unfairness", 0.02)):
        assert rows[name]["diff"] == pytest.approx(change)
        assert [rows[name][end] for end in ("diff_pct", "diff_pct_lo", "diff_pct_hi")] == [None] * 3
    assert rows["turnaround_h"]["diff_pct"] == 0
    table = compared(Pair.of(dust, much), Draw(n_boot=200))
    assert set(thresholds.Limits().broken(table)) == {
        "lost_pct"
    }  # something is lost where nothing was
    less = compared(Pair.of(dust, with_lost(2e-13, 2e-16)), Draw(n_boot=200))
    assert thresholds.Limits().broken(less) == []  # twice almost nothing is almost nothing
    back = {row["quantity"]: row for row in compared(Pair.of(much, dust), Draw(n_boot=200)).to_dicts()}  # fmt: skip
    assert back["lost_core_h"]["diff_pct"] == pytest.approx(-100)


def test_the_front_is_what_nothing_beats():
    rng = np.random.default_rng(3)
    values = rng.integers(0, 4, size=(40, 3)).astype(float)
    kept = not_dominated(values)
    slow = [
        not any((other <= row).all() and (other < row).any() for other in values) for row in values
    ]
    assert kept.tolist() == slow


def test_times_with_a_zone_are_refused():
    with pytest.raises(ConfigError, match="has a zone"):
        calibrated(calibration=("2026-03-01T00:00+01:00", EARLY[1]))


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
        assert (found.verdict.kind, found.case) == (first, first)
        return
    assert (found.verdict.kind, found.case) == ("no_answer", "capacity")
    assert found.proposal is None
    assert found.verdict.sentence.startswith("No answer: capacity of 2 queues unknown (A, B)")
    assert "Their slots would settle it" in found.verdict.sentence
    vouched = calibrated(toy, capacity_most=1)
    assert vouched.verdict.kind == first  # who asks for no range takes the slots seen for all
