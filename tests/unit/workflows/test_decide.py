"""The grouping decision: rule sets, every switch, padding, and impossible estimates."""

import math
from dataclasses import replace

import pytest

from brokerlab.errors import ConfigError, DataError
from brokerlab.workflows.decide import Scene, decide, group_levels, padded, ratio, walltime
from brokerlab.workflows.queues import constant
from brokerlab.workflows.rules import PilotRules
from tests.unit.workflows.wf_toys import chain, dag
from tests.wait_functions import linear, stepped


def by_walltime(steps):
    return stepped(steps, of=lambda n, w: w)  # noqa: ARG005


FALLING = {500: 250, 1000: 700, 1500: 900, math.inf: 650}


def scene(flow, wait, rules="notes", *, ear=0.0, machine=10, **switches):
    return Scene(
        dag=flow,
        levels=flow.levels,
        machine=machine,
        wait=wait,
        rules=PilotRules(rules, **switches),
        ear=ear,
    )


def test_notes_stop_at_the_first_rise_and_global_takes_the_least():
    flow = chain(500, 500, 500, 5000)
    assert group_levels(scene(flow, by_walltime(FALLING)))[0] == 1
    assert group_levels(scene(flow, by_walltime(FALLING), search="global"))[0] == 4


def test_whole_dag_rule_is_the_wrong_way_round_in_the_notes():
    flow, long, short = chain(100, 200, 300), constant(1500), constant(50)
    assert decide(scene(flow, long, "notes")).mode == "pilot"
    assert decide(scene(flow, long, "paper")).mode == "individual"
    assert decide(scene(flow, short, "notes")).mode == "individual"
    assert decide(scene(flow, short, "paper")).mode == "pilot"
    literal = decide(scene(flow, long, "paper", whole_dag="long_wait_one_job"))
    assert (literal.mode, literal.whole) == ("pilot", True)


def test_at_exact_equality_paper_sends_one_pilot_and_notes_go_individual():
    flow, wait = chain(100, 200, 300), constant(1200)
    assert decide(scene(flow, wait, "paper")).mode == "pilot"
    assert decide(scene(flow, wait, "notes")).mode == "individual"


def test_hosts_are_the_widest_level_of_the_group_capped_by_the_machine():
    flow = dag(dict.fromkeys("abcdef", 10), [("a", x) for x in "bcdef"])
    wait = linear(base=1, per_host=100)
    assert [scene(flow, wait).hosts(k) for k in (1, 2)] == [1, 5]
    assert scene(flow, wait, machine=3).hosts(2) == 3
    assert scene(flow, wait, pilot_hosts="dag_width").hosts(1) == 5


def test_best_hosts_take_the_fewest_of_equal_ones():
    flow = dag(dict.fromkeys("abcd", 10))
    same = decide(scene(flow, constant(0), "paper", pilot_hosts="best"))
    assert same.hosts == 4
    dear = decide(scene(flow, linear(per_host=1000), "paper", pilot_hosts="best", whole_dag="long_wait_one_job"))  # fmt: skip
    assert dear.hosts == 1


def test_hidden_waits_are_exempt_in_the_paper():
    flow = chain(1000, 1000, 1000)
    wait = by_walltime({1000: 100, 2000: 1900, math.inf: 9000})
    assert group_levels(scene(flow, wait, "paper", ear=2000, padding="none"))[0] == 2
    bare = scene(flow, wait, "paper", ear=2000, padding="none", hidden_exempt=False)
    assert group_levels(bare)[0] == 1


def test_groups_that_wait_longer_than_they_run_are_passed_over_but_by_the_notes():
    flow = chain(100, 100, 100)
    wait = by_walltime({100: 150, math.inf: 160})
    assert [c.levels for c in group_levels(scene(flow, wait, "peer"))[1]] == [1, 2, 3]
    assert group_levels(scene(flow, wait, "peer"))[0] == 3
    taken, looked_at = group_levels(scene(flow, by_walltime({100: 150, math.inf: 999}), "peer"))
    assert (taken, len(looked_at)) == (3, 3)  # nothing is viable: all levels, at last


def test_a_first_group_rejected_at_once_leads_to_the_whole_or_to_what_is_before_it():
    flow = chain(100, 1000, 3000)
    wait = by_walltime({100: 200, 1100: 1000, math.inf: 1000})
    assert group_levels(scene(flow, wait, "paper"))[0] == 0
    assert group_levels(scene(flow, wait, "paper", first_rejected="before"))[0] == 1


