"""Every deployed rule by hand, from the words of its chapter."""

from __future__ import annotations

import numpy as np
import pytest

from brokerlab.errors import ConfigError
from brokerlab.estimators import deployed
from brokerlab.estimators.deployed import (
    PercentileMemory,
    PercentileWalltime,
    Rule,
    ScoutMemory,
    ScoutWalltime,
    Seen,
)
from brokerlab.numerics import percentile
from tests.estimator_kit import assert_never_looks_ahead, random_records
from tests.unit.estimators.records_toys import records

INF = float("inf")


def said(rule, frame):
    """What a rule (or the one of this name) gives each job."""
    return rule.replay(frame, levels=(0.95,)).bounds[:, 0].tolist()


def named(quantity, name, **options):
    return next(each for each in deployed.rules(quantity, **options) if each.name == name)


def test_panda_memory_waits_for_half_of_its_scouts_and_is_frozen_after_the_last():
    frame = records([1000, 1001, 1003, 1002, 5000, 5000], requested=[9, None, 9, None, None, None])
    rule = named("memory", "PanDA scouts p75 x 1.1", scouts=3)
    # two seen: k = 0.75: 1000 x 0.25 + 1001 x 0.75 = 1000.75 MB, x 1.1 = 1100.825
    # three seen: k = 1.5: (1001 + 1003) / 2 = 1002, x 1.1 = 1102.2
    assert said(rule, frame) == [9, INF, 1100, 1102, 1102, 1102]
    again = named("memory", "PanDA scouts, re-estimated", scouts=3)
    # four seen: k = 2.25: 1002 x 0.75 + 1003 x 0.25 = 1002.25, x 1.1 = 1102.475
    # five seen: k = 3: 1003, x 1.1 = 1103.3
    assert said(again, frame) == [9, INF, 1100, 1102, 1102, 1103]


def test_panda_estimates_once_more_when_100_jobs_have_finished():
    frame = records([1000] * 50 + [2000] * 50 + [9000] * 30)
    found = said(named("memory", "PanDA scouts, again at the 100th job"), frame)
    assert found == [INF] * 5 + [1100] * 95 + [2200] * 30


def test_panda_memory_is_cut_twice_to_whole_numbers():
    # 930.5 kB x 110 // 100 = 1023 kB, which is 0 MB
    rule = Rule("p", ScoutMemory(Seen(50, least=2, most=2, latest=False)))
    assert said(rule, records([930 / 1024, 931 / 1024, 1]))[2] == 0
    # 932 kB x 110 // 100 = 1025 kB: 1 MB
    assert said(rule, records([932 / 1024, 932 / 1024, 1]))[2] == 1


def test_panda_memory_is_per_core_where_cores_differ():
    first = Seen(100, least=2, most=2, latest=False)
    frame = records([4000, 8000, 1, 1, 1], cores=[4, 8, 4, 8, 16])
    # both say 1000 MB per core, x 1.1 = 1100
    assert said(Rule("p", ScoutMemory(first)), frame)[2:] == [4400, 8800, 17600]
    # 1000 and 600 MB per core: the job of 8 cores is like one of them only
    unlike = records([4000, 4800, 1, 1], cores=[4, 8, 8, 4])
    assert said(Rule("p", ScoutMemory(first)), unlike)[2:] == [8800, 4400]
    # 3721 kB on 4 cores are 931 kB per core, x 110 // 100 = 1024 kB; 930.25 were 1023 and 0 MB
    up = Rule("p", ScoutMemory(Seen(75, latest=False), per_core=True))
    assert said(up, records([3721 / 1024, 1], cores=[4, 4]))[1] == 4
    # base 1000: 750 and 875 MB per core; 875 x 1.1 = 962.5, cut to 962
    with_base = said(Rule("p", ScoutMemory(first, base_mb=1000)), frame)
    assert with_base[2:] == [962 * 4 + 1000, 962 * 8 + 1000, 962 * 16 + 1000]
    alike = records([4000, 4001, 1, 1], cores=[4, 4, 4, 8])
    # whole job: 4001 x 1.1 = 4401.1; per core: ceil(4001 x 1024 / 4) kB x 1.1 = 1100.275 MB
    assert said(Rule("p", ScoutMemory(first)), alike)[2:] == [4401, 1100 * 8]
    assert said(Rule("p", ScoutMemory(first, per_core=True)), alike)[2:] == [4400, 8800]


def test_panda_memory_has_a_minimum_and_does_not_see_killed_jobs():
    one = Seen(75, least=1, most=10, latest=False)
    frame = records([100, 7000, 100], censored=[False, True, False])
    assert said(Rule("p", ScoutMemory(one)), frame) == [INF, 110, 110]
    assert said(Rule("p", ScoutMemory(one, minimum_mb=2000)), frame) == [INF, 2000, 2000]
    assert said(named("memory", "largest seen"), frame) == [INF, 100, 7000]


