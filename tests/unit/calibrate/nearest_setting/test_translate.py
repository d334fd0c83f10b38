"""What is lost by setting a rule, which rule comes nearest, and what is proposed."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module

import numpy as np
import polars as pl
import pytest

from brokerlab.calibrate.judge import MIN_UNITS
from brokerlab.calibrate.nearest_setting import translate
from brokerlab.calibrate.percentiles import (
    LossWeights,
    Setting,
    kills,
    load,
)
from brokerlab.errors import ConfigError, DataError, InsufficientDataError, SchemaError
from brokerlab.gdpconfig import Config
from brokerlab.worlds import synthesise
from tests.unit.calibrate import toys
from tests.unit.calibrate.toys import backtest

CURRENT = Setting(75, 10)
MODULE = import_module("brokerlab.calibrate.nearest_setting")


def answered(quantities, tasks, allocations, *, max_exceed=0.03, **how):
    inputs = toys.inputs(quantities, tasks)
    plain = {"ranks": (75, 85, 95), "margins": (5, 10, 20), "minima": (None,)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MODULE, "load", lambda *_, **__: inputs)
        question = kills(max_exceed, n_boot=300, seed=1)
        return translate(None, allocations, question=question, **(plain | how))


def exactly(quantities):
    """What each job needs, and 2 % more: an estimator that knows."""
    return quantities.select("pandaid", allocated=pl.col("maxpss_kb") / 1024 * 1.02)


@pytest.fixture(scope="module")
def history():
    """120 tasks whose memory spreads by 8 %: p75 x 1.10 kills about 7 % of the jobs."""
    return toys.quantities(120, 60, seed=7, hours_between=6), toys.tasks(120)


@pytest.fixture(scope="module")
def told(history):
    return answered(*history, exactly(history[0]))


def test_three_on_the_same_jobs(told, history):
    assert told.table["who"].to_list() == ["estimator", "cheapest", "nearest", "current"]
    for name in ("n_tasks", "n_scored", "work_coreh"):
        assert told.table[name].n_unique() == 1, name
    assert toys.side(told, "current")["n_tasks"] == 120
    estimator, cheapest, nearest, current = told.table["loss"].to_list()
    assert estimator < cheapest <= min(nearest, current)
    assert toys.side(told, "estimator")["exceed_rate"] == 0
    assert toys.side(told, "estimator")["over_allocation"] == pytest.approx(0.02)
    rows = told.table
    assert (rows["loss_lo"] <= rows["loss"]).all()
    assert (rows["loss"] <= rows["loss_hi"]).all()


def test_nearest_and_current_are_those_of_the_back_test(told, history):
    quantities, tasks = history
    whole = backtest(quantities, tasks, toys.queues(), ranks=[75, 85, 95], margins=[5, 10, 20])
    sides = {"nearest": told.nearest, "cheapest": told.cheapest, "current": CURRENT}
    for who, setting in sides.items():
        row, right = toys.side(told, who), toys.row_of(whole, *setting.pair)
        assert row["exceed_rate_jobs"] == pytest.approx(right["exceed_rate"])
        for name in ("over_gbh", "n_lost"):
            assert row[name] == pytest.approx(right[name]), (who, name)
        # loss and kill rate are those that the judge compares settings by
        judged = told.study.judgement.candidates.row(
            told.study.judgement.settings.index(setting), named=True
        )
        for name in ("loss", "exceed_rate"):
            assert row[name] == pytest.approx(judged[name]), (who, name)


def test_cheapest_and_nearest_are_those_of_the_judge(told):
    rows = told.study.judgement.candidates
    least = rows.sort("loss")["place"][0]
    assert told.cheapest == told.study.judgement.settings[least]
    assert told.nearest == told.study.judgement.settings[rows.filter("is_best")["place"].item()]
    assert told.nearest == told.study.judgement.best


def test_a_setting_that_is_better_on_later_tasks_is_proposed(told):
    assert told.verdict.kind == told.verdict.proposal.kind == told.study.judgement.kind == "change"
    assert told.nearest == told.study.judgement.setting
    # the proof: no task judged a setting that it had helped to choose
    assert told.comparison.n_tasks == told.study.judgement.n_scored == 90
    for name in ("loss", "exceed_rate"):
        for column in ("before", "after", "diff", "diff_lo", "diff_hi"):
            judged = told.study.judgement.quantity(name)[column]
            assert told.comparison.quantity(name)[column] == pytest.approx(judged), (name, column)
    assert told.comparison.quantity("exceed_rate")["after"] <= 0.03
    assert {c.key: c.new for c in told.verdict.proposal.changes}[
        "SCOUT_RAMCOUNT_MARGIN"
    ] == told.nearest.margin_pct
    assert "SCOUT_RAMCOUNT_MIN" not in {c.key for c in told.verdict.proposal.changes}
    assert told.to_dict()["nearest"] == told.nearest._asdict()
    said = " ".join([told.verdict.sentence, *told.notes])
    assert not any(word in said for word in ("proven", "beyond doubt", "period"))
    for note in ("tried again as the back-test retries", "chosen on the tasks they are scored on"):
        assert any(note in each for each in told.notes), note


def test_the_current_requests_gain_nothing(history):
    """An estimator that says what the rule says."""
    quantities, tasks = history
    (replay,) = backtest(quantities, tasks, toys.queues()).each(lambda replay: replay)
    asked = replay.jobs.select("pandaid", allocated=pl.Series(replay.requests(CURRENT)))
    same = answered(*history, asked)
    sides = [toys.side(same, who) for who in ("estimator", "current")]
    for name in ("loss", "loss_lo", "loss_hi", "exceed_rate"):
        assert sides[0][name] == pytest.approx(sides[1][name]), name


def test_the_limit_is_told_apart_from_the_restriction(history):
    """Thrifty weights: the cheapest setting kills more than the limit allows."""
    thrifty = LossWeights(over=5.0, killed_coreh=0.1, n_exceed=0.0, n_lost=0.1)
    made = answered(*history, exactly(history[0]), loss=thrifty)
    assert made.cheapest != made.nearest
    assert (
        toys.side(made, "cheapest")["exceed_rate"]
        > 0.03
        > toys.side(made, "nearest")["exceed_rate"]
    )
    assert toys.side(made, "nearest")["loss"] > toys.side(made, "cheapest")["loss"]


def test_tasks_that_the_estimator_learnt_from_are_not_compared(history, told):
    """The setting is judged on them all the same."""
    quantities, tasks = history
    late = tasks["jeditaskid"][60:]
    some = exactly(quantities.filter(pl.col("jeditaskid").is_in(late.implode())))
    made = answered(quantities, tasks, some)
    assert toys.side(made, "nearest")["n_tasks"] == 60
    assert made.study.judgement.n_units == 120
    assert made.study.judgement.table.equals(told.study.judgement.table)
    assert made.verdict.sentence == told.verdict.sentence
    assert made.counts["tasks_without_allocations"] == 60
    assert any("60 tasks have no allocation" in note for note in made.notes)
    # a task of five jobs is not judged, so that no allocation of it is missing
    number = pl.lit(900, pl.Int64)
    small = quantities.head(5).with_columns(pl.col("pandaid") + 1_000_000, jeditaskid=number)
    tiny = tasks.head(1).with_columns(jeditaskid=number.cast(tasks.schema["jeditaskid"]))
    with_small = answered(pl.concat([quantities, small]), pl.concat([tasks, tiny]), some)
    assert with_small.counts == made.counts
    # infinite: the estimator cannot tell
    where = pl.when(pl.col("pandaid").is_in(some["pandaid"].implode()))
    told_of_none = exactly(quantities).with_columns(where.then("allocated").otherwise(np.inf))
    assert answered(quantities, tasks, told_of_none).table.equals(made.table)


def test_few_tasks_get_no_answer(history):
    quantities = history[0].filter(pl.col("jeditaskid") < 112)
    few = answered(quantities, history[1].head(12), exactly(quantities), max_exceed=1.0)
    assert few.verdict.kind == "no_answer"
    assert few.verdict.proposal is None
    assert few.verdict.sentence == (
        f"No answer: 12 tasks can be scored, {MIN_UNITS} are needed to tell an effect from chance."
    )
    assert few.comparison is None
    assert few.table["loss_lo"].is_null().all()
    assert few.table["loss"].is_not_null().all()


def test_a_rule_that_cannot_be_beaten_is_kept(history):
    kept = answered(*history, exactly(history[0]), ranks=(75,), margins=(10, 40), max_exceed=0.5)
    assert kept.cheapest == kept.nearest == kept.study.current == CURRENT
    assert (kept.verdict.kind, kept.verdict.proposal.kind) == ("keep", "keep")


def light_tasks(n=60):
    """Half of the tasks are light, and their scouts use a quarter of what the others use."""
    frame = toys.quantities(n, 40, seed=11, spread=0.01, task_spread=0.01, hours_between=6)
    light = pl.col("jeditaskid") % 2 == 0
    scout = pl.col("is_scout")
    kb = pl.col("cores") * 1024
    mb = pl.when(light & scout).then(100.0).when(light).then(400.0).otherwise(1900.0)
    return frame.with_columns(
        maxpss_kb=mb * kb + 100 * 1024, ram_kb=mb * 1024, ram_per_core=pl.lit(value=True)
    )


def test_a_minimum_is_chosen_where_light_tasks_outgrow_their_scouts():
    quantities, tasks = light_tasks(), toys.tasks(60)
    how = {"ranks": (75,), "margins": (10, 11), "max_exceed": 0.02}
    made = answered(quantities, tasks, exactly(quantities), minima=(None, 200, 500), **how)
    assert made.nearest.minimum_mb == 500
    assert made.nearest.pair == (75, 11)  # a minimum is not set alone
    assert toys.side(made, "nearest")["exceed_rate"] == 0
    assert toys.side(made, "current")["exceed_rate_jobs"] == pytest.approx(0.5)
    assert made.verdict.kind == "change"
    assert {c.key: c.new for c in made.verdict.proposal.changes}["SCOUT_RAMCOUNT_MIN"] == 500
    assert "set SCOUT_RAMCOUNT_MIN = 500" in made.verdict.sentence
    assert made.verdict.subject.endswith(" and SCOUT_RAMCOUNT_MIN")
    assert made.comparison.quantity("exceed_rate")["after"] == 0
    without = answered(quantities, tasks, exactly(quantities), **how)
    assert toys.side(without, "nearest")["loss"] > toys.side(made, "nearest")["loss"]
    assert without.verdict.kind == "no_answer"
    # outcomes under another minimum are those of a back-test under it
    right = backtest(
        quantities, tasks, toys.queues(), ranks=[75], margins=[10, 11], current=(75, 10, 500)
    )
    tried = backtest(
        quantities, tasks, toys.queues(), ranks=[75], margins=[10, 11], minima=(None, 200, 500)
    )
    family = tried.outcomes()
    assert family.settings == (CURRENT, Setting(75, 11), Setting(75, 11, 200), Setting(75, 11, 500))
    mine, theirs = family.values([3, 0]), right.outcomes().values([1])
    now = tried.outcomes().values([0])
    for name in mine:
        assert mine[name][:, 0] == pytest.approx(theirs[name][:, 0]), name
        assert mine[name][:, 1] == pytest.approx(now[name][:, 0]), name


def test_where_no_setting_keeps_the_limit_the_one_that_exceeds_it_least_is_nearest():
    """One task in four outgrows its scouts whatever the rule says; a minimum helps the light ones."""
    quantities, tasks = light_tasks(), toys.tasks(60)
    heavy = (pl.col("jeditaskid") % 4 == 1) & ~pl.col("is_scout")
    quantities = quantities.with_columns(
        maxpss_kb=pl.when(heavy).then(pl.col("maxpss_kb") * 4).otherwise("maxpss_kb")
    )
    how = {"ranks": (75,), "margins": (10, 11), "minima": (None, 500), "max_exceed": 0.02}
    made = answered(quantities, tasks, exactly(quantities), **how)
    assert made.nearest == Setting(rank=75, margin_pct=11, minimum_mb=500)
    assert made.study.judgement.cheapest_within is None
    assert any("keeps the limit of 2 %" in note for note in made.notes)
    assert made.verdict.kind == "improve"
    assert "the limit is still not kept, no setting of the grid does" in made.verdict.sentence
    assert made.verdict.proposal is not None


def test_what_would_keep_the_limit_is_named_with_its_minimum():
    """Light tasks outgrow their scouts late only: what was chosen before knew of no reason to set a minimum."""
    quantities, tasks = light_tasks(), toys.tasks(60)
    early = (pl.col("jeditaskid") % 2 == 0) & (pl.col("jeditaskid") < 145)
    as_scouts = (100 * pl.col("cores") + 100) * 1024
    quantities = quantities.with_columns(
        maxpss_kb=pl.when(early).then(as_scouts).otherwise("maxpss_kb")
    )
    how = {"ranks": (75,), "margins": (10, 11), "minima": (None, 500), "max_exceed": 0.02}
    made = answered(quantities, tasks, exactly(quantities), **how)
    assert made.verdict.kind == "no_answer"
    assert made.study.judgement.case == "breach"
    assert "rank 75 with margin 11 % and a minimum of 500 MB would keep it" in made.verdict.sentence


def test_a_minimum_is_not_set_alone():
    quantities, tasks = light_tasks(), toys.tasks(60)
    made = answered(
        quantities, tasks, exactly(quantities), ranks=(75,), margins=(10,), minima=(None, 500)
    )
    assert made.cheapest == made.nearest == CURRENT
    assert made.verdict.kind == "no_answer"


def test_rates_of_tasks_of_unequal_size():
    quantities = toys.quantities(2, 40, seed=7)
    quantities = quantities.filter((pl.col("jeditaskid") == 100) | (pl.col("pandaid") < 71))
    factor = pl.when(pl.col("jeditaskid") == 100).then(0.9).otherwise(1.5)
    given = quantities.select("pandaid", allocated=pl.col("maxpss_kb") / 1024 * factor)
    made = answered(quantities, toys.tasks(2), given)
    row = toys.side(made, "estimator")
    assert (row["n_scored"], row["n_exceed"]) == (50, 30)
    assert row["exceed_rate_jobs"] == 0.6
    sizes = quantities.filter(~pl.col("is_scout")).group_by("jeditaskid").agg(
        work=(pl.col("cores") * pl.col("duration_s")).sum()
    ).sort("jeditaskid")["work"].to_numpy()  # fmt: skip
    weights = np.minimum(sizes, np.median(sizes))
    assert row["exceed_rate"] == pytest.approx(weights[0] / weights.sum())


def test_the_minimum_that_acts_is_that_of_the_current_setting(history):
    quantities, tasks = history
    config = Config.empty().with_values({"SCOUT_RAMCOUNT_MIN": 90_000})
    inputs = toys.inputs(quantities, tasks, config)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MODULE, "load", lambda *_, **__: inputs)
        made = translate(
            None,
            exactly(quantities),
            ranks=(75,),
            margins=(10,),
            minima=(None,),
            question=kills(n_boot=50),
        )
    assert made.study.current == Setting(rank=75, margin_pct=10, minimum_mb=90_000)
    assert toys.side(made, "current")["label"] == "rank 75, margin 10 %, minimum 90000 MB"
    assert toys.side(made, "current")["over_allocation"] > 2


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archives") / "small"
    synthesise(folder, jobs=8_000, days=14, seed=3)
    return folder


def test_an_archive_is_read_and_answered(archive):
    whole = load(archive)
    allocations = exactly(whole.quantities)
    first, last = whole.window
    some = allocations.filter(pl.col("pandaid") % 50 != 0)
    made = translate(
        archive,
        some,
        ranks=(75, 90),
        margins=(10, 20),
        minima=(None, 500),
        question=kills(n_boot=100),
    )
    assert toys.side(made, "estimator")["loss"] < toys.side(made, "current")["loss"]
    assert made.counts["jobs_without_allocation"] > 0
    assert any("the current setting stands in for them" in note for note in made.notes)
    assert any("could not have been known yet" in note for note in made.notes)
    if made.verdict.proposal is not None:
        assert made.verdict.proposal.evidence.synthetic
        assert made.verdict.proposal.created_at == last
    day = timedelta(days=1)
    how = {"ranks": (75,), "margins": (10,), "minima": (None,), "question": kills(n_boot=50)}
    cut = translate(archive, allocations, span=(first + day, last - 2 * day), **how)
    created = cut.study.judgement.blocks
    assert first + day <= created["start"].min()
    assert created["end"].max() < last - 2 * day
    assert cut.study.judgement.n_units < made.study.judgement.n_units
    assert toys.side(cut, "current")["n_tasks"] < toys.side(made, "current")["n_tasks"]
    with pytest.raises(InsufficientDataError, match=r"no task with finished jobs among .* from"):
        translate(archive, allocations, span=(last + day, last + 2 * day))
    # the end of a span is out, its begin is in
    assert load(archive, start=first, end=last).window[0] == first
    assert load(archive, start=first, end=last).window[1] < last
    with pytest.raises(ConfigError, match="a first instant and a later one"):
        translate(archive, allocations, span=(last, first))


@pytest.mark.parametrize(
    ("allocations", "how", "error", "says"),
    [
        ({"pandaid": [1, 1], "allocated": [0.0, 2.0]}, {}, DataError, "above 0.*each job once"),
        ({"pandaid": [1], "allocated": ["much"]}, {}, SchemaError, "allocations.allocated"),
        ({"pandaid": [-9], "allocated": [1.0]}, {}, DataError, "none of 1 jobs with an allocation"),
        ({"pandaid": [1], "allocated": [1.0]}, {"parameter": "outdiskcount"}, ConfigError, "estimators"),
        ({"pandaid": [1], "allocated": [1.0]}, {"parameter": "ram"}, ConfigError, "parameter='ram'"),
        ({"pandaid": [1], "allocated": [1.0]}, {"span": (toys.T0, toys.T0)}, ConfigError, "a first instant and a later one"),
    ],
)  # fmt: skip
def test_what_cannot_be_translated(archive, allocations, how, error, says):
    with pytest.raises(error, match=says):
        translate(archive, pl.DataFrame(allocations), **how)
