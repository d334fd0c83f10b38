"""Archives whose names are odd: what a page makes of them is looked at with all else that it says."""

import shutil
import zlib
from pathlib import Path

import polars as pl

from brokerlab import archive as archives
from brokerlab.archive.writer import ArchiveWriter
from brokerlab.worlds import synthesise

ODD = (
    "{}<odd onload='alert(1)'>",
    "{}</script></odd><odd>",
    "{}\"'`|${{x}}$\\n%s{{{{7*7}}}}",
    "{}\nline\ttab\r\0nul\u2028",
    "\u202e{}\u202c\u200b",
    "💥{}é\u0301",
    "=1+{}",
    " {} ",
    "../{}/..",
    "{}" + "long" * 900,
)
"""What is made of names."""
NAMED = (
    *("computingsite", "panda_queue", "pandaqueuename", "site", "atlas_site", "site_name", "src", "dst", "nucleus"),
    *("ddm_endpoint_name", "cloud", "region", "produsername", "username", "origusername", "workinggroup", "gshare"),
    *("name", "parent", "taskname", "processingtype", "campaign", "transformation", "transpath", "transuses"),
    *("container_name", "datasetname", "lfn", "modificationhost", "harvester_id", "model", "vendor"),
)  # fmt: skip
"""Columns of names."""
WORDS = {"ALL", "User Analysis", "pmerge"}
"""Names that rules know."""


def odd_names(_: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Change every name, one name the same way in all tables."""
    named = [column for column in NAMED if column in frame.columns]
    names = {name for column in named for name in frame[column].drop_nulls().unique()} - WORDS
    return frame.with_columns(pl.col(named).replace({name: odd_name(name) for name in names}))


def odd_name(name: str) -> str:
    return ODD[zlib.crc32(name.encode()) % len(ODD)].format(name)


def synthesise_odd(folder: Path, *, jobs: int, days: int, seed: int) -> Path:
    """Write a synthetic archive, its names changed, and return its folder."""
    plain = folder.with_name(f"{folder.name}-plain")
    synthesise(plain, jobs=jobs, days=days, seed=seed)
    given = archives.open(plain)
    with ArchiveWriter(folder, synthetic=True) as writer:
        for table in given.tables:
            writer.write(table, odd_names(table, given.scan(table).collect()))
        writer.commit()
    shutil.copytree(plain / "truth", folder / "truth")
    return folder