def test_other_memory_rules():
    frame = records([1000, 3000, 2000, 10], requested=500.0, sent=[1, None, 3, 4])
    assert said(named("memory", "requested"), frame) == [500] * 4
    assert said(named("memory", "as sent"), frame) == [1, 500, 3, 4]
    assert said(named("memory", "largest seen"), frame) == [500, 1000, 3000, 3000]
    # k = 0.95 x 1, then 0.95 x 2 = 1.9
    assert said(named("memory", "p95 seen"), frame) == pytest.approx([500, 1000, 2900, 2900])
    # 90th percentile and 15 %, at least 250 MB
    vpa = said(named("memory", "Kubernetes p90 x 1.15"), frame)
    assert vpa == pytest.approx([500, 1150, 1.15 * 2800, 1.15 * 2800])
    assert said(named("memory", "Kubernetes p90 x 1.15"), records([10, 10])) == [INF, 250]
    assert said(named("memory", "largest seen"), records([400, 1, 1], cores=[4, 2, 8])) == [
        INF,
        200,
        800,
    ]


def test_panda_walltime_scales_with_events_cores_and_power():
    one = Seen(95, least=1, most=1, latest=False)
    frame = records(
        [1600, 1, 1, 1],
        cores=[8, 8, 1, 4],
        events=[1000, 2000, 1000, None],
        corepower=[10.0, 10, 20, 12],
    )
    # h = (1600 - 600) x 10 x 8 x 0.9 / 1000 = 72 HS06 s per event, x 1.5 = 108
    # 108 x 2000 / (8 x 10 x 0.9) + 600 = 3600; 108 x 1000 / (1 x 20 x 0.9) + 600 = 6600
    # no events known: 1600 x 1.5
    assert said(Rule("p", ScoutWalltime(one)), frame) == pytest.approx([INF, 3600, 6600, 2400])
    # fractions of a second are dropped: 1600.99 s say the same of events
    longer = records([1600.99, 1], cores=8, events=[1000, 2000], corepower=10.0)
    assert said(Rule("p", ScoutWalltime(one)), longer) == [INF, 3600]


def test_panda_walltime_rounds_up_and_leaves_out_jobs_of_few_events():
    one = Seen(95, least=1, most=1, latest=False)
    rule = Rule("p", ScoutWalltime(one, base_s=0, efficiency_pct=100))
    # 100 x 10 x 1 / 300 x 1.5 = 5 HS06 s per event; 10 events: 5 s; 11: 5.5 cut to 5
    assert said(rule, records([100, 1, 1], events=[300, 10, 11])) == [INF, 5, 5]
    # 100 x 10 / 7 is of a job with fewer than 10 events: not told, and 6 h are not reached
    assert said(rule, records([100, 1], events=[7, 20])) == [INF, INF]
    assert said(rule, records([21600, 1], events=[7, 20])) == [INF, INF]
    # an unknown core power is 10: 5 HS06 s per event, 10 events at 20 HS06 take 2.5 s
    assert said(rule, records([100, 1], events=[300, 10], corepower=[None, 20.0])) == [INF, 2]
    # more than 6 h: 21601 x 10 / 7 x 1.5 = 46287.86, up to 46288; x 20 / 10 = 92576
    assert said(rule, records([21601, 1], events=[7, 20])) == [INF, 92576]
    # of the two scouts the one of few events is ignored (003), and the job after them is none
    two = Seen(95, least=2, most=2, latest=False)
    rule = Rule("p", ScoutWalltime(two, base_s=0, efficiency_pct=100))
    frame = records([900, 100, 900, 1], events=[7, 300, 300, 10])
    assert said(rule, frame) == [INF, INF, 150, 5]
    short = Rule("p", ScoutWalltime(one))  # never longer than the base: nothing grows with events
    assert said(short, records([500, 1])) == [INF, 600]


def test_rules_of_users_by_hand():
    frame = records([100, 300, 200, 50, 60, 70, 80], requested=[250.0, *[1000.0] * 6])
    assert said(named("walltime", "last two"), frame) == [250, 1000, 200, 250, 125, 55, 65]
    largest = said(named("walltime", "largest of last 10"), frame)
    assert largest == [250, 100, 300, 300, 300, 300, 300]
    shares = [100 / 250, 0.3, 0.2, 0.05, 0.06, 0.07]
    later = said(named("walltime", "request x p95 of last 20"), frame)
    assert later[:5] == [250, *[1000] * 4]
    for i in (5, 6):
        assert later[i] == pytest.approx(1000 * percentile(shares[:i], 95)[0])


