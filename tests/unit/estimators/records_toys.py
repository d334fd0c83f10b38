"""Records of a few jobs, written down by hand."""

from __future__ import annotations

import polars as pl

from brokerlab.estimators.records import checked


def records(used, **columns):
    """One job after the other, each decided when the one before has ended; other columns as told."""
    n = len(used)
    given = {
        "pandaid": range(1, n + 1),
        "jeditaskid": 1,
        "kind": "reco",
        "queue": "A",
        "cores": 1,
        "events": 100,
        "input_mb": 10.0,
        "corepower": 10.0,
        "requested": None,
        "sent": None,
        "is_scout": False,
        "decided_s": [100.0 * i for i in range(n)],
        "ended_s": [100.0 * (i + 1) for i in range(n)],
        "used": [float(u) for u in used],
        "censored": False,
        "wall_s": 3600.0,
    } | columns
    frame = {
        name: list(value) if isinstance(value, list | range | tuple) else [value] * n
        for name, value in given.items()
    }
    whole = ["pandaid", "jeditaskid", "cores", "events"]
    types = {**dict.fromkeys(whole, pl.Int64), "kind": pl.String, "queue": pl.String}
    floats = ["requested", "sent", "corepower", "input_mb", "ended_s"]
    types |= dict.fromkeys(floats, pl.Float64)
    return checked(pl.DataFrame(frame, schema_overrides=types, strict=False))
