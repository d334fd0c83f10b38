"""A world with nothing wrong: every report that decides keeps what is set, and says what it would have seen.

But for the window of throughput: the last hour that the rule takes says less of a link than the week, in the world as on real links.
"""

from datetime import datetime
from pathlib import Path

import pytest

import brokerlab
from brokerlab import calibrate, worlds
from brokerlab.calibrate import network_curve, thresholds

pytestmark = pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")


@pytest.mark.long
def test_a_world_without_anything_wrong_ends_with_keep(tmp_path: Path) -> None:
    worlds.synthesise(
        tmp_path, jobs=120_000, days=14, queues=100, seed=1, lived=True, planted="none"
    )
    archive = brokerlab.open(tmp_path)
    kinds = {
        parameter: calibrate.propose(calibrate.backtest(archive, parameter)).kind
        for parameter in ("ramcount", "cputime", "outdiskcount")
    }
    assert set(kinds.values()) == {"keep"}, kinds
    options = thresholds.Options(
        points=3, replications=2, most_replications=3, most_keys=2, rounds=0
    )
    found = thresholds.study_archive(
        archive, options, created_at=datetime(2026, 4, 1), screen_days=1
    )
    assert found.validation is not None
    assert found.validation.ok
    assert found.verdict.kind == "keep"
    assert found.judgement is not None
    assert found.judgement.smallest_seen <= options.relevant
    links = network_curve.read_links(tmp_path)
    curve = network_curve.study_curve(links.evidence["metrics"])
    assert (curve.judgement.kind, curve.judgement.best) == ("change", "log_throughput_long")
    for same_window in ("steps", "isotonic", "log_throughput"):
        assert curve.of(same_window)["diff_lo"] < 0, same_window
        assert curve.of(same_window)["diff_hi"] < 0.04, same_window
