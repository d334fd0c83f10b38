"""Statuses of live jobs and the tables they stand in (docs/rules/waiting.md 1)."""

DEFINED_TABLE = ("pending", "defined", "assigned", "waiting")  # before activation
ACTIVE_TABLE = (
    *("activated", "sent", "starting", "running", "holding", "merging"),
    *("transferring", "throttled", "stagein", "stageout"),
)
"""Every other live status."""
LIVE = DEFINED_TABLE + ACTIVE_TABLE
QUEUED = ("defined", "assigned", "activated", "starting")
"""Jobs that fast and analysis rebrokerage can move."""
