"""The report "which user tasks are held back, where would the others go, and is it fair?".

`check` refuses wrong parameters, `inputs` rebuilds what the analysis brokerage saw, `study` replays it with
:mod:`brokerlab.brokerage.studies.user_tasks` and :mod:`brokerlab.report.replays`; `sentences`, `tables`, `tables_users` and
`pictures` show it, `assemble` puts the page together and writes the files of a run.
"""

from brokerlab.report.analysis_replay import pictures
from brokerlab.report.analysis_replay.assemble import assemble, write
from brokerlab.report.analysis_replay.check import USUAL_KEYS, check
from brokerlab.report.analysis_replay.inputs import Inputs, load
from brokerlab.report.analysis_replay.study import Study, study

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
