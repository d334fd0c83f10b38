"""Reports: one file each, on a kit; run as notebooks, written as a page.

`run` is the whole interface of the runner (with ``check=False`` it returns also what failed). A report is `Params`, `load`, `study` and
`page` in one file (`kit`); `publishing` writes what a page shows, `rendering` makes the HTML from `results.json`, `index`
lists all runs. Loading this package loads neither papermill nor the chart libraries.
"""

from brokerlab.report.runner import Run, run

__all__ = ["Run", "run"]
