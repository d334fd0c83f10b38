"""The report "what decides where work goes in this period, and which settings matter?".

`check` refuses wrong parameters, `inputs` rebuilds what the brokerages saw, `study` replays them; `composition`,
`nuclei` and `worst`, and of :mod:`brokerlab.report.replays` `removal`, `settings`, `rulesets` and `history`, sum up one
question each; `sentences`, `tables` and `pictures` show it, `assemble` puts the page together and writes the files of a
run. The notebook of the same name only calls these.
"""

from brokerlab.report.brokerage_replay import pictures
from brokerlab.report.brokerage_replay.assemble import assemble, write
from brokerlab.report.brokerage_replay.check import USUAL_KEYS, check
from brokerlab.report.brokerage_replay.inputs import Inputs, load
from brokerlab.report.brokerage_replay.study import Study, study

__all__ = [
    "USUAL_KEYS",
    "Inputs",
    "Study",
    "assemble",
    "check",
    "load",
    "pictures",
    "study",
    "write",
]
