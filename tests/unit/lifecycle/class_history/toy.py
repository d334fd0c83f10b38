"""A toy archive whose classes are known: a fast, a middling and a slow queue, one where nothing is merged, one unused."""

from datetime import datetime, timedelta

import polars as pl

from brokerlab.archive.writer import ArchiveWriter

START = datetime(2026, 3, 1)
HOURS = 8 * 24
WAITS = {"FAST": (60, 120, 180), "MID": (6000, 7200, 8400), "SLOW": (16_000, 18_000, 20_000)}
"""Waits at the queues [s]; jobs of each come three times an hour. At EMPTY nothing is merged."""
DICE = {"n_boot": 50, "seed": 1}


def job(number, queue, made, wait_s, **values):
    start = made + timedelta(seconds=wait_s)
    end = start + timedelta(hours=1)
    row = {"pandaid": number, "jeditaskid": 1, "computingsite": queue, "prodsourcelabel": "user",
           "gshare": "User Analysis", "processingtype": "pmerge", "produsername": "ann", "vo": "atlas",
           "jobstatus": "finished", "corecount": 1, "hs06": 10, "creationtime": made, "activatedtime": made,
           "starttime": start, "endtime": end, "modificationtime": end, "statechangetime": end}  # fmt: skip
    return row | values


def jobs():
    """Merge jobs of three queues, and one analysis job an hour at each of four."""
    rows = []
    for hour in range(HOURS):
        for queue, waits in WAITS.items():
            for minute, wait in zip((5, 25, 45), waits, strict=True):
                made = START + timedelta(hours=hour, minutes=minute)
                rows.append(job(len(rows), queue, made, wait))
        for queue in (*WAITS, "EMPTY"):
            wait = WAITS.get(queue, (600, 600))[1]
            made = START + timedelta(hours=hour, minutes=50)
            rows.append(job(len(rows), queue, made, wait, processingtype="run", corecount=8))
    return pl.DataFrame(rows)


def write_jobs(folder, table):
    with ArchiveWriter(folder) as writer:
        writer.write("jobs", table)
        writer.commit()
    return folder


def write_archive(folder):
    queues = pl.DataFrame(
        {
            "panda_queue": [*WAITS, "EMPTY", "NEVER"],
            "resource_type_q": "GRID",
            "workflow": "pull",
            "type": "analysis",
            "status": "online",
        }
    )
    shares = {"name": ["User Analysis", "Rest"], "value": [1.0, 3.0], "parent": [None, None]}
    with ArchiveWriter(folder) as writer:
        writer.write("jobs", jobs())
        writer.write("queues", queues)
        writer.write("gshares", pl.DataFrame(shares, schema_overrides={"parent": pl.String}))
        writer.commit()
    return folder
