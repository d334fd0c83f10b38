"""The report "which queues count as fast, and what does that hang on?".

`check` refuses wrong parameters, `inputs` reads what the classification needs, `study` does it; `rating` gives every queue
its class at every instant, `stability`, `whatif`, `rulesets`, `waits`, `tasks` and `targets` sum up one question each;
`sentences`, `tables` and `pictures` show it, `assemble` puts the page together and writes the files of a run. The notebook
of the same name only calls these.
"""

from brokerlab.report.site_classes import pictures
from brokerlab.report.site_classes.assemble import assemble, write
from brokerlab.report.site_classes.check import check
from brokerlab.report.site_classes.inputs import Inputs, load
from brokerlab.report.site_classes.study import Study, study

__all__ = ["Inputs", "Study", "assemble", "check", "load", "pictures", "study", "write"]
