"""The judge, on outcomes worked by hand: who chooses, who scores, and what follows."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest

from brokerlab.calibrate.judge import (
    CHANGE,
    MIN_UNITS,
    Limit,
    Outcomes,
    Question,
    Sums,
    _verdict,
    by_place,
    cap_weights,
    judge,
)
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.intervals import t_factor

START = datetime(2026, 3, 1)
LIMITED = Question(limits=(Limit(quantity="kills", most=0.1),), n_boot=200)


def outcomes(loss, kills=None, *, weight=None, current=0):
    """Outcomes of (n_units, n_settings) values, units in the order of time; settings are called a, b, c, ..."""
    loss = np.asarray(loss, dtype=float)
    n, k = loss.shape
    kills = np.zeros((n, k)) if kills is None else np.asarray(kills, dtype=float)
    weight = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
    times = [START + timedelta(hours=i) for i in range(n)]
    return Outcomes(
        units=pl.DataFrame({"unit": np.arange(n), "time": times, "weight": weight}),
        settings=tuple("abcdef"[:k]),
        current=current,
        values=by_place({"loss": loss, "kills": kills}),
    )


def noisy(n, means, *, spread=0.1, seed=0):
    """Losses around the settings' means; what a task costs under all settings is shared."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(0, 1, (n, 1))
    return np.asarray(means) + shared + rng.normal(0, spread, (n, len(means)))


def test_a_setting_is_scored_by_units_that_came_after_its_choice():
    """b is better in the first half, a in the second: each block is scored under what was best before it."""
    loss = np.tile([1.0, 0.5], (40, 1))
    loss[20:] = [0.1, 5.0]
    found = judge(outcomes(loss), Question(n_boot=200))
    assert found.chosen.tolist() == [-1] * 10 + [1] * 20 + [0] * 10
    assert found.blocks["place"].to_list() == [None, 1, 1, 0]
    after = (10 * 0.5 + 10 * 5.0 + 10 * 0.1) / 30
    row = found.quantity("loss")
    assert row["after"] == pytest.approx(after)
    assert row["before"] == pytest.approx((10 * 1.0 + 20 * 0.1) / 30)
    assert found.best == "a"
    assert found.n_scored == 30


def test_one_block_has_nothing_later_to_score_a_choice():
    """No unit judges a setting that it had helped to choose: twenty units of one block would."""
    of_one = outcomes(noisy(20, [1.0, 0.5]))
    of_one = replace(of_one, units=of_one.units.with_columns(block=1))
    with pytest.raises(ConfigError, match=r"units.block: all 20 units are of one block"):
        judge(of_one, Question(n_boot=200))
    few = replace(outcomes(noisy(5, [1.0, 0.5])), units=of_one.units.head(5))
    assert judge(few, Question()).case == "few"


def test_two_settings_are_compared_on_all_units_whatever_was_chosen():
    """What was accepted elsewhere was chosen on none of these units, so that all of them say something of it."""
    loss, kills = noisy(60, [1.0, 0.9, 0.7]), np.tile([0.01, 0.02, 0.05], (60, 1))
    found = judge(outcomes(loss, kills), LIMITED)
    rows = {row["quantity"]: row for row in found.between("b", "a").to_dicts()}
    assert rows["loss"]["diff"] == pytest.approx((loss[:, 0] - loss[:, 1]).mean())
    assert rows["loss"]["diff_lo"] < 0.1 < rows["loss"]["diff_hi"]
    assert (rows["kills"]["before"], rows["kills"]["after"]) == pytest.approx((0.02, 0.01))
    assert rows["kills"]["kept"]
    few = judge(outcomes(loss[:10]), Question(n_boot=200)).between("a", "b")
    assert few["diff_lo"].null_count() == few.height


@pytest.mark.parametrize("block", [1, 2, 3])
def test_what_happens_in_a_block_does_not_change_the_choice_for_it(block):
    loss, kills = noisy(40, [1.0, 0.9, 1.1]), np.full((40, 3), 0.05)
    before = judge(outcomes(loss, kills), LIMITED)
    changed = loss.copy()
    changed[10 * block :] += np.random.default_rng(block).normal(0, 50, changed[10 * block :].shape)
    after = judge(outcomes(changed, kills), LIMITED)
    until = 10 * (block + 1)
    assert after.chosen[:until].tolist() == before.chosen[:until].tolist()


