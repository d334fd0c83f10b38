import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import polars.selectors as cs
import pytest

import brokerlab.archive
from brokerlab import worlds
from brokerlab.archive import ArchiveWriter
from brokerlab.archive.manifest import Manifest
from brokerlab.errors import DataError
from brokerlab.worlds import generate, settings


def make(path: Path, **settings: object) -> Manifest:
    return worlds.synthesise(path, **{"jobs": 500, "days": 2.0, "seed": 1, **settings})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive as `make` makes it; nothing writes into it."""
    path = tmp_path_factory.mktemp("drawn") / "a"
    make(path)
    return path


@pytest.fixture
def first(drawn: Path, tmp_path: Path) -> Manifest:
    """Lay a copy of it in ``a``, and return its manifest."""
    shutil.copytree(drawn, tmp_path / "a")
    return brokerlab.archive.open(tmp_path / "a").manifest


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make archives of several blocks that need not be large."""
    monkeypatch.setattr(generate, "BLOCK_JOBS", 400)


def test_same_seed_same_bytes_other_seed_other_bytes(first: Manifest, tmp_path: Path) -> None:
    second = make(tmp_path / "b")
    assert first.digest == second.digest
    for file in first.files():
        assert (tmp_path / "a" / file.path).read_bytes() == (
            tmp_path / "b" / file.path
        ).read_bytes()
    digests = {
        first.digest,
        make(tmp_path / "c", seed=2).digest,
        make(tmp_path / "d", drift=0.3).digest,
    }
    assert len(digests) == 3


def digest_of_rows(folder: Path) -> str:
    """Digest every table as text, floats to six digits: maths libraries differ in the last ones."""
    opened, digest = brokerlab.archive.open(folder), hashlib.sha256()
    frames = {name: opened.scan(name).collect() for name in opened.tables}
    frames |= {f"truth/{name}": opened.truth(name) for name in opened.manifest.truth}
    for name, frame in sorted(frames.items()):
        rounded = frame.with_columns(cs.float().round_sig_figs(6))
        rows = rounded.select(sorted(rounded.columns)).write_csv().splitlines()
        digest.update("\n".join([name, rows[0], *sorted(rows[1:])]).encode())
    return digest.hexdigest()


def test_another_generator_has_another_version(drawn: Path) -> None:
    """An archive on disk is taken for the one asked for by the version in its note, not by its rows."""
    versioned = (worlds.GENERATOR_VERSION, digest_of_rows(drawn))
    assert versioned == (7, "c3dc522e969f67ed3943a64a83d1e326f3d69971d0dcae2466ea7fc84488f6ec"), (
        "the generator makes other rows: raise GENERATOR_VERSION, then pin both here"
    )


def test_archive_of_another_generator_is_made_anew(
    first: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "GENERATOR_VERSION", worlds.GENERATOR_VERSION + 1)
    assert worlds.is_made(tmp_path / "a", jobs=500, days=2.0, seed=1) is None
    again = make(tmp_path / "a")
    assert again.digest == first.digest
    assert again.note != first.note


@pytest.mark.usefixtures("small_blocks")
def test_bytes_do_not_depend_on_threads(tmp_path: Path) -> None:
    code = (
        "import sys; from brokerlab.worlds import generate, synthesise;"
        "generate.BLOCK_JOBS = 400;"
        "print(synthesise(sys.argv[1], jobs=1_200, days=2, seed=5).digest)"
    )
    other = "1" if pl.thread_pool_size() > 1 else "4"
    here = worlds.synthesise(tmp_path / "many", jobs=1_200, days=2, seed=5)
    ran = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", code, str(tmp_path / "one")],
        env={**os.environ, "POLARS_MAX_THREADS": other, "OMP_NUM_THREADS": other},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ran.stdout.strip() == here.digest


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("jobs", [1, 9, 10, 11, 200, 400, 401, 1200])
def test_number_of_jobs_is_met_exactly(tmp_path: Path, jobs: int) -> None:
    manifest = make(tmp_path / "a", jobs=jobs)
    assert manifest.counts["jobs"] == jobs


