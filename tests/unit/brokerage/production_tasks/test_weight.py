"""The weight of a nucleus, term by term, and the draw (chapter section 5)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from brokerlab.brokerage.production_tasks import ranking
from brokerlab.brokerage.rules import ProductionRules
from tests.unit.brokerage.production_tasks.world import (
    AT,
    TB,
    at,
    decided,
    endpoint,
    replica,
    task,
    the_task,
    world,
)


def weighed(**columns: Any) -> dict[str, list[dict[str, Any]]]:
    """Return a world in which A has 8 of 10 files on disk, B all of them on tape."""
    tables = world(
        "A",
        "B",
        tasks=[task(iointensity=500) | columns],
        datasets=[{"datasetname": "in", "is_master": True}],
        replicas=[replica("A", 8), replica("B", 10, ddm_endpoint_name="B_TAPE")],
        remaining_work=[
            {"nucleus": "A", "rw": 200.0},
            {"nucleus": "A", "workqueue_name": "MC", "currentpriority_min": 500, "rw": 200.0},
            {"nucleus": "A", "workqueue_name": "MC", "currentpriority_min": 400, "rw": 900.0},
            {"nucleus": "B", "workqueue_name": "Other", "currentpriority_min": 500, "rw": 70.0},
        ],
    )
    tables["nuclei"][1]["input_endpoints"] = ["B_TAPE"]
    tables["storage_endpoints"] += [endpoint("B_TAPE", is_tape=True)]
    tables["storage_endpoints"][0] |= {"space_free": 300.0 * TB, "space_expired": 100.0 * TB}
    return tables


def test_the_formula_of_the_page() -> None:
    """localInput * tape * (free + expired) * min(cutoff, free) / (max(50, RW) * totalInput * total)."""
    result = decided(weighed(), settings={"FREE_DISK_CUTOFF": 200})
    assert at(result, "A")["weight"] == pytest.approx(8 * 400 * 200 / (200 * 10 * 1000), rel=1e-12)
    assert at(result, "B")["weight"] == pytest.approx(0.001 * 500 * 200 / (50 * 1000), rel=1e-12)


def test_the_deployed_formula() -> None:
    """T1, T3: 1 below 50; usable space less the demand, whole TB."""
    tables = weighed()
    tables["remaining_work"].append({"nucleus": "B", "rw": 10 * 86400 / 0.25 * (1.5 * TB)})
    result = decided(tables, "production")
    assert at(result, "A")["weight"] == pytest.approx(0.8 * 0.4 * 400 / 200, rel=1e-12)
    left = 500 * TB - 1.5 * TB
    assert at(result, "B")["demand_gb"] == 1.5 * TB
    expected = 1.0 * 0.001 * left / (1000 * TB) * (left // 1024)
    assert at(result, "B")["weight"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("iointensity", "document", "production"),
    [(201, 0.8, 0.8), (200, 1.0, 1.0), (None, 1.0, 0.8)],
)
def test_local_input_counts_at_high_intensity(
    iointensity: int | None, document: float, production: float
) -> None:
    """T12: a null intensity is low in the document and high as deployed."""
    tables = weighed(iointensity=iointensity)
    assert at(decided(tables), "A")["data"] == document
    assert at(decided(tables, "production"), "A")["data"] == production


def test_a_waiver_takes_the_data_terms_and_the_period_leaves_them() -> None:
    nobody = [replica("B", 0, ddm_endpoint_name="B_TAPE"), replica("X", 10)]
    tables = weighed(currentpriority=900) | {"replicas": nobody}
    result = decided(tables, "production")
    assert the_task(result)["locality"] == "waived"
    assert at(result, "A")["data"] == 1.0
    stuck = decided(weighed(frozentime=AT.replace(month=5)) | {"replicas": nobody}, "production")
    assert the_task(stuck)["locality"] == "off_period"
    assert at(stuck, "A")["data"] == 0.0
    assert stuck.nuclei["probability"].to_list() == [1.0, 0.0]  # no weight at all: the first


def test_the_worst_output_gives_the_space() -> None:
    tables = weighed()
    tables["nuclei"][0]["output_endpoints"] = ["A_DATADISK", "A_SCRATCH"]
    tables["storage_endpoints"].append(
        endpoint("A_SCRATCH", type="SCRATCHDISK", space_free=150.0 * TB)
    )
    tables["output_datasets"].append({"datasetname": "log", "storagetoken": "ATLASSCRATCHDISK"})
    row = at(decided(tables), "A")
    assert (row["ddm_endpoint_name"], row["space_fraction"], row["space_amount"]) == (
        "A_SCRATCH",
        0.15,
        150.0,
    )


def test_an_endpoint_without_total_has_no_space_terms() -> None:
    tables = weighed()
    tables["storage_endpoints"][0]["space_total"] = None
    row = at(decided(tables), "A")
    assert (row["space_fraction"], row["space_amount"]) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("rw", "document", "production"), [(0.0, 0.02, 1.0), (49.999, 0.02, 1.0), (50.0, 0.02, 0.02)]
)
def test_the_work_term_around_the_offset(rw: float, document: float, production: float) -> None:
    for name, expected in (("document", document), ("production", production)):
        assert ranking.work_factor(np.array([rw]), ProductionRules(name)).item() == expected


def test_probabilities_and_the_draw_follow_the_weights() -> None:
    result = decided(weighed())
    rows = result.nuclei
    total = rows["weight"].sum()
    assert rows["probability"].to_list() == pytest.approx((rows["weight"] / total).to_list())
    share = at(result, "A")["probability"]
    for draw, expected in ((0.0, "A"), (share - 1e-9, "A"), (share + 1e-9, "B"), (0.999, "B")):
        assert the_task(decided(weighed(), draw=draw))["nucleus"] == expected


def test_the_draw_walks_the_stored_order() -> None:
    tables = weighed()
    tables["nuclei"] = tables["nuclei"][::-1]
    assert the_task(decided(tables, draw=0.0))["nucleus"] == "B"
    tables["nuclei"][0]["position"], tables["nuclei"][1]["position"] = 2, 1
    assert the_task(decided(tables, draw=0.0))["nucleus"] == "A"


def test_rounding_leftovers_go_to_the_last() -> None:
    weights = np.array([0.1, 0.2, 0.3])
    assert ranking.drawn(weights, 1.0 + 1e-9) == 2
    assert ranking.drawn(np.zeros(3), 0.7) == 0
    assert ranking.probabilities(np.zeros(3)).tolist() == [1.0, 0.0, 0.0]


def test_the_seed_decides_and_is_recorded() -> None:
    draws = {the_task(decided(weighed(), seed=seed))["draw"] for seed in range(5)}
    assert len(draws) == 5
    assert the_task(decided(weighed(), seed=3)) == the_task(decided(weighed(), seed=3))
    assert decided(weighed(), seed=3).to_dict()["seed"] == 3
