"""What single switches do to the choice of the nucleus."""

from __future__ import annotations

from typing import Any

from brokerlab import brokerage
from brokerlab.brokerage import production_tasks
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.brokerage.studies.alternatives import try_switches
from brokerlab.brokerage.studies.tasks import NUCLEI, NUCLEUS_SWITCHES
from tests.unit.brokerage.studies.toys import replay_of


def test_a_task_that_loses_its_only_nucleus_goes_elsewhere_whole() -> None:
    """Deployed, a task whose input is complete nowhere waits: of two tasks one has no nucleus any more."""
    decided: Any = production_tasks.decide(
        brokerage.world(
            [{}, {}],
            brokerage="production-tasks",
            nuclei=[{"nucleus": "N", "output_endpoints": ["E"]}],
            storage_endpoints=[{"ddm_endpoint_name": "E"}],
            datasets=[{"jeditaskid": 1, "datasetname": "d"}],
            replicas=[{"datasetname": "d", "ddm_endpoint_name": "E", "found": 0, "total": 1}],
        )
    )
    table, *_ = try_switches(
        NUCLEI, replay_of(decided), ProductionRules(), only=NUCLEUS_SWITCHES, texts=False, sample=2, seed=1,
    )  # fmt: skip
    shift = dict(table.select("switch", "shift").iter_rows())
    assert shift["unreadable_input_waits"] == 0.5
    assert shift["only_takes_allow"] == 0.0
