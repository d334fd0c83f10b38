"""The status log of jobs: what each entry says, and until when it holds.

Who reads a whole history (:mod:`brokerlab.lifecycle.classification.spans`, :mod:`brokerlab.brokerage.replaying.changes`) begins
here; they differ in what they make of the rows of jobs.
"""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw

from brokerlab.archive.contracts.jobs import OVER

EARLY = ("pending", "waiting", "defined", "assigned", "throttled")
"""Statuses before a job is activated."""
ORDER = (
    *(*EARLY, "activated", "sent", "starting"),
    *("stagein", "running", "merging", "stageout", "holding", "transferring", *OVER),
)
"""Statuses in the order that a job takes them: the order of log entries of one instant."""


def entries(log: nw.LazyFrame[Any], *keep: str) -> nw.LazyFrame[Any]:
    """Say from when until when each entry holds, those after which nothing happens left out.

    An entry holds until the next one of its job. Entries of one instant come in the order of :data:`ORDER`, so that
    the last of them holds; entries without a time are none.

    ``pandaid``, ``entry`` (its status), ``enter``, ``following`` (time of the next entry; null: the last one), ``keep``.
    """
    rank = nw.lit(len(ORDER))
    for place, status in enumerate(ORDER):
        rank = nw.when(nw.col("jobstatus") == status).then(nw.lit(place)).otherwise(rank)
    following = nw.col("modificationtime").shift(-1)
    return (
        log.filter(~nw.col("modificationtime").is_null())
        .with_columns(rank=rank)
        .with_columns(
            following=following.over("pandaid", order_by=["modificationtime", "rank", "jobstatus"])
        )
        .filter(~nw.col("jobstatus").is_in(OVER))
        .select(
            "pandaid",
            *keep,
            "following",
            entry=nw.col("jobstatus"),
            enter=nw.col("modificationtime"),
        )
    )
