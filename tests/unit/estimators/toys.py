"""Small traces whose answers can be worked out by hand."""

from __future__ import annotations

import numpy as np
import polars as pl

from benchmarks.sizing import History


def runs(memory, *, process="a", runtime=3_600_000, rchar=1_000, request=10**10):
    """One run a second of the given memory [bytes]; one hour each unless told."""
    n = len(memory)
    return pl.DataFrame(
        {
            "process": [process] * n,
            "submit": [1_000 * i for i in range(n)],
            "rss": [int(m) for m in memory],
            "peak_rss": [int(m) for m in memory],
            "rchar": np.broadcast_to(rchar, n).astype(int).tolist(),
            "memory": [request] * n,
            "realtime": np.broadcast_to(runtime, n).astype(int).tolist(),
        }
    )


def drawn(n, *, seed=0, process="a"):
    """Runs whose memory grows with the input, with a tail."""
    rng = np.random.default_rng(seed)
    rchar = rng.lognormal(20, 1, n)
    memory = 1e8 + 0.5 * rchar * rng.lognormal(0, 0.3, n)
    runtime = rng.integers(1_000, 100_000, n)
    return runs(memory, process=process, runtime=runtime, rchar=rchar)


def history(memory, *, input_b=1e3, tags=None, usual_gbh=0.1):
    """What a method learns of runs of the given memory [bytes]."""
    n = len(memory)
    return History(
        input_b=np.broadcast_to(np.asarray(input_b, dtype=float), n).copy(),
        request_b=np.full(n, 1e10),
        memory_b=np.asarray(memory, dtype=float),
        runtime_s=np.full(n, 100.0),
        tags=tuple(tags) if tags else ("",) * n,
        usual_gbh=usual_gbh,
    )