def test_rules_of_logs_by_hand():
    """One user's jobs, one after the other, that ask for 1000 s."""
    run = [100, 300, 50, 200, 400, 10]
    ends = [sum(run[: i + 1]) for i in range(6)]
    frame = records(
        run, requested=[1000.0] * 6, decided_s=[float(end - r) for end, r in zip(ends, run, strict=True)],
        ended_s=[float(end) for end in ends],
    )  # fmt: skip
    say = {rule.name: said(rule, frame) for rule in deployed.log_rules()}
    last = {name: each[-1] for name, each in say.items()}
    assert last["requested"] == 1000
    assert last["last one"] == 400
    assert last["last two"] == 300
    assert last["mean of the user"] == pytest.approx(210)
    assert last["largest of last 10"] == 400
    assert last["p95 of last 200"] == pytest.approx(380)
    assert last["request x p95 of last 20"] == pytest.approx(380)
    assert say["last one"] == [1000, 100, 300, 50, 200, 400]
    assert say["last two"][:3] == [1000, 1000, 200]
    assert say["p95 of last 200"][:5] == [1000] * 5


@pytest.mark.parametrize("latest", [True, False])
def test_percentiles_of_windows_equal_those_of_lists(latest):
    rng = np.random.default_rng(1)
    n = 400
    values, group = rng.integers(0, 30, n).astype(float), rng.integers(0, 3, n)
    values[rng.random(n) < 0.1] = np.nan
    seen = Seen(82, least=3, most=17, latest=latest)
    events = np.stack([~np.arange(n), np.arange(n)], axis=1).ravel()
    found = seen.percentile(events, group, values)
    for row in range(n):
        past = [
            v
            for v, g in zip(values[:row], group[:row], strict=True)
            if g == group[row] and not np.isnan(v)
        ]
        past = past[-17:] if latest else past[:17]
        assert (found[row] == percentile(past, 82)[0]) if len(past) >= 3 else np.isnan(found[row])


def test_a_rule_goes_on_from_what_it_saw_and_fit_forgets():
    rule = named("memory", "largest seen")
    past, now = records([700, 900], jeditaskid=[1, 2]), records([5, 5], pandaid=[8, 9])
    assert rule.update(past) is rule
    assert rule.predict(now, levels=(0.5, 0.9)).columns == [
        *("pandaid", "seen", "point", "bound_0.5", "bound_0.9")
    ]
    assert rule.predict(now, levels=(0.5,))["point"].to_list() == [700, 700]
    assert rule.replay(now, levels=(0.5,)).seen.tolist() == [1, 2]
    turned = records([700, 900, 800], decided_s=[0.0, 1, 2], ended_s=[30.0, 20, 10])
    last = (
        named("walltime", "last two")
        .update(turned)
        .predict(records([1], pandaid=[9]), levels=(0.5,))
    )
    assert last["point"].item() == 800  # 900 and 700 ended last
    assert rule.fit(past).conformalize(past) is rule
    assert rule.predict(now, levels=(0.5,))["point"].to_list() == [INF, INF]


def test_a_rule_keeps_all_that_it_is_shown_job_by_job():
    rule = named("memory", "largest seen")
    for i in range(70):
        rule.update(records([9000 if i == 40 else 100], pandaid=[i]))
    found = rule.replay(records([1], pandaid=[99]), levels=(0.5,))
    assert (found.point.tolist(), found.seen.tolist()) == ([9000], [70])


def test_what_cannot_be_is_refused():
    with pytest.raises(ConfigError, match=r"rank 101: 0 to 100.*least 0.*most -1"):
        Seen(101, least=0, most=-1)
    with pytest.raises(ConfigError, match=r"quantity 'memry'.*memory"):
        deployed.rules("memry")
    with pytest.raises(ConfigError, match="levels"):
        Rule("x", PercentileMemory(Seen(50))).replay(records([1]), levels=(0.9, 0.5))
    assert "x" in repr(Rule("x", PercentileWalltime(Seen(50))))


RULES = [(q, rule) for q in ("memory", "walltime") for rule in deployed.rules(q, scouts=5)]
RULES += [("walltime", rule) for rule in deployed.log_rules()]


@pytest.mark.parametrize(("quantity", "rule"), RULES, ids=[f"{q} {r.name}" for q, r in RULES])
def test_a_rule_never_looks_ahead(quantity, rule):
    records = random_records(50, seed=3, tasks=2, quantity=quantity)
    assert_never_looks_ahead(rule, records, cuts=3)
