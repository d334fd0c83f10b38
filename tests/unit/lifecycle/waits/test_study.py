"""All that is said of a period, at once."""

from __future__ import annotations

from brokerlab.brokerage.replaying.counts import Counts
from brokerlab.lifecycle.waits import Waiting, numbers_of, study_waiting, wasted_waiting
from brokerlab.lifecycle.waits.fast import PLACE
from brokerlab.times import instants_of


def test_parts_fit_together(period: Waiting) -> None:
    instants = instants_of(period.start, period.end, "12h")
    counts = Counts.of(period.archive.jobs, None, instants).table(*PLACE, "jobstatus")
    study = study_waiting(period, counts, instants, scales=[0.25], n_boot=50)
    fired = period.firings()
    assert study.total["jobs"] == study.numbers["n_fired"] == 7
    assert study.rules["jobs"].sum() == study.by_time["jobs"].sum() == fired.height
    assert sorted(study.limits["value"].unique()) == [0.25, 0.5, 1, 2]
    assert set(study.changes["value"]) == {0.5, 2}
    spared = wasted_waiting(period.exempted(fired))
    assert study.exempted["jobs"].to_list() == spared["jobs"].to_list() == [1]
    assert study.numbers["n_spared"] == 1
    assert study.numbers["n_instants"] == instants.height
    assert study.numbers.items() >= numbers_of(period, fired).items()
    assert study.rule_sets.n_any == study.numbers["n_any"] == 8
    assert study.fast is not None
    assert study.numbers["moved_as_set"] == 0
