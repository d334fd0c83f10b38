"""What the waiting rules report sums up, on an archive of a few jobs whose numbers are known by heart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from brokerlab.errors import ConfigError
from brokerlab.lifecycle.waiting import wasted_waiting
from brokerlab.report import waiting_rules as report
from brokerlab.report.waiting_rules import pictures
from brokerlab.report.waiting_rules import sentences as say
from brokerlab.report.waiting_rules.words import cell, limit, signed
from brokerlab.words import THIN
from tests.unit.lifecycle.waiting.toys import JOBS, QUEUES, write


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("waiting") / "toy", JOBS, QUEUES).path


@pytest.fixture(scope="module")
def study(archive: Path) -> report.Study:
    return report.study(report.load(archive), every="12h", n_boot=50)


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


def test_where_no_rule_fires(study: report.Study, tmp_path: Path) -> None:
    none = study.inputs.waiting.firings(1e6)
    total = wasted_waiting(none, by=()).row(0, named=True)
    frames = {name: getattr(study, name).clear() for name in ("by_rule", "by_time", "by_queue", "by_gshare", "by_label", "by_priority", "exempted", "limits", "cut_off")}  # fmt: skip
    nothing = replace(
        study, fired=none, total=total, fast=None,
        rule_sets=replace(study.rule_sets, kinds=study.rule_sets.kinds.clear(), pairs=study.rule_sets.pairs.clear()),
        **frames,
    )  # fmt: skip
    page = report.assemble(nothing, tmp_path)
    assert page.verdict.sentence.startswith("No waiting rule fires for any of ")
    kinds = {part.name: part.verdict.kind for part in page.parts}
    assert kinds == {"firing": "finding", "waste": "no_answer", "limits": "no_answer",
                     "exceptions": "finding", "fast": "no_answer", "rules": "finding"}  # fmt: skip
    assert list(tmp_path.iterdir()) == []  # nothing to draw


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
