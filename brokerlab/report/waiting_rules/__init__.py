"""The report "which waiting rules fire, how much waiting do they end, would other limits have ended more of it?".

`check` refuses wrong parameters, `inputs` reads the histories, `study` has :mod:`brokerlab.lifecycle.waiting` judge them; `sentences`, `caveats`, `tables` and `pictures` show it,
`assemble` puts the page together and writes the files of a run. The notebook of the same name only calls these.
"""

from brokerlab.report.waiting_rules import pictures
from brokerlab.report.waiting_rules.assemble import assemble, write
from brokerlab.report.waiting_rules.check import check
from brokerlab.report.waiting_rules.inputs import Inputs, load
from brokerlab.report.waiting_rules.study import Study, study

__all__ = ["Inputs", "Study", "assemble", "check", "load", "pictures", "study", "write"]
