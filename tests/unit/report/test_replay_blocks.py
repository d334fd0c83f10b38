"""What pages of replayed brokerages share: parameters, caveats, sections."""

from types import SimpleNamespace

import polars as pl
import pytest

from brokerlab.brokerage.studies.alternatives import KeyEffects
from brokerlab.errors import ConfigError
from brokerlab.report import replay_blocks
from brokerlab.report.analysis_replay import Params
from brokerlab.report.kit import Chart, Table

SHARES = {"total": 5.0, "whole": 10.0, "share": 0.5, "share_lo": 0.4, "share_hi": 0.6, "n_units": 3}


def shares(*parts, **columns):
    return pl.DataFrame([{"part": part} | SHARES | columns for part in parts])


def key(name, *, half, double, worth):
    row = {
        "key": name,
        "name": f"{name} [jobs]",
        "decides": "jobs",
        "current": 100.0,
        "least": 0.0,
        "most": 900.0,
        "at": 900.0,
    }
    row |= {"pairs": 0.1, "without": 0.0, "reachable": 0.0, "worth": worth}
    for column, value in (("shift", 0.2), ("half", half), ("double", double)):
        row |= {column: value, f"{column}_lo": value, f"{column}_hi": value}
    return row


def effects(*rows, skipped=()):
    reasons = pl.DataFrame(skipped, schema=["key", "reason"], orient="row")
    return KeyEffects(keys=pl.DataFrame(rows), curves=pl.DataFrame(), skipped=reasons)


def period(**changes):
    base = {
        "archive": SimpleNamespace(synthetic=False),
        "n_tasks": 9,
        "n_replayed": 9,
        "every": None,
        "replay": SimpleNamespace(instants=pl.DataFrame({"at": [1, 2]}), notes=("no quotas", "x")),
    }
    return SimpleNamespace(**base | changes)


def said(*args):
    return [caveat.text for caveat in replay_blocks.caveats(*args) if caveat.n]


def test_parameters_are_checked_all_at_once():
    bad = {"keys": "CAP_RUNNING_USER_JOB", "every": "soon", "points": "1", "rules": "mine"}
    with pytest.raises(ConfigError) as caught:
        Params.checked(bad)
    text = str(caught.value)
    for part in (
        "did you mean 'CAP_RUNNING_USER_JOBS'",
        "every='soon'",
        "points='1'",
        "rules='mine'",
    ):
        assert part in text
    assert Params.checked({"every": ""}).every == ""
    assert Params.checked({"keys": ",".join(Params.usual_keys)}).keys == list(Params.usual_keys)


def test_caveats_come_from_what_the_replay_is():
    none = effects()
    assert len(said(period(), none, [])) == 1  # consequences, always
    texts = said(
        period(archive=SimpleNamespace(synthetic=True), n_replayed=2, every="1h"),
        effects(skipped=[("CAP", "not_read")]),
        ["queues.x: odd"],
    )
    assert texts[0].startswith("The archive is synthetic")
    assert texts[1] == "A sample: 2 of 9 tasks, drawn at random, are replayed."
    assert "Odd input, taken as the rules say: queues.x: odd." in texts
    assert any(text.startswith("CAP was not tried: no check") for text in texts)
    assert texts[-1].startswith("Instants are rounded down to 1h")


def test_facts():
    facts = replay_blocks.facts(period())
    assert facts == {"Instants": "2, rounded down to nothing", "Approximated": "no quotas; x"}


def test_keys_worth_calibrating_are_marked():
    rows = (
        key("CAP", half=None, double=None, worth=True),
        key("BASE", half=0.0, double=0.1, worth=False),
    )
    chart, table = replay_blocks.key_blocks(effects(*rows))
    assert isinstance(chart, Chart)
    assert isinstance(table, Table)
    assert chart.finding.startswith("Worth calibrating: 1 of 2 settings; most moves with CAP: 20.0")
    assert chart.frame.select("key", "value").rows() == [
        ("BASE", "halved"), ("BASE", "doubled"), ("CAP", "at the value that moves most"),
        ("BASE", "at the value that moves most"),
    ]  # fmt: skip
    assert table.frame["mark"].to_list() == ["worth calibrating", None]
    assert table.cells()[0][:2] == ["CAP [jobs]", "100"]
    chart, _ = replay_blocks.key_blocks(effects(rows[0] | {"decides": "nuclei"}, rows[1]))
    assert chart.finding.endswith("of the choices of a nucleus")  # no job is counted there
    assert replay_blocks.key_blocks(effects()) == ["No key could be tried."]


def test_history():
    agreement = shares("candidate", "best_three", "first", "by_chance")
    (chart,) = replay_blocks.history_blocks(agreement, shares("disk", "cpucore"))
    assert chart.frame["part"].to_list() == ["candidate", "disk", "cpucore"]
    assert chart.sample == "10 jobs of 3 tasks; 95 % intervals over tasks."
    nothing = replay_blocks.history_blocks(agreement.clear(), agreement.clear())
    assert nothing == ["No job that ran belongs to a brokerage of the replay."]


def test_rule_sets_and_single_differences():
    rows = [("d9", 4, 0.5, 0.1), ("d1", 0, 0.0, 0.6), ("d2", 0, 0.0, 0.0)]
    switches = pl.DataFrame(
        rows, schema=["switch", "n_changed", "explained", "shift"], orient="row"
    )
    texts = {"note": "``A`` is b.", "source": "002", "here": "False", "there": "True"}
    comparison = SimpleNamespace(
        current="document",
        other="production",
        totals=shares("pairs", "gained", "lost", "other_reason"),
        brokerages=shares("any", "outcome", "best"),
        switches=switches.with_columns(pl.lit(text).alias(name) for name, text in texts.items()),
        n_sample=7,
        n_sample_pairs=4,
    )
    sets, single = replay_blocks.rule_set_blocks(comparison)
    assert [row[0] for row in sets.cells()][:2] == [
        "decided otherwise, in all",
        "candidates under the other rules only",
    ]
    assert sets.caption.startswith("With the production rules 50.0")
    first, second = single.cells()[: single.most]  # one only sends jobs elsewhere
    assert first == ["d9", "A is b.", "False → True", "4", "50", "10", "002"]
    assert second[0] == "d1"
    assert single.most == 2
    assert single.note.endswith("Change nothing here: d2.")
    assert single.caption.startswith("What each switch does on 7 brokerages, 4 pairs")
    comparison.switches = comparison.switches.clear()
    assert replay_blocks.rule_set_blocks(comparison)[1].frame.is_empty()  # not shown then
