"""An archive folder is whole, lazy, and says clearly what is wrong with it."""

import functools
import json
import shutil
import subprocess
import sys
import textwrap

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from brokerlab import archive
from brokerlab.archive import store, writer
from brokerlab.archive.contracts import fitted
from brokerlab.archive.manifest import SCHEMA_VERSION, Manifest, Source
from brokerlab.errors import ConfigError, DataError, SchemaError


@pytest.fixture
def folder(tmp_path, make_jobs):
    path = tmp_path / "archive"
    with archive.ArchiveWriter(path, note="n", created="2026-04-01T00:00:00Z") as writer:
        writer.write("jobs", make_jobs(6, jobstatus=["finished"] * 5 + ["failed"]))
        writer.write("resource_types", pl.DataFrame({"resource_name": ["SCORE"]}))
        writer.commit(sources=["by hand"])
    return path


def edit(folder, **changes):
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_tables_are_relations_lazy_frames_and_views(folder):
    opened = archive.open(folder)
    assert opened.tables == ["jobs", "resource_types"]
    assert isinstance(opened.jobs, duckdb.DuckDBPyRelation)
    assert opened.jobs.aggregate("count(*)").fetchall() == [(6,)]
    assert opened.scan("jobs").select(pl.len()).collect().item() == 6
    found = opened.sql("select pandaid from jobs where pandaid > $n order by 1", params={"n": 4})
    assert found.pl()["pandaid"].to_list() == [5, 6]
    assert opened.has("jobs")
    assert not opened.has("files")


def test_letters_of_a_folder_are_no_pattern(folder, tmp_path):
    opened = archive.open(folder.rename(tmp_path / "run [1]"))
    shutil.copytree(opened.path, meant := tmp_path / "run 1")  # by the name as a pattern
    for file in meant.rglob("*.parquet"):
        file.write_bytes(b"")
    assert opened.sql("select count(*) from jobs").fetchall() == [(6,)]
    assert opened.scan("jobs").select(pl.len()).collect().item() == 6


@pytest.mark.parametrize(
    "query",
    [
        "show tables",
        "select table_name from information_schema.tables where table_name != 'quarantine'",
        "SELECT view_name FROM duckdb_views() WHERE NOT internal AND view_name IN ('jobs', 'resource_types')",
    ],
)
def test_a_query_may_list_tables_that_it_does_not_name(folder, query):
    opened = archive.open(folder)
    assert opened.sql("select count(*) from jobs").fetchall() == [(6,)]
    assert sorted(opened.sql(query).fetchall()) == [("jobs",), ("resource_types",)]


def test_a_table_may_be_asked_for_while_another_is_read(folder):
    opened = archive.open(folder)
    rows = opened.jobs.order("pandaid").select("pandaid").to_arrow_reader(1)
    first = next(rows)
    assert opened.resource_types.columns[0] == "resource_name"
    assert [one["pandaid"][0].as_py() for one in (first, *rows)] == [1, 2, 3, 4, 5, 6]


def test_the_manifest_counts_and_dates(folder):
    manifest = archive.open(folder).manifest
    assert manifest.schema_version == SCHEMA_VERSION
    assert manifest.counts == {"jobs": 6, "resource_types": 1}
    assert manifest.window == ("2026-03-01T00:12:00", "2026-03-02T21:12:00")
    assert (manifest.note, manifest.created) == ("n", "2026-04-01T00:00:00Z")
    assert manifest.sources == (Source(name="by hand"),)


def test_jobs_stand_in_one_folder_per_day(folder):
    days = sorted(p.name for p in (folder / "jobs").iterdir())
    assert days == ["day=2026-03-01", "day=2026-03-02"]
    assert "day" not in archive.open(folder).scan("jobs").collect_schema()
    assert "day" not in archive.open(folder).jobs.columns


def test_times_stay_utc_in_duckdb(folder):
    found = archive.open(folder).sql("select min(modificationtime) as t from jobs").pl()
    assert found.schema["t"] == pl.Datetime("us")
    assert str(found["t"][0]) == "2026-03-01 00:12:00"


