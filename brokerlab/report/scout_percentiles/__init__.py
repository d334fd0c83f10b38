"""The report "which percentile ranks and margins should the scouts use?".

`check` refuses wrong parameters, `inputs` loads, `study` calibrates, `sentences` and `promises` say what came
out, `tables`, `strata` and `pictures` show it, `assemble` puts the page together and writes the files of a run.
The notebook of the same name only calls these.
"""

from brokerlab.report.scout_percentiles.assemble import assemble, write
from brokerlab.report.scout_percentiles.check import check
from brokerlab.report.scout_percentiles.inputs import Inputs, load
from brokerlab.report.scout_percentiles.pictures import frontier
from brokerlab.report.scout_percentiles.study import (
    Study,
    Unanswered,
    grid,
    parameters_named,
    study,
)

__all__ = [
    "Inputs",
    "Study",
    "Unanswered",
    "assemble",
    "check",
    "frontier",
    "grid",
    "load",
    "parameters_named",
    "study",
    "write",
]
