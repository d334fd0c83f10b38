"""Small aggregated frames, one per chart, as a back-test would give them."""

import numpy as np
import polars as pl


def settings() -> pl.DataFrame:
    rows = []
    for rank in range(50, 100, 5):
        for margin in range(0, 31, 2):
            waste = 2.0 + (rank - 50) * 0.25 + margin * 0.9
            exceed = 0.35 * np.exp(-waste / 7)
            name = {(75, 10): "current", (85, 4): "proposed"}.get((rank, margin))
            rows.append(
                (
                    f"rank {rank}, margin {margin} %",
                    name,
                    waste,
                    exceed,
                    exceed * 0.8,
                    exceed * 1.25,
                    rank == 85,
                )
            )
    columns = ["label", "setting", "waste_pct", "exceed_rate", "exceed_lo", "exceed_hi", "frontier"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def strata() -> pl.DataFrame:
    rows = []
    for stratum, levels in {
        "processing type": ["reco", "deriv", "simul", "evgen"],
        "gshare": ["MC 16", "Reprocessing", "Group production"],
        "cores": ["8", "1"],
        "scouts used": ["3", "5", "6"],
    }.items():
        for i, level in enumerate(levels):
            for setting, factor in (("current", 1.0), ("proposed", 1.3)):
                rate = factor * (0.03 - 0.006 * i)
                rows.append((stratum, level, setting, rate, rate * 0.6, rate * 1.7, 40 + i))
    columns = ["stratum", "level", "setting", "exceed_rate", "exceed_lo", "exceed_hi", "n_tasks"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def coverage() -> pl.DataFrame:
    rows = []
    for n in range(3, 11):
        for setting, shift in (("current", 0.0), ("proposed", 0.005)):
            k = (n - 1) * 0.75
            rows.append(
                (
                    n,
                    (int(k) + 1) / (n + 1),
                    (k + 1) / (n + 1),
                    (int(k) + 2) / (n + 1),
                    setting,
                    0.97 - shift,
                    0.95 - shift,
                    0.985 - shift,
                )
            )
    columns = [
        "n_scouts",
        "promised_lo",
        "promised",
        "promised_hi",
        "setting",
        "observed",
        "observed_lo",
        "observed_hi",
    ]
    return pl.DataFrame(rows, schema=columns, orient="row")


def spread() -> pl.DataFrame:
    shares = np.linspace(0, 1, 101)
    parts = [
        pl.DataFrame(
            {
                "setting": [name] * 101,
                "share_of_tasks": shares,
                "ratio": np.exp(mid + 0.1 * np.sinh(4 * (shares - 0.5))),
            }
        )
        for name, mid in (("current", 0.12), ("proposed", 0.08))
    ]
    return pl.concat(parts)


def effects() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "quantity": [
                "memory reserved",
                "memory reserved and not used",
                "jobs killed",
                "core-hours of killed attempts",
            ],
            "difference_pct": [-4.1, -20.0, 33.0, 25.0],
            "lo_pct": [-5.0, -25.0, 10.0, 1.0],
            "hi_pct": [-3.2, -15.0, 60.0, 50.0],
        }
    )


def gap() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "level": ["all", "reco", "deriv", "evgen"],
            "difference_pct": [1.2, 3.0, -2.0, 0.1],
            "lo_pct": [0.5, 1.0, -4.0, -1.0],
            "hi_pct": [1.9, 5.0, 0.0, 1.2],
            "n_tasks": [120, 40, 60, 20],
        }
    )
