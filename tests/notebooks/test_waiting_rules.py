"""The waiting rules report on a small synthetic archive: its numbers, page, tables and failures."""

import pytest

from brokerlab.errors import ConfigError
from brokerlab.report import run
from tests.notebooks.pages import check_page


@pytest.fixture(scope="module")
def done(archive, tmp_path_factory):
    """One run with few replicates and instants."""
    given = {"archive": str(archive), "scales": "0.25", "every": "1d", "n_boot": 100}
    return run("waiting-rules", given, out_root=tmp_path_factory.mktemp("reports"))


@pytest.fixture(scope="module")
def stored(done):
    return check_page(done.folder)


@pytest.fixture(scope="module")
def numbers(stored):
    return stored["numbers"]


def test_the_page_has_an_answer(stored):
    page = stored["page"]
    assert page["verdict"]["kind"] == "finding"
    assert "timed-out jobs would have gone on by themselves" in page["verdict"]["sentence"]
    assert page["synthetic"] is True
    assert len(page["numbers"]) == 3
    assert page["chart"]["chart"] == "limits"
    assert len(page["sections"]) == 5


def test_firings_add_up(stored, numbers):
    values, (total,) = stored["values"], numbers["total"]
    assert values["n_fired"] == total["jobs"] > 0
    firing = [row for row in numbers["rules"] if row["jobs"]]
    fired = sum(row["jobs"] for row in firing)
    assert fired == sum(row["jobs"] for row in numbers["by_time"]) >= values["n_fired"]
    for stratum in ("queue", "gshare", "label", "priority"):
        rows = [row for row in numbers["levels"] if row["stratum"] == stratum]
        assert sum(row["jobs"] for row in rows) == fired
        shown = [row for row in numbers["most_fired"] if row["stratum"] == stratum]
        assert shown == rows[:3]
    assert {row["rule"]: row["spared"] for row in firing if row["spared"]} == {
        row["rule"]: row["jobs"] for row in numbers["exempted"]
    }
    for row in firing:
        parts = [row[name] for name in ("soon", "later", "ended", "still", "undecided")]
        assert sum(parts) == row["jobs"]
        assert row["jobs_lo"] <= row["jobs"] <= row["jobs_hi"]
        assert row["after_h"] >= 0
    assert values["waited_h"] > 0
    assert values["n_jobs"] == 20_000


def test_longer_limits_fire_less(numbers):
    rows = numbers["all_limits"]
    assert {row["value"] for row in rows} == {0.25, 0.5, 1.0, 2.0}
    now = {row["rule"]: row["jobs"] for row in numbers["rules"]}
    for rule in {row["rule"] for row in rows}:
        mine = [row for row in rows if row["rule"] == rule]
        jobs, ended = ([row[name] for row in mine] for name in ("jobs", "after_h"))
        assert jobs == sorted(jobs, reverse=True)
        assert ended == sorted(ended, reverse=True)
        as_set = next(row for row in mine if row["is_current"])
        assert as_set["more_jobs"] == as_set["more_after_h"] == as_set["more_soon_lo"] == 0
        assert as_set["jobs"] == now.get(rule, numbers["total"][0]["jobs"])


def test_rule_sets_and_fast_rebrokerage(stored, numbers):
    values = stored["values"]
    kinds = {row["kind"]: row["jobs"] for row in numbers["rule_kinds"]}
    assert sum(kinds.values()) == values["n_any"]
    here = sum(kinds.get(name, 0) for name in ("same", "other_rule", "other_time", "only_current"))
    assert here == values["n_fired"]
    assert all(0 <= row["explained"] <= 1 for row in numbers["rule_switches"])
    assert values["n_instants"] >= 20
    assert len(numbers["fast_by_time"]) == values["n_instants"]
    tried = {row["key"] for row in numbers["fast_keys_chart"]}
    assert tried >= {"FAST_REBRO_THRESHOLD_NQNR_RATIO"}


def test_rows_of_single_firings_are_not_written(done):
    assert (done.folder / "results.json").stat().st_size < 600_000
    assert not (done.folder / "tables" / "fired.parquet").exists()


def test_the_command_repeats_the_run(stored):
    assert stored["page"]["made"]["command"].startswith(
        "brokerlab report waiting-rules -p archive="
    )


def test_wrong_parameters(archive, tmp_path):
    with pytest.raises(ConfigError, match="unknown parameter 'scale': did you mean 'scales'"):
        run("waiting-rules", {"scale": "1"}, out_root=tmp_path)
    with pytest.raises(ConfigError, match="unit='job'"):
        run("waiting-rules", {"archive": str(archive), "unit": "job"}, out_root=tmp_path)
