"""A bound of walltime translated, judged on the tasks of an archive."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from brokerlab.archive.store import open_archive
from brokerlab.calibrate.nearest_setting import translate_bound
from brokerlab.calibrate.verdict import limit_of
from brokerlab.errors import InsufficientDataError
from brokerlab.estimators.evaluation import MODEL, evaluate_later, learners
from brokerlab.estimators.sources import of_archive
from brokerlab.worlds import synthesise
from tests.unit.calibrate import toys


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archives") / "small"
    synthesise(folder, jobs=3_000, days=14, seed=3)
    return open_archive(folder)


@pytest.fixture(scope="module")
def trial(archive):
    sources = {"submit": of_archive(archive, "walltime")}
    return evaluate_later(sources, learners("walltime", MODEL), n_boot=50).main


def test_the_limit_of_the_setting_is_what_the_bound_lets_through(trial, archive):
    found = translate_bound(trial, archive, model=MODEL, level=0.9, n_boot=50)
    assert found.study.parameter.name == "cputime"
    assert found.estimator == "hierarchy, bound 90 %"
    assert limit_of(found.study.judgement) == pytest.approx(0.1)
    judged = trial.records.select("jeditaskid").unique()
    dates = archive.scan("tasks").collect().join(judged, on="jeditaskid")["creationdate"].sort()
    blocks = found.study.judgement.blocks
    assert dates[0] <= blocks["start"].min()
    assert blocks["end"].max() <= dates[-1]
    assert toys.side(found, "estimator")["n_tasks"] <= judged.height


def test_a_bound_that_is_refused_allocates_nothing(trial, archive):
    """The current setting stands in where no bound is promised; where none is, there is nothing to translate."""
    found = translate_bound(trial, archive, model=MODEL, level=0.9, n_boot=50)
    refused = ~np.isfinite(trial.held[MODEL].at(0.9))
    assert 0 < refused.sum() < refused.size
    assert found.counts["jobs_without_allocation"] + found.counts["tasks_without_allocations"] > 0
    held = trial.held[MODEL]
    nothing = {MODEL: replace(held, bounds=np.full_like(held.bounds, np.inf))}
    with pytest.raises(
        InsufficientDataError, match=r"no bound of 98 % can be promised; it needs 49 finished jobs"
    ):
        translate_bound(replace(trial, held=nothing), archive, model=MODEL, level=0.98, n_boot=50)
