"""Proposals: documents that a person can check, apply and take back.

``files`` reads them and finds them in the folder of reports, ``words`` shows them, ``merging`` puts several together,
``statements`` writes them out; ``reviewing`` sorts them for a meeting.
"""

from brokerlab.gdpconfig.proposal.document import Proposal, tasks_in_words
from brokerlab.gdpconfig.proposal.files import (
    Broken,
    Filed,
    dumps,
    find,
    loads,
    newest,
    read,
    read_all,
    verified,
    write,
)
from brokerlab.gdpconfig.proposal.merging import conflicts, merge
from brokerlab.gdpconfig.proposal.parts import Affected, Effect, Evidence, Window
from brokerlab.gdpconfig.proposal.reviewing import Item, Review, review
from brokerlab.gdpconfig.proposal.statements import (
    ApplyFiles,
    apply_files,
    render,
    write_apply_files,
)
from brokerlab.gdpconfig.proposal.words import after_applying, in_words, overview, state_of

__all__ = [
    "Affected",
    "ApplyFiles",
    "Broken",
    "Effect",
    "Evidence",
    "Filed",
    "Item",
    "Proposal",
    "Review",
    "Window",
    "after_applying",
    "apply_files",
    "conflicts",
    "dumps",
    "find",
    "in_words",
    "loads",
    "merge",
    "newest",
    "overview",
    "read",
    "read_all",
    "render",
    "review",
    "state_of",
    "tasks_in_words",
    "verified",
    "write",
    "write_apply_files",
]
