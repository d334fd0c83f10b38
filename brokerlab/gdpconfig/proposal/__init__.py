"""Proposals: documents that a person can check, apply and take back."""

from brokerlab.gdpconfig.proposal.document import Proposal
from brokerlab.gdpconfig.proposal.parts import Affected, Change, Digests, Effect, Evidence, Window
from brokerlab.gdpconfig.proposal.statements import render
from brokerlab.gdpconfig.proposal.text import dumps, loads, read, write

__all__ = [
    "Affected",
    "Change",
    "Digests",
    "Effect",
    "Evidence",
    "Proposal",
    "Window",
    "dumps",
    "loads",
    "read",
    "render",
    "write",
]
