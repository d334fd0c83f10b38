"""The baseline of one call per task: plain Python over the task's rows, with the scalar formulas."""

from __future__ import annotations

import math
from typing import Any

from brokerlab.numerics import percentile
from brokerlab.units import MB
from tests.twins import scout_formulas as formulas

Row = dict[str, Any]


def parameters_of(task: Row, jobs: list[Row], files: list[Row], power: dict[str, float]) -> Row:
    """Compute the scout parameters of one task, job after job."""
    sizes: dict[int, float] = {}
    events: dict[int, int] = {}
    for row in files:
        if row["status"] == "finished" and row["type"] in ("input", "pseudo_input"):
            job = row["pandaid"]
            size = formulas.effective_file_size_mb(row["fsize"], None, None, row["nevents"])
            sizes[job] = sizes.get(job, 0.0) + size
            events[job] = events.get(job, 0) + formulas.effective_num_events(
                None, None, row["nevents"]
            )
    lists: dict[str, list[float]] = {
        name: [] for name in ("cputime", "ram", "out", "work", "io", "disk", "cpu", "eff", "leak")
    }
    for job in jobs:
        if job["jobstatus"] != "finished" or job["pandaid"] not in sizes:
            continue
        _add(lists, task, job, sizes[job["pandaid"]], events[job["pandaid"]], power)
    return {
        "cputime": math.ceil(percentile(lists["cputime"], 95)[0] * 1.5),
        "ramcount": int(percentile(lists["ram"], 75)[0] * 110 // 100 / 1024),
        "outdiskcount": int(min(percentile(lists["out"], 75)[0] / 1024, 10_240)),
        "workdiskcount": int(max(lists["work"])),
        "iointensity": math.ceil(max(lists["io"])),
        "diskio": math.ceil(sum(lists["disk"]) // len(lists["disk"])),
        "walltime": math.ceil(max(lists["cpu"]) / max(sizes.values()) * 1.5),
        "efficiency": int(percentile(lists["eff"], 50)[0]),
        "memory_leak": math.ceil(sum(lists["leak"]) / len(lists["leak"])),
    }


def _add(
    lists: dict[str, list[float]], task: Row, job: Row, size: float, n: int, power: dict[str, float]
) -> None:
    """Append what one job says."""
    cores = formulas.core_count(job["actualcorecount"], job["corecount"], job["jobmetrics"])
    seconds = formulas.duration_s(job["starttime"], job["endtime"]) or 1
    work = formulas.hs06sec(
        job["starttime"],
        job["endtime"],
        corepower=power.get(job["computingsite"], 10.0),
        cores=cores,
        basewalltime=task["basewalltime"],
        cpuefficiency=task["cpuefficiency"],
    )
    if n >= 10 * cores or seconds > 6 * 3600:
        lists["cputime"].append((work or 0.0) / n if n > 0 else work or 0.0)
    lists["ram"].append(math.ceil((job["maxpss"] - task["baseramcount"] * 1024) / cores))
    if n >= 10:
        lists["out"].append(math.ceil(job["outputfilebytes"] / n))
    metrics = dict(item.split("=", 1) for item in job["jobmetrics"].split())
    lists["work"].append(int(metrics.get("workDirSize", 0)) / MB)
    lists["io"].append((size * 1024 + job["outputfilebytes"] / 1024) / seconds)
    lists["disk"].append((job["totrbytes"] + job["totwbytes"]) / seconds)
    lists["cpu"].append(job["cpuconsumptiontime"])
    lists["eff"].append(math.ceil(job["cpuconsumptiontime"] / (cores * seconds) * 100))
    lists["leak"].append(math.ceil(job["memory_leak"] / cores))