def test_a_missing_table_says_what_there_is(folder):
    opened = archive.open(folder)
    for use in (lambda: opened.files, lambda: opened.scan("files")):
        with pytest.raises(
            DataError, match=r"has no table 'files'; there is: jobs, resource_types"
        ):
            use()
    with pytest.raises(AttributeError, match=r"an archive has no 'jbs'; did you mean 'jobs'\?"):
        opened.jbs  # noqa: B018
    with pytest.raises(SchemaError, match=r"unknown table 'jbs'"):
        opened.has("jbs")
    with pytest.raises(DataError, match="no truth 'tasks'; there is: none"):
        opened.truth("tasks")


def test_a_wrong_query_keeps_the_words_of_duckdb(folder):
    with pytest.raises(DataError, match=r"(?s)query: .*nowhere.*tables: jobs, resource_types"):
        archive.open(folder).sql("select * from nowhere")


def test_an_archive_shows_itself(tmp_path, make_jobs):
    path = tmp_path / "<b>archive"
    with archive.ArchiveWriter(path) as writer:
        writer.write("jobs", make_jobs(4))
        writer.commit()
    opened = archive.open(path)
    html = opened._repr_html_()
    assert "2026-03-01T00:12:00" in html
    assert "<tr><td>jobs</td><td>4</td></tr>" in html
    assert "<b>" not in html


def test_an_archive_without_jobs_shows_itself(tmp_path):
    with archive.ArchiveWriter(tmp_path) as writer:
        writer.commit()
    opened = archive.open(tmp_path)
    assert "0 sources" in opened._repr_html_()


@pytest.fixture
def sparse(tmp_path, make_jobs):
    """Parts that lack different columns of the contract, and rows as they were given."""
    parts = [
        make_jobs(2, hs06=[None, 3], mine=pl.Series([None, None], dtype=pl.Int8)),
        make_jobs(2, pandaid=[3, 4], transexitcode=["0", None], inputfilebytes=[None, None]),
        make_jobs(1, pandaid=[5], computingsite=[None], mine=pl.Series([1], dtype=pl.Int8)),
    ]
    with archive.ArchiveWriter(tmp_path / "sparse") as opened:
        for part in parts:
            opened.write("jobs", part)
        opened.commit()
    whole = pl.concat([fitted("jobs", part) for part in parts], how="diagonal")
    return tmp_path / "sparse", whole.sort("pandaid")


def test_columns_that_are_null_in_a_part_are_not_in_its_file_and_read_as_null(sparse):
    folder, whole = sparse
    stored = [pl.read_parquet_schema(file) for file in (folder / "jobs").rglob("*.parquet")]
    assert {"hs06", "transexitcode", "inputfilebytes"} < {name for one in stored for name in one}
    assert not any("cloud" in one for one in stored)
    assert not all("hs06" in one for one in stored)
    opened = archive.open(folder)
    for engine in ("in-memory", "streaming"):
        assert_frame_equal(opened.scan("jobs").sort("pandaid").collect(engine=engine), whole)
    assert_frame_equal(opened.jobs.order("pandaid").pl(), whole)
    assert_frame_equal(opened.sql("select * from jobs order by pandaid").pl(), whole)
    null = pl.col("cloud").is_null() & pl.col("hs06").is_null()
    assert opened.scan("jobs").filter(null).select(pl.len()).collect().item() == 4
    query = "select count(*) from jobs where cloud is null and hs06 is null"
    assert opened.sql(query).fetchall() == [(4,)]


def test_archives_whose_files_have_all_columns_open_as_before(sparse, tmp_path, monkeypatch):
    _, whole = sparse
    monkeypatch.setattr(writer, "polars_schema", lambda _: {})
    monkeypatch.setattr(writer, "Manifest", functools.partial(Manifest, schema_version=1))
    with archive.ArchiveWriter(tmp_path / "old") as opened:
        opened.write("jobs", whole)
        opened.commit()
    monkeypatch.undo()
    one = archive.open(tmp_path / "old")
    assert one.manifest.schema_version == 1
    stored = [pl.read_parquet_schema(f) for f in (one.path / "jobs").rglob("*.parquet")]
    assert [[*each] for each in stored] == [whole.columns] * len(stored)
    more = whole.head(1).with_columns(pandaid=pl.lit(9, pl.Int64))
    with archive.ArchiveWriter(one.path) as opened:  # and can be written on
        opened.write("jobs", more)
        opened.commit()
    both = archive.open(one.path)
    for opened, rows in ((one, whole), (both, pl.concat([whole, more]))):
        assert_frame_equal(opened.scan("jobs").sort("pandaid").collect(), rows)
        assert_frame_equal(opened.sql("from jobs order by pandaid").pl(), rows)


