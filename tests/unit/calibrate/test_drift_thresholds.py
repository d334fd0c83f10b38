"""Does a proposal on thresholds still hold, simulated on later tasks?"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest

from brokerlab.calibrate import drift
from brokerlab.calibrate.drift import (
    Drift,
    LaterArchive,
    is_of_exchange,
    is_of_thresholds,
    thresholds_drift,
)
from brokerlab.calibrate.thresholds import Period
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import Proposal, dumps, loads
from tests.unit.calibrate.threshold_toys import CAP, CREATED, Toy, calibrate_toy

LATER = Period(datetime(2026, 4, 1), datetime(2026, 4, 11))


@pytest.fixture(scope="module")
def proposal() -> Proposal:
    """Made where the best cap is 800 and 150 acts."""
    found = calibrate_toy(
        Toy(), keys=[CAP], grids={CAP: [150, 400, 800]}, replications=6, most_replications=6, rounds=0,
        n_boot=200, seed=0, workers=1,
    )  # fmt: skip
    assert found.proposal is not None
    assert found.proposal.kind == "change", found.verdict.sentence
    return loads(dumps(found.proposal))


def ask(proposal: Proposal, toy: Toy, **how: Any) -> Drift:
    applied = Config.empty().with_values({f"jedi/jobbroker/{CAP}": 800})
    return thresholds_drift(proposal, toy, LATER, config=how.pop("config", applied), **how)


def test_it_holds_where_tasks_are_alike(proposal: Proposal) -> None:
    found = ask(proposal, Toy(world=1))
    assert found.status == "holds", found.sentence
    assert found.sentence.startswith(
        "Holds on 1 to 11 April 2026, 60 tasks, 6 simulations of each: "
    )
    assert found.window == tuple(LATER)
    rows = {row["quantity"]: row for row in found.effects.to_dicts()}
    turnaround = rows["Mean turnaround of a task"]
    assert turnaround["stated_hi"] < 0
    assert turnaround["measured_hi"] < 0
    assert turnaround["apart"] is False
    assert rows["Bytes moved"]["unit"] == "% of before"


def test_the_values_before_it_are_compared_whether_it_was_applied_or_not(
    proposal: Proposal,
) -> None:
    both = [ask(proposal, Toy(world=1), config=config).sentence for config in (
        Config.empty(), Config.empty().with_values({f"jedi/jobbroker/{CAP}": 800}))]  # fmt: skip
    assert both[0] == both[1]


def test_it_does_not_hold_where_another_value_is_best(proposal: Proposal) -> None:
    found = ask(proposal, Toy(best={CAP: 100.0}, world=1))
    assert found.status == "does_not_hold", found.sentence
    assert found.effects["apart"].any()


def test_it_does_not_hold_where_a_limit_is_broken_beyond_doubt(proposal: Proposal) -> None:
    found = ask(proposal, Toy(world=1, moved=0.5))
    assert found.status == "does_not_hold", found.sentence
    assert "the limit on bytes moved is broken" in found.sentence
    assert "the setting before is better now" in found.sentence


def test_where_nothing_is_better_it_holds_and_says_that_the_effect_is_gone(
    proposal: Proposal,
) -> None:
    """The judge asked again: nothing is better than the accepted value, and an effect that matters would have been seen."""
    found = ask(proposal, Toy(world=1, depth=0.0))
    assert found.status == "holds", found.sentence
    assert found.judgement is not None
    assert found.judgement.kind == "keep"
    rows = {row["quantity"]: row for row in found.effects.to_dicts()}
    assert rows["Mean turnaround of a task"]["apart"] is True


def test_where_such_an_effect_would_not_be_seen_it_cannot_be_told(proposal: Proposal) -> None:
    found = ask(proposal, Toy(world=1, depth=0.0, noise=(0.5, 0.2)))
    assert found.status == "cannot_tell", found.sentence
    assert "is not excluded" in found.sentence


def test_a_later_part_of_less_than_a_day_tells_nothing(proposal: Proposal) -> None:
    """Its own data end on 21 March: what is later is the last day, whose tasks may not be over."""
    window = ("2026-03-01T00:00:00", "2026-03-21T20:00:00")
    archive: Any = SimpleNamespace(path="later", manifest=SimpleNamespace(window=window))
    found = LaterArchive(archive).ask(proposal)
    assert found.status == "cannot_tell"
    assert "later ends 2026-03-21 20:00:00, a day or less after" in found.sentence


class Starving(Toy):
    """Slots of two queues are unknown: with more of them what it says depends on ``digest``."""

    def unknown(self) -> tuple[str, ...]:
        return ("A", "B")

    def larger(self, most: float) -> Toy:
        assert most == 4.0  # of the proposal
        return Toy(best={CAP: 800.0 if self.digest == "the same" else 100.0}, world=1)


CONDITIONS = {"stage": "analysis", "cycle": "30m", "capacity": "slots.csv"}


@pytest.mark.parametrize(
    ("key", "stated", "stage"),
    [
        (CAP, {}, "jobs"),
        ("BASE_QUEUE_LENGTH_PER_PQ", {}, "analysis"),
        ("FAST_REBRO_THRESHOLD_NQNR_RATIO", {}, "jobs"),
        ("FAST_REBRO_THRESHOLD_NQNR_RATIO", CONDITIONS, "analysis"),
    ],
)
def test_what_keys_decide_is_simulated_under_the_conditions_of_the_proposal(
    key: str,
    stated: dict[str, str],
    stage: str,
    proposal: Proposal,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Under a simulation of production jobs no key of the analysis brokerage would do anything, and all of them hold."""
    (change,) = proposal.changes
    numbers = {**(proposal.evidence.numbers or {}), **stated}
    evidence = replace(proposal.evidence, numbers=numbers)
    asked = replace(proposal, changes=(replace(change, key=key),), evidence=evidence)
    simulated: list[dict[str, str]] = []

    def of_archive(*_: Any, **conditions: Any) -> Any:
        simulated.append(conditions)
        return SimpleNamespace(validate=lambda _: None)

    monkeypatch.setattr(drift, "of_archive", of_archive)
    monkeypatch.setattr(drift, "too_short", lambda *_: [])
    monkeypatch.setattr(Config, "recorded", lambda *_: Config.empty())
    monkeypatch.setattr(drift, "thresholds_drift", lambda *_, **__: Drift("holds", ""))
    window = ("2026-04-01T00:00:00", "2026-04-11T00:00:00")
    archive: Any = SimpleNamespace(path="later", manifest=SimpleNamespace(window=window))
    LaterArchive(archive).ask(asked)
    known = {"stage": stage, "cycle": "", "capacity": "", **stated}
    assert simulated == [{"rules": "document", **known}]


