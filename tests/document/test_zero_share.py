"""Cases of the section on ``fairsharepolicy`` (001)."""

from __future__ import annotations

import pytest

from brokerlab.matching import MatchingRules, zero_share

PRODUCTION = MatchingRules("production")
TESTS = ("prod_test", "validation", "ptest", "rc_test", "rc_test2", "rc_alrb")
TYPES = ("evgen", "simul", "reprocessing", "group", "deriv", "pile", "merge")


def rejects(
    policy: str,
    processingtype: str | None = None,
    *,
    group: str | None = None,
    gshare: str | None = None,
    priority: int | None = None,
    merging: bool = False,
    rules: MatchingRules | None = None,
) -> bool:
    task = (processingtype, group, gshare, priority)
    return zero_share(policy, *task, merging=merging, rules=rules or MatchingRules()).zero_share


@pytest.mark.parametrize("value", ["1%", "50%", "100"])
def test_shares_are_no_shares(value):
    """001, Zero Share (or FairSharePolicy in CRIC): Despite having shares in the name, the current
    implementation simply accepts or rejects jobs based on the site’s policy.
    """
    assert not rejects(f"type=evgen:{value},type=any:0%", "evgen")
    assert rejects(f"type=evgen:{value},type=any:0%", "simul")


def test_subpolicies_are_parted_by_commas():
    """001, Zero Share (or FairSharePolicy in CRIC): a concatenation of subpolicies"""
    policy = "type=evgen:0%,type=simul:0%,type=pile:0%"
    assert [rejects(policy, kind) for kind in ("evgen", "simul", "pile", "deriv")] == [
        *(True, True, True),
        False,
    ]


def test_spaces_break_a_policy():
    """001, Zero Share (or FairSharePolicy in CRIC): Unwanted spaces can break the matching of the policies.

    With a space the key is unknown and restricts nothing.
    """
    assert not rejects("type=evgen:100%,type=simul:0%", "pile")
    assert rejects("type=evgen:100%, type=simul:0%", "pile")


def test_the_first_that_applies_ends_it():
    """001, Zero Share (or FairSharePolicy in CRIC): Brokerage will run through the subpolicies and end *at
    the first one* that applies either positively or negatively.
    """
    assert not rejects("type=simul:100%,type=simul:0%", "simul")
    assert rejects("type=simul:0%,type=simul:100%", "simul")


@pytest.mark.parametrize(
    ("policy", "task", "other"),
    [
        ("priority>5:0", {"priority": 6}, {"priority": 5}),
        ("type=pile:0", {"processingtype": "pile"}, {"processingtype": "evgen"}),
        ("group=A:0", {"group": "A"}, {"group": "B"}),
        ("gshare=A:0", {"gshare": "A"}, {"gshare": "B"}),
    ],
)
def test_four_keys(policy, task, other):
    """001, Zero Share (or FairSharePolicy in CRIC): Where KEY is one of: priority, type, group, gshare."""
    assert rejects(policy, **task)
    assert not rejects(policy, **other)


@pytest.mark.parametrize(
    ("operator", "rejected"),
    [
        (">", [501]),
        ("<", [499]),
        (">=", [500, 501]),
        ("<=", [499, 500]),
        ("==", [500]),
        ("!=", [499, 501]),
    ],
)
def test_priority_takes_any_comparison(operator, rejected):
    """001, Zero Share (or FairSharePolicy in CRIC): In the FILTER you can use any comparison operator"""
    policy = f"priority{operator}500:0"
    assert [p for p in (499, 500, 501) if rejects(policy, priority=p)] == rejected


@pytest.mark.parametrize("priority", [100, 900])
def test_priority_is_skipped_for_merge_jobs(priority):
    """001, Zero Share (or FairSharePolicy in CRIC): The priority check can be skipped, which is currently
    done for merge jobs.
    """
    assert not rejects("priority>500:0", "merge", priority=priority, merging=True)
    assert rejects("priority>500:0", "merge", priority=priority, merging=True, rules=PRODUCTION)
    assert rejects("priority>500:0", "merge", priority=priority) == (priority == 900)
    alone = MatchingRules(merge_priority="match")
    assert rejects("priority>500:0", "merge", priority=priority, merging=True, rules=alone)


@pytest.mark.parametrize("kind", TYPES)
def test_valid_types(kind):
    """001, Zero Share (or FairSharePolicy in CRIC): The valid types are defined as: evgen, simul,
    reprocessing, test, group, deriv, pile, merge.
    """
    assert rejects(f"type={kind}:0%", kind)
    assert [other for other in TYPES if rejects(f"type={kind}:0%", other)] == [kind]


@pytest.mark.parametrize("kind", TESTS)
def test_types_of_tests(kind):
    """001, Zero Share (or FairSharePolicy in CRIC): test resolves to the types prod_test, validation,
    ptest, rc_test, rc_test2, rc_alrb.
    """
    assert rejects("type=test:0%", kind)
    assert not rejects("type=test:100%,type=any:0%", kind)
    assert not rejects("type=test:0%", kind, rules=PRODUCTION)
    assert not rejects("type=test:0%", kind, rules=MatchingRules(tests_exempt=True))


