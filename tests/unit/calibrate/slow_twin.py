"""The back-test once more as plain loops over dictionaries, in the words of the chapters."""

from __future__ import annotations

import math
from statistics import median

import polars as pl

from brokerlab.numerics import percentile


def scouts_of(jobs: list[dict], *, scouts_used: str) -> tuple[list[dict], list[dict]]:
    jobs = sorted(jobs, key=lambda j: (j["creationtime"], j["pandaid"]))
    scouts = [j for j in jobs if j["is_scout"]] or jobs[:10]
    ids = {j["pandaid"] for j in scouts}
    rest = [j for j in jobs if j["pandaid"] not in ids]
    if scouts_used == "half":
        finished = sorted(j["finish_time"] for j in scouts)
        at = finished[(len(scouts) + 1) // 2 - 1]
        scouts = [j for j in scouts if j["finish_time"] <= at]
    return scouts, rest


def estimate(
    parameter: str, scouts: list[dict], rank: int, margin: int, rules: str, ram_min: int | None
):
    if parameter == "ramcount":
        kb = [j["ram_kb"] for j in scouts if j["ram_kb"] is not None]
        if rules == "document":
            values = [x / 1024 * (1 + margin / 100) for x in kb]
            values = values if ram_min is None else [max(v, ram_min) for v in values]
            r = int(percentile(values, rank)[0])
            return len(kb), 1 if r < 0 else r
        q = percentile(kb, rank)[0]
        r = int(q * (100 + margin) // 100 / 1024)
        r = 1 if r < 0 else r
        return len(kb), r if ram_min is None else max(r, ram_min)
    if parameter == "cputime":
        values = [j["cputime_hs06s"] for j in scouts if j["cputime_eligible"]]
        if not values:
            return 0, 0
        v = percentile(values, rank)[0] * ((100 + margin) / 100)
        return len(values), math.ceil(v * 1000) if v < 10 else math.ceil(v) * 1000
    values = [j["outdisk_bytes"] for j in scouts if j["outdisk_bytes"] is not None]
    kb = percentile(values, rank)[0] / 1024
    return len(values), int(kb if rules == "document" else min(kb, 10240))


def attempts(parameter: str, job: dict, task: dict, x: int, factors, compensation: float):
    """Yield (killed, reserved, core-hours burnt if killed) of each attempt, first and retries."""
    hours, cores = job["duration_s"] / 3600, job["cores"]
    for f in factors:
        if parameter == "ramcount":
            wide = x * cores + task["baseramcount"] if job["ram_per_core"] else x
            request = wide * compensation * f
            killed = job["maxpss_kb"] > int(request) * 1024
            yield killed, request / 1024 * hours, cores * hours
        elif parameter == "cputime":
            limit = (
                x
                / 1000
                * job["n_events"]
                / cores
                / job["corepower"]
                / (task["cpuefficiency"] / 100)
            )
            limit = (limit + task["basewalltime"]) * f
            killed = job["duration_s"] > int(limit)
            yield killed, limit * cores / 3600, limit * cores / 3600
        else:
            size = job["n_events"] if job["outdisk_per_event"] else job["input_mb"]
            room = (x * 1024 * size + 300 * 2**20) * f
            yield job["outputfilebytes"] > room, room / 2**30, cores * hours


def by_task(
    quantities: pl.DataFrame,
    tasks: pl.DataFrame,
    parameter: str,
    settings,
    *,
    rules="document",
    scouts_used="half",
    ram_min=None,
    retry_factors=(2.0,),
    compensation=1.0,
    killed_after=1.0,
    min_scored=20,
) -> list[dict]:
    rows = []
    facts = {t["jeditaskid"]: t for t in tasks.iter_rows(named=True)}
    for (taskid,), jobs in sorted(quantities.group_by("jeditaskid")):
        scouts, rest = scouts_of(list(jobs.iter_rows(named=True)), scouts_used=scouts_used)
        for rank, margin in settings:
            n_scouts, x = estimate(parameter, scouts, rank, margin, rules, ram_min)
            if n_scouts == 0 or len(rest) < min_scored:
                continue
            row = {
                "jeditaskid": taskid,
                "rank": rank,
                "margin_pct": margin,
                "estimate": x,
                "n_scouts": n_scouts,
            }
            total = dict.fromkeys(
                ["n_exceed", "n_lost", "used", "over", "waste", "killed_coreh", "work"], 0.0
            )
            for job in rest:
                hours = job["duration_s"] / 3600
                used = {
                    "ramcount": job["maxpss_kb"] / 2**20 * hours,
                    "cputime": job["cores"] * hours,
                    "outdiskcount": job["outputfilebytes"] / 2**30,
                }[parameter]
                share = 1.0 if parameter == "cputime" else killed_after
                tries = list(
                    attempts(parameter, job, facts[taskid], x, (1.0, *retry_factors), compensation)
                )
                total["n_exceed"] += tries[0][0]
                total["work"] += job["cores"] * hours
                for killed, reserved, burnt in tries:
                    if not killed:
                        total["used"] += used
                        total["over"] += reserved - used
                        break
                    total["waste"] += reserved * share
                    total["killed_coreh"] += burnt * share
                else:
                    total["n_lost"] += 1
            rows.append(
                {
                    **row,
                    "n_scored": len(rest),
                    "cores": round(median(j["cores"] for j in rest)),
                    **total,
                }
            )
    return rows
