"""Full chain (full-chain.md): the worked cases, the tables, the bare mode of a site."""

from __future__ import annotations

import polars as pl
import pytest

from brokerlab.brokerage import full_chain
from brokerlab.brokerage.rules import ProductionRules
from tests.unit.brokerage.production_jobs.book import cases
from tests.unit.brokerage.production_tasks.world import (
    Found,
    Row,
    ask,
    at,
    decided,
    frames,
    nucleus,
    reasons,
    task,
    the_task,
    world,
    would_help,
)

PARENT = 5

WORKED = [
    (None, None, None, "NA", "NA"),
    (None, "capable", "A", "NA", "NA"),
    ("capable", None, None, "NA", "NAOB"),
    ("capable", "capable", "A", "A", "A"),
    ("capable", "capable", "N", "NA", "NAOB"),
    ("capable", None, "A", "A", "NAOB"),
    ("require", None, None, "AO", "AOB"),
    ("require", "require", "O", "AO", "O"),
    ("only", None, None, "O", "AOB"),
    ("only", "only", "A", "O", "A"),
]


def chain_world(fullchain: str | None, parent: Row | None) -> dict[str, list[Row]]:
    tables = world("N", "A", "O", "B")
    for row, mode in zip(tables["nuclei"], (None, "allow", "only", "allow"), strict=True):
        row["bare_mode"] = mode
    tables["nuclei"][3]["role"] = "satellite"
    tables["nuclei"].append(nucleus("S", role="satellite"))  # no bare mode: plays no part
    tables["tasks"] = [task(fullchain=fullchain, parent_tid=PARENT if parent else None)]
    tables["parent_tasks"] = [parent | {"jeditaskid": PARENT}] if parent else []
    return tables


@cases(
    *(
        (
            ask(
                chain_world(chain, {"fullchain": flag, "nucleus": place} if place else None), rules
            ),
            expected,
        )
        for chain, flag, place, document, production in WORKED
        for rules, expected in (("document", document), ("production", production))
    )
)
def test_the_worked_cases(found: Found, expected: str) -> None:
    passed = found.nuclei.filter(pl.col("check").is_null()).sort("position")
    assert "".join(passed["nucleus"]) == expected
    assert the_task(found)["outcome"] == ("nucleus" if expected else "no_candidates")


def test_the_reason_tells_which_rule() -> None:
    only_a = {"fullchain": "only", "nucleus": "A"}
    rules = ProductionRules(parent_binds="all", bare_satellites=True)
    result = decided(chain_world("only", only_a), rules)
    assert dict(result.nuclei.select("nucleus", "detail").iter_rows()) == {
        "N": "F2",
        "A": "F2",
        "O": "F3",
        "B": "F2",
    }
    assert at(decided(chain_world(None, None)), "O")["detail"] == "F1"


def test_a_parent_nucleus_lost_earlier_leaves_nothing() -> None:
    tables = chain_world("capable", {"fullchain": "capable", "nucleus": "A"})
    tables["storage_endpoints"][1]["space_free"] = 0.0
    result = decided(tables)
    assert the_task(result)["outcome"] == "no_candidates"
    assert the_task(result)["stage"] == "full_chain"
    assert reasons(result)["A"] == "disk_space"
    assert would_help(result) == ["disk_space", "full_chain"]


def test_an_unknown_parent_keeps_the_task_waiting() -> None:
    tables = chain_world("capable", {"fullchain": None, "nucleus": None}) | {"parent_tasks": []}
    rules = ProductionRules(missing_parent_waits=True)
    assert the_task(decided(tables, rules))["outcome"] == "parent_missing"
    tables["tasks"][0]["fullchain"] = None
    assert the_task(decided(tables, rules))["outcome"] == "nucleus"
    tables["tasks"][0] |= {"fullchain": "capable", "parent_tid": tables["tasks"][0]["jeditaskid"]}
    assert the_task(decided(tables, rules))["outcome"] == "nucleus"


def test_the_parents_own_flag_is_a_switch() -> None:
    tables = chain_world("capable", {"fullchain": None, "nucleus": "A"})
    result = decided(tables, ProductionRules(parent_flag_needed=False))
    assert the_task(result)["nucleus"] == "A"
    assert the_task(result)["n_passed"] == 1


@pytest.mark.parametrize("fullchain", [None, "capable", "require", "only", "sometimes"])
@pytest.mark.parametrize("mode", [None, "allow", "only", "never"])
def test_jobs_stay_where_chain_and_nucleus_agree(fullchain: str | None, mode: str | None) -> None:
    expected = fullchain in full_chain.FULL_CHAIN and mode in ("allow", "only")
    frame = pl.DataFrame({"f": [fullchain], "b": [mode]}, schema={"f": pl.String, "b": pl.String})
    lazy = frame.select(c=full_chain.chained_where(pl.col("f"), pl.col("b")))
    assert lazy.item() is expected


def queue(name: str, catchall: str | None, **columns: object) -> Row:
    return {"panda_queue": name, "pandasite": "A", "catchall": catchall} | columns


MIXED = [
    queue("Q3", None),
    queue("Q2", "x,bareNucleus=allow,secondaryNucleus=B"),
    queue("Q1", "bareNucleus=only", type="analysis"),
]


def test_any_queue_gives_the_site_its_mode_or_the_first_one_loaded() -> None:
    """F-6; queues that run no production say nothing."""
    queues = frames({"queues": MIXED})["queues"]
    said = full_chain.bare_modes(queues, rules=ProductionRules()).to_dicts()
    assert said == [{"nucleus": "A", "bare_mode": "allow", "secondary_nucleus": "B", "mixed": True}]
    deployed = full_chain.bare_modes(queues, rules=ProductionRules("production")).to_dicts()
    assert deployed[0]["bare_mode"] is None


def test_a_world_without_modes_reads_them_from_the_queues() -> None:
    tables = world("A", "B", queues=MIXED, tasks=[task(fullchain="require")])
    result = decided(tables)
    assert the_task(result)["nucleus"] == "A"
    assert result.findings["finding"].to_list() == [
        "queues of the site do not agree on bareNucleus"
    ]
    assert the_task(decided(tables, "production"))["outcome"] == "no_candidates"
