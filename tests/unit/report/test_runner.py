"""Running a report: parameters, files, failures, nothing overwritten, nothing left behind."""

import contextlib
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from datetime import UTC, datetime
from pathlib import Path

import nbformat
import pytest
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook

from brokerlab.errors import ConfigError, DataError, ReportError
from brokerlab.report import kernel, kit, publishing, rendering, run, runner
from brokerlab.temporary import TemporaryFolder
from tests.notebook_cells import run_cells

AT = datetime(2026, 3, 24, 12, 0, 5, tzinfo=UTC)


def test_run_writes_everything_and_never_overwrites(notebooks, tmp_path, request):
    root = tmp_path / "reports"
    given = {"rank": "80", "ranks": "60,90"}
    first = run("toy", given, out_root=root, notebooks=notebooks, at=AT)
    request.getfixturevalue("in_process")
    second = run("toy", given, out_root=root, notebooks=notebooks, at=AT)

    assert re.fullmatch(r"20260324T120005Z-[0-9a-f]{8}", first.run_id)
    assert second.run_id == f"{first.run_id}-2"
    assert sorted(path.name for path in first.folder.iterdir()) == [
        "charts",
        "index.html",
        "manifest.json",
        "notebook.ipynb",
        "results.json",
        "tables",
    ]
    results = json.loads((first.folder / "results.json").read_text())
    assert results["values"] == {
        "rank": 80,
        "share": 0.02,
        "ranks": [60, 90],
        "python": sys.executable,
    }
    manifest = json.loads((first.folder / "manifest.json").read_text())
    assert manifest["state"] == "finished"
    assert manifest["parameters"]["seed"] == manifest["seed"] == 1
    assert manifest["parameters"]["rank"] == 80
    assert "out_dir" not in manifest["parameters"]
    assert manifest["digests"] == {"archive": "abc"}
    assert manifest["command"] == (f"brokerlab report toy -p rank=80 -p ranks=60,90 --out {root}")
    assert manifest["versions"]["polars"]
    assert manifest["started"] == "2026-03-24T12:00:05+00:00"
    assert [path.name for path in (root / "toy").iterdir() if path.name.startswith(".")] == []
    listed = json.loads((root / "index.json").read_text())["runs"]
    assert {entry["run_id"] for entry in listed} == {first.run_id, second.run_id}


@pytest.mark.usefixtures("in_process")
def test_papermill_alone_writes_the_same_page(notebooks, tmp_path):
    """`test_scout_percentiles.py` lets papermill start a kernel, for a real report, in a long run."""
    given = {"rank": 80, "ranks": [60, 90]}
    out = tmp_path / "out"
    toy = load_notebook_node(str(notebooks / "toy.ipynb"))
    asked = parameterize_notebook(toy, {**given, "out_dir": str(out)}, kernel_name="python3")
    nbformat.write(asked, tmp_path / "asked.ipynb")
    assert run_cells(tmp_path / "asked.ipynb", tmp_path, {}) is None
    done = run("toy", given, out_root=tmp_path / "reports", notebooks=notebooks)
    stored = json.loads((out / "results.json").read_text())
    assert stored["values"] == done.results["values"]
    assert stored["values"]["rank"] == 80
    for part in ("verdict", "numbers", "sections", "cannot_tell"):
        assert stored["page"][part] == done.results["page"][part]
    assert (out / "index.html").exists()


@pytest.mark.usefixtures("in_process")
def test_page_of_a_run(notebooks, tmp_path, monkeypatch):
    pages, render = [], rendering.render
    monkeypatch.setattr(
        rendering, "render", lambda *given: pages.append(render(*given)) or pages[-1]
    )
    done = run("toy", {"rank": 80}, out_root=tmp_path / "reports", notebooks=notebooks)
    html = done.page.read_text()
    assert pages == [html], "it is rendered once"
    assert "Change <code>SCOUT_<wbr>RAMCOUNT_<wbr>RANK</code> = 80." in html
    assert "Killed jobs: the archive has none." in html
    assert "Never said" not in html
    assert "−4.1 (−5.0 to −3.2)" in html
    assert 'aria-label="waste falls &amp; &#34;exceeds&#34; rise"' in html
    assert "memory &lt;reserved&gt;" in html
    assert re.search(r'id="curve-clip\w*"', html)
    assert "synthetic data" in html
    assert done.run_id in html


def test_unknown_names_and_wrong_types_are_reported_together(notebooks, tmp_path):
    with pytest.raises(ConfigError) as caught:
        run("toy", {"rnak": 1, "seed": "x", "out_dir": "a"}, out_root=tmp_path, notebooks=notebooks)
    message = str(caught.value)
    assert "unknown parameter 'rnak': did you mean 'rank'?" in message
    assert "seed='x': must be a valid integer" in message
    assert "out_dir' is set by the runner" in message
    assert list(tmp_path.glob("toy")) == []


def test_no_archive_is_not_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "manifest.json").write_text("of something else")
    monkeypatch.chdir(tmp_path)
    runner._verify("")
    with pytest.raises(DataError, match="the manifest cannot be read"):
        runner._verify(".")


