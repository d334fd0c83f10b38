"""Runs under a name of their own: the same again, other inputs refused, broken ones made again."""

import errno
import json
from pathlib import Path

import pytest

from brokerlab.errors import ConfigError, ReportError
from brokerlab.report import run, runs

NAME = "scheduled__2026-03-24T04:00:00+00:00"


@pytest.fixture
def archive(tmp_path):
    file = tmp_path / "jobs.csv"
    file.write_text("pandaid\n1\n")
    return file


@pytest.fixture
def call(notebooks, in_process, tmp_path, archive):
    """Run the toy report under a name."""

    def once(run_id=NAME, **given):
        values = {"archive": str(archive), **given}
        return run("toy", values, out_root=tmp_path / "reports", notebooks=notebooks, run_id=run_id)

    return once


def folders(done):
    return [path.name for path in done.folder.parent.iterdir()]


def test_the_same_again_is_the_same_run(call, in_process):
    first, second = call(rank=80), call(rank="80")
    assert (first.reused, second.reused) == (False, True)
    assert first.folder == second.folder
    assert first.results == second.results
    assert len(in_process) == 1
    assert folders(first) == [NAME]
    assert first.run_id == first.manifest["run_id"] == NAME


def test_other_inputs_are_refused_with_every_difference(call, archive, in_process):
    done = call(rank=80)
    before = done.page.read_bytes()
    archive.write_text("pandaid\n2\n")
    with pytest.raises(ReportError) as caught:
        call(rank=81)
    message = str(caught.value)
    assert f"run id '{NAME}' is taken by a run with other inputs" in message
    assert "rank: 80 there, 81 now" in message
    assert "content of archive: " in message
    assert "choose another id, or remove" in message
    assert done.page.read_bytes() == before
    assert len(in_process) == 1
    assert call("other", rank=81).run_id == "other"


def test_what_is_made_under_no_name_is_not_answered_for(call, tmp_path):
    done = call(None)
    with pytest.raises(ReportError, match="was not made under --run-id"):
        call(done.run_id)


def test_of_reports_only_the_proposals_are_inputs(call, tmp_path, in_process):
    shelf = tmp_path / "shelf" / "thresholds"
    shelf.mkdir(parents=True)
    given = {"reports": str(tmp_path / "shelf")}
    call(**given)
    (shelf / "results.json").write_text("{}")
    hidden = shelf / ".1.unfinished"
    hidden.mkdir()
    (hidden / "proposal.json").write_text("{}")
    assert call(**given).reused
    (shelf / "proposal.json").write_text("{}")
    with pytest.raises(ReportError, match="content of reports: "):
        call(**given)


def test_an_archive_is_known_by_its_digest(call, tmp_path):
    from brokerlab.worlds import synthesise

    folder = tmp_path / "archive"
    synthesise(folder, jobs=20, days=1, seed=1)
    done = call(archive=str(folder))
    (folder / "notes.txt").write_text("mine")  # no part of the archive
    assert call(archive=str(folder)).reused
    assert done.manifest["inputs"]["archive"] == f'"{folder}"'
    digest = json.loads((folder / "manifest.json").read_text())
    assert done.manifest["inputs"]["content of archive"] in json.dumps(digest)
    assert call("other", archive=str(tmp_path / "none")).manifest["inputs"]["content of archive"] == "absent"  # fmt: skip


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "results.json").write_text("{"),
        lambda folder: (folder / "manifest.json").unlink(),
        lambda folder: (folder / "index.html").unlink(),
    ],
)
def test_half_a_run_is_made_again(call, in_process, damage):
    done = call()
    damage(done.folder)
    again = call()
    assert not again.reused
    assert again.page.exists()
    assert folders(again) == [NAME]
    assert len(in_process) == 2


def test_a_failed_run_is_made_again(call, in_process):
    with pytest.raises(ReportError, match="rank 75 is too strict"):
        call(strict=True)
    done = call(strict=False)
    assert not done.reused
    assert done.manifest["state"] == "finished"
    assert folders(done) == [NAME]


def test_what_a_killed_process_left_is_removed(call, tmp_path):
    left = tmp_path / "reports" / "toy" / f".{NAME}.unfinished"
    (left / "charts").mkdir(parents=True)
    (left / "charts" / "old.svg").write_text("<svg>")
    (left / "proposal.json").write_text("{")
    done = call()
    assert folders(done) == [NAME]
    assert not (done.folder / "proposal.json").exists()
    assert done.manifest["proposals"] == []


def test_two_processes_do_not_make_the_same_run(call, tmp_path, in_process):
    home = tmp_path / "reports" / "toy"
    home.mkdir(parents=True)
    with runs.workshop(home, NAME), pytest.raises(ReportError, match="is being made by another"):
        call()
    assert not in_process
    assert not call().reused


def test_a_file_system_without_locks_is_no_obstacle(call, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr("fcntl.flock", flock)
    assert not call().reused


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "..", "x" * 101, "a b", "a\n"])
def test_names_that_are_none(call, name):
    with pytest.raises(ConfigError, match="allowed are 1 to 100 letters"):
        call(name)


def test_what_failed_is_returned_where_it_is_asked_for(notebooks, in_process, tmp_path):
    done = run("toy", {"strict": True}, out_root=tmp_path, notebooks=notebooks, check=False)
    assert done.failure is not None
    assert isinstance(done.error, ReportError)
    assert str(done.error).endswith(f"| page: {done.page}")
    assert Path(done.page).exists()
