"""Small worlds of links: a planted step curve, snapshots of metrics, windows of transfers."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import polars as pl

EDGES = (0.1, 2.0, 30.0)
HEIGHTS = (0.05, 0.6, 5.0, 60.0)
"""Expected later throughput [MB/s] of the planted steps."""
NOON = datetime(2026, 3, 1, 12)


def planted(n: int = 1200, *, noise: float = 0.5, seed: int = 1, span: int = 0) -> pl.DataFrame:
    """Links whose later throughput depends on the step of the earlier one only."""
    rng = np.random.default_rng(seed)
    mbps = np.exp(rng.uniform(np.log(0.01), np.log(300), n))
    height = np.array(HEIGHTS)[np.searchsorted(EDGES, mbps, side="left")]
    number = np.arange(n)
    return pl.DataFrame(
        {
            "src": [f"S{i % 40:02d}" for i in number],
            "dst": [f"D{i // 40 % 30:02d}" for i in number],
            "group": number,
            "query": [f"D{i // 40 % 30:02d}" for i in number],
            "span": span,
            "mbps": mbps,
            "mbps_long": mbps,
            "outcome": height * np.exp(noise * rng.standard_normal(n)),
            "closeness": rng.integers(1, 12, n).astype(float),
        }
    )


def snapshots(days: int = 8, links: int = 60, *, seed: int = 1) -> pl.DataFrame:
    """Metrics of links at noon of several days; the second half of the links has no throughput but closeness."""
    rng = np.random.default_rng(seed)
    level = rng.normal(1.0, 2.0, links)
    rows = []
    for day in range(days):
        ts = NOON + timedelta(days=day)
        for i in range(links):
            ends = {"src": f"S{i:02d}", "dst": f"D{i % 5}", "ts": ts}
            close = float(np.clip(round(6 - level[i]), 1, 11))
            rows.append({**ends, "key": "AGIS_closeness", "value": close})
            if i % 3 == 2:
                continue
            for key, sd in (("1w", 0.1), ("1d", 0.3), ("1h", 0.6)):
                value = max(0.01, round(float(np.exp(level[i] + sd * rng.normal())), 2))
                rows.append({**ends, "key": f"dashb_mbps_{key}", "value": value})
            queued = float(round(np.exp(3 + rng.normal())))
            rows.append({**ends, "key": "Production Output_queued", "value": queued})
            done = {"key": "Production Output_done_6h", "value": float(1 + round(6 * np.exp(level[i] / 2)))}  # fmt: skip
            rows += [{**ends, **done}, {**ends, **done, "ts": ts + timedelta(hours=6)}]
    return pl.DataFrame(rows).select("src", "dst", "key", "value", "ts")


def one_snapshot(links: int = 120, *, seed: int = 1, factor: float = 1.0) -> pl.DataFrame:
    """One snapshot whose windows are volumes over their lengths; a factor above 1 breaks that for the hour."""
    rng = np.random.default_rng(seed)
    level = rng.normal(1.0, 1.5, links)
    rows = []
    for i in range(links):
        ends = {"src": f"S{i % 30:02d}", "dst": f"D{i // 30}", "ts": NOON}
        before, middle, last = np.exp(level[i] + 0.5 * rng.normal(size=3))
        day = (23 * middle + last) / 24
        for key, value in (("1w", (6 * before + day) / 7), ("1d", day), ("1h", last * factor)):
            rows.append({**ends, "key": f"dashb_mbps_{key}", "value": float(value)})
        rows.append({**ends, "key": "AGIS_closeness", "value": float(1 + i % 11)})
    return pl.DataFrame(rows)


def windows(links: int = 100, *, spans: tuple[int, ...] = (28, 14, 7), seed: int = 1) -> pl.DataFrame:  # fmt: skip
    """Transfers in windows of so many days with a common end; the rate of a link is constant but for noise."""
    rng = np.random.default_rng(seed)
    end = datetime(2026, 3, 29)
    level = np.exp(rng.normal(23, 2.0, links))
    daily = level[:, None] * np.exp(0.5 * rng.standard_normal((links, max(spans))))
    rows = [
        {
            "src_site": f"S{i % 20:02d}",
            "dst_site": f"D{i // 20}",
            "from_date": end - timedelta(days=days),
            "to_date": end,
            "bytes_xs": int(daily[i, -days:].sum()),
        }
        for days in spans
        for i in range(links)
    ]
    return pl.DataFrame(rows)


def dumped_windows(links: int = 100) -> pl.DataFrame:
    """Return `windows` as they are dumped: times as text, named windows."""
    length = (pl.col("to_date") - pl.col("from_date")).dt.total_days()
    days = {28: "28days", 14: "14days", 7: "week"}
    named = windows(links=links).with_columns(
        window=length.replace_strict(days),
        interval_min=length * 1440,
        files_xs=pl.lit(1),
        errors_xs=pl.lit(0),
    )
    return named.with_columns(pl.col("from_date", "to_date").dt.strftime("%Y-%m-%dT%H:%M:%S"))