def test_any_group():
    """001, Zero Share (or FairSharePolicy in CRIC): There is no restriction on the groups that can be used."""
    assert rejects("group=AnyGroup:0", group="AnyGroup")


def test_any_share():
    """001, Zero Share (or FairSharePolicy in CRIC): There is no restriction on the global shares that can be
    used.
    """
    assert rejects("gshare=Any Share:0", gshare="Any Share")


def test_wildcards_and_regular_expressions():
    """001, Zero Share (or FairSharePolicy in CRIC): For type, group and gshare, you can use the wildcard *
    and other regular expressions.
    """
    assert rejects("type=s*:0", "simul")
    assert rejects("group=AP_*:0", group="AP_Susy")
    assert rejects("gshare=(A|B):0", gshare="B")
    assert not rejects("gshare=(A|B):0", gshare="AB")


def test_the_sign_of_per_cent():
    """001, Zero Share (or FairSharePolicy in CRIC): The VALUE is expressed as a percentage with or without
    the % sign
    """
    for value in ("0", "0%"):
        assert rejects(f"type=evgen:{value}", "evgen")
    for value in ("100", "100%"):
        assert not rejects(f"type=evgen:{value},type=any:0", "evgen")


def test_values_other_than_zero():
    """001, Zero Share (or FairSharePolicy in CRIC): the value, except for 0, does not make a difference"""
    found = [rejects(f"type=evgen:{value}%,type=any:0", "evgen") for value in (0, 1, 99)]
    assert found == [True, False, False]


@pytest.mark.parametrize(("kind", "rejected"), [("evgen", False), ("simul", False), ("pile", True)])
def test_example_of_two_types(kind, rejected):
    """001, Zero Share (or FairSharePolicy in CRIC): the site accepts evgen and simul, but has zero share for
    anything else.
    """
    assert rejects("type=evgen:100%,type=simul:100%,type=any:0%", kind) == rejected


@pytest.mark.parametrize(
    ("kind", "priority", "rejected"),
    [("simul", 501, True), ("simul", 500, False), ("evgen", 500, True)],
)
def test_example_of_a_priority(kind, priority, rejected):
    """001, Zero Share (or FairSharePolicy in CRIC): the site will reject tasks with currentPriority above
    500, will accept simul tasks and reject anything else.
    """
    policy = "priority>500:0,type=simul:100%,type=any:0%"
    assert rejects(policy, kind, priority=priority) == rejected


def test_example_without_any():
    """001, Zero Share (or FairSharePolicy in CRIC): is not rejecting other types, so anything will run on
    this site.
    """
    assert not any(rejects("type=evgen:100%,type=simul:100%", kind) for kind in TYPES + TESTS)


def test_example_of_a_priority_that_comes_too_late():
    """001, Zero Share (or FairSharePolicy in CRIC): the priority filter will not be applied if the task is
    evgen or simul
    """
    policy = "type=evgen:100%,type=simul:100%,type=any:0%,priority>500:0%"
    assert not rejects(policy, "simul", priority=900)
    assert rejects(policy, "pile", priority=1)


def test_example_of_two_keys():
    """001, Zero Share (or FairSharePolicy in CRIC): accept evgen tasks, reject other types and should not
    even get to the gshare subpolicies.
    """
    policy = "type=evgen:100%,type=any:0%,gshare=Express:100%,gshare=any:100%"
    assert not rejects(policy, "evgen", gshare="Other")
    assert rejects(policy, "simul", gshare="Express")


def test_example_of_two_keys_in_order():
    """001, Zero Share (or FairSharePolicy in CRIC): will accept tasks with processingType=evgen or
    gshare=Express and reject everything else.
    """
    policy = "type=evgen:100%,gshare=Express:100%,type=any:0%,gshare=any:100%"
    assert not rejects(policy, "evgen", gshare="Other")
    assert not rejects(policy, "simul", gshare="Express")
    assert rejects(policy, "simul", gshare="Other")


def test_example_of_a_wildcard():
    """001, Zero Share (or FairSharePolicy in CRIC): if you want to map the same subpolicy for Express and
    Express Analysis.
    """
    policy = "gshare=Express*:0%,gshare=any:100%"
    found = [rejects(policy, gshare=share) for share in ("Express", "Express Analysis", "Other")]
    assert found == [True, True, False]


def test_example_of_a_list_of_groups():
    """001, Zero Share (or FairSharePolicy in CRIC): group=(AP_Higgs|AP_Susy|AP_Exotics|Higgs):0% to accept a
    list of groups.

    A slip of the page: the value 0 rejects these groups.
    """
    policy = "group=(AP_Higgs|AP_Susy|AP_Exotics|Higgs):0%"
    groups = ("AP_Higgs", "AP_Susy", "AP_Exotics", "Higgs", "AP_Higgs2")
    assert [rejects(policy, group=group) for group in groups] == [*(True,) * 4, False]
