"""The page of the package: every call is there, takes an archive or tables by name, and refuses what it does not know."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import brokerlab
from brokerlab import calibrate, charts, lifecycle, scouts
from brokerlab.archive.given import archive_of, tables_of
from brokerlab.errors import ConfigError, MissingTableError, SchemaError
from tests.scout_toys import Toy, by_name

CALLS = (
    *("open", "ingest", "profile", "compare"),
    *("scouts.estimate", "scouts.exhausted", "lifecycle.classes", "lifecycle.waiting"),
    *("brokerage.replay", "brokerage.decide", "brokerage.explain", "brokerage.funnel"),
    *("brokerage.what_if", "calibrate.backtest", "calibrate.propose", "calibrate.simulate"),
    *("estimators.Hierarchy.fit", "estimators.Hierarchy.conformalize"),
    *("estimators.Hierarchy.predict", "estimators.Hierarchy.update", "report.run"),
)


def called(name: str) -> Any:
    """Return what a name of the page stands for; each part is listed by ``dir`` of the one before."""
    found: Any = brokerlab
    for part in name.split("."):
        assert part in dir(found), name
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("name", CALLS)
def test_every_call_is_there_and_takes_settings_by_name(name: str) -> None:
    call = called(name)
    assert callable(call)
    kinds = [one.kind for one in inspect.signature(call).parameters.values()]
    assert len([kind for kind in kinds if kind == inspect.Parameter.POSITIONAL_OR_KEYWORD]) <= 3


def test_loading_a_room_leaves_the_calls_as_they_are() -> None:
    for module in ("brokerage.replaying", "calibrate.simulation", "lifecycle.waits"):
        importlib.import_module(f"brokerlab.{module}")
    assert all(inspect.isfunction(called(name)) for name in CALLS if "Hierarchy" not in name)


def test_importing_loads_nothing() -> None:
    text = "import sys, brokerlab; print([m for m in ('polars', 'duckdb') if m in sys.modules])"
    command = [sys.executable, "-c", text]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert shown.stdout == "[]\n"


def test_parameters_of_reports_load_no_chart_library_and_no_statistics() -> None:
    text = """
import sys
from brokerlab.charts import primitives
from brokerlab.report import explore, network_curve, scout_percentiles, workflow_pilots
print([m for m in ("altair", "scipy.special", "networkx", "sklearn", "nbconvert") if m in sys.modules])
print(primitives.bars.__name__, "altair" in sys.modules)
"""
    command = [sys.executable, "-c", text]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert shown.stdout == "[]\nbars True\n"


@pytest.mark.parametrize(
    ("room", "name", "hint"),
    [
        (brokerlab, "scout", "did you mean 'scouts'"),
        (calibrate, "backtets", "did you mean 'backtest'"),
        (lifecycle, "class", "did you mean 'classes'"),
        (charts, "primitive", "did you mean 'primitives'"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(room: Any, name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=hint):
        getattr(room, name)


# ---- tables by name


def test_tables_of_any_engine_answer_as_they_are() -> None:
    tables = by_name(Toy().job(1).tables())
    found = scouts.estimate({name: table.lazy() for name, table in tables.items()})
    assert found.parameters["n_jobs_used"].to_list() == [1]
    assert scouts.exhausted(tables).verdicts["jeditaskid"].to_list() == [1]


def test_tables_become_an_archive() -> None:
    rows = [
        {"pandaid": 1, "jeditaskid": 7, "prodsourcelabel": "managed", "jobstatus": "finished"}
        | {"modificationtime": datetime(2026, 3, 1), "creationtime": datetime(2026, 2, 28)}
    ]
    opened = archive_of({"jobs": rows})
    assert opened.tables == ["jobs"]
    assert opened.scan("jobs").select(rows[0].keys()).collect().to_dicts() == rows
    assert archive_of(opened) is opened
    with pytest.raises(SchemaError, match=r"jobs\.prodsourcelabel"):
        archive_of({"jobs": [{"pandaid": 1}]})


def test_an_unknown_table_is_refused_with_the_nearest() -> None:
    tables = by_name(Toy().job(1).tables())
    wrong = {"job" if name == "jobs" else name: table for name, table in tables.items()}
    for asked in (scouts.estimate, archive_of, lifecycle.waiting):
        with pytest.raises(SchemaError, match="unknown table 'job': did you mean 'jobs'"):
            asked(wrong)


def test_what_is_wrong_in_tables_given_by_name_is_told_at_once() -> None:
    wrong = {"jobs": {"pandaid": [1]}, "gshares": 5, "resource_types": {"resource_name": [None]}}
    with pytest.raises(SchemaError) as caught:
        archive_of(wrong)
    for table in ("jobs.jobstatus", "gshares: ", "resource_types.resource_name"):
        assert table in str(caught.value)
    with pytest.raises(SchemaError, match=r"'job'.*\n.*'task'"):
        archive_of({"job": {}, "task": {}})


def test_a_missing_table_is_named() -> None:
    tables = by_name(Toy().job(1).tables())
    del tables["files"]
    with pytest.raises(MissingTableError, match="no table 'files'; needed are jobs, files"):
        scouts.estimate(tables)


@pytest.mark.parametrize("given", [pl.DataFrame({"pandaid": [1]}), "data/demo", None])
def test_what_is_neither_archive_nor_tables_is_refused(given: Any) -> None:
    for asked in (archive_of, lambda source: tables_of(source, ["jobs"])):
        with pytest.raises(ConfigError, match=r"allowed are an archive \(brokerlab.open"):
            asked(given)


def test_an_unknown_setting_of_a_simulation_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no setting 'starts': did you mean 'start'"):
        calibrate.simulate({}, starts="2026-03-02")


@pytest.mark.parametrize(
    ("name", "setting", "hint"),
    [
        ("scouts.estimate", "rule", "did you mean 'rules'"),
        ("scouts.exhausted", "scout", "did you mean 'scouts'"),
        ("lifecycle.classes", "everyy", "did you mean 'every'"),
        ("lifecycle.waiting", "starts", "did you mean 'start'"),
        ("brokerage.replay", "stages", "did you mean 'stage'"),
        ("brokerage.decide", "configs", "did you mean 'config'"),
        ("brokerage.funnel", "task", "did you mean 'tasks'"),
        ("calibrate.backtest", "margin", "did you mean 'margins'"),
    ],
)
def test_unknown_settings_are_refused_with_the_nearest(name: str, setting: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} has no setting '{setting}': {hint}"):
        called(name)({}, **{setting: 1})


def test_rules_of_other_scouts_are_refused() -> None:
    toy = Toy().job(1)
    with pytest.raises(ConfigError, match="scouts given are of document"):
        scouts.exhausted(
            by_name(toy.tables()), scouts=toy.result(), rules=scouts.ScoutRules("production")
        )
