"""Reports: run a notebook with papermill, render its page, keep the index.

`run` is the whole interface (`attempt` returns also what failed); `content` has the values a notebook fills in, `format` the way numbers
look. Loading this package loads neither papermill nor the chart libraries.
"""

from brokerlab.report.runner import Run, attempt, run

__all__ = ["Run", "attempt", "run"]
