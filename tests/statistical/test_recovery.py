"""Thresholds that were set wrong are found again, and right ones are kept: the whole pipeline on archives of known truth."""

from __future__ import annotations

import pytest

from tests.planted_grids import PLANTED
from tests.recovery import RIGHT, recovered

pytestmark = [
    pytest.mark.long,  # in every run: tests/unit/calibrate/test_thresholds_grid.py
    pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning"),
]
TOLERATED = 0.05
KEPT = ("NQUEUED_SAT_CAP", "IO_INTENSITY_CUTOFF", "MAX_DISKIO_DEFAULT")
"""Looked at here; ``benchmarks.recovery`` counts false proposals of all keys on many archives."""


@pytest.mark.parametrize("key", PLANTED)
def test_a_wrong_threshold_is_found(tmp_path, key):
    found = recovered(tmp_path, key, PLANTED[key][1], seed=1)
    assert found.result.validation.ok, found.result.validation.sentence
    assert found.regret_before > TOLERATED, "the planted value must be wrong"
    assert found.result.verdict.kind == "change", found.result.verdict.sentence
    assert found.regret <= TOLERATED, found.truth


@pytest.mark.parametrize("key", KEPT)
def test_a_right_threshold_is_kept(tmp_path, key):
    found = recovered(tmp_path, key, RIGHT[key], seed=2)
    assert found.result.validation.ok, found.result.validation.sentence
    assert found.result.verdict.kind == "keep", found.result.verdict.sentence