def test_a_better_setting_is_proposed_and_one_that_is_alike_is_not():
    better = judge(outcomes(noisy(80, [1.0, 0.8])), Question(n_boot=400))
    assert (better.kind, better.case, better.setting) == ("change", "lower_loss", "b")
    row = better.quantity("loss")
    assert row["diff_lo"] < -0.2 < row["diff_hi"] < 0
    alike = judge(outcomes(noisy(80, [1.0, 1.0])), Question(n_boot=400, relevant=0.5))
    assert (alike.kind, alike.setting) == ("keep", "a")


def test_keep_needs_that_an_effect_which_matters_would_have_been_seen():
    loss = 10 + noisy(80, [1.0, 1.0, 9.0], spread=2.0, seed=3)
    sure = judge(outcomes(loss), Question(n_boot=400, relevant=0.2))
    unsure = judge(outcomes(loss), Question(n_boot=400, relevant=0.01))
    assert (sure.kind, sure.case, sure.units_missing) == ("keep", "nothing_better", 0)
    assert (unsure.kind, unsure.case) == ("no_answer", "imprecise")
    apart = loss[:, 1] - loss[:, 0]
    error = np.sqrt(((apart - apart.mean()) ** 2).sum() * 80 / 79) / 80
    seen = (t_factor(80, 0.95) * error - apart.mean()) / loss[:, 0].mean()
    assert unsure.smallest_seen == pytest.approx(seen)
    assert unsure.smallest_seen == sure.smallest_seen > 0.01
    gain, reach = -apart.mean() / loss[:, 0].mean(), t_factor(80, 0.95) * error / loss[:, 0].mean()
    far = max(gain, 0.01 - gain)
    assert unsure.units_missing >= np.ceil(80 * ((reach / far) ** 2 - 1)) > 0


def test_a_choice_that_is_always_the_current_one_is_no_proof_that_nothing_is_better():
    """The scores are then alike by construction; what other settings could gain is asked of all units."""
    loss = 10 + noisy(80, [1.0, 1.3], spread=4.0, seed=1)
    found = judge(outcomes(loss), Question(n_boot=200, relevant=0.01))
    assert set(found.chosen[found.chosen >= 0]) == {0}
    assert found.smallest_seen > 0.01
    assert found.kind == "no_answer"


def test_the_cheapest_within_the_limit_is_chosen():
    """c is cheapest and kills; b is cheaper than a and does not."""
    loss = noisy(80, [1.0, 0.8, 0.2])
    kills = np.tile([0.05, 0.05, 0.5], (80, 1))
    found = judge(outcomes(loss, kills), LIMITED)
    assert found.setting == "b"
    assert found.candidates.sort("place")["kept"].to_list() == [True, True, False]
    free = judge(outcomes(loss, kills), Question(n_boot=200))
    assert free.setting == "c"


def test_drift_that_happened_pays_for_its_own_margin():
    """b keeps the limit in each choice and breaks it in each block after it; c always keeps it."""
    rng = np.random.default_rng(4)
    growth = np.repeat([0.06, 0.09, 0.13, 0.18], 20)[:, None]
    kills = np.hstack([0.02 * np.ones((80, 1)), growth, 0.02 * np.ones((80, 1))])
    loss = np.hstack([np.full((80, 1), 2.0), np.full((80, 1), 1.0), np.full((80, 1), 1.5)])
    found = judge(outcomes(loss + rng.normal(0, 0.01, loss.shape), kills), LIMITED)
    assert found.inner < 1
    assert (found.kind, found.setting) == ("change", "c")
    assert found.quantity("kills")["after"] <= 0.1


def test_a_broken_limit_is_a_reason_to_act_only_where_the_interval_says_so():
    loss = noisy(80, [1.0, 1.3])
    rng = np.random.default_rng(5)
    kills = np.hstack([rng.beta(2, 6, (80, 1)), np.full((80, 1), 0.01)])
    found = judge(outcomes(loss, kills), LIMITED)
    assert (found.kind, found.case, found.broken) == ("change", "fewer_breaches", ("kills",))
    at_the_limit = kills.copy()
    at_the_limit[:, 0] *= 0.105 / kills[:, 0].mean()
    kept = judge(outcomes(loss, at_the_limit), LIMITED)
    assert kept.broken == ()
    assert kept.kind in ("keep", "no_answer")
    assert kept.setting == "a"


