"""Reports: one file each, on a kit; run as notebooks, written as a page.

`run` is the whole interface of the runner (with ``check=False`` it returns also what failed); `check` says beforehand which
reports can run on an archive. A report is `Params`, `load`, `study` and `page` in one file (`kit`), what it reads of an archive
is data in it (`needs`); `publishing` writes what a page shows, `rendering` makes the HTML from `results.json`, `index` lists all
runs. The parts load on first use; none of them loads papermill or the chart libraries before they are needed.
"""

from typing import TYPE_CHECKING

from brokerlab.lazy import lazy

if TYPE_CHECKING:
    from brokerlab.report.needs import check
    from brokerlab.report.runner import Run, run

__all__ = ["Run", "check", "run"]

__getattr__, __dir__ = lazy(__name__, {"Run": "runner", "run": "runner", "check": "needs"})
