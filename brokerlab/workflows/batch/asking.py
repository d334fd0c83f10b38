"""When a job submitted now would start.

Source: workflows.md section 4.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from brokerlab.numerics import FloatArray
from brokerlab.workflows.batch import kernel, outlook
from brokerlab.workflows.batch.held import US, Simulation, check_ask
from brokerlab.workflows.batch.state import CONSERVATIVE, NOW, POLICY


def estimate_start(sim: Simulation, hosts: int, requested_s: float) -> float:
    """Estimate when a job submitted now would start; asking changes nothing.

    The queue is carried forward under its policy, every job lasting its whole request, without later arrivals. Under
    ``fcfs`` and ``conservative`` the real start is no later, under ``easy`` it may be.

    Source: workflows.md section 4.1.
    """
    return float(estimate_starts(sim, [hosts], [requested_s])[0])


def estimate_starts(sim: Simulation, hosts: Any, requested_s: Any) -> FloatArray:
    """Estimate starts of several jobs, each as if it alone were submitted now."""
    asked, long = np.asarray(hosts), np.asarray(requested_s, np.float64)
    check_ask(sim, asked, long)
    wide = asked.astype(np.int64)
    if kernel.has_arrivals(sim.state):
        sim = sim.copy()
        kernel.arrive(sim.state)
    requests = np.round(long * US).astype(np.int64)
    if sim.priority is not None:
        keys = sim.state.counters[NOW] - sim.priority.earlier_us(wide, sim.hosts)
        return outlook.starts_in_line(sim.state, wide, requests, keys) / US
    if sim.ahead is None:
        conservative = sim.state.counters[POLICY] == CONSERVATIVE
        sim.ahead = np.empty((0, 4), np.int64) if conservative else outlook.passes(sim.state)
    return outlook.starts(sim.state, sim.ahead, wide, requests) / US