def test_better_and_still_above_the_limit_is_an_improvement_that_names_what_would_keep_it():
    """b halves the kills of a; c keeps the limit, but only at the beginning was nothing known of that."""
    kills = np.tile([0.6, 0.3], (80, 1)) + np.random.default_rng(6).normal(0, 0.02, (80, 2))
    found = judge(outcomes(noisy(80, [1.0, 0.9]), kills), LIMITED)
    assert (found.kind, found.case, found.setting) == ("improve", "better_not_within", "b")
    assert (found.over, found.cheapest_within) == (("kills",), None)
    row = found.quantity("kills")
    assert row["diff_hi"] < 0
    assert row["kept"] is False


def test_a_breach_that_nothing_mends_is_no_answer_and_never_keep():
    kills = np.tile([0.5, 0.5], (80, 1)) + np.random.default_rng(6).normal(0, 0.02, (80, 2))
    found = judge(outcomes(noisy(80, [1.0, 1.0]), kills), LIMITED)
    assert (found.kind, found.case, found.setting) == ("no_answer", "breach", "a")


ENDS = {"before": 1.0, "after": 0.9, "diff": -0.1, "diff_lo": -0.2, "diff_hi": -0.05}
KILLS = ("kills",)
YES, LOWER, FEWER, NO = (True, True), (True, False), (False, True), (False, False)


@pytest.mark.parametrize(
    ("loss", "kills", "broken", "far", "over", "confirmed", "expected"),
    [
        ({}, {}, (), (), (), YES, ("change", "lower_loss")),
        ({}, {}, (), (), (), NO, ("no_answer", "unconfirmed")),
        ({}, {"diff_hi": 0.1}, (), (), KILLS, YES, ("no_answer", "unconfirmed")),
        ({}, {}, (), (), KILLS, YES, ("improve", "better_not_within")),
        ({"diff_hi": 0.1}, {}, KILLS, KILLS, (), FEWER, ("change", "fewer_breaches")),
        ({}, {}, KILLS, KILLS, (), FEWER, ("change", "fewer_breaches")),
        ({"diff_hi": 0.1}, {}, KILLS, KILLS, (), LOWER, ("no_answer", "breach")),
        ({"diff_hi": 0.1}, {}, KILLS, (), (), YES, ("no_answer", "breach")),
        ({"diff_hi": 0.1}, {"diff_hi": 0.1}, KILLS, KILLS, (), YES, ("no_answer", "breach")),
        ({"diff_hi": 0.1}, {"diff": -0.001}, KILLS, KILLS, (), YES, ("no_answer", "breach")),
        ({"diff_hi": 0.1}, {}, (), (), (), YES, ("no_answer", "imprecise")),
    ],
)
def test_verdicts(loss, kills, broken, far, over, confirmed, expected):
    rows = {"loss": ENDS | loss, "kills": ENDS | kills}

    def verdict(seen):
        return _verdict(rows, broken, far, over, seen, confirmed, 100, LIMITED)

    assert verdict(0.06) == expected
    if expected[1] == "imprecise":
        assert verdict(0.04) == ("keep", "nothing_better")
        assert verdict(None) == ("no_answer", "no_other")


def test_what_is_proposed_is_better_on_everything_too():
    """b was chosen and scored; on everything c is, which was never scored and costs more than a."""
    loss = np.tile([1.54, 1.25, 3.54], (200, 1)) + noisy(200, [0.0, 0.0, 0.0]) * 0.01
    kills = np.tile([0.015, 0.0, 0.0], (200, 1))
    kills[150:, 0] = 0.0364
    kills[197:, 1] = 0.9
    limit = Question(limits=(Limit(quantity="kills", most=0.01),), n_boot=200)
    found = judge(outcomes(loss, kills), limit)
    assert found.best == "c"
    assert found.quantity("loss")["diff_hi"] < 0
    assert found.setting == "a" or found.case == "fewer_breaches"


