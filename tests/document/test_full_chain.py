"""Cases of the section on full chains (002).

Nucleus N is normal, A takes full chains too (allow), O them alone (only); B is a satellite with allow.
"""

from __future__ import annotations

from brokerlab import brokerage
from brokerlab.brokerage import production_jobs, production_tasks
from brokerlab.brokerage.rules import ProductionRules
from tests.brokerage_toys import World
from tests.unit.brokerage.production_jobs import book
from tests.unit.brokerage.production_jobs.book import cases
from tests.unit.brokerage.production_tasks.world import (
    Found,
    Row,
    ask,
    decided,
    task,
    the_task,
    world,
)  # fmt: skip

PARENT = 5
MODES = {"N": None, "A": "allow", "O": "only", "B": "allow"}


def chain(fullchain: str | None, parent: Row | None = None, rules: str = "document") -> Found:
    """Ask which nuclei accept a task."""
    tables = world(*MODES)
    for row in tables["nuclei"]:
        row["bare_mode"] = MODES[row["nucleus"]]
    tables["nuclei"][-1]["role"] = "satellite"
    tables["tasks"] = [task(fullchain=fullchain, parent_tid=PARENT if parent else None)]
    tables["parent_tasks"] = [parent | {"jeditaskid": PARENT}] if parent else []
    return ask(tables, rules)


def accept(found: Found) -> str:
    """Return the nuclei that accept a task."""
    checks = dict(found.nuclei.select("nucleus", "check").iter_rows())
    return "".join(name for name in MODES if checks.get(name, "") is None)


def at(name: str, fullchain: str | None = None) -> Row:
    """Return a parent that was assigned to a nucleus."""
    return {"nucleus": name, "fullchain": fullchain}


def jobs(fullchain: str | None, mode: str | None) -> book.Found:
    """Ask which queues, of the nucleus or of a satellite, may receive the jobs of a task at a nucleus."""
    made = World(fullchain=fullchain).queue("OWN", site="NUC").queue("SAT")
    return book.ask(made.change("nuclei", bare_mode=mode), "document")


def go_to(found: book.Found) -> set[str]:
    return {name for name, check in found.checks().items() if check is None}


@book.told(found=chain("capable", at("A", "capable")), sent=jobs("capable", "allow"))
def test_a_workflow_stays_at_one_nucleus(found, sent):
    """002, Special Brokerage for ATLAS Full-chain: to assign an entire workflow (full-chain) to a specific nucleus."""
    assert accept(found) == "A"
    assert go_to(sent) == {"OWN"}


def named_bare(catchall: str | None) -> Found:
    tables = world("N", tasks=[task(fullchain="require")])
    tables["queues"] = [{"panda_queue": "N_Q", "pandasite": "N", "catchall": catchall}]
    return ask(tables)


@cases(
    (named_bare("x=1,bareNucleus=only"), True),
    (named_bare("bareNucleus=allow"), True),
    (named_bare("bareNucleus=never"), False),
    (named_bare(None), False),
)
def test_what_makes_a_nucleus_bare(found, expected):
    """002, Special Brokerage for ATLAS Full-chain: The nuclei are defined as bare nuclei by adding bareNucleus=only
    or bareNucleus=allow in the catchall field in CRIC.

    Satellites are no nuclei; production lets full chains go to those that have it.
    """
    assert (found.nuclei.filter(nucleus="N")["check"].to_list() == [None]) == expected


@book.told(page=chain("require"), code=chain("require", rules="production"))
def test_satellites_are_no_bare_nuclei(page, code):
    """002, Special Brokerage for ATLAS Full-chain: The nuclei are defined as bare nuclei"""
    assert "B" not in accept(page)
    assert "B" in accept(code)


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


@cases(
    (chain(None), "NA"),
    (chain("require"), "AO"),
)
def test_whom_bare_nuclei_accept(found, expected):
    """002, Special Brokerage for ATLAS Full-chain: The former accepts only full-chain workflows while the latter
    accepts normal workflows in addition to full-chain workflows.
    """
    assert accept(found) == expected


@cases(
    (chain("only"), "O"),
    (chain("only", rules="production"), "AOB"),
)
def test_only(found, expected):
    """002, Special Brokerage for ATLAS Full-chain: The value can be only to be assigned to a nucleus with
    bareNucleus=only
    """
    assert accept(found) == expected


@cases(
    (chain("require"), "AO"),
    (chain("require", at("O", "require")), "AO"),
    (chain("require", at("O", "require"), "production"), "O"),
)
def test_require(found, expected):
    """002, Special Brokerage for ATLAS Full-chain: require to be assigned to a nucleus with bareNucleus=only or
    bareNucleus=allow

    Whatever the parent; in production it binds every full chain.
    """
    assert accept(found) == expected


@cases(
    *(
        (chain("capable", at(name, flag)), name)
        for flag in (None, "capable", "require")
        for name in ("A", "O")
    )
)
def test_capable_follows_a_parent_at_a_bare_nucleus(found, expected):
    """002, Special Brokerage for ATLAS Full-chain: When capable is set, the task is assigned to the same nucleus as
    that of the parent task only if the parent task was assigned to a bare nucleus.

    Whether or not the parent is full chain itself, which production asks for.
    """
    assert accept(found) == expected


@cases(
    *(
        (chain("capable", at("A", flag), "production"), flag is not None)
        for flag in (None, "capable", "require")
    )
)
def test_capable_follows_a_full_chain_in_production(found, expected):
    """002, Special Brokerage for ATLAS Full-chain: When capable is set, the task is assigned to the same nucleus"""
    assert (accept(found) == "A") == expected


@cases(
    (chain(None), "NA"),
    *(
        (chain("capable", parent, rules), expected)
        for parent in (None, at("N", "capable"), at("N"))
        for rules, expected in (("document", "NA"), ("production", "NAOB"))
    ),
)
def test_capable_is_ignored_otherwise(found, expected):
    """002, Special Brokerage for ATLAS Full-chain: Otherwise, capable is ignored and the task can go to a normal
    nucleus.

    It is an ordinary task then; in production bare nuclei take it too.
    """
    assert accept(found) == expected


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


@cases(
    *(
        (jobs(fullchain, mode), {"OWN"})
        for mode in ("only", "allow")
        for fullchain in ("only", "require", "capable")
    )
)
def test_jobs_of_a_full_chain(found, expected):
    """002, Special Brokerage for ATLAS Full-chain: Once a task with the fullChain parameter is assigned to a bare
    nucleus, the job brokerage sends jobs only to the queues associated to the nucleus.
    """
    assert go_to(found) == expected


@cases(
    *(
        (jobs(fullchain, mode), {"OWN", "SAT"})
        for fullchain, mode in ((None, "allow"), ("capable", None), (None, None))
    )
)
def test_jobs_of_other_tasks(found, expected):
    """002, Special Brokerage for ATLAS Full-chain: if a normal task is assigned to a bare nucleus with
    bareNucleus=allow or a task with fullChain = capable is assigned to a normal nucleus, the job brokerage sends jobs to
    the queues associated to satellites in addition to the nucleus.
    """
    assert go_to(found) == expected