def test_unknown_report_and_missing_cell(notebooks, tmp_path):
    with pytest.raises(ConfigError, match="unknown report 'toys': did you mean 'toy'"):
        run("toys", out_root=tmp_path, notebooks=notebooks)
    with pytest.raises(ReportError, match="no cell tagged 'parameters'"):
        run("bare", out_root=tmp_path, notebooks=notebooks)


def test_the_start_is_utc_wherever_it_is_run(notebooks, tmp_path, request, monkeypatch):
    request.getfixturevalue("in_process")
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        made = run("toy", {}, out_root=tmp_path, notebooks=notebooks, at=AT.replace(tzinfo=None))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert made.run_id.startswith("20260324T120005Z-")
    assert made.manifest["started"] == "2026-03-24T12:00:05+00:00"


@pytest.mark.usefixtures("in_process")
def test_failing_cell_marks_the_page_and_the_index(notebooks, tmp_path):
    root = tmp_path / "reports"
    with pytest.raises(ReportError) as caught:
        run("toy", {"strict": "yes"}, out_root=root, notebooks=notebooks)
    run("toy", {}, out_root=root, notebooks=notebooks, at=AT)
    message = str(caught.value)
    assert "ValueError: rank 75 is too strict | page: " in message
    assert "\n" not in message
    newest, oldest = json.loads((root / "index.json").read_text())["runs"]
    assert (newest["state"], newest["kind"]) == ("failed", "failed")
    assert (oldest["state"], oldest["kind"]) == ("finished", "keep")
    page = (root / newest["page"]).read_text()
    assert ">Failed<" in page
    assert "The run stopped: cell " in page
    assert "second line" in page


@pytest.mark.parametrize(
    ("name", "code"), [("ConfigError", 4), ("DataError", 3), ("BrokerlabWarning", 7), ("nearest", 7), ("ValueError", 7)]
)  # fmt: skip
def test_bad_input_in_a_notebook_keeps_its_exit_code(name, code):
    assert kernel.kind_of(name).exit_code == code


@pytest.mark.usefixtures("in_process")
def test_too_little_data_is_an_answer_and_refused_input_says_why(notebooks, tmp_path):
    done = run("toy", {"rank": 1}, out_root=tmp_path, notebooks=notebooks)
    assert done.results["page"]["verdict"]["kind"] == "no_answer"
    assert done.manifest["state"] == "finished"
    html = done.page.read_text()
    assert "9 tasks, about 60 are needed." in html
    assert "ingest more days" in html
    with pytest.raises(ReportError, match="refused: cell 2: ConfigError: share=2") as caught:
        run("toy", {"share": 2}, out_root=tmp_path, notebooks=notebooks)
    assert caught.value.exit_code == ConfigError.exit_code
    newest = json.loads((tmp_path / "index.json").read_text())["runs"]
    assert {entry["kind"] for entry in newest} == {"no_answer"}


def test_kernels_have_sockets_of_their_own(tmp_path, monkeypatch):
    """Two runs from one directory once shared its `kernel-ipc-1` and answered each other."""
    monkeypatch.chdir(tmp_path)
    names, before = [], set(tmp_path.iterdir())
    with TemporaryFolder() as first, TemporaryFolder() as second:
        for folder in (first, second):
            manager = kernel._own_kernel(folder, 1, core=0)
            names.append((manager.transport, manager.ip))
            assert Path(manager.connection_file).parent == folder
            assert folder.stat().st_mode & 0o077 == 0
    assert len(set(names)) == 2
    assert {transport for transport, _ in names} == {"ipc"}
    assert not Path(names[0][1]).parent.exists()
    assert set(tmp_path.iterdir()) == before


@pytest.mark.long
def test_runs_at_once_have_kernels_of_their_own(notebooks, tmp_path, monkeypatch):
    """As above, with two runs at once."""
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    script = "from brokerlab.report import run; import sys; run('toy', {}, out_root=sys.argv[1], notebooks=sys.argv[2])"
    other = subprocess.Popen(  # noqa: S603 - this interpreter, our own script
        [sys.executable, "-c", script, str(tmp_path / "out0"), str(notebooks)],
        stderr=subprocess.PIPE,
        text=True,
    )
    run("toy", {}, out_root=tmp_path / "out1", notebooks=notebooks)
    _, said = other.communicate(timeout=120)
    assert (other.returncode, said) == (0, "")
    assert {path.name for path in set(tmp_path.iterdir()) - before} == {"out0", "out1"}


def write_notebook(folder, name, body, parameters="marker: str = ''  # a mark"):
    cell = nbformat.v4.new_code_cell
    first = cell(f'{parameters}\nout_dir: str = ""', metadata={"tags": ["parameters"]})
    made = nbformat.v4.new_notebook(cells=[first, cell(body)])
    made.metadata.kernelspec = {"name": "python3", "display_name": "x", "language": "python"}
    nbformat.write(made, folder / f"{name}.ipynb")