def test_nothing_is_kept_where_nothing_else_can_be_compared():
    alone = judge(outcomes(noisy(40, [1.0])), Question(n_boot=200))
    assert (alone.kind, alone.case, alone.smallest_seen) == ("no_answer", "no_other", None)
    nothing = np.zeros((40, 2))
    nothing[3, 1] = 1.0
    free = judge(outcomes(nothing), Question(n_boot=200))
    assert (free.kind, free.case) == ("no_answer", "no_other")


def test_a_limit_that_is_broken_by_a_little_is_never_kept_in_silence():
    kills = np.tile([0.105, 0.001], (200, 1)) + np.random.default_rng(6).normal(0, 0.01, (200, 2))
    found = judge(outcomes(noisy(200, [1.0, 1.2]), np.clip(kills, 0, 1)), LIMITED)
    assert found.broken == ("kills",)
    assert (found.kind, found.case) == ("no_answer", "breach")


def test_few_units_are_described_and_say_how_many_are_missing():
    found = judge(outcomes(noisy(MIN_UNITS - 3, [1.0, 0.1])), Question(n_boot=200))
    assert (found.kind, found.case, found.units_missing) == ("no_answer", "few", 3)
    assert found.quantity("loss")["diff_lo"] is None
    assert (found.setting, found.best, found.n_scored) == ("a", "b", MIN_UNITS - 3)
    one = judge(outcomes([[1.0, 2.0]]), Question(n_boot=200))
    assert (one.case, one.best) == ("few", "a")


def test_a_setting_that_is_far_worse_asks_for_no_more_units():
    """It is told apart already: how many more are needed is said by those that may be better."""
    loss = 5 + noisy(40, [1.0, 1.0, 9.0], spread=0.6, seed=3)
    found, alone = (judge(outcomes(each), Question(n_boot=200)) for each in (loss, loss[:, :2]))
    assert (found.case, alone.case) == ("imprecise", "imprecise")
    assert 0 < found.units_missing == alone.units_missing < 100


def test_weights_count():
    loss = np.vstack([np.tile([1.0, 0.5], (20, 1)), np.tile([1.0, 1.2], (20, 1))])
    light = judge(outcomes(loss, weight=[1.0] * 20 + [0.01] * 20), Question(n_boot=200))
    heavy = judge(outcomes(loss, weight=[0.01] * 20 + [1.0] * 20), Question(n_boot=200))
    assert (light.best, heavy.best) == ("b", "a")
    assert light.candidates["loss"].to_list() == pytest.approx([1.0, (20 * 0.5 + 0.2 * 1.2) / 20.2])


def test_the_standard_error_is_that_of_the_linearised_mean():
    values, weight = np.random.default_rng(1).random((30, 1)), np.arange(1.0, 31)
    made = outcomes(values, weight=weight)
    sums = Sums.of(made, Question())
    mean = (weight @ values[:, 0]) / weight.sum()
    error = np.sqrt((weight**2 * (values[:, 0] - mean) ** 2).sum() * 30 / 29) / weight.sum()
    assert sums.mean("loss", range(4))[0] == pytest.approx(mean)
    assert sums.error("loss", range(4))[0] == pytest.approx(error)


def test_another_run_changes_nothing():
    loss, kills = noisy(60, [1.0, 0.9, 0.95]), np.full((60, 3), 0.05)
    first, second = (judge(outcomes(loss, kills), LIMITED) for _ in range(2))
    assert first.to_dict() == second.to_dict()
    assert first.table.equals(second.table)


def test_another_objective_is_chosen_from_the_same_sums():
    made = outcomes(noisy(40, [1.0, 0.8]), np.tile([0.05, 0.06], (40, 1)))
    found = judge(made, Question(n_boot=200), also=["kills"])
    assert found.rechoose({"loss": 1.0}) == "b"
    assert found.rechoose({"kills": 1.0}) == "a"


def test_nobody_counts_more_than_the_median():
    assert cap_weights(np.array([1.0, 5.0, 2.0, 100.0])).tolist() == [1.0, 3.5, 2.0, 3.5]


