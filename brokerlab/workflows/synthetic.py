"""A generated background load, for where no log is at hand."""

from __future__ import annotations

import numpy as np
import polars as pl

from brokerlab.errors import ConfigError
from brokerlab.units import DAY_S

OVER = (1.0, 1.5, 2.0, 4.0, 10.0)  # multiples of their run time that users ask for


def background(
    *, days: float = 14.0, hosts: int = 64, load: float = 0.75, seed: int = 1
) -> pl.DataFrame:
    """Generate jobs of a machine: arrivals by chance, sizes in powers of two, run times over four orders of magnitude.

    Args:
        days: Length [d].
        hosts: Of the machine [hosts].
        load: Host time used over host time there is.
        seed: Same seed, same jobs.

    Returns:
        Jobs as `brokerlab.workflows.load.BatchJobs`.

    Raises:
        ConfigError: Impossible numbers.

    Example:
        >>> jobs = background(days=2, hosts=16, seed=3)
        >>> jobs.columns, 1 <= jobs["hosts"].min() <= jobs["hosts"].max() <= 16
        (['job_id', 'submit_s', 'run_s', 'requested_s', 'hosts'], True)
    """
    if not (days > 0 and hosts >= 1 and 0 < load < 1):
        raise ConfigError(f"days={days}, hosts={hosts}, load={load}: days > 0, hosts >= 1 and a load between 0 and 1 are allowed")  # fmt: skip
    rng = np.random.default_rng(seed)
    wanted, widest = load * hosts * days * DAY_S, int(np.log2(hosts))
    sizes: list[int] = []
    runs: list[float] = []
    used = 0.0
    while used < wanted:
        size = int(2 ** rng.binomial(max(1, widest), 0.3))
        run = float(np.clip(np.rint(rng.lognormal(7.5, 1.8)), 10, 2 * DAY_S))
        sizes.append(min(size, hosts))
        runs.append(run)
        used += sizes[-1] * run
    n = len(runs)
    asked = np.array(runs) * rng.choice(OVER, n)
    return pl.DataFrame(
        {
            "job_id": [f"J{i}" for i in range(n)],
            "submit_s": np.sort(np.floor(rng.uniform(0, days * DAY_S, n))),
            "run_s": runs,
            "requested_s": np.ceil(asked / 300) * 300,
            "hosts": sizes,
        }
    )