def test_files_with_other_extra_columns_are_read_together(folder, make_jobs):
    with archive.ArchiveWriter(folder) as writer:
        writer.write("jobs", make_jobs(1, pandaid=[99], colour=["red"]))
        writer.commit()
    opened = archive.open(folder)
    assert opened.scan("jobs").collect()["colour"].drop_nulls().to_list() == ["red"]
    assert opened.sql("select count(colour) from jobs").fetchall() == [(1,)]


def test_same_rows_same_bytes_same_digest(tmp_path, make_jobs):
    digests = []
    for name in ("a", "b"):
        with archive.ArchiveWriter(tmp_path / name, synthetic=True) as writer:
            writer.write("jobs", make_jobs(50), trusted=True)
            writer.write_truth("tasks", pl.DataFrame({"jeditaskid": [7], "mean": [2.0]}))
            digests.append(writer.commit().digest)
    assert digests[0] == digests[1]
    files = [sorted((tmp_path / n).rglob("*.*")) for n in ("a", "b")]
    for left, right in zip(*files, strict=True):
        assert left.name == right.name
        if left.is_file():
            assert left.read_bytes() == right.read_bytes()
    assert archive.open(tmp_path / "a").truth("tasks")["mean"].to_list() == [2.0]


def test_the_digest_is_of_content_not_of_dates_or_sources(tmp_path, make_jobs):
    for name, created in (("a", "2026-01-01"), ("b", "2027-01-01")):
        with archive.ArchiveWriter(tmp_path / name, created=created, note=name) as writer:
            writer.write("jobs", make_jobs())
            writer.commit(sources=[name])
    assert archive.open(tmp_path / "a").digest == archive.open(tmp_path / "b").digest


def test_only_a_synthetic_archive_knows_the_truth(tmp_path):
    with (
        archive.ArchiveWriter(tmp_path) as writer,
        pytest.raises(DataError, match="only a synthetic archive knows the truth"),
    ):
        writer.write_truth("tasks", pl.DataFrame({"a": [1]}))


def test_real_and_synthetic_jobs_are_never_mixed(folder):
    with (
        pytest.raises(DataError, match="holds real jobs, synthetic ones were to be written"),
        archive.ArchiveWriter(folder, synthetic=True, mode="replace"),
    ):
        pass


def test_new_refuses_and_replace_drops_what_is_there(folder, make_jobs):
    with (
        pytest.raises(DataError, match="holds an archive already; choose another folder"),
        archive.ArchiveWriter(folder, mode="new"),
    ):
        pass
    with archive.ArchiveWriter(folder, mode="replace") as writer:
        writer.write("jobs", make_jobs(1))
        writer.commit()
    opened = archive.open(folder)
    assert opened.manifest.counts == {"jobs": 1}
    assert len(list(folder.rglob("*.parquet"))) == 1


def test_replacing_by_the_same_rows_gives_the_same_files(tmp_path, make_jobs):
    trees = []
    for _ in range(2):
        with archive.ArchiveWriter(tmp_path, synthetic=True, mode="replace") as writer:
            writer.write("jobs", make_jobs(4))
            writer.commit()
        trees.append({p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()})
    assert trees[0] == trees[1]


def test_two_writers_at_once_are_refused(folder):
    with (
        archive.ArchiveWriter(folder),
        pytest.raises(DataError, match="another process is writing"),
    ):
        archive.ArchiveWriter(folder).__enter__()


def test_a_writer_is_used_once_and_inside_with(tmp_path, make_jobs):
    writer = archive.ArchiveWriter(tmp_path)
    with pytest.raises(ConfigError, match="use it as 'with ArchiveWriter"):
        writer.write("jobs", make_jobs())
    with pytest.raises(ConfigError, match="mode 'x': allowed: append, replace, new"):
        archive.ArchiveWriter(tmp_path, mode="x")


