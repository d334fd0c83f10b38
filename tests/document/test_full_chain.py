"""Cases of the section on full chains (002).

Nucleus N is normal, A takes full chains too (allow), O them alone (only); B is a satellite with allow.
"""

from __future__ import annotations

import pytest

from brokerlab import brokerage
from brokerlab.brokerage import production_jobs, production_tasks
from brokerlab.brokerage.rules import ProductionRules
from tests.brokerage_toys import World, reasons
from tests.unit.brokerage.production_tasks.world import Row, decided, task, the_task, world

PARENT = 5
MODES = {"N": None, "A": "allow", "O": "only", "B": "allow"}


def accept(fullchain: str | None, parent: Row | None = None, rules: str = "document") -> str:
    """Return the nuclei that accept a task."""
    tables = world(*MODES)
    for row in tables["nuclei"]:
        row["bare_mode"] = MODES[row["nucleus"]]
    tables["nuclei"][-1]["role"] = "satellite"
    tables["tasks"] = [task(fullchain=fullchain, parent_tid=PARENT if parent else None)]
    tables["parent_tasks"] = [parent | {"jeditaskid": PARENT}] if parent else []
    result = decided(tables, rules)
    checks = dict(result.nuclei.select("nucleus", "check").iter_rows())
    return "".join(name for name in MODES if checks.get(name, "") is None)


def at(name: str, fullchain: str | None = None) -> Row:
    """Return a parent that was assigned to a nucleus."""
    return {"nucleus": name, "fullchain": fullchain}


def jobs_go_to(fullchain: str | None, mode: str | None) -> set[str]:
    """Return the queues, of the nucleus or of a satellite, that may receive the jobs of a task at a nucleus."""
    made = World(fullchain=fullchain).queue("OWN", site="NUC").queue("SAT")
    checks = reasons(made.change("nuclei", bare_mode=mode).decided())
    return {name for name, check in checks.items() if check is None}


def test_a_workflow_stays_at_one_nucleus():
    """002, Special Brokerage for ATLAS Full-chain: to assign an entire workflow (full-chain) to a specific nucleus."""
    assert accept("capable", at("A", "capable")) == "A"
    assert jobs_go_to("capable", "allow") == {"OWN"}


@pytest.mark.parametrize(
    ("catchall", "chained"),
    [("x=1,bareNucleus=only", True), ("bareNucleus=allow", True), ("bareNucleus=never", False), (None, False)],
)  # fmt: skip
def test_what_makes_a_nucleus_bare(catchall, chained):
    """002, Special Brokerage for ATLAS Full-chain: The nuclei are defined as bare nuclei by adding bareNucleus=only
    or bareNucleus=allow in the catchall field in CRIC.

    Satellites are no nuclei; production lets full chains go to those that have it.
    """
    tables = world("N", tasks=[task(fullchain="require")])
    tables["queues"] = [{"panda_queue": "N_Q", "pandasite": "N", "catchall": catchall}]
    found = decided(tables).nuclei.filter(nucleus="N")["check"].to_list()
    assert (found == [None]) == chained
    assert "B" not in accept("require")
    assert "B" in accept("require", rules="production")


def test_what_makes_a_nucleus_bare_for_jobs():
    """002, Special Brokerage for ATLAS Full-chain: The nuclei are defined as bare nuclei by adding bareNucleus=only
    or bareNucleus=allow in the catchall field in CRIC.

    Queues that say nothing of their site are those that the nucleus lists.
    """
    queues = [{"panda_queue": "OWN", "catchall": "bareNucleus=allow"}, {"panda_queue": "SAT"}]
    nuclei = [{"nucleus": "N", "queues": ["OWN"]}]
    tasks = [{"nucleus": "N", "fullchain": chain} for chain in ("require", None)]
    found = production_jobs.decide(brokerage.world(tasks, queues, nuclei=nuclei)).queues
    checks = found.select("jeditaskid", "panda_queue", "check").rows()
    assert checks == [
        (1, "OWN", None),
        (1, "SAT", "full_chain_outside"),
        (2, "OWN", None),
        (2, "SAT", None),
    ]


