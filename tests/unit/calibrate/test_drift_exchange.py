"""Does a proposal on the importance of the network weight still hold on later links?"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl
import pytest

from brokerlab.calibrate.drift import Drift, exchange_drift, is_of_exchange
from brokerlab.calibrate.network_curve import Evidence
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import Effect, Proposal
from brokerlab.gdpconfig.proposal import Evidence as Why
from brokerlab.rulesets import RuleSetName

KEY = "jedi/jobbroker/NW_QUEUE_IMPORTANCE"
TOLD = Effect("rank correlation", "1", 0.5, 0.6, 0.1, 0.05, 0.15, 0.95)
NUMBERS = {"bootstrap_replicates": 60, "seed": 1}


def links(truth: float, *, n: int = 300, later: bool = True) -> Evidence:
    """Links whose queue is delivered as if so many waiting files weighed one unit of throughput weight."""
    rng = np.random.default_rng(3)
    queued = np.exp(rng.uniform(0, np.log(1000), n))
    closeness = rng.uniform(1, 11, n)
    line = 1 + (11 - closeness) / 10  # links without throughput: the weight is a line in closeness
    soon = line - queued / truth + 0.05 * rng.standard_normal(n)
    queues = pl.DataFrame(
        {
            "src": [f"S{i}" for i in range(n)],
            "dst": [f"D{i % 10}" for i in range(n)],
            "group": np.arange(n),
            "query": [f"D{i % 10}" for i in range(n)],
            "span": [0, 1] * (n // 2),
            "n_queued": queued,
            "mbps": pl.Series([None] * n, dtype=pl.Float64),
            "closeness": closeness,
            "wait_h": np.exp(-soon),
        }
    )
    first, split, last = (datetime(2026, 4, day) for day in (1, 8, 15))
    queues = pl.concat([queues.with_columns(span=pl.lit(i, pl.Int64)) for i in range(2)])
    spans, labels = ((first, split), (split, last)), ("the first week", "the second week")
    return Evidence(pl.DataFrame(), queues, spans, labels, later_queues=later)


def change(new: float = 0.13, **others: Any) -> Proposal:
    why = Why("why", (TOLD,), numbers=others.pop("numbers", NUMBERS))
    words = {"title": "t", "created_at": datetime(2026, 3, 30), "evidence": why}
    return Proposal.to_change(Config.empty(), {KEY: new}, **words)


def keep(numbers: dict[str, Any] = NUMBERS) -> Proposal:
    why = Why("why", (TOLD,), numbers=numbers)
    words = {"title": "t", "created_at": datetime(2026, 3, 30), "evidence": why}
    return Proposal.to_keep(Config.empty(), [KEY, "jedi/jobbroker/NQUEUED_SAT_CAP"], **words)


def ask(proposal: Proposal, evidence: Evidence, rules: RuleSetName = "production") -> Drift:
    return exchange_drift(proposal, evidence, config=Config.empty(), rules=rules)


def test_a_change_holds_where_links_are_as_it_said() -> None:
    found = ask(change(), links(1000))
    assert found.status == "holds", found.sentence
    assert found.sentence.startswith("Holds on 2026-04-01 to 2026-04-15, 300 links: ")
    assert "with 1004 waiting files" in found.sentence
    assert "with 150 as before" in found.sentence
    drawn = ask(
        change(), links(1000), "document"
    ).sentence  # its line falls over 300 files, whatever the cap
    assert "with 2008 waiting files" in drawn
    assert "with 300 as before" in drawn
    (row,) = found.effects.to_dicts()
    assert (row["stated"], row["stated_lo"]) == (0.1, 0.05)
    assert row["measured_lo"] > 0


def test_a_change_does_not_hold_where_queues_are_what_counts() -> None:
    found = ask(change(), links(60))
    assert found.status == "does_not_hold", found.sentence
    assert found.effects["apart"].to_list() == [True]


def test_a_keep_holds_unless_the_other_is_better() -> None:
    assert ask(keep(), links(150)).status == "holds"
    found = ask(keep(), links(1000))
    assert found.status == "does_not_hold"
    assert "NW_QUEUE_IMPORTANCE = 0.1" in found.sentence
    assert found.judgement is not None
    assert found.judgement.current == "0.5"
    assert ask(keep(), links(60)).status == "does_not_hold"


def test_what_an_archive_does_not_tell() -> None:
    found = ask(change(), links(1000, later=False))
    assert (found.status, found.sentence) == (
        "cannot_tell",
        "Cannot tell: one snapshot of links has nothing later to be delivered",
    )
    few = ask(change(), links(1000, n=20))
    assert few.status == "cannot_tell"
    assert "40 are needed" in few.sentence


@pytest.mark.parametrize(
    ("proposal", "message"),
    [
        (change(1.0), "NW_QUEUE_IMPORTANCE = 1.0 is no share between 0 and 1"),
        (replace(change(), takes_back="sha256:" + 64 * "0"), "takes another back: ask of each"),
    ],
)
def test_what_cannot_be_repeated(proposal: Proposal, message: str) -> None:
    found = ask(proposal, links(1000))
    assert found.status == "cannot_be_checked"
    assert message in found.sentence


def test_what_the_caller_says_wrong_is_no_answer_about_the_proposal() -> None:
    with pytest.raises(ConfigError, match="rules='deployed'"):
        ask(change(), links(1000), "deployed")  # type: ignore[arg-type]


def test_numbers_that_another_tool_has_written_otherwise() -> None:
    as_floats = {**NUMBERS, "seed": 1.0, "bootstrap_replicates": 500.0, "relevant": "0.02"}
    as_they_are = {**NUMBERS, "seed": 1, "bootstrap_replicates": 500, "relevant": 0.02}
    answers = [ask(change(numbers=n), links(1000)).sentence for n in (as_floats, as_they_are)]
    assert answers[0] == answers[1]
    wrong = ask(change(numbers={**NUMBERS, "bootstrap_replicates": "many"}), links(1000))
    assert wrong.status == "cannot_be_checked"
    assert "'many'" in wrong.sentence


def test_whose_question_it_is() -> None:
    assert is_of_exchange(change())
    assert is_of_exchange(keep())
    words = {"title": "t", "created_at": datetime(2026, 3, 30), "evidence": Why("why")}
    assert not is_of_exchange(Proposal.to_change(Config.empty(), {"NQUEUED_SAT_CAP": 200}, **words))
