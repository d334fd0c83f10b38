"""Proposals: documents that a person can check, apply and take back.

``filed`` finds them in the folder of reports, ``listing`` and ``words`` show them, ``conflict`` and ``merging`` put
several together, ``statements`` and ``patch`` write them out; ``reviewing`` sorts them for a meeting.
"""

from brokerlab.gdpconfig.proposal.conflict import conflicts
from brokerlab.gdpconfig.proposal.document import Proposal
from brokerlab.gdpconfig.proposal.filed import Broken, Filed, find, newest, read_all
from brokerlab.gdpconfig.proposal.filters import filter_problems, tasks_in_words
from brokerlab.gdpconfig.proposal.listing import overview, state_of
from brokerlab.gdpconfig.proposal.merging import merge
from brokerlab.gdpconfig.proposal.parts import Affected, Effect, Evidence, Window
from brokerlab.gdpconfig.proposal.reviewing import Item, Review, review
from brokerlab.gdpconfig.proposal.statements import (
    ApplyFiles,
    apply_files,
    render,
    write_apply_files,
)
from brokerlab.gdpconfig.proposal.text import dumps, loads, read, verified, write
from brokerlab.gdpconfig.proposal.words import after_applying, in_words

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
    "filter_problems",
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
