"""The report "which curves should turn throughput, closeness and waiting files into the network weight?".

`check` refuses wrong parameters, `inputs` loads, `study` fits and proves, `sentences` say what came out, `tables` and
`pictures` show it, `proposal` writes the document, `assemble` puts the page together and writes the files of a
run. The notebook of the same name only calls these.
"""

from brokerlab.report.network_curve import pictures
from brokerlab.report.network_curve.assemble import assemble, write
from brokerlab.report.network_curve.check import check
from brokerlab.report.network_curve.inputs import Inputs, load
from brokerlab.report.network_curve.study import Curve, Exchange, Fallback, Study, Unanswered, study

__all__ = [
    "Curve",
    "Exchange",
    "Fallback",
    "Inputs",
    "Study",
    "Unanswered",
    "assemble",
    "check",
    "load",
    "pictures",
    "study",
    "write",
]
