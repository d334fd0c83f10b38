"""The report "how much memory should the next job get, and by which rule or model?".

`check` refuses wrong parameters, `inputs` finds real data and archive. `traces` sizes the runs of workflow traces, `jobs` tests
estimators on whole tasks and on an archive, `settings` translates their allocations into a setting; `study` puts the answers
together. The modules named after them say and show what was found, `assemble` puts the page together and writes the files of a
run, the model among them. The notebook of the same name only calls these.
"""

from brokerlab.report.memory_estimator import pictures
from brokerlab.report.memory_estimator.assemble import assemble, write
from brokerlab.report.memory_estimator.check import check
from brokerlab.report.memory_estimator.inputs import Inputs, load
from brokerlab.report.memory_estimator.study import Study, study

__all__ = ["Inputs", "Study", "assemble", "check", "load", "pictures", "study", "write"]
