"""The report "which proposed settings should be decided, and what would each of them do?": a page for a meeting.

`check` refuses wrong parameters, `inputs` finds the proposals and the configuration that acts, `study` sorts them, looks
for conflicts, merges them and asks whether they still hold, `statements` write what puts them in and takes them
back, `sentences` say what came out, `tables` and `pictures` show it, `assemble` puts the page together and writes
the files of a run. The notebook of the same name only calls these.
"""

from brokerlab.report.proposal_review import pictures
from brokerlab.report.proposal_review.assemble import assemble, write
from brokerlab.report.proposal_review.check import check
from brokerlab.report.proposal_review.inputs import Inputs, load
from brokerlab.report.proposal_review.study import Item, Study, study

__all__ = [
    "Inputs",
    "Item",
    "Study",
    "assemble",
    "check",
    "load",
    "pictures",
    "study",
    "write",
]