def test_trusted_rows_still_need_the_required_columns(tmp_path):
    with (
        archive.ArchiveWriter(tmp_path) as writer,
        pytest.raises(DataError, match="tasks: required columns are missing: creationdate, "),
    ):
        writer.write("tasks", pl.DataFrame({"jeditaskid": [1]}), trusted=True)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_what_ends_a_writer_behind_the_switch_leaves_the_new_archive(
    folder, make_jobs, monkeypatch, error
):
    switch = writer._switch

    def switched(*given):
        switch(*given)
        raise error

    monkeypatch.setattr(writer, "_switch", switched)
    for place, n in ((folder, 8), (folder.parent / "first", 2)):
        with pytest.raises((error, DataError)), archive.ArchiveWriter(place) as grown:  # noqa: PT012
            grown.write("jobs", make_jobs(2, pandaid=[8, 9]))
            grown.commit()
        opened = archive.open(place)
        opened.verify()
        assert opened.scan("jobs").collect().height == n


def test_an_exception_leaves_the_old_archive_and_no_rubbish(folder, make_jobs):
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    with pytest.raises(RuntimeError), archive.ArchiveWriter(folder) as writer:  # noqa: PT012
        writer.write("jobs", make_jobs(3, pandaid=[100, 101, 102]))
        raise RuntimeError
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before


def test_a_run_killed_before_the_switch_leaves_the_old_archive(folder, make_jobs):
    digest = archive.open(folder).digest
    script = textwrap.dedent(
        """
        import os, signal, sys
        import polars as pl
        from brokerlab.archive import writer
        writer._switch = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        with writer.ArchiveWriter(sys.argv[1]) as opened:
            opened.write("resource_types", pl.DataFrame({"resource_name": ["MCORE"]}))
            opened.commit()
        """
    )
    done = subprocess.run([sys.executable, "-c", script, str(folder)], check=False)  # noqa: S603
    assert done.returncode == -9
    assert len(list((folder / "resource_types").glob("*.parquet"))) == 2
    assert archive.open(folder).digest == digest
    with archive.ArchiveWriter(folder) as writer:  # the lock died with its process
        writer.commit()
    assert len(list((folder / "resource_types").glob("*.parquet"))) == 1
    assert archive.open(folder).digest == digest


def test_files_of_others_in_the_folder_are_left_alone(tmp_path):
    other = tmp_path / "part-mine.parquet"
    other.write_bytes(b"mine")
    with archive.ArchiveWriter(tmp_path) as writer:
        writer.commit()
    assert other.read_bytes() == b"mine"


def test_no_manifest(tmp_path):
    with pytest.raises(DataError, match=r"no manifest\.json, so this is not an archive; make one"):
        archive.open(tmp_path)


def test_a_newer_schema_is_refused(folder):
    edit(folder, schema_version=SCHEMA_VERSION + 1)
    with pytest.raises(
        DataError, match=r"written with archive schema 3, this brokerlab reads up to 2"
    ):
        archive.open(folder)
    with pytest.raises(DataError, match="install a newer brokerlab"):
        archive.ArchiveWriter(folder).__enter__()


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"tables": {}}'])
def test_a_manifest_that_is_no_manifest(folder, text):
    (folder / "manifest.json").write_text(text)
    with pytest.raises(DataError, match="the manifest cannot be read"):
        archive.open(folder)


@pytest.mark.parametrize(
    "changes", [{"tables": 5}, {"sources": [{"nom": 1}]}, {"digest": "0"}, {"truth": None}]
)
def test_a_damaged_manifest(folder, changes):
    edit(folder, **changes)
    with pytest.raises(DataError, match="the manifest is damaged"):
        archive.open(folder)


def test_a_missing_data_file(folder):
    shutil.rmtree(folder / "resource_types")
    with pytest.raises(
        DataError, match=r"(?s)1 data file\(s\) do not fit.*resource_types.*: missing"
    ):
        archive.open(folder)


def test_a_truncated_data_file(folder):
    file = next((folder / "resource_types").glob("*.parquet"))
    size = file.stat().st_size
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(
        DataError, match=rf"{size - 100} bytes, the manifest says {size} \(truncated"
    ):
        archive.open(folder)


