"""brokerlab: what should the settings of a workload-management system be?

::

    demo = brokerlab.open("data/demo")                  # or brokerlab.ingest(["jobs.csv"], "data/mine")
    brokerlab.profile(demo)                             # what to look at first
    brokerlab.scouts.estimate(demo)                     # what scouts say of each task
    brokerlab.scouts.exhausted(demo)                    # which tasks they would stop
    brokerlab.lifecycle.classes(demo)                   # which queues count as fast
    brokerlab.lifecycle.waiting(demo)                   # which timeouts fire, and what they cost
    seen = brokerlab.brokerage.replay(demo)             # what the brokerage saw
    decided = brokerlab.brokerage.decide(seen)          # where jobs may go; then funnel, explain, what_if
    tried = brokerlab.calibrate.backtest(demo, "ramcount")
    brokerlab.calibrate.propose(tried)                  # what to set, how sure that is
    brokerlab.calibrate.simulate(demo)                  # the same jobs under other settings
    brokerlab.estimators.Hierarchy("memory")            # fit, conformalize, predict, update
    brokerlab.report.run("scout-percentiles", {"archive": "data/demo"})

Every call takes an archive, or a mapping of tables by name, first, and settings by name. Results show themselves in a
notebook, ``.frame()`` gives a Polars frame, ``brokerlab.compare(a, b)`` what differs. Importing this package
loads none of it.
"""

from typing import TYPE_CHECKING

from brokerlab.lazy import lazy

if TYPE_CHECKING:
    from brokerlab import (
        archive,
        brokerage,
        calibrate,
        charts,
        estimators,
        gdpconfig,
        lifecycle,
        matching,
        report,
        scouts,
        workflows,
        worlds,
    )
    from brokerlab.archive import ingest, open, profile  # noqa: A004
    from brokerlab.results import compare

__all__ = [
    "__version__",
    "archive",
    "brokerage",
    "calibrate",
    "charts",
    "compare",
    "estimators",
    "gdpconfig",
    "ingest",
    "lifecycle",
    "matching",
    "open",
    "profile",
    "report",
    "scouts",
    "workflows",
    "worlds",
]

__version__ = "0.1.0"

_CALLS = {**dict.fromkeys(("ingest", "open", "profile"), "archive"), "compare": "results"}
_ROOMS = dict.fromkeys(set(__all__) - _CALLS.keys() - {"__version__"}, "")
__getattr__, __dir__ = lazy(__name__, _ROOMS | _CALLS)