@pytest.mark.usefixtures("small_blocks")
def test_several_blocks_have_unique_ordered_ids(tmp_path: Path) -> None:
    make(tmp_path / "a", jobs=1_700)
    jobs = brokerlab.archive.open(tmp_path / "a").scan("jobs").collect().sort("pandaid")
    assert jobs["pandaid"].n_unique() == 1_700
    assert jobs["creationtime"].is_sorted()
    tasks = brokerlab.archive.open(tmp_path / "a").scan("tasks").collect().sort("jeditaskid")
    assert tasks["jeditaskid"].n_unique() == len(tasks)
    assert tasks["creationdate"].is_sorted()


def test_made_again_is_a_no_op(first: Manifest, tmp_path: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "a").rglob("*.parquet")}
    calls: list[float] = []
    again = worlds.synthesise(
        tmp_path / "a", jobs=500, days=2.0, seed=1, progress=lambda _, done: calls.append(done)
    )
    assert again == first
    assert calls == []
    assert before == {p: p.stat().st_mtime_ns for p in (tmp_path / "a").rglob("*.parquet")}


def test_a_lost_file_is_made_again(first: Manifest, tmp_path: Path) -> None:
    (tmp_path / "a" / first.files()[0].path).unlink()
    again = make(tmp_path / "a")
    assert again.digest == first.digest
    assert all((tmp_path / "a" / file.path).is_file() for file in again.files())


@pytest.mark.usefixtures("first")
def test_another_synthetic_archive_is_replaced(tmp_path: Path) -> None:
    second = make(tmp_path / "a", seed=2, jobs=700)
    assert second.counts["jobs"] == 700
    assert second.digest == make(tmp_path / "b", seed=2, jobs=700).digest
    opened = brokerlab.archive.open(tmp_path / "a")
    planted = opened.truth("planted")["jeditaskid"].n_unique()
    assert len(opened.truth("tasks")) + planted == second.counts["tasks"]


def test_a_real_archive_is_never_replaced(tmp_path: Path) -> None:
    with ArchiveWriter(tmp_path / "real") as writer:
        writer.write("resource_types", pl.DataFrame({"resource_name": ["SCORE"]}))
        writer.commit()
    with pytest.raises(DataError, match="holds a real archive"):
        make(tmp_path / "real")
    assert brokerlab.archive.open(tmp_path / "real").tables == ["resource_types"]


@pytest.mark.usefixtures("small_blocks")
def test_killed_in_the_middle_leaves_the_old_archive(first: Manifest, tmp_path: Path) -> None:
    def stop(what: str, part: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        worlds.synthesise(tmp_path / "a", jobs=1_400, days=2.0, seed=1, progress=stop)
    assert brokerlab.archive.open(tmp_path / "a").digest == first.digest


def test_manifest_says_synthetic(first: Manifest) -> None:
    assert first.synthetic
    assert "generated by brokerlab" in first.note
    assert '"jobs": 500' in first.note


def test_tasks_too_small_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="raise max_task_jobs"):
        make(tmp_path / "a", jobs=20_000, max_task_jobs=1)
    assert not (tmp_path / "a" / "manifest.json").exists()


def test_later_part_drifts(tmp_path: Path) -> None:
    make(tmp_path / "a", jobs=3_000, drift=0.4, days=6.0)
    make(tmp_path / "b", jobs=3_000, drift=0.0, days=6.0)
    a, b = (brokerlab.archive.open(tmp_path / x).truth("tasks") for x in ("a", "b"))
    both = a.join(b, on="jeditaskid", suffix="_plain")
    assert 5 < both["late"].sum() < both.height - 5
    shift = both["maxpss_core_mb"].log() - both["maxpss_core_mb_plain"].log()
    assert shift.filter(both["late"]).to_numpy() == pytest.approx(0.4)
    assert shift.filter(~both["late"]).to_numpy() == pytest.approx(0.0)
    gap = both["maxpss_scout_gap"] - both["maxpss_scout_gap_plain"]
    assert gap.filter(both["late"]).to_numpy() == pytest.approx(-0.2)
