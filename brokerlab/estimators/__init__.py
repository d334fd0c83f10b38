"""How much work needs: memory and walltime of the next jobs, allocated so that waste and kills cost least.

`of_archive` reads what the jobs of an archive used. Every estimator is made for a quantity and then told ``fit``,
``conformalize``, ``predict`` and ``update`` (`Estimator`); `Hierarchy` is the one that learns per task. `held.HeldBounds` holds
the bounds of any of them to their levels, `allocation.cheapest` chooses what to give; `compare` is one table of all, and
`docs/estimators.md` says how they do on what they have not seen.

Every model is a file or package with its compiled steps (``deployed``, ``hierarchy``, ``likejobs``, ``mixture``, ``quantiles``). The
others read records (``sources``), judge (``scoring``, ``trial``, ``evaluation``, ``trust``, ``doubts``), keep and predict (``saving``,
``predicting``), and study run times (``walltime``).
"""

from typing import TYPE_CHECKING

from brokerlab.lazy import lazy

if TYPE_CHECKING:
    from brokerlab.estimators.estimator import Estimator
    from brokerlab.estimators.hierarchy.estimator import Hierarchy
    from brokerlab.estimators.scoring.comparison import compare
    from brokerlab.estimators.sources.panda import of_archive

__all__ = ["Estimator", "Hierarchy", "compare", "of_archive"]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "Estimator": "estimator",
        "Hierarchy": "hierarchy.estimator",
        "compare": "scoring.comparison",
        "of_archive": "sources.panda",
    },
)
