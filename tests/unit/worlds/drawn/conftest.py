"""One archive of 50,000 jobs for all tests of this folder; nothing writes into it."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

import brokerlab.archive
from brokerlab import worlds
from brokerlab.archive.manifest import Manifest


@dataclass(frozen=True)
class Made:
    path: Path
    manifest: Manifest
    tables: dict[str, pl.DataFrame]
    truth: pl.DataFrame
    truth_queues: pl.DataFrame

    @property
    def jobs(self) -> pl.DataFrame:
        """Jobs of the tasks that have a truth, without their builds."""
        jobs = self.tables["jobs"].filter(pl.col("prodsourcelabel") != "panda")
        return jobs.join(self.truth, on="jeditaskid", how="semi")

    @property
    def tasks(self) -> pl.DataFrame:
        """Tasks that have a truth: those that were drawn, not laid out one by one."""
        return self.tables["tasks"].join(self.truth, on="jeditaskid", how="semi")

    @property
    def planted(self) -> pl.DataFrame:
        """Jobs that were laid out one by one, and what they show."""
        return brokerlab.archive.open(self.path).truth("planted")

    @property
    def done(self) -> pl.DataFrame:
        """Finished jobs other than merges, with what the shapes are about."""
        wall = (pl.col("endtime") - pl.col("starttime")).dt.total_seconds()
        return (
            self.jobs.filter(jobstatus="finished")
            .filter(pl.col("processingtype") != "pmerge")
            .join(self.truth.select("jeditaskid", "job_type", "ref_cores"), on="jeditaskid")
            .with_columns(
                scout=pl.col("specialhandling").eq_missing("sj"),
                wall_s=wall,
                wait_s=(pl.col("starttime") - pl.col("creationtime")).dt.total_seconds(),
                ln_mem=pl.col("maxpss").log(),
                ln_wall=wall.log(),
                eff=pl.col("cpuconsumptiontime") / wall / pl.col("corecount"),
            )
        )

    @property
    def bulk(self) -> pl.DataFrame:
        return self.done.filter(~pl.col("scout"))


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    path = tmp_path_factory.mktemp("synthetic") / "archive"
    manifest = worlds.synthesise(path, jobs=50_000, days=20, seed=11)
    archive = brokerlab.archive.open(path)
    tables = {name: archive.scan(name).collect() for name in archive.tables}
    return Made(path, manifest, tables, archive.truth("tasks"), archive.truth("queues"))
