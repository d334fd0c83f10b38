"""The report "does the simulation give the waiting times, utilisation and kills that the archive saw?".

`check` refuses wrong parameters, `study` reads a period, simulates and compares it, `tables` and `pictures` show it,
`assemble` puts the page together and writes the files of a run. The notebook of the same name only calls these.
"""

from brokerlab.report.simulation_validation import pictures
from brokerlab.report.simulation_validation.assemble import assemble, write
from brokerlab.report.simulation_validation.study import Study, check, study

__all__ = ["Study", "assemble", "check", "pictures", "study", "write"]
