"""Reports: one file each, on a kit; run as notebooks, written as a page.

`run` and `run_many` are the whole interface of the runner (with ``check=False`` `run` returns also what failed); `check` says beforehand which
reports can run on an archive. A report is `Params`, `load`, `study` and `page` in one file (`kit`), what it reads of an archive
is data in it (`needs`); `publishing` writes what a page shows, `rendering` makes the HTML from `results.json`, `index` lists all
runs. The parts load on first use; none of them loads papermill or the chart libraries before they are needed.
"""

from typing import TYPE_CHECKING

from brokerlab.lazy import lazy

if TYPE_CHECKING:
    from brokerlab.report.needs import check
    from brokerlab.report.runner import Run, run, run_many

__all__ = ["Run", "check", "run", "run_many"]

__getattr__, __dir__ = lazy(
    __name__, {"Run": "runner", "run": "runner", "run_many": "runner", "check": "needs"}
)
