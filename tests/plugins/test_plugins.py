"""Brokerages of other packages: found, loaded, refused; one installed for real."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from brokerlab.brokerage import plugins
from brokerlab.brokerage.production_jobs.brokerage import BROKERAGE
from brokerlab.cli import app
from brokerlab.errors import ConfigError
from tests.brokerage_toys import World

HERE = Path(__file__).parent
OURS = ["analysis-jobs", "production-jobs", "production-tasks"]
GOOD = """
from dataclasses import replace
from brokerlab.brokerage.production_jobs.brokerage import BROKERAGE
MINE = replace(BROKERAGE, name="{name}", description="ours, renamed")
NONE = {{"decide": print}}
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Put packages on the path as an installer leaves them; a module is called as its package."""
    monkeypatch.syspath_prepend(tmp_path)

    def put(name: str, content: str, **points: str) -> None:
        (tmp_path / f"{name}.py").write_text(content)
        monkeypatch.delitem(sys.modules, name, raising=False)
        info = tmp_path / f"{name}-2.1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.1\n")
        lines = [f"{point} = {value}" for point, value in points.items()]
        (info / "entry_points.txt").write_text("\n".join(["[brokerlab.brokerages]", *lines]))

    return put


def problems() -> dict[str, str | None]:
    return dict(plugins.available().select("name", "problem").iter_rows())


def test_ours_are_registered_like_any_other():
    found = plugins.available()
    assert found.columns == ["name", "package", "version", "description", "problem"]
    ours = found.filter(pl.col("package") == "brokerlab")
    assert ours["name"].to_list() == OURS
    assert ours["description"].null_count() == 0
    assert ours["problem"].null_count() == len(OURS)
    assert plugins.get("production-jobs") is BROKERAGE


def test_another_package_is_found(package):
    package("one", GOOD.format(name="mine"), mine="one:MINE")
    assert plugins.get("mine").description == "ours, renamed"
    row = plugins.available().row(by_predicate=pl.col("name") == "mine", named=True)
    assert row == {
        "name": "mine", "package": "one", "version": "2.1", "description": "ours, renamed", "problem": None,
    }  # fmt: skip


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(ConfigError, match=r"'production-job' is not .*mean 'production-jobs'"):
        plugins.get("production-job")


@pytest.mark.parametrize(
    ("content", "value", "said"),
    [
        ("import no_such_library", "bad:X", "does not load: ModuleNotFoundError: No module named 'no_such"),
        ("1 / 0", "bad:X", "does not load: ZeroDivisionError"),
        ("def", "bad:X", "does not load: SyntaxError"),
        ("X = 1", "bad:Y", "does not load: AttributeError"),
        ("raise SystemExit(0)", "bad:X", "does not load: SystemExit"),
        (GOOD.format(name="mine"), "bad:NONE", "is a dict; the entry point must name"),
        (GOOD.format(name="other"), "bad:MINE", "calls itself 'other'"),
    ],
)  # fmt: skip
def test_what_cannot_be_had_is_named_and_hides_nothing(package, content, value, said):
    package("bad", content, mine=value)
    found = problems()
    assert said in found["mine"]
    assert f"'mine' of package bad 2.1 ({value})" in found["mine"]
    assert [found[name] for name in OURS] == [None] * len(OURS)
    assert plugins.get("production-jobs") is BROKERAGE
    with pytest.raises(ConfigError) as refused:
        plugins.get("mine")
    assert str(refused.value) == found["mine"]


def test_two_of_one_name_are_refused(package):
    package("one", GOOD.format(name="mine"), mine="one:MINE")
    package("two", GOOD.format(name="mine"), mine="two:MINE")
    with pytest.raises(ConfigError, match="'mine' is in one and two: none is taken"):
        plugins.get("mine")
    rows = plugins.available().filter(pl.col("name") == "mine")
    assert rows["package"].to_list() == ["one", "two"]
    assert rows["problem"].str.contains("is in one and two").all()


def test_ours_cannot_be_replaced_unseen(package):
    package("sly", GOOD.format(name="production-jobs"), **{"production-jobs": "sly:MINE"})
    with pytest.raises(ConfigError, match="is in brokerlab and sly"):
        plugins.get("production-jobs")


def test_the_command_lists_them(package):
    package("one", GOOD.format(name="mine"), mine="one:MINE")
    package("bad", "import no_such_library", broken="bad:X")
    shown = CliRunner().invoke(app, ["brokerages"])
    assert shown.exit_code == 0
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in shown.stdout.splitlines()]
    rows = {cells[0]: cells for cells in lines if len(cells) == 4 and cells[0]}
    assert rows["mine"] == ["mine", "one", "2.1", "ours, renamed"]
    assert rows["broken"][:3] == ["broken", "bad", "2.1"]
    assert "does not load" in shown.stdout
    assert {*OURS} <= set(rows)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Install the example with pip, away from everything else; no index is asked."""
    place = tmp_path_factory.mktemp("lighthouse")
    words = "--quiet --no-index --no-deps --no-build-isolation --disable-pip-version-check --target"
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        *words.split(),
        place,
        HERE / "example_brokerage",
    ]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603
    return place


def test_an_organisation_installs_its_own(installed, tmp_path):
    world = (
        World()
        .queue("CERN_X", running=200)
        .queue("BNL_Y")
        .queue("TOKYO_Z")
        .queue("ROME_W", pilots=0)
    )
    for name, table in world.frames().items():
        table.write_parquet(tmp_path / f"{name}.parquet")
    power = {"panda_queue": ["BNL_Y", "TOKYO_Z"], "solar": [1.0, 0.8], "longitude": [30.0, 135.0]}
    pl.DataFrame(power).write_parquet(tmp_path / "power_sources.parquet")
    command = [sys.executable, HERE / "decide_with.py", "lighthouse", tmp_path]
    paths = os.pathsep.join([str(installed), str(HERE.parents[1])])
    done = subprocess.run(  # noqa: S603
        command, env=os.environ | {"PYTHONPATH": paths}, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["loaded"] == [False, False]
    assert told["available"] == [
        [OURS[0], "brokerlab", told["available"][0][2], None],
        ["lighthouse", "lighthouse-brokerage", "1.2.0", None],
        *([name, "brokerlab", told["available"][0][2], None] for name in OURS[1:]),
    ]
    assert (told["organisation"], told["brokerage"]) == ("Lighthouse Observatory", "lighthouse")
    assert told["tables"] == ["power_sources"]
    without_sun = {row[0]: row[1:] for row in world.decided("production").queues.select(
        "panda_queue", "check", "weight", "rank").iter_rows()}  # fmt: skip
    assert without_sun == {
        "CERN_X": (None, pytest.approx(201 / 20), 1),
        "BNL_Y": (None, pytest.approx(101 / 20), 2),
        "TOKYO_Z": (None, pytest.approx(101 / 20), 3),
        "ROME_W": ("no_pilot", pytest.approx(101 / 20), None),
    }
    # noon UTC is 14 o'clock at BNL_Y, which has nothing but sun, and 21 o'clock at TOKYO_Z
    assert {row[0]: tuple(row[1:]) for row in told["queues"]} == {
        "BNL_Y": (None, pytest.approx(3 * 101 / 20), 1),
        "CERN_X": (None, pytest.approx(201 / 20), 2),
        "ROME_W": (None, pytest.approx(101 / 20), 3),
        "TOKYO_Z": ("solar_night", pytest.approx((1 + 2 * 0.8) * 101 / 20), None),
    }
