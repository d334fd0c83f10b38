"""What a log of jobs must hold before walltimes can be predicted on it."""

from __future__ import annotations

import dataframely as dy


class LoggedJobs(dy.Schema):
    """One row per job, in any order; names are those of `brokerlab.workflows.swf`.

    A job with any other null, or whose run time or request is 0, is left out.
    """

    submit_s = dy.Float64(
        nullable=True, metadata={"unit": "s", "meaning": "submission; ties keep rows' order"}
    )
    wait_s = dy.Float64(
        nullable=True, metadata={"unit": "s", "meaning": "from submission to start"}
    )
    run_s = dy.Float64(nullable=True, metadata={"unit": "s", "meaning": "from start to end"})
    requested_s = dy.Float64(
        nullable=True, metadata={"unit": "s", "meaning": "limit that the user asked for"}
    )
    hosts_requested = dy.Int64(
        nullable=True, metadata={"unit": "hosts", "meaning": "hosts asked for; null or 0: 1"}
    )
    user = dy.Int64(nullable=True, metadata={"meaning": "who submitted it"})
