"""What the waiting rules report sums up, on an archive of a few jobs whose numbers are known by heart."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from brokerlab.archive.contracts import polars_schema
from brokerlab.archive.writer import ArchiveWriter
from brokerlab.errors import ConfigError, DataError
from brokerlab.lifecycle.timeouts import wasted_waiting
from brokerlab.report import waiting_rules as report
from brokerlab.report.waiting_rules import caveats, fast, firing, pictures
from brokerlab.report.waiting_rules import sentences as say
from brokerlab.report.waiting_rules.rulesets import compared
from brokerlab.report.waiting_rules.sums import Draws, summed
from brokerlab.report.waiting_rules.words import cell, limit, signed
from brokerlab.words import THIN

DAY_0 = datetime(2026, 3, 1)
END = 400.0
TIMES = ("creationtime", "activatedtime", "starttime", "endtime", "statechangetime", "modificationtime")  # fmt: skip
PLAIN = {
    "prodsourcelabel": "managed", "lockedby": "jedi", "processingtype": "simul", "gshare": "MC", "currentpriority": 500,
    "jobstatus": "finished", "creationtime": 0, "activatedtime": 0,
}  # fmt: skip


def at(hours: float | None) -> datetime | None:
    return None if hours is None else DAY_0 + timedelta(hours=hours)


def started(pandaid: int, queue: str, wait_h: float, **columns: Any) -> dict[str, Any]:
    """Return a job that waited activated, ran for an hour and finished."""
    over = {"starttime": wait_h, "endtime": wait_h + 1, "modificationtime": wait_h + 1}
    return PLAIN | {"pandaid": pandaid, "jeditaskid": pandaid % 2, "computingsite": queue} | over | columns  # fmt: skip


def waiting(pandaid: int, queue: str, since_h: float, **columns: Any) -> dict[str, Any]:
    """Return a job that is activated to this day."""
    times = dict.fromkeys(("creationtime", "activatedtime", *TIMES[4:]), since_h)
    row = PLAIN | {"pandaid": pandaid, "jeditaskid": pandaid % 2, "computingsite": queue}
    return row | {"jobstatus": "activated"} | times | columns


JOBS = [
    started(1, "A", 48.5),  # rule activated fires after 48 h: half an hour for nothing
    started(2, "A", 60),
    started(3, "B", 30),
    started(4, "B", 10),
    {**started(5, "B", 1), "jobstatus": "closed", "starttime": None, "endtime": None,
     "statechangetime": 50, "modificationtime": 50},  # closed where it waited
    waiting(6, "B", END - 48.25),  # due a quarter of an hour before the end
    waiting(7, "B", END - 100),
    waiting(8, "P", END - 60),  # a paused queue
    waiting(9, "B", END - 49, relocationflag=2),  # stays, under production rules
    {**waiting(10, "B", END - 1), "jobstatus": "running", "starttime": END - 9, "statechangetime": END - 9,
     "modificationtime": END - 5, "creationtime": END - 10},  # silent for five hours
    {**started(11, "B", END - 4), "jobstatus": "failed", "creationtime": END - 6, "activatedtime": END - 6,
     "endtime": END - 1, "modificationtime": END, "jobdispatchererrorcode": 100},
]  # fmt: skip
QUEUES = [{"panda_queue": name, "status": "paused" if name == "P" else "online"} for name in "ABP"]


def write(folder: Path, jobs: list[dict[str, Any]], queues: list[dict[str, Any]] | None) -> Path:
    rows = [{n: at(v) if n in TIMES else v for n, v in row.items()} for row in jobs]
    with ArchiveWriter(folder, synthetic=True) as writer:
        for table, found in (("jobs", rows), ("queues", queues or [])):
            schema = polars_schema(table)
            if found:
                frame = pl.DataFrame([{n: r.get(n) for n in schema} for r in found], schema=schema)
                writer.write(table, frame, trusted=True)
        writer.commit()
    return folder


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("waiting") / "toy", JOBS, QUEUES)


@pytest.fixture(scope="module")
def study(archive: Path) -> report.Study:
    return report.study(report.load(archive), every="12h", n_boot=50)


def test_what_fires_and_what_became_of_it(study: report.Study) -> None:
    names = ("rule", "jobs", "waited_h", "after_h", "soon", "later", "ended", "still", "undecided")
    assert study.by_rule.select(names).rows() == [
        ("activated", 6, 288, 0.5 + 12 + 2 + 0.25 + 52 + 1, 1, 1, 1, 1, 2),
        ("heartbeat", 1, 2, 3, 0, 0, 0, 1, 0),
    ]
    told = wasted_waiting(study.inputs.read.fired())
    assert told.select("jobs", "waited_h", "after_h", "soon", "ended").rows() == [
        (6, 288, 67.75, 1, 1), (1, 2, 3, 0, 0)
    ]  # fmt: skip
    assert study.by_rule["soon_share"].to_list() == [1 / 4, 0]  # two of six are undecided
    assert study.total["jobs"] == study.n_fired == 7
    by_queue = study.by_queue.select("computingsite", "rule", "jobs").rows()
    assert by_queue == [("A", "activated", 2), ("B", "activated", 4), ("B", "heartbeat", 1)]
    assert study.by_priority.select("priority", "jobs").rows() == [("other", 6), ("other", 1)]
    days = study.by_time.filter(rule="activated", jobs=study.by_time["jobs"].max())
    assert days["time"].to_list() == [datetime(2026, 3, 3)]
    assert study.by_time.filter(rule="activated")["jobs"].sum() == 6


def test_exempt_queues_and_rules_that_never_fire(study: report.Study) -> None:
    assert study.exempted.select("rule", "jobs", "after_h").rows() == [("activated", 1, 12)]
    seen = dict(study.quiet.select("rule", "seen").iter_rows())
    assert seen["running"]
    assert not seen["holding_lo"]
    assert "Not to be judged" in say.quiet(study)
    told = say.exceptions(study).sentence
    assert told.startswith("1 of 3 queues are paused or have disableReassign, which spares 1 job.")
    assert "Of 1 live jobs that should give signs of life, 1 had been silent" in told
    assert "1 job (20.0 % of those that ran) failed for a lost heartbeat, after 3 h of" in told


def test_other_limits_rule_by_rule(study: report.Study) -> None:
    rows = study.limits.filter(rule="activated")
    names = (
        "scale",
        "limit_h",
        "jobs",
        "soon",
        "after_h",
        "more_jobs",
        "more_after_h",
        "more_soon",
    )
    assert rows.select(names).rows() == [
        (0.5, 24, 7, 0, 24.5 + 36 + 6 + 26 + 24.25 + 76 + 25, 1, 217.75 - 67.75, -1),
        (1, 48, 6, 1, 67.75, 0, 0, 0),
        (2, 96, 1, 0, 4, -5, 4 - 67.75, -1),
    ]
    together = study.limits.filter(rule="all rules")
    assert together["jobs"].to_list() == [8, 7, 2]
    cut = {
        row["scale"]: row["n_waiting"] for row in study.cut_off.filter(rule="activated").to_dicts()
    }
    assert cut == {2.0: 2}  # jobs 6 and 9 may or may not come to wait for four days
    assert any("2 pairs of job and rule" in told for told in caveats.cannot_tell(study))
    for row in study.limits.to_dicts():
        assert row["after_h_lo"] <= row["after_h"] <= row["after_h_hi"]


def test_rule_sets_job_by_job(study: report.Study) -> None:
    found = study.rule_sets
    kinds = dict(found.kinds.select("kind", "jobs").iter_rows())
    # paused spares no activated job in production; a job that must stay is spared there
    assert kinds == {"only_current": 1, "only_other": 1, "same": 6}
    assert (found.n_any, found.n_different) == (8, 2)
    changed = found.switches.filter(pl.col("n_changed") > 0)
    assert changed.select("switch", "n_changed", "explained").rows() == [
        ("exemption_mode", 1, 0.5), ("label_limits", 1, 0.5)
    ]  # fmt: skip
    assert "fare differently" in say.rules(study).sentence


def test_fates_side_by_side() -> None:
    def fates(*rows: tuple[int, str, int]) -> pl.DataFrame:
        told = [(n, "u", rule, "fail", at(hour)) for n, rule, hour in rows]
        return pl.DataFrame(told, schema=["pandaid", "unit", "rule", "action", "fires"], orient="row")  # fmt: skip

    mine = fates((1, "sent", 1), (2, "sent", 1), (3, "sent", 1), (4, "sent", 1))
    theirs = fates((1, "sent", 1), (2, "running", 1), (3, "sent", 2), (5, "sent", 1))
    kinds = compared(mine, theirs).select("pandaid", "kind").rows()
    assert kinds == [(1, "same"), (2, "other_rule"), (3, "other_time"), (4, "only_current"), (5, "only_other")]  # fmt: skip


def test_the_period_bounds_what_fires(archive: Path) -> None:
    inputs = report.load(archive, start="2026-03-03", end="2026-03-03T01:00", unit="task")
    fired = firing.prepared(inputs.read.fired(), inputs)
    assert sorted(fired["pandaid"]) == [1, 2, 5]  # after 48 h, at midnight
    assert fired["unit"].to_list() == ["1", "0", "1"]
    assert inputs.n_jobs == 3  # job 3 had started and finished by then
    assert inputs.units["unit"].to_list() == ["0", "1"]
    assert inputs.waited_h == pytest.approx(0.5 + 1 + 1)
    with pytest.raises(ConfigError, match="the period is empty"):
        report.load(archive, start="2026-03-05", end="2026-03-05")
    with pytest.raises(DataError, match="no job in the period"):
        report.load(archive, start="2030-01-01", end="2030-01-02")


def test_a_period_ends_with_the_archive(archive: Path, study: report.Study) -> None:
    wide = report.load(archive, start="2025-01-01", end="2027-01-01")
    assert wide.window == study.inputs.window
    assert wide.waited_h == study.inputs.waited_h
    early = report.load(archive, end="2026-03-17T12:00")  # 396 h: job 11 has not failed yet
    assert (early.units["n_ran"].sum(), early.units["n_lost"].sum()) == (4, 0)
    late = report.load(archive, start="2026-03-17T15:30")
    assert "heartbeat" not in firing.prepared(late.read.fired(), late)["rule"]
    assert firing.silent(late) == 1  # it fell silent before the period
    with pytest.raises(DataError, match="no job in the period"):
        report.load(archive, start="2025-01-01", end="2025-02-01")


def test_no_day_and_no_instant_is_left_out_at_the_end(tmp_path: Path) -> None:
    rows = [started(n, "A", 20, creationtime=5, activatedtime=5) for n in range(1, 31)]
    rows += [started(40, "B", 44), started(41, "B", 52.5, creationtime=4, activatedtime=4)]
    rows += [waiting(42, "B", 98, creationtime=49, activatedtime=49)]
    inputs = report.load(write(tmp_path / "short", rows, QUEUES), start="2026-03-01T05:00")
    assert (inputs.window[0], inputs.until) == (at(5), at(98))
    found = fast.studied(inputs, every="6h", draws=Draws(pl.Series(["A", "B"]), 50, 1))
    assert found is not None
    assert found.instants["at"].to_list() == [at(hour) for hour in range(6, 98, 6)]
    fired = firing.prepared(inputs.read.fired(), inputs)
    assert fired.select("pandaid", "fires").rows() == [(41, at(52)), (42, at(97))]
    days = firing.over_time(fired, inputs, "1d", None)
    assert days["time"].to_list() == [at(24 * day) for day in range(5)]
    assert days["jobs"].to_list() == [0, 0, 1, 0, 1]


def test_a_job_is_spared_once(study: report.Study) -> None:
    two = pl.concat([firing.exempted(study.inputs, study.fired)] * 2)
    assert two.height == 2
    told = say.exceptions(replace(study, exempted=firing.by(two, firing.RULE, None)))
    assert "spares 1 job." in told.sentence


def test_an_archive_without_jobs_or_queues(tmp_path: Path, study: report.Study) -> None:
    with pytest.raises(DataError, match="has no jobs"):
        report.load(write(tmp_path / "none", [], QUEUES))
    alone = report.load(write(tmp_path / "few", JOBS[:2], None))
    fired = firing.prepared(alone.read.fired(), alone)
    draws = Draws(alone.units["unit"], 50, 1)
    assert firing.by(fired, ["rule"], draws).select("jobs", "jobs_lo").rows() == [(2, None)]
    told = caveats.cannot_tell(replace(study, inputs=alone))
    assert any("holds no job that is still alive" in sentence for sentence in told)


def test_where_no_rule_fires(study: report.Study, tmp_path: Path) -> None:
    none = firing.prepared(study.inputs.read.fired(1e6), study.inputs)
    draws = Draws(study.inputs.units["unit"], 50, 1)
    frames = {name: getattr(study, name).clear() for name in ("by_rule", "by_time", "by_queue", "by_gshare", "by_label", "by_priority", "exempted", "limits", "cut_off")}  # fmt: skip
    nothing = replace(
        study, fired=none, total=firing.total(none, draws), fast=None,
        rule_sets=replace(study.rule_sets, kinds=study.rule_sets.kinds.clear(), pairs=study.rule_sets.pairs.clear()),
        **frames,
    )  # fmt: skip
    page = report.assemble(nothing, tmp_path)
    assert page.verdict.sentence.startswith("No waiting rule fires for any of ")
    kinds = {part.name: part.verdict.kind for part in page.parts}
    assert kinds == {"firing": "finding", "waste": "no_answer", "limits": "no_answer",
                     "exceptions": "finding", "fast": "no_answer", "rules": "finding"}  # fmt: skip
    assert list(tmp_path.iterdir()) == []  # nothing to draw


def test_fast_rebrokerage_over_instants(study: report.Study) -> None:
    assert study.fast is not None
    assert study.fast.places.is_empty()  # nobody has ten jobs waiting
    frame = pl.DataFrame(
        {"snapshot": [0, 1, 2, 4, 5], "computingsite": "A", "gshare": "MC", "excess": [5, 3, None, 2, 4],
         "exempt": [False, False, False, False, True]}
    )  # fmt: skip
    told = fast.judged(frame, 1)
    assert told["to_move"].to_list() == [4, 2, 0, 1, 0]
    assert told["onset"].to_list() == [True, False, False, True, False]


def test_a_backlog_triggers_until_it_is_gone(tmp_path: Path) -> None:
    backlog = [started(n, "A", 20) for n in range(1, 31)] + [started(40, "B", 2)]
    inputs = report.load(write(tmp_path / "backlog", backlog, QUEUES))
    found = fast.studied(inputs, every="6h", draws=Draws(pl.Series(["A", "B"]), 50, 1))
    assert found is not None
    assert found.dry_run
    assert found.as_set == (0, 0)
    (place,) = found.places.to_dicts()
    # 30 wait, none run: 30 less 10, at 0, 6, 12 and 18 h; at 0 h one job at B takes part in the fraction
    assert (place["n_instants"], place["n_onsets"], place["onset_jobs"], place["max_jobs"]) == (4, 1, 20, 20)  # fmt: skip
    current = found.keys.filter(pl.col("value") == pl.col("current"))["to_move"].to_list()
    assert current == [found.totals["to_move"][0]] * 3
    set_to = replace(
        inputs, config=inputs.config.with_values({"FAST_REBRO_THRESHOLD_NQUEUE_MC": 25})
    )
    known = fast.studied(set_to, every="6h", draws=Draws(pl.Series(["A", "B"]), 50, 1))
    assert known is not None
    assert (known.dry_run, known.as_set[0]) == (False, 1)
    assert known.places["onset_jobs"].to_list() == [5]
    assert (
        known.as_set[1] == known.totals["to_move"][0] == pytest.approx(20 / known.instants.height)
    )
    least = found.keys.filter(pl.col("key").str.contains("NQUEUE_<"))
    assert least.sort("value")["to_move"].is_sorted(descending=True)


def test_sums_and_their_intervals() -> None:
    frame = pl.DataFrame({"unit": ["a", "a", "b"], "rule": ["x", "y", "x"], "n": [3, 5, 1]})
    units = pl.Series(["a", "b", "c", "d"])
    sums = summed(frame, ["rule"], ["n"], Draws(units, 400, 1))
    table = sums.table({"n": lambda s: s["n"], "half": lambda s: s["n"] / 2, "none": lambda s: s["n"] / 0})  # fmt: skip
    assert table.select("rule", "n", "half").rows() == [("x", 4, 2), ("y", 5, 2.5)]
    assert table["n_lo"].to_list() == [0, 0]
    assert (table["n_hi"] > table["n"]).all()
    assert table["none"].null_count() == 2
    assert summed(frame, [], ["n"], None).table({"n": lambda s: s["n"]}).rows() == [(9, None, None)]
    assert summed(frame.clear(), ["rule"], ["n"], Draws(units, 400, 1)).table({}).is_empty()


def test_words() -> None:
    row = {"n": 12.0, "n_lo": 3.0, "n_hi": 30.0}
    assert signed(row, "n") == "+12 (3 to 30)"
    assert signed({"n": -2.25}, "n", "h") == "−2.2 h"
    assert cell(row, "n").lo == 3
    assert [limit(hours) for hours in (0.5, 252, 126.5)] == ["30 min", "10.5 d", "126.5 h"]


def test_points_that_lie_together_share_their_text(study: report.Study) -> None:
    drawn = pictures.limits(study)
    assert drawn is not None
    texts = {
        row["limit"]
        for rows in drawn[0].to_dict()["datasets"].values()
        for row in rows
        if row.get("limit")
    }
    assert "×0.5" in texts
    assert any(", " in text for text in texts) or len(texts) > 6


def test_bad_parameters_are_refused_together() -> None:
    with pytest.raises(ConfigError) as caught:
        report.check(rules="x", scales=[], soon_h=0, every="soon", unit="job", n_boot=1, seed=-1, end="x")  # fmt: skip
    for name in ("rules", "scales", "soon_h", "every", "unit", "n_boot", "seed", "end"):
        assert f"{name}=" in str(caught.value)
    report.check(rules="production", scales=[1], soon_h=1, every="6h", unit="task", n_boot=100, seed=0)  # fmt: skip


def test_the_verdict_tells_numbers_and_certainty(study: report.Study) -> None:
    told = say.verdict(study).sentence.replace(THIN, "")
    assert told.startswith(
        "Waiting rules fire for 7 of 11 jobs (63.6 %), most by activated (6) and"
    )
    assert "left alone they would have waited at least 71 h (" in told
    assert "Halved limits would end " in told
    assert "Doubled limits would leave " in told