def test_many_reports_share_one_kernel_and_no_names(notebooks, tmp_path):
    start = "from multiprocessing.spawn import get_preparation_data; get_preparation_data('')"
    left = "import os, pathlib; left = 1; pathlib.Path(marker).write_text(str(os.getpid())); raise ValueError('left\\nsecond line')"
    write_notebook(notebooks, "leaves", left)
    write_notebook(notebooks, "dies", f"{start}; import os; os.kill(os.getpid(), 9)")
    looks = """
    import json, os, pathlib
    assert not any("left" in where for where in (globals(), dir())), "a name is left"
    assert proposals == str(pathlib.Path(out_dir).parents[1]), proposals
    assert json.loads((pathlib.Path(proposals) / "index.json").read_text())["runs"][1:], "others are not done"
    raise ValueError(os.getpid())
    """
    asked = 'proposals: str = ""  # what others propose [path of reports]'
    write_notebook(notebooks, "reads", textwrap.dedent(looks), asked)
    marker, seen = tmp_path / "pid", []
    done = runner.run_many(
        ["reads", "toy", "leaves", "dies"],
        {"marker": str(marker), "rank": 80},
        out_root=tmp_path / "shelf",
        notebooks=notebooks,
        workers=1,
        each=seen.append,
    )
    assert seen == done
    assert {one.report for one in done[:2]} == {"leaves", "dies"}, "readers of proposals come last"
    failures = {one.report: one.failure and one.failure.line for one in done}
    assert failures["leaves"] == "cell 3: ValueError: left"
    (left,) = (one for one in done if one.report == "leaves")
    assert "second line" in left.page.read_text()
    assert (left.folder / "notebook.ipynb").exists()
    assert failures["dies"].startswith(
        "DeadKernelError: the process of the notebook was killed, as"
    )
    assert failures["toy"] is None
    pid = re.fullmatch(r"cell 3: ValueError: (\d+)", failures["reads"])
    assert pid[1] != marker.read_text(), "the kernel that died was replaced"
    with pytest.raises(ConfigError, match="unknown parameter 'rnak': did you mean 'rank'"):
        runner.run_many(["toy", "reads"], {"rnak": 1}, out_root=tmp_path, notebooks=notebooks)


def test_long_folders_of_sockets_fall_back_to_ports(tmp_path, monkeypatch):
    deep = tmp_path / ("d" * 90)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    with TemporaryFolder() as folder:
        manager = kernel._own_kernel(folder, 1, core=0)
    assert (manager.transport, manager.ip) == ("tcp", "127.0.0.1")


def test_notebook_without_results_fails(notebooks, tmp_path, monkeypatch):
    monkeypatch.setattr(kernel.Kernel, "execute", lambda *_: None)
    with pytest.raises(ReportError, match=r"wrote no results\.json"):
        run("toy", out_root=tmp_path, notebooks=notebooks)


def test_what_json_does_not_have_is_null(notebooks, tmp_path, monkeypatch):
    def writes(_, __, folder, ___):
        plain = publishing.results_of(kit.no_answer("Too few."), kit.Bare())
        (folder / "results.json").write_text(
            json.dumps(plain | {"values": [math.nan, 1, "huge"]}).replace('"huge"', "1e999")
        )

    monkeypatch.setattr(kernel.Kernel, "execute", writes)
    done = run("toy", out_root=tmp_path, notebooks=notebooks)
    assert done.results["values"] == [None, 1, None]


def test_interruption_leaves_nothing(notebooks, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(kernel.Kernel, "execute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run("toy", out_root=tmp_path / "reports", notebooks=notebooks)
    assert list((tmp_path / "reports" / "toy").iterdir()) == []


SLOW = """\
import os, pathlib, time
pathlib.Path(marker).write_text(str(os.getpid()))
time.sleep(60)
"""


def test_sigterm_ends_the_run_with_a_code_of_its_own():
    before = signal.getsignal(signal.SIGTERM)
    swallowed = contextlib.suppress(KeyboardInterrupt)  # as nbclient does
    with pytest.raises(SystemExit) as caught, kernel.interruptible(), swallowed:
        os.kill(os.getpid(), signal.SIGTERM)
    assert caught.value.code == kernel.TERMINATED == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is before


def test_ctrl_c_stops_the_kernel_and_leaves_nothing(tmp_path):
    write_notebook(tmp_path, "slow", SLOW)
    marker, root = tmp_path / "kernel.pid", tmp_path / "reports"
    code = (
        "from brokerlab.report import run\n"
        f"run('slow', {{'marker': {str(marker)!r}}}, out_root={str(root)!r}, notebooks={str(tmp_path)!r})"
    )
    call = [sys.executable, "-c", code]
    child = subprocess.Popen(call, stderr=subprocess.PIPE, text=True)  # noqa: S603 - our own code
    deadline = time.monotonic() + 60
    while not (marker.exists() and marker.read_text()) and time.monotonic() < deadline:
        time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    _, last = child.communicate(timeout=30)
    assert last.splitlines()[-1] == "KeyboardInterrupt"
    assert list((root / "slow").iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(marker.read_text()), 0)