def test_kinds_of_full_chains_need_no_table_of_parents():
    """002, Special Brokerage for ATLAS Full-chain: The former accepts only full-chain workflows"""
    modes = [{"nucleus": name, "bare_mode": mode} for name, mode in MODES.items()]
    made = brokerage.world([{}], brokerage="production-tasks", nuclei=modes)
    found = production_tasks.decide(made)
    assert found.nuclei.filter(nucleus="O")["check"].to_list() == ["full_chain"]
    assert found.world.unasked["parent_tasks"] == ("parent_missing",)


def test_whom_bare_nuclei_accept():
    """002, Special Brokerage for ATLAS Full-chain: The former accepts only full-chain workflows while the latter
    accepts normal workflows in addition to full-chain workflows.
    """
    assert accept(None) == "NA"
    assert accept("require") == "AO"


def test_only():
    """002, Special Brokerage for ATLAS Full-chain: The value can be only to be assigned to a nucleus with
    bareNucleus=only
    """
    assert accept("only") == "O"
    assert accept("only", rules="production") == "AOB"


def test_require():
    """002, Special Brokerage for ATLAS Full-chain: require to be assigned to a nucleus with bareNucleus=only or
    bareNucleus=allow

    Whatever the parent; in production it binds every full chain.
    """
    assert accept("require") == "AO"
    assert accept("require", at("O", "require")) == "AO"
    assert accept("require", at("O", "require"), "production") == "O"


@pytest.mark.parametrize("flag", [None, "capable", "require"])
def test_capable_follows_a_parent_at_a_bare_nucleus(flag):
    """002, Special Brokerage for ATLAS Full-chain: When capable is set, the task is assigned to the same nucleus as
    that of the parent task only if the parent task was assigned to a bare nucleus.

    Whether or not the parent is full chain itself, which production asks for.
    """
    assert accept("capable", at("A", flag)) == "A"
    assert accept("capable", at("O", flag)) == "O"
    assert (accept("capable", at("A", flag), "production") == "A") == (flag is not None)


@pytest.mark.parametrize("parent", [None, at("N", "capable"), at("N")])
def test_capable_is_ignored_otherwise(parent):
    """002, Special Brokerage for ATLAS Full-chain: Otherwise, capable is ignored and the task can go to a normal
    nucleus.

    It is an ordinary task then; in production bare nuclei take it too.
    """
    assert accept("capable", parent) == accept(None) == "NA"
    assert accept("capable", parent, "production") == "NAOB"


def test_a_parent_that_is_not_known():
    """002, Special Brokerage for ATLAS Full-chain: Otherwise, capable is ignored and the task can go to a normal
    nucleus.

    Production lets the task wait.
    """
    tables = world("N", tasks=[task(fullchain="capable", parent_tid=PARENT)], parent_tasks=[])
    assert the_task(decided(tables))["outcome"] == "nucleus"
    waits = ProductionRules(missing_parent_waits=True)
    for rules in (waits, "production"):
        assert the_task(decided(tables, rules))["outcome"] == "parent_missing"


@pytest.mark.parametrize("fullchain", ["only", "require", "capable"])
@pytest.mark.parametrize("mode", ["only", "allow"])
def test_jobs_of_a_full_chain(fullchain, mode):
    """002, Special Brokerage for ATLAS Full-chain: Once a task with the fullChain parameter is assigned to a bare
    nucleus, the job brokerage sends jobs only to the queues associated to the nucleus.
    """
    assert jobs_go_to(fullchain, mode) == {"OWN"}


@pytest.mark.parametrize(("fullchain", "mode"), [(None, "allow"), ("capable", None), (None, None)])
def test_jobs_of_other_tasks(fullchain, mode):
    """002, Special Brokerage for ATLAS Full-chain: if a normal task is assigned to a bare nucleus with
    bareNucleus=allow or a task with fullChain = capable is assigned to a normal nucleus, the job brokerage sends jobs to
    the queues associated to satellites in addition to the nucleus.
    """
    assert jobs_go_to(fullchain, mode) == {"OWN", "SAT"}