def test_wrong_questions_and_no_outcomes_are_refused():
    with pytest.raises(ConfigError, match=r"blocks=1: allowed is 2 to 20; limit of kills 1.5"):
        Question(blocks=1, limits=(Limit(quantity="kills", most=1.5),))
    empty = Outcomes(
        units=outcomes(noisy(4, [1.0])).units.clear(),
        settings=("a",),
        current=0,
        values=lambda _: {"loss": np.empty((0, 1))},
    )
    with pytest.raises(InsufficientDataError, match="nothing to judge"):
        judge(empty, Question())


def simulated(loss, draws, *, blocks, efforts=()):
    """Outcomes of simulations: by (n_replications, n_blocks, n_settings) all units of a block are off in a replication."""
    base = outcomes(loss)
    units = base.units.with_columns(block=pl.Series(blocks))
    apart = np.asarray(draws)[:, np.asarray(blocks) - 1]
    return replace(
        base,
        units=units,
        efforts=efforts,
        replications=lambda places: {"loss": (np.asarray(loss) + apart)[:, :, list(places)]},
    )


def test_blocks_that_were_made_apart_are_not_cut_otherwise():
    """b is better in the first of two blocks of 25 and 55 units: it is scored on the second one."""
    loss = np.tile([1.0, 0.5], (80, 1))
    loss[25:] = [0.1, 5.0]
    apart = simulated(loss, np.zeros((4, 2, 2)), blocks=[1] * 25 + [2] * 55)
    found = judge(apart, Question(n_boot=200))
    assert found.chosen.tolist() == [-1] * 25 + [1] * 55
    assert found.blocks["n_units"].to_list() == [25, 55]


def test_the_luck_that_all_units_share_by_a_simulation_is_in_the_interval():
    """Units alone would prove the gain; the replications differ from each other by more than it."""
    loss = noisy(80, [1.0, 0.8])
    draws = np.zeros((4, 2, 2))
    blocks = [1] * 40 + [2] * 40
    alike = judge(simulated(loss, draws, blocks=blocks), Question(n_boot=200))
    assert (alike.kind, alike.coverage) == ("change", None)
    draws[:, :, 1] = np.array([-0.5, 0.5, -0.4, 0.4])[:, None]
    apart = judge(simulated(loss, draws, blocks=blocks), Question(n_boot=200))
    rows = alike.quantity("loss"), apart.quantity("loss")
    assert rows[0]["diff"] == rows[1]["diff"]
    half = t_factor(4, 0.95) * np.std(draws[:, 1, 1], ddof=1) / 2
    for end in ("lo", "hi"):
        reach = [abs(row[f"diff_{end}"] - row["diff"]) for row in rows]
        assert reach[1] == pytest.approx(np.hypot(reach[0], half))
    assert apart.kind == "no_answer"
    assert apart.smallest_seen > alike.smallest_seen


def test_shared_luck_moves_before_and_after_alike_and_not_their_difference():
    draws = np.tile(np.array([-0.5, 0.5, -0.4, 0.4])[:, None, None], (1, 2, 2))
    blocks = [1] * 40 + [2] * 40
    found = judge(simulated(noisy(80, [1.0, 0.8]), draws, blocks=blocks), Question(n_boot=200))
    row = found.quantity("loss")
    assert found.kind == "change"
    assert row["before_hi"] - row["before_lo"] > 1 > row["diff_hi"] - row["diff_lo"]


def test_of_settings_that_hardly_differ_the_one_that_changes_least_is_chosen():
    """c is better than b by less than half of what matters, and changes a key more."""
    loss = noisy(80, [1.0, 0.8, 0.79], spread=0.01)
    free = judge(outcomes(loss), Question(n_boot=200))
    fewer = judge(replace(outcomes(loss), efforts=(0, 1, 2)), Question(n_boot=200))
    assert (free.setting, fewer.setting) == ("c", "b")
    much = judge(replace(outcomes(noisy(80, [1.0, 0.8, 0.7])), efforts=(0, 1, 2)), Question(n_boot=200))  # fmt: skip
    assert much.setting == "c"


def test_what_depends_on_what_the_data_cannot_tell_is_no_answer():
    found = judge(outcomes(noisy(80, [1.0, 0.8])), Question(n_boot=200)).cannot_tell()
    assert (found.kind, found.case, found.setting) == ("no_answer", "depends", "a")


