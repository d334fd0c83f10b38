"""Does an accepted proposal still hold: yes, no by its interval, or not to be told."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import polars as pl
import pytest

from brokerlab.calibrate.drift import Drift, data_end, percentiles_drift, question_of
from brokerlab.calibrate.percentiles import kills
from brokerlab.errors import InsufficientDataError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import Evidence, Filed, Proposal, dumps, loads, merge
from brokerlab.scouts import ScoutRules
from tests.unit.calibrate import toys
from tests.unit.calibrate.test_percentile_study import judged

NOW = datetime(2026, 11, 21)
LATER = timedelta(days=365)
EVIDENCE = Evidence("why", numbers={"max_exceed": 0.03})


@pytest.fixture(scope="module")
def proposal() -> Proposal:
    """Made from tasks whose memory spreads by 8 %."""
    jobs = toys.quantities(120, 60, seed=7, hours_between=6)
    verdict = judged((jobs, toys.tasks(120), toys.queues())).verdict
    assert verdict.kind == "change", verdict.sentence
    assert verdict.proposal is not None
    return loads(dumps(verdict.proposal))


def later(proposal: Proposal, n_tasks: int = 60, config: Config | None = None, **how: Any) -> Drift:
    """Score a proposal on tasks a year later."""
    jobs = toys.quantities(n_tasks, 60, seed=11, **how)
    tasks = toys.tasks(n_tasks).with_columns(creationdate=pl.col("creationdate") + LATER)
    applied = config or proposal.applied_to(Config.empty())
    return percentiles_drift(proposal, toys.inputs(jobs, tasks, applied))


def test_it_holds_on_tasks_of_the_same_kind(proposal: Proposal) -> None:
    found = later(proposal)
    assert found.status == "holds", found.sentence
    assert found.sentence.startswith("Holds on 1 January to 1 March 2027, 60 tasks: ")
    assert "limit 3 %" in found.sentence
    assert found.effects.height >= 9
    exceed = found.effects.filter(pl.col("quantity") == "First attempts killed").row(0, named=True)
    assert exceed["stated_lo"] <= exceed["stated"] <= exceed["stated_hi"] < 0
    assert exceed["measured"] < 0
    assert json.dumps(found.to_dict())


def test_it_does_not_hold_where_jobs_differ_more(proposal: Proposal) -> None:
    found = later(proposal, spread=0.5)
    assert found.status == "does_not_hold", found.sentence
    assert found.sentence.startswith("Does not hold on ")
    assert found.effects["apart"].any()
    assert "effects lie apart from the proposal's: " in found.sentence


def test_few_tasks_tell_nothing(proposal: Proposal) -> None:
    found = later(proposal, 5)
    assert found.status == "cannot_tell"
    assert "20 tasks are needed" in found.sentence
    assert found.effects["apart"].null_count() == found.effects.height


def test_its_own_tasks_are_not_looked_at_again(proposal: Proposal) -> None:
    jobs, tasks = toys.quantities(60, 60), toys.tasks(60)
    found = percentiles_drift(proposal, toys.inputs(jobs, tasks))
    assert (found.status, found.judgement) == ("cannot_tell", None)
    assert "of 60 tasks none was created after the proposal's own data" in found.sentence


def made(values: dict[str, Any], **others: Any) -> Proposal:
    arguments = {"title": "t", "created_at": NOW, "evidence": EVIDENCE, **others}
    rules = {"rules_digest": ScoutRules().digest} if "rules_digest" not in others else {}
    return Proposal.to_change(Config.empty(), values, **arguments, **rules)


def keep(config: Config, limit: float) -> Proposal:
    return Proposal.to_keep(
        config,
        ["SCOUT_RAMCOUNT_RANK"],
        title="t",
        created_at=NOW,
        evidence=replace(EVIDENCE, numbers={"max_exceed": limit}),
        rules_digest=ScoutRules().digest,
    )


def test_a_keep_holds_until_something_is_better_or_the_limit_breaks() -> None:
    good = Config.empty().with_values({"SCOUT_RAMCOUNT_RANK": 62, "SCOUT_RAMCOUNT_MARGIN": 18})
    found = later(keep(good, 0.2), config=good)
    assert found.status == "holds", found.sentence
    assert "under the setting before" not in found.sentence
    beaten = later(keep(Config.empty(), 0.2), config=Config.empty())
    assert beaten.status == "does_not_hold"
    assert "is better now" in beaten.sentence
    broken = later(keep(good, 0.001), config=good)
    assert broken.status == "does_not_hold", broken.sentence


def test_what_the_proposal_leaves_alone_is_as_it_acts() -> None:
    config = Config.empty().with_values({"SCOUT_RAMCOUNT_MARGIN": 20})
    proposal = made({"SCOUT_RAMCOUNT_RANK": 90})
    asked = question_of(proposal, config)
    assert (asked.current.pair, asked.proposed.pair) == ((75, 20), (90, 20))
    assert asked.question == kills(0.03, relevant=0.05, n_boot=2000, seed=0)
    assert data_end(proposal) is None


@pytest.mark.parametrize(
    ("values", "others", "message"),
    [
        ({"NQUEUED_SAT_CAP": 200}, {}, "no back-test of an archive alone scores NQUEUED_SAT_CAP"),
        (
            {"SCOUT_RAMCOUNT_RANK": 90, "SCOUT_CPUTIME_RANK": 90},
            {},
            "SCOUT_CPUTIME_RANK, SCOUT_RAMCOUNT_RANK are of several parameters",
        ),
        ({"SCOUT_RAMCOUNT_RANK": 90}, {"evidence": Evidence("w")}, "does not tell its limit"),
        ({"SCOUT_RAMCOUNT_RANK": 90}, {"rules_digest": "x"}, "not those of this version: x"),
    ],
)
def test_what_cannot_be_scored_again(
    values: dict[str, Any], others: dict[str, Any], message: str
) -> None:
    proposal = made(values, **others)
    with pytest.raises(InsufficientDataError, match=message):
        question_of(proposal, Config.empty())
    found = percentiles_drift(proposal, toys.inputs(pl.DataFrame(), pl.DataFrame()))
    assert found.status == "cannot_be_checked"
    assert found.sentence.startswith("Cannot be checked: ")
    assert message in found.sentence


def test_of_merged_ones_each_is_asked() -> None:
    parts = [Filed(key, made({key: 90})) for key in ("SCOUT_RAMCOUNT_RANK", "SCOUT_CPUTIME_RANK")]
    merged = merge(parts, created_at=NOW)
    back = merged.revert(merged.applied_to(Config.empty()), created_at=NOW)
    for proposal in (merged, back):
        found = percentiles_drift(proposal, toys.inputs(pl.DataFrame(), pl.DataFrame()))
        assert found.status == "cannot_be_checked"
        assert "the proposal is merged from others: ask of each" in found.sentence
