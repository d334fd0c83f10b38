"""What a trace of runs must hold before anything can be sized on it."""

from __future__ import annotations

import dataframely as dy


class Runs(dy.Schema):
    """One row per run of a workflow, in any order; names are those of a Nextflow trace."""

    process = dy.String(metadata={"meaning": "task type; runs of one type are sized together"})
    submit = dy.Int64(
        metadata={"unit": "ms since 1970", "meaning": "submission; ties keep rows' order"}
    )
    rss = dy.Int64(
        nullable=True,
        metadata={"unit": "bytes", "meaning": "resident memory; null or 0: not measured"},
    )
    peak_rss = dy.Int64(
        nullable=True,
        metadata={"unit": "bytes", "meaning": "its peak, which a limit kills at; null: rss"},
    )
    rchar = dy.Int64(
        nullable=True,
        metadata={"unit": "bytes", "meaning": "characters read, the size of the input; null: 0"},
    )
    memory = dy.Int64(
        nullable=True, metadata={"unit": "bytes", "meaning": "the author's request; null: none"}
    )
    realtime = dy.Int64(
        nullable=True,
        metadata={"unit": "ms", "meaning": "duration of the run; null or 0: too short to measure"},
    )
    tag = dy.String(
        nullable=True, metadata={"meaning": "what the author calls the run, such as its sample"}
    )