def test_blocks_of_one_simulation_share_its_luck():
    """Four blocks cut from one simulated period are as lucky as one: their number does not narrow the interval."""
    loss, off = noisy(80, [1.0, 0.8]), np.zeros((4, 4, 2))
    off[:, :, 1] = np.array([-0.5, 0.5, -0.4, 0.4])[:, None]
    blocks = np.repeat([1, 2, 3, 4], 20).tolist()
    row = judge(simulated(loss, off, blocks=blocks), Question(n_boot=200)).quantity("loss")
    assert row["diff_hi"] - row["diff"] > t_factor(4, 0.95) * np.std(off[:, 0, 1], ddof=1) / 2


def test_keep_needs_no_other_setting_within_the_limits_where_none_is_better_without_them():
    """b kills more and costs more: nothing is lost by the limit. Were it cheaper, nothing could be said."""
    kills = np.tile([0.05, 0.5], (80, 1))
    worse = judge(outcomes(noisy(80, [1.0, 1.5]), kills), LIMITED)
    assert (worse.kind, worse.case, worse.smallest_seen) == ("keep", "nothing_better", 0.0)
    cheaper = judge(outcomes(noisy(80, [1.0, 0.5]), kills), LIMITED)
    assert (cheaper.kind, cheaper.case) == ("no_answer", "no_other")


def gains(n_runs, n_units, n_worlds, *, units, shared, own=1.0, seed=4):
    """Sums: each setting but the first is a world of its own whose true gain is 0."""
    rng = np.random.default_rng(seed)
    made = rng.normal(0, units, (1, n_units, n_worlds))
    made = made + rng.normal(0, shared, (n_runs, 1, n_worlds))
    made = made + rng.normal(0, own, (n_runs, n_units, n_worlds))
    made[:, :, 0] = 0.0
    mean, question = made.mean(axis=0), Question(n_boot=20)
    frame = pl.DataFrame({"time": [START + timedelta(hours=i) for i in range(n_units)]})
    simulated_worlds = Outcomes(
        units=frame.with_columns(unit="time", weight=1.0),
        settings=tuple(range(n_worlds)),
        current=0,
        values=lambda at: {"loss": mean[:, list(at)]},
        replications=lambda at: {"loss": made[:, :, list(at)]},
    )
    return Sums.of(simulated_worlds, question)


@pytest.mark.parametrize("n_runs", [2, 4, 8])
@pytest.mark.parametrize("units", [0.0, 1.0])
@pytest.mark.parametrize("shared", [0.0, 0.1, 0.3, 1.0])
def test_intervals_hold_the_truth_however_few_replications(n_runs, units, shared):
    """Luck that cannot be told from that of single units is not taken for none: 95 % hold with two replications, too."""
    for n_units in (20, 100):
        sums = gains(n_runs, n_units, 3001, units=units, shared=shared)
        mean = sums.mean(CHANGE, range(4))[1:]
        held = np.abs(mean) <= sums.paired_reach()[1:]
        assert held.mean() > 0.938  # three standard errors of 3,000 worlds below 0.95


def test_the_luck_of_each_unit_alone_counts_once():
    """It spreads units and replications alike: intervals are narrower than with the whole spread of replications added."""
    for n_runs, part in ((4, 0.9), (8, 0.85)):
        sums = gains(n_runs, 80, 1001, units=0.0, shared=0.0)
        spread = sums.draws[CHANGE].mean(axis=1).std(axis=0, ddof=1)[1:] / np.sqrt(n_runs)
        own = t_factor(80, 0.95) * sums.own_error(CHANGE, range(4))[1:]
        twice = np.hypot(own, t_factor(n_runs, 0.95) * spread)
        once = sums.paired_reach()[1:]
        assert (once < twice).all()
        assert (once >= own).all()
        assert once.mean() < part * twice.mean()


def test_the_luck_of_each_unit_alone_is_estimated_without_bias():
    """What is left of the spread of replications is what the units share."""
    sums = gains(4, 40, 4001, units=1.0, shared=0.2)
    runs, alone = (part[1:].mean() for part in sums._noise(CHANGE, range(4)))
    assert alone == pytest.approx(1.0 / 40 / 4, rel=0.02)
    assert runs - alone == pytest.approx(0.2**2 / 4, rel=0.08)
