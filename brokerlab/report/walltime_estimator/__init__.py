"""The report "how long does the next job run, and which rule or model should say so?".

`check` refuses wrong parameters, `inputs` reads logs, tasks and archive, `study` runs every estimator and sums up: `logs` for
batch logs, `power` for core power and sites; `sentences`, `tables` and `pictures` show it, `assemble` puts the page together
and writes the files of a run. The notebook of the same name only calls these.
"""

from brokerlab.report.walltime_estimator import pictures
from brokerlab.report.walltime_estimator.assemble import assemble, write
from brokerlab.report.walltime_estimator.check import check
from brokerlab.report.walltime_estimator.inputs import Inputs, load
from brokerlab.report.walltime_estimator.study import Study, study

__all__ = ["Inputs", "Study", "assemble", "check", "load", "pictures", "study", "write"]
