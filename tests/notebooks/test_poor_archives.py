"""Every report on archives that hold too little, or odd names: a page with an answer, or "No answer" and what is missing; and the check knew it."""

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import polars as pl
import pytest

from brokerlab import archive as archives
from brokerlab.archive.contracts import contract
from brokerlab.archive.writer import ArchiveWriter
from brokerlab.errors import InsufficientDataError
from brokerlab.report import check, find
from brokerlab.report.kit import VARIABLE
from brokerlab.worlds import synthesise
from tests.notebooks import pages
from tests.notebooks.odd import odd_names
from tests.notebooks.pages import check_names, check_page

Change = Callable[[str, pl.DataFrame], pl.DataFrame | None]


def _only(table: str) -> Change:
    return lambda name, frame: frame if name == table else None


def _without(table: str) -> Change:
    return lambda name, frame: None if name == table else frame


def _one_task(task: int) -> Change:
    """Leave one task, and names that are odd."""
    mine = pl.col("jeditaskid") == task

    def change(name: str, frame: pl.DataFrame) -> pl.DataFrame:
        return odd_names(name, frame.filter(mine) if "jeditaskid" in frame.columns else frame)

    return change


def _failed(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(jobstatus=pl.lit("failed")) if name == "jobs" else frame


def _nulls(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Leave nothing in a table but what its contract asks for."""
    if name not in ("jobs", "tasks", "queues"):
        return frame
    columns = contract(name).columns()
    free = [c for c in frame.columns if c in columns and columns[c].nullable]
    free = [c for c in free if not columns[c].primary_key]
    return frame.with_columns(pl.lit(None, dtype=frame.schema[c]).alias(c) for c in free)


CHANGES: dict[str, Callable[[int], Change]] = {
    "no_jobs": lambda _: _without("jobs"),
    "jobs_only": lambda _: _only("jobs"),
    "tasks_only": lambda _: _only("tasks"),
    "one_task": _one_task,
    "all_failed": lambda _: _failed,
    "all_null": lambda _: _nulls,
    "no_gdpconfig": lambda _: _without("gdpconfig"),
    "odd_names": lambda _: odd_names,
}
"""What an archive lacks, to how its tables are changed, by the task of most jobs."""


@pytest.fixture(scope="module")
def poor(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return what makes a poor archive, once, of one of 3000 jobs."""
    root = tmp_path_factory.mktemp("poor")
    synthesise(root / "whole", jobs=3_000, days=7, seed=5)
    whole = archives.open(root / "whole")
    counts = whole.sql("select jeditaskid, count(*) as n from jobs group by all order by n desc, 1")
    largest = counts.pl()["jeditaskid"][0]

    @cache
    def make(name: str) -> Path:
        change = CHANGES[name](largest)
        with ArchiveWriter(root / name, synthetic=True) as writer:
            for table in whole.tables:
                changed = change(table, whole.scan(table).collect())
                if changed is not None:
                    writer.write(table, changed)
            writer.commit()
        return root / name

    return make


QUICK = ("jobs_only", "one_task", "all_null", "odd_names")
"""Those that every run has; a long run has all."""
OWN = (
    *("explore", "memory-estimator", "scout-percentiles", "waiting-rules"),
    "walltime-estimator",
)
"""Reports that answer from jobs alone in every run in `test_own_jobs.py`, and `test_explore.py`."""
ALIKE = {
    ("analysis-replay", "odd_names"),
    ("brokerage-replay", "odd_names"),
    ("explore", "odd_names"),
    ("scout-percentiles", "odd_names"),
    ("waiting-rules", "odd_names"),
    ("walltime-estimator", "odd_names"),
    ("workflow-pilots", "odd_names"),
    ("network-curve", "one_task"),
    ("network-curve", "all_null"),
    ("waiting-rules", "all_null"),
    ("workflow-pilots", "all_null"),
    ("workflow-pilots", "jobs_only"),
}
"""Reports that say something of one task, whose names are odd too, or whose own tests have odd names; and reports that read nothing of what such an archive lacks: their pages are those of `odd_names` but for the names.

Jobs that say nearly nothing are a page of explore and of others in every run, of waiting rules and of pilots in a long one.
"""


@pytest.fixture(scope="module")
def can_run(poor: Callable[[str], Path]) -> Callable[[str], dict[str, bool]]:
    """Return what says beforehand which reports an archive is enough for."""
    return cache(lambda name: dict(check(poor(name)).select("report", "can_run").iter_rows()))


FEW: dict[str, dict[str, object]] = {
    "analysis-replay": {"switch_sample": 0, "points": 3, "keys": ["CAP_RUNNING_USER_JOBS"]},
    "brokerage-replay": {"switch_sample": 0, "points": 3, "keys": ["NQUEUED_SAT_CAP"]},
    "thresholds": {"screen_days": 1, "points": 2, "keys": ["NQUEUED_SAT_CAP"]},
    "walltime-estimator": {"models": ["hierarchy"]},
}
"""Reports that try many settings or models, and what they try in every run; that of memory tries all models."""
USUAL: dict[str, dict[str, object]] = {
    "analysis-replay": {"points": 3},
    "brokerage-replay": {"points": 3},
    "thresholds": {"points": 2},
    "walltime-estimator": {},
}
"""What they try in a long run: all keys, switches and models, of each key the fewest values."""


def _cases() -> Iterator[object]:
    """Yield a report, what it tries and an archive."""
    for archive in CHANGES:
        for name in find.names():
            own = archive == "jobs_only" and name in OWN
            every = archive in QUICK and not own and (name, archive) not in ALIKE
            marks = [] if every else [pytest.mark.long]
            yield pytest.param(
                name, FEW.get(name, {}), archive, marks=marks, id=f"{name}-{archive}"
            )
        for name, tried in USUAL.items():
            yield pytest.param(
                name, tried, archive, marks=pytest.mark.long, id=f"{name}-usual-{archive}"
            )


@pytest.mark.parametrize(("name", "tried", "archive"), [*_cases()])
def test_too_little_is_an_answer(
    name: str,
    tried: dict[str, object],
    archive: str,
    poor: Callable[[str], Path],
    can_run: Callable[[str], dict[str, bool]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none"))  # real data would stand in for the archive
    report = import_module(f"brokerlab.report.{name.replace('-', '_')}")
    n_boot = 100 if name == "workflow-pilots" else 20  # fewer are refused
    few = {"n_boot": n_boot, "times": 2, "workers": 1, **tried}
    asked = {"archive": str(poor(archive)), "out_dir": str(tmp_path), **few}
    known = report.Params.model_fields
    params = report.Params.checked({n: value for n, value in asked.items() if n in known})
    answered = True
    try:
        pages.run(report, params)
    except InsufficientDataError:
        answered = False
    assert can_run(archive)[name] == answered
    stored = check_page(tmp_path)
    check_names(tmp_path)
    page = stored["page"]
    made = "Made from the jobs, as the archive lacks them: "
    assert [text.startswith(made) for text in page["cannot_tell"]].count(True) == bool(
        stored["derived"]
    )
    assert page["verdict"]["kind"] != "failed"
    if not answered:
        assert page["verdict"]["kind"] == "no_answer"
        assert page["sections"][0]["title"] == "What is missing"


def test_jobs_alone_are_enough_for_five_reports(
    can_run: Callable[[str], dict[str, bool]],
) -> None:
    five = "scout-percentiles memory-estimator walltime-estimator waiting-rules site-classes"
    assert all(can_run("jobs_only")[name] for name in five.split())
