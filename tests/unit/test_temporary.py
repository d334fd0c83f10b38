"""Temporary folders: private, gone at the end, and swept after a process that was killed; those of others stay."""

import signal
import subprocess
import sys
import tempfile

import pytest

from brokerlab.temporary import PREFIX, TemporaryFolder

HOLDS_ONE = """
import sys
from brokerlab.temporary import TemporaryFolder
held = TemporaryFolder()
(held.path / "table").write_text("rows")
print(held.path.name, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def other():
    """Return a process that holds a folder, and the name of the folder."""
    process = subprocess.Popen(  # noqa: S603 - this interpreter, our own script
        [sys.executable, "-c", HOLDS_ONE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    return process, process.stdout.readline().strip()


def test_nobody_else_can_enter(place):
    with TemporaryFolder() as folder:
        assert folder.parent == place
        assert folder.stat().st_mode & 0o077 == 0


def test_a_folder_goes_with_what_holds_it(place):
    held = TemporaryFolder()
    (held.path / "a").mkdir()
    assert list(place.iterdir()) == [held.path]
    del held
    assert list(place.iterdir()) == []


def test_a_process_that_ends_leaves_nothing(place):
    process, name = other()
    assert (place / name).is_dir()
    process.communicate()
    assert list(place.iterdir()) == []


def test_what_a_killed_process_left_goes_and_what_is_in_use_stays(place):
    killed, left = other()
    running, used = other()
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    mine = place / f"{PREFIX}archive-of-mine"
    mine.mkdir()
    assert (place / left).exists()
    with TemporaryFolder() as folder:
        assert {path.name for path in place.iterdir()} == {used, mine.name, folder.name}
    running.communicate()
