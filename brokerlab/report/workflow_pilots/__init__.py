"""The report "how should a workflow be submitted to a batch queue?".

`check` refuses wrong parameters, `inputs` reads logs and workflows, `study` runs every strategy from the same states of the
queues and sums up; `sentences`, `tables` and `pictures` show it, `assemble` puts the page together and writes the files of a
run. The notebook of the same name only calls these.
"""

from brokerlab.report.workflow_pilots import pictures
from brokerlab.report.workflow_pilots.assemble import assemble, write
from brokerlab.report.workflow_pilots.check import check
from brokerlab.report.workflow_pilots.inputs import Inputs, load
from brokerlab.report.workflow_pilots.study import Study, study

__all__ = ["Inputs", "Study", "assemble", "check", "load", "pictures", "study", "write"]