def test_a_changed_data_file(folder):
    file = next((folder / "resource_types").glob("*.parquet"))
    file.write_bytes(b"x" * file.stat().st_size)
    with pytest.raises(DataError, match="does not end like a Parquet file"):
        archive.open(folder)
    file.write_bytes(b"x" * (file.stat().st_size - 4) + b"PAR1")
    with pytest.raises(DataError, match=r"1 file\(s\) changed since they were written"):
        archive.open(folder).verify()


def damaged(folder, table="resource_types"):
    """Change one byte of a table's only file and keep its size and its end."""
    file = next((folder / table).glob("*.parquet"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    return file


@pytest.mark.parametrize(
    "read",
    [
        lambda opened: opened.scan("resource_types"),
        lambda opened: opened.resource_types,
        lambda opened: opened.sql("select count(*) from Resource_Types"),
        lambda opened: opened.verify(),
    ],
)
def test_a_changed_byte_is_seen_before_a_table_is_read(folder, read):
    file = damaged(folder)
    opened = archive.open(folder)
    assert opened.scan("jobs").collect().height > 0
    with pytest.raises(DataError, match=rf"1 file\(s\) changed .*{file.name}; ingest the sources"):
        read(opened)


def test_a_changed_byte_is_not_written_again_under_a_new_digest(folder):
    damaged(folder)
    with (
        archive.ArchiveWriter(folder) as writer,
        pytest.raises(DataError, match=r"1 file\(s\) changed since they were written"),
    ):
        writer.live("resource_types")


def test_a_file_is_digested_once_until_it_changes(folder, monkeypatch):
    opened = archive.open(folder)
    opened.scan("jobs")
    with monkeypatch.context() as patch:
        patch.setattr("hashlib.file_digest", None)
        opened.scan("jobs")
    damaged(folder)
    with pytest.raises(DataError, match="changed since they were written"):
        opened.scan("resource_types")


def test_tables_without_their_manifest_are_not_swept(folder):
    (folder / "manifest.json").unlink()
    before = sorted(folder.rglob("*"))
    with (
        pytest.raises(DataError, match=r"no manifest\.json; if it was an archive, restore"),
        archive.ArchiveWriter(folder),
    ):
        pass
    assert sorted(folder.rglob("*")) == before


def test_a_first_run_that_was_killed_can_be_begun_again(tmp_path, make_jobs):
    script = textwrap.dedent(
        """
        import os, signal, sys
        import polars as pl
        from brokerlab.archive import writer
        with writer.ArchiveWriter(sys.argv[1]) as opened:
            opened.write("resource_types", pl.DataFrame({"resource_name": ["MCORE"]}))
            os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)  # noqa: S603
    assert done.returncode == -9
    assert len(list((tmp_path / "resource_types").glob("*.parquet"))) == 1
    with archive.ArchiveWriter(tmp_path) as writer:
        writer.write("jobs", make_jobs(1))
        writer.commit()
    assert archive.open(tmp_path).tables == ["jobs"]
    assert not list(tmp_path.rglob("resource_types"))


def test_untrusted_rows_are_held_to_the_contract(tmp_path, make_jobs):
    with (
        archive.ArchiveWriter(tmp_path) as writer,
        pytest.raises(SchemaError, match="maxpss -1 is negative"),
    ):
        writer.write("jobs", make_jobs(1, maxpss=[-1]))


def test_arrow_tables_can_be_written(tmp_path, make_jobs):
    with archive.ArchiveWriter(tmp_path) as writer:
        writer.write("jobs", make_jobs(2).to_arrow())
        assert writer.commit().counts == {"jobs": 2}


def test_a_session_without_pyspark_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(ConfigError, match=r"pyspark.*extra 'spark'"):
        store.session("local[1]")


@pytest.mark.parametrize("rows", [{"pandaid": [1]}, pl.LazyFrame({"pandaid": [1]}), None])
def test_rows_of_another_kind_are_refused_by_name(rows, tmp_path):
    with (
        archive.ArchiveWriter(tmp_path / "a") as writer,
        pytest.raises(SchemaError, match=f"jobs: rows are a {type(rows).__name__}; allowed: "),
    ):
        writer.write("jobs", rows)