def test_known_slots_that_are_gone_leave_nothing_to_repeat(
    proposal: Proposal, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = {**(proposal.evidence.numbers or {}), "capacity": "gone.csv"}
    asked = replace(proposal, evidence=replace(proposal.evidence, numbers=numbers))
    monkeypatch.setattr(drift, "too_short", lambda *_: [])
    monkeypatch.setattr(Config, "recorded", lambda *_: Config.empty())
    window = ("2026-04-01T00:00:00", "2026-04-11T00:00:00")
    archive: Any = SimpleNamespace(path="later", manifest=SimpleNamespace(window=window))
    found = LaterArchive(archive).ask(asked)
    assert found.status == "cannot_be_checked"
    assert "made with known slots; capacity gone.csv: there is no such file" in found.sentence


def test_the_answer_must_be_the_same_over_the_range_of_unknown_slots(proposal: Proposal) -> None:
    """calibration.md, section 4."""
    assert ask(proposal, Starving(world=1, digest="the same")).status == "holds"
    found = ask(proposal, Starving(world=1, digest="another"))
    assert found.status == "cannot_tell"
    assert found.sentence.startswith("Cannot tell: capacity of 2 queues unknown (A, B)")
    assert "Their slots would settle it" in found.sentence


def test_few_tasks_and_a_bad_simulation_tell_nothing(proposal: Proposal) -> None:
    assert ask(proposal, Toy(n_tasks=5)).status == "cannot_tell"
    bad = SimpleNamespace(ok=False, sentence="No answer: it does not give back what was seen")
    found = ask(proposal, Toy(), validation=bad)
    assert found.sentence == "Cannot tell: it does not give back what was seen"
    assert "could not be simulated" in ask(proposal, Toy(fails=(150,))).sentence


def test_what_cannot_be_repeated(proposal: Proposal) -> None:
    numbers = dict(proposal.evidence.numbers or {})
    dumb = replace(proposal, evidence=replace(proposal.evidence, numbers={**numbers, "objective": "?"}))  # fmt: skip
    found = ask(dumb, Toy())
    assert found.status == "cannot_be_checked"
    assert "does not tell its objective" in found.sentence
    kept = Proposal.to_keep(Config.empty(), [f"jedi/jobbroker/{CAP}"], title="t", created_at=CREATED, evidence=proposal.evidence)  # fmt: skip
    assert "a keep of thresholds has compared many settings" in ask(kept, Toy()).sentence
    other = Proposal.to_change(Config.empty(), {"SCOUT_RAMCOUNT_RANK": 80}, title="t", created_at=CREATED, evidence=proposal.evidence)  # fmt: skip
    assert "no threshold" in ask(other, Toy()).sentence


def test_whose_question_it_is(proposal: Proposal) -> None:
    assert is_of_thresholds(proposal)
    assert not is_of_exchange(proposal)
