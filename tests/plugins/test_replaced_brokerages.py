"""Every brokerage of ours can be replaced: checks, weight, tables and facts of one's own, in each of the three."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import dataframely as dy
import polars as pl
import pytest

from brokerlab.brokerage import explain, explain_task, funnel, plugins
from brokerlab.brokerage.analysis_jobs.brokerage import BROKERAGE as ANALYSIS
from brokerlab.brokerage.analysis_jobs.checks import queue_checks as analysis_checks
from brokerlab.brokerage.engine.brokerage import Brokerage
from brokerlab.brokerage.engine.decide import redecide
from brokerlab.brokerage.engine.lookup import Known, Lookup
from brokerlab.brokerage.engine.own import inserted, without
from brokerlab.brokerage.engine.rule import Rule, setting
from brokerlab.brokerage.production_jobs.brokerage import BROKERAGE as JOBS
from brokerlab.brokerage.production_jobs.checks import queue_checks
from brokerlab.brokerage.production_tasks.brokerage import BROKERAGE as NUCLEI
from brokerlab.brokerage.production_tasks.ranking import checks as nucleus_checks
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config
from tests.brokerage_toys import World as JobWorld
from tests.unit.brokerage.analysis_jobs.toys import World as UserWorld
from tests.unit.brokerage.production_tasks.world import endpoint, nucleus
from tests.unit.brokerage.production_tasks.world import frames as nuclei_frames
from tests.unit.brokerage.production_tasks.world import world as nuclei_world


class Weather(dy.Schema):
    """How warm it is at a place."""

    place = dy.String(nullable=False)
    celsius = dy.Float64()


@dataclass(frozen=True)
class Ours:
    """One of our brokerages, in a world of places A, B and C of which C is refused by ``check``.

    Attributes:
        brokerage: It.
        tables: The world.
        checks: The checks that may be replaced.
        check: The check that refuses C.
        first: The check that ours follows.
        where: Place of :attr:`key`.
        key: A key that no rule in the way reads.
        missing: A table whose absence leaves the decision as it is.
    """

    brokerage: Brokerage[Any, Any]
    tables: Callable[[], dict[str, Any]]
    checks: Callable[[Any], tuple[Rule, ...]]
    check: str
    first: str
    where: str
    key: str


def of_jobs() -> dict[str, Any]:
    return JobWorld().queue("A").queue("B").queue("C", pilots=0).frames()


def of_users() -> dict[str, Any]:
    world = UserWorld()
    for name in "AB":
        world.queue(name)
    world.queue("C", status="offline")
    return {name: pl.DataFrame(rows) for name, rows in world.rows.items()}


def of_nuclei() -> dict[str, Any]:
    rows = [nucleus("A"), nucleus("B"), nucleus("C", state="OFFLINE")]
    disks = [endpoint(f"{name}_DATADISK") for name in "ABC"]
    return nuclei_frames(nuclei_world(nuclei=rows, storage_endpoints=disks))


OURS = {
    "jobs": Ours(
        JOBS, of_jobs, queue_checks, "no_pilot", "status_offline", "jedi/jobbroker",
        "NUM_CUTOFF_TO_MOVE_INPUT",
    ),
    "analysis": Ours(
        ANALYSIS, of_users, analysis_checks, "status", "status", "jedi/anal_jobbroker",
        "OVERLOAD_MIN_QUEUE",
    ),
    "nuclei": Ours(
        NUCLEI, of_nuclei, nucleus_checks, "nucleus_inactive", "transfer_backlog",
        "jedi/taskbrokerage", "INPUT_NUM_THRESHOLD",
    ),
}  # fmt: skip
EACH = pytest.mark.parametrize("ours", OURS.values(), ids=OURS)


def warm(**changed: Any) -> Rule:
    """Return a check that skips warm places, or one that differs."""
    given = {"name": "warm", "source": "ours 1", "says": "{q_celsius} degrees are warm"}
    return Rule(**{"when": pl.col("q_celsius") > 20} | given | changed)


def with_weather(ours: Ours) -> dict[str, Any]:
    """Return the table of the weather and the fact made of it."""
    place = ours.brokerage.place

    def rows(known: Known) -> pl.LazyFrame:
        return known.tables["weather"].select(pl.col("place").alias(place), q_celsius="celsius")

    weather = Lookup(place=(place,), facts={"q_celsius": None}, rows=rows)
    return {
        "tables": {**ours.brokerage.tables, "weather": Weather},
        "lookups": lambda rules: (*ours.brokerage.lookups(rules), weather),
    }


def made(ours: Ours, **changed: Any) -> Brokerage[Any, Any]:
    """Return one without the check that refuses C, that spares warm places and prefers cold ones."""

    def checks(rules: Any) -> tuple[Rule, ...]:
        usual = ours.checks(rules)
        kept = inserted(usual, warm(), after=ours.first)
        return without(kept, ours.check)

    given = {
        "checks": checks,
        "own_weight": lambda _: 1 / (pl.col("q_celsius").fill_null(10) + 1),
        **with_weather(ours),
    }
    words = {"organisation": "Alps", "description": "it likes the cold", "documentation": "none"}
    return replace(ours.brokerage, name="alpine", **words | given | changed)


def tables_of(ours: Ours) -> dict[str, Any]:
    weather = {"place": ["A", "B", "C"], "celsius": [30.0, 0.0, 9.0]}
    return ours.tables() | {"weather": pl.DataFrame(weather)}


def reasons(decisions: Any) -> dict[str, str | None]:
    seen = decisions
    return dict(seen.pairs.select(seen.place, pl.col("check").cast(pl.String)).iter_rows())


@EACH
def test_ours_are_registered_and_decide(ours: Ours) -> None:
    assert plugins.get(ours.brokerage.name) is ours.brokerage
    plain = ours.brokerage.decide(ours.tables())
    assert reasons(plain) == {"A": None, "B": None, "C": ours.check}
    assert plain.to_dict()["brokerage"] == ours.brokerage.name


@EACH
def test_checks_weight_tables_and_facts_are_replaced(ours: Ours) -> None:
    own = made(ours)
    assert set(own.tables) == {*ours.brokerage.tables, "weather"}
    decisions = own.decide(tables_of(ours))
    assert reasons(decisions) == {"A": "warm", "B": None, "C": None}
    seen = decisions
    shares = dict(seen.shares.select(pl.col(seen.place).cast(pl.String), "share").iter_rows())
    assert shares["B"] == pytest.approx(10 * shares["C"])
    assert decisions.to_dict()["brokerage"] == "alpine"
    removed = funnel(decisions).filter(pl.col("n_pairs") > 0)
    assert removed["check"].cast(pl.String).to_list() == ["warm"]
    checks = own.checks_table()["check"].to_list()
    assert "warm" in checks
    task = seen.tasks["jeditaskid"][0]
    answer = explain(decisions, jeditaskid=task, **{seen.place: "A"})
    assert "30 degrees are warm (check warm)" in answer.text
    assert (
        "that of brokerage alpine" in explain(decisions, jeditaskid=task, **{seen.place: "B"}).text
    )
    assert "warm removed 1" in explain_task(decisions, jeditaskid=task).text


@EACH
def test_what_is_replaced_outlives_other_settings_and_takes_a_rule_more(ours: Ours) -> None:
    limit = warm(when=pl.col("q_celsius") > setting(ours.key))
    own = made(ours, checks=lambda rules: (*ours.checks(rules), limit))
    rule = Rule(name="cold", source="ours 2", says="cold", when=pl.col("q_celsius") < 1)
    config = Config.empty()
    low, high = (config.with_values({f"{ours.where}/{ours.key}": n}) for n in (20, 100))
    before = own.with_rule(rule, after="warm").decide(tables_of(ours), config=low)
    assert reasons(before) == {"A": "warm", "B": "cold", "C": ours.check}
    after = redecide(before, high)
    assert after.world.brokerage.name == "alpine"
    assert reasons(after) == {"A": None, "B": "cold", "C": ours.check}


@EACH
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"checks": lambda _: (warm(when=pl.col("q_celcius") > 1),)}, "checks: warm: no column q_celcius"),
        ({"checks": lambda _: (warm(), warm())}, "checks: two checks are called warm"),
        ({"checks": lambda _: (warm(name="cap_rt"), warm(name="queued_cap"), warm(name="input_size"))}, "checks: [a-z_]* is the name of a rule about all places$"),
        ({"checks": lambda _: ("warm",)}, "checks: 'warm' is a str, not a Rule"),
        ({"checks": lambda _: ()}, "checks: 0 checks, allowed are 1 to 52"),
        ({"own_weight": lambda _: pl.col("q_celcius")}, "weight: no column q_celcius"),
        ({"own_weight": lambda _: pl.lit(-1.0)}, "weight: 2 of 2 places .* such as -1"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused(ours: Ours, changed: dict[str, Any], message: str) -> None:
    own = made(ours, **changed)
    with pytest.raises(ConfigError, match=f"brokerage alpine: {message}"):
        own.decide(tables_of(ours))


@EACH
def test_a_place_has_one_row_of_a_table_of_ones_own(ours: Ours) -> None:
    tables = tables_of(ours)
    tables["weather"] = pl.concat([tables["weather"], tables["weather"][1:2]])
    told = f"facts q_celsius: 1 of {ours.brokerage.place} have several rows, such as .'B',.; allowed is one each"
    with pytest.raises(ConfigError, match=f"brokerage alpine: {told}"):
        made(ours).decide(tables)
