"""The report "which thresholds should be changed, and to what?".

`check` refuses wrong parameters, `study` screens, validates the simulation and calibrates, `sentences` say what came out,
`tables` and `pictures` show it, `assemble` puts the page together and writes the files of a run. The notebook of the same
name only calls these.
"""

from brokerlab.report.thresholds import pictures
from brokerlab.report.thresholds.assemble import assemble, write
from brokerlab.report.thresholds.study import Study, check, study

__all__ = ["Study", "assemble", "check", "pictures", "study", "write"]