def test_ties_go_on_or_stop():
    flow, wait = chain(100, 100, 100), linear(per_second=0.5)
    assert group_levels(scene(flow, wait))[0] == 3
    assert group_levels(scene(flow, wait, tie="stops"))[0] == 1


def test_the_whole_bounds_every_group_where_ties_stop_too():
    """Ratios 0, then 0.9, then 1 of the third level; the whole's is 0.5: hidden waits are exempt, the third is not."""
    waiting = {100: 20, 200: 180, 300: 190, math.inf: 200}
    given = {"ear": 185, "padding": "none"}
    usual = scene(chain(100, 100, 100, 100), by_walltime(waiting), "paper", **given)
    assert group_levels(usual)[0] == 2
    assert (
        group_levels(replace(usual, rules=PilotRules("paper", padding="none", tie="stops")))[0] == 2
    )


def test_barriers_between_levels_make_groups_longer():
    flow = dag({"a": 100, "b": 400, "c": 300, "d": 50}, [("a", "c"), ("b", "d")])
    assert scene(flow, constant(0)).run_time(2, 2) == 450
    assert scene(flow, constant(0), exec="barrier").run_time(2, 2) == 700


def test_ratios_of_nothing():
    assert (ratio(0, 0), ratio(5, 0), ratio(5, 10)) == (0.0, math.inf, 0.5)


@pytest.mark.parametrize("answer", [-1.0, math.nan, math.inf])
def test_impossible_estimates_are_refused_with_their_request(answer):
    with pytest.raises(DataError, match="1 hosts for 100 s"):
        decide(scene(chain(100), constant(answer)))


def test_nothing_left_is_nothing_to_decide():
    with pytest.raises(ConfigError, match="nothing is left"):
        decide(scene(dag({}), constant(1)))


def test_padding_covers_the_gap_and_no_more_where_the_pilot_would_wait():
    rules = PilotRules("paper")
    assert padded(1, 1000, 0, constant(10), rules) == 1000
    assert padded(1, 1000, 500, constant(600), rules) == 1000
    assert padded(1, 1000, 5000, constant(500), rules) == pytest.approx(5500)


def test_padding_ends_with_an_estimate_that_swings():
    def swings(n, request):
        return 0.0 if int(request) % 2 else 100.0

    found = padded(1, 1000, 5000, swings, PilotRules("paper"))
    assert 1000 < found < 7000


@pytest.mark.parametrize("padding", ["slack", "bisection"])
def test_the_searches_of_the_peer_leave_a_small_gap(padding):
    rules, wait = PilotRules("peer", padding=padding), linear(base=100, per_second=0.1)
    request = padded(1, 1000, 5000, wait, rules)
    assert wait(1, request) + request >= 5000 + 1000 - 600


def test_walltimes():
    assert walltime(99.2, PilotRules()) == 100
    assert [walltime(x, PilotRules("peer")) for x in (500, 5500)] == [600, 6060]


def test_switches_are_checked_all_at_once():
    with pytest.raises(ConfigError, match=r"rules='papr': did you mean 'paper'.*paddings: no such switch.*margin=0.5"):  # fmt: skip
        PilotRules("papr", paddings="none", margin=0.5)
    with pytest.raises(ConfigError, match="whole number"):
        PilotRules(max_jobs=1.5)


@pytest.mark.parametrize("name", PilotRules.SWITCHES)
def test_every_switch_can_be_set_to_everything_that_it_allows(name):
    choice = PilotRules.SWITCHES[name]
    values = choice.allowed or ((True, False) if isinstance(choice.values[0], bool) else (2,))
    for value in values:
        for rules in PilotRules.NAMES:
            chosen = PilotRules(rules, **{name: value})
            assert getattr(chosen, name) == value
            usual = choice.values[PilotRules.NAMES.index(rules)]
            assert chosen.changed == ({} if value == usual else {name: value})
            seen = scene(chain(100, 200, 300), linear(base=50, per_second=0.2), ear=700)
            decide(replace(seen, rules=chosen))


def test_every_row_of_the_chapters_table_has_its_switch():
    assert {f"W{i}" for i in range(1, 17)} <= {
        choice.source for choice in PilotRules.SWITCHES.values()
    }
