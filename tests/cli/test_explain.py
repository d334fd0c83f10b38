"""``brokerlab explain``: an answer, or one clear line."""

import polars as pl
import pytest
from typer.testing import CliRunner

from brokerlab import archive
from brokerlab.cli import app
from brokerlab.worlds import synthesise


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("archives") / "days"
    synthesise(made, jobs=2_000, days=3, seed=3)
    return made


@pytest.fixture(scope="module")
def job(folder):
    """Some production job that ran."""
    found = archive.open(folder).sql(
        "select jeditaskid, computingsite from jobs where prodsourcelabel = 'managed' order by pandaid limit 1"
    )
    return found.pl().row(0)


def run(folder, task, *words):
    told = ["explain", "--archive", str(folder), "--task", str(task), *words]
    return CliRunner().invoke(app, told)


@pytest.mark.parametrize("rules", ["document", "production"])
def test_a_queue(folder, job, rules):
    task, queue = job
    result = run(folder, task, "--queue", queue, "--rules", rules)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Task {task} ")
    lines = result.stdout.splitlines()
    assert queue in lines[0]
    assert lines[-1].startswith("Of its jobs that were made after this brokerage, ")


def test_a_task_a_nucleus_and_an_instant(folder, job):
    task, _ = job
    assert run(folder, task).stdout.startswith(f"Task {task} ")
    names = archive.open(folder).scan("tasks").select("nucleus").drop_nulls().collect()["nucleus"]
    assert names[0] in run(folder, task, "--nucleus", names[0]).stdout
    then = run(folder, task, "--at", "2026-03-02T12:30")
    assert then.stdout.startswith(f"Task {task} ")
    assert then.exit_code == 0


def test_errors_are_one_line(folder, job, tmp_path):
    task, queue = job
    cases = {
        ("--queue", queue + "X"): f"There is no queue {queue}X; did you mean",
        ("--queue", queue, "--rules", "paper"): "rules='paper': allowed: document, production",
        ("--queue", queue, "--at", "noon"): "--at='noon'",
        ("--queue", queue, "--nucleus", "N"): "--queue and --nucleus: give one of them",
    }
    for words, told in cases.items():
        result = run(folder, task, *words)
        assert result.exit_code == 4
        assert told in result.stderr.strip().splitlines()[-1]
        assert result.stdout == ""
    late = run(folder, task, "--queue", queue, "--at", "2030-01-01")
    assert late.exit_code == 3
    assert "at=2030-01-01 00:00:00: the archive tells of 2026-03-01 " in late.stderr
    missing = run(folder, 5, "--queue", queue)
    assert (missing.exit_code, missing.stderr.strip()) == (
        3,
        f"DataError: {folder}: there is no task 5",
    )
    nowhere = run(tmp_path, task, "--queue", queue)
    assert nowhere.exit_code == 3
    assert "not an archive" in nowhere.stderr


def test_a_task_of_a_user(folder):
    task, queue = archive.open(folder).sql(
        "select jeditaskid, computingsite from jobs where prodsourcelabel = 'user' order by pandaid limit 1"
    ).pl().row(0)  # fmt: skip
    result = run(folder, task, "--queue", queue, "--rules", "production")
    assert result.exit_code == 0
    first = result.stdout.splitlines()[0]
    assert first.startswith(f"Task {task} ")
    assert queue in first
    assert "jobs that were made after this brokerage" in result.stdout.splitlines()[-1]


def test_a_task_of_a_user_has_no_nucleus(folder):
    users = archive.open(folder).scan("tasks").filter(pl.col("prodsourcelabel") == "user").collect()
    result = run(folder, users["jeditaskid"][0], "--nucleus", "X")
    assert result.exit_code == 3
    assert (
        "(prodsourcelabel user) is not known to have been brokered as production" in result.stderr
    )
