"""Jobs of one's own, under foreign names and units: one command, and pages; from a frame of pandas the same archive."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import brokerlab
from brokerlab.calibrate.percentiles.history import MERGES_UNKNOWN
from brokerlab.cli import app
from brokerlab.report import check
from brokerlab.report.kit import VARIABLE
from tests.notebooks import pages
from tests.notebooks.pages import check_page

COLUMNS = {
    "PandaID": "pandaid",
    "TaskID": "jeditaskid",
    "Site": "computingsite",
    "State": "jobstatus",
    "submitted": "creationtime",
    "started": "starttime",
    "ended": "endtime",
    "changed": "modificationtime",
    "cpu_time": "cpuconsumptiontime",
    "MaxPSS_MB": "maxpss",
    "cores": "corecount",
    "gshare": "gshare",
}
UNITS, DEFAULTS = {"maxpss": "MB"}, {"prodsourcelabel": "managed"}
REPORTS = (
    "scout_percentiles",
    "memory_estimator",
    "walltime_estimator",
    "waiting_rules",
    # what `test_explore.py` does without tasks and queues, in canonical names, it does of jobs of one's own
    pytest.param("explore", marks=pytest.mark.long),
)


@pytest.fixture(scope="module")
def export(archive: Path) -> pl.DataFrame:
    """What a database gave: jobs of every other production task, memory in MB, no other table."""
    mine = (pl.col("prodsourcelabel") == "managed") & (pl.col("jeditaskid") % 2 == 0)
    jobs = brokerlab.open(archive).scan("jobs").filter(mine)
    own = jobs.with_columns((pl.col("maxpss") / 1024).round(1)).collect()
    return own.select(**{theirs: pl.col(ours) for theirs, ours in COLUMNS.items()})


@pytest.fixture(scope="module")
def mine(export: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive that one command makes of it."""
    folder = tmp_path_factory.mktemp("own")
    export.write_csv(folder / "jobs.csv")
    renamed = [f"{theirs}={ours}" for theirs, ours in COLUMNS.items() if theirs.lower() != ours]
    options = [word for pair in renamed for word in ("--map", pair)]
    options += ["--unit", "maxpss=MB", "--default", "prodsourcelabel=managed", "--table", "jobs"]
    done = CliRunner().invoke(
        app, ["ingest", str(folder / "jobs.csv"), "--into", str(folder / "a"), *options]
    )
    assert done.exit_code == 0, done.stderr
    assert f"{export.height} accepted + 0 quarantined" in done.stdout
    return folder / "a"


@pytest.mark.parametrize("name", REPORTS)
def test_jobs_of_ones_own_give_pages(
    name: str, mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none"))  # real data would stand in for the archive
    report = import_module(f"brokerlab.report.{name}")
    asked: dict[str, object] = {"archive": str(mine), "out_dir": str(tmp_path), "n_boot": 20}
    asked["models"] = ["hierarchy"]  # all of them are asked in `test_poor_archives.py`
    pages.run(
        report,
        report.Params.checked({n: v for n, v in asked.items() if n in report.Params.model_fields}),
    )
    page = check_page(tmp_path)["page"]
    if name == "scout_percentiles":  # the export has no processing type
        assert MERGES_UNKNOWN in page["cannot_tell"]
    if name == "walltime_estimator":
        assert {"archive", "model"} <= {part["name"] for part in page["parts"]}
    assert page["verdict"]["kind"] not in ("no_answer", "failed"), page["verdict"]["sentence"]
    assert page["synthetic"] is False  # the export does not say so
    assert "generated" not in " ".join(page["cannot_tell"])
    assert dict(check(mine).select("report", "can_run").iter_rows())[name.replace("_", "-")]


def test_a_frame_of_pandas_gives_the_same_archive(
    export: pl.DataFrame, mine: Path, tmp_path: Path
) -> None:
    renamed = {theirs: ours for theirs, ours in COLUMNS.items() if theirs.lower() != ours}
    mapping = {"columns": renamed, "units": UNITS, "defaults": DEFAULTS}
    report = brokerlab.ingest(export.to_pandas(), tmp_path / "a", table="jobs", mapping=mapping)
    assert report.frame()["accepted"].sum() == export.height
    assert brokerlab.open(tmp_path / "a").digest == brokerlab.open(mine).digest
