"""Full chain in the job brokerage (rows 40 and 41; full-chain.md 3).

Every test is made from the words that it quotes: of the page where a quotation is not marked, else of the chapter.
"""

from __future__ import annotations

import pytest

from tests.brokerage_toys import World
from tests.unit.brokerage.production_jobs.book import Found, ask, told

OUTSIDE, ONLY = "full_chain_outside", "full_chain_only"


def chained(fullchain: str | None, mode: str | None, **task: object) -> Found:
    """Ask about queues of a nucleus of that mode, of a satellite, and of a nucleus for full chains only."""
    world = World(fullchain=fullchain, **task).queue("OWN", site="NUC").queue("SAT")
    world.queue("BARE", catchall="bareNucleus=only").queue("SHARING").queue(
        "ALLOW", catchall="bareNucleus=allow"
    )
    place = {"panda_queue": "OWN", "direction": "input", "ddm_endpoint_name": "SHARING_DATADISK"}
    return ask(world.add("queue_endpoints", **place).change("nuclei", bare_mode=mode))  # fmt: skip


OPEN = {"OWN": None, "SAT": None, "SHARING": None, "ALLOW": None, "BARE": ONLY}
CLOSED = {"OWN": None, **dict.fromkeys(("SAT", "SHARING", "ALLOW", "BARE"), OUTSIDE)}


@pytest.mark.parametrize(
    "found",
    [chained(chain, mode) for chain in ("only", "require", "capable") for mode in ("only", "allow")]
    + [
        chained("require", "allow", is_merging=True),
        chained("require", "allow", site="OWN,SAT,SHARING,ALLOW,BARE"),
    ],
)
def test_a_full_chain_stays_at_its_bare_nucleus(found: Found) -> None:
    """ "Once a task with the fullChain parameter is assigned to a bare nucleus, the job brokerage sends jobs only to the queues associated to the nucleus." Chapter: "queues merely sharing storage do not count"; "Merge chunks and pre-assigned queues are **not** exempt"."""
    assert found.checks() == CLOSED


@pytest.mark.parametrize(
    "found",
    [
        *(chained(None, mode) for mode in (None, "allow", "only")),
        *(chained(chain, None) for chain in ("capable", "require", "only")),
        chained("whatever", "allow"),
        chained("require", "whatever"),
    ],
)
def test_other_tasks_go_to_satellites_too(found: Found) -> None:
    """ "if a normal task is assigned to a bare nucleus with bareNucleus=allow or a task with fullChain = capable is assigned to a normal nucleus, the job brokerage sends jobs to the queues associated to satellites in addition to the nucleus"; "bareNucleus=only ... accepts only full-chain workflows"."""
    assert found.checks() == OPEN


def mixed() -> World:
    """Return a nucleus for full chains only, one of whose queues does not say so."""
    world = (
        World().queue("OWN", site="NUC").queue("CLOSED", site="NUC", catchall="bareNucleus=only")
    )
    return world.queue("SAT").change("nuclei", bare_mode="only")


@told(found=ask(mixed()))
def test_queues_of_a_nucleus_for_full_chains_take_no_ordinary_task(found: Found) -> None:
    """Chapter 3: "if it happens (assigned by hand): satellites, and nucleus queues without bareNucleus=only"."""
    assert found.checks() == {"OWN": None, "CLOSED": ONLY, "SAT": None}


def elsewhere_bare() -> World:
    """Return an ordinary nucleus, and another one for full chains only."""
    world = World(fullchain="require").queue("OWN", site="NUC").queue("SAT")
    world.nucleus("BARE", bare_mode="only")
    return world.queue("THERE", site="BARE", catchall="bareNucleus=only")


@told(found=ask(elsewhere_bare()))
def test_the_chain_needs_the_mode_of_the_nucleus_not_of_a_queue(found: Found) -> None:
    """Chapter 3: "chained := task.fullchain set and the task's nucleus has a bare mode"."""
    assert found.checks() == {"OWN": None, "SAT": None, "THERE": ONLY}
