"""Every result shows itself: what it is, how many rows, the main columns, a next call that exists; and gives a frame."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import brokerlab
from brokerlab import brokerage, calibrate, estimators, lifecycle, scouts
from brokerlab.archive import Archive
from brokerlab.calibrate import simulation
from brokerlab.errors import ConfigError
from brokerlab.estimators.deployed import rules
from brokerlab.estimators.estimator import Predicted
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import Evidence, Proposal
from brokerlab.lifecycle import classification, timeouts
from brokerlab.report.runner import Run
from brokerlab.results import Result, Shows, compare
from brokerlab.worlds import synthesise
from tests.scout_toys import Toy

pytestmark = pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")
GRID = {"ranks": range(70, 100, 10), "margins": (0, 10)}


@dataclass
class Made:
    """An archive, and what is made of it more than once."""

    archive: Archive
    folder: Path

    @cached_property
    def seen(self) -> Any:
        return brokerage.replay(self.archive, end="2026-03-02T12:00:00")

    @cached_property
    def decided(self) -> Any:
        return brokerage.decide(self.seen)

    @cached_property
    def study(self) -> Any:
        return calibrate.backtest(self.archive, "ramcount", max_exceed=0.1, **GRID)

    @cached_property
    def outcome(self) -> Any:
        period = {"start": "2026-03-02", "end": "2026-03-02T12:00:00", "warm_up": "6h"}
        return calibrate.simulate(self.archive, cycle="6h", drain="6h", **period)

    @cached_property
    def jobs(self) -> Any:
        return estimators.of_archive(self.archive, "memory")

    @property
    def pair(self) -> tuple[int, str]:
        task, queue = self.decided.queues.select("jeditaskid", "panda_queue").row(0)
        return task, queue

    @cached_property
    def classes(self) -> Any:
        return lifecycle.classes(self.archive, every="12h")


def explained(made: Made) -> Any:
    task, queue = made.pair
    return brokerage.explain(made.decided, jeditaskid=task, panda_queue=queue)


def otherwise(made: Made) -> Any:
    config = made.seen.config.with_values({"NQUEUED_SAT_CAP": 50})
    return brokerage.compare(made.decided, brokerage.decide(made.seen, config=config))


def proposal(_: Made) -> Any:
    return Proposal.to_change(
        Config.empty(),
        {"SCOUT_RAMCOUNT_RANK": 80},
        title="More memory",
        created_at=datetime(2026, 3, 1),
        evidence=Evidence("80 meets the limit"),
    )


def predicted(_: Made) -> Any:
    one = np.ones(1)
    return Predicted(one.astype(int), one.astype(int), (0.95,), one[:, None], one)


def compared(made: Made) -> Any:
    return estimators.compare(made.jobs.records, rules("memory")[:2], quantity="memory")


def ingested(made: Made) -> Any:
    made.archive.scan("jobs").head(5).collect().write_parquet(made.folder / "jobs.parquet")
    return brokerlab.ingest([made.folder / "jobs.parquet"], made.folder / "mine", table="jobs")


def ran(made: Made) -> Any:
    page = {"page": {"verdict": {"kind": "keep", "sentence": "Keep the rank."}}}
    about: dict[str, Any] = {"folder": made.folder, "results": page, "manifest": {}}
    return Run(report="waiting-rules", run_id="one", page=made.folder / "report.html", **about)


RESULTS: dict[str, Callable[[Made], Any]] = {
    "archive": lambda made: made.archive,
    "profile": lambda made: brokerlab.profile(made.archive),
    "ingest": ingested,
    "config": lambda made: made.seen.config,
    "proposal": proposal,
    "scouts": lambda made: scouts.estimate(made.archive),
    "exhausted": lambda made: scouts.exhausted(made.archive),
    "retries": lambda _: scouts.retry_checks(*(Toy().job(1).tables()[place] for place in (2, 0))),
    "classes": lambda made: made.classes,
    "site classes": lambda made: made.classes.found,
    "user usage": lambda made: classification.user_usage(
        made.classes.period.user_slots, made.classes.found.classes
    ),
    "waiting": lambda made: lifecycle.waiting(made.archive),
    "timeouts": lambda _: timeouts.decide({}, at=datetime(2026, 3, 3)),
    "fast rebrokerage": lambda _: timeouts.fast_rebrokerage({}),
    "replay": lambda made: made.seen,
    "decisions": lambda made: made.decided,
    "user decisions": lambda _: brokerage.decide(
        brokerage.world([{}], [{"panda_queue": "A"}], brokerage="analysis-jobs"),
        brokerage="analysis-jobs",
    ),
    "nuclei": lambda made: brokerage.decide(
        brokerage.replay(made.archive, stage="tasks", end="2026-03-02T12:00:00")
    ),
    "explanation": explained,
    "task explanation": lambda made: brokerage.explain_task(made.decided, jeditaskid=made.pair[0]),
    "comparison": otherwise,
    "back-test": lambda made: made.study.tried,
    "study": lambda made: made.study,
    "judgement": lambda made: made.study.judgement,
    "before and after": lambda made: made.study.comparison,
    "verdict": lambda made: calibrate.propose(made.study),
    "simulation": lambda made: made.outcome,
    "world": lambda made: made.outcome.world,
    "validation": lambda made: simulation.validate(made.outcome.world, repeats=2),
    "records": lambda made: made.jobs,
    "estimator": lambda _: estimators.Hierarchy("memory"),
    "prediction": predicted,
    "estimators compared": compared,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("results")
    synthesise(folder / "demo", jobs=2_000, days=3, seed=1)
    return Made(brokerlab.open(folder / "demo"), folder)


def exists(call: str, result: Any) -> bool:
    """Tell whether a call is one of the result's own, or of the package."""
    name = call.partition("(")[0]
    found: Any = result if name.startswith(".") else brokerlab
    for part in name.strip(".").split("."):
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True


@pytest.mark.parametrize("name", RESULTS)
def test_it_shows_itself(made: Made, name: str) -> None:
    result = RESULTS[name](made)
    frame = result.frame()
    assert isinstance(frame, pl.DataFrame)
    text, page = repr(result), result._repr_html_()
    assert len(text.encode()) < 2_000
    assert len(page.encode()) < 20_000
    assert type(result).__name__ in text
    assert ".frame()" in text
    if isinstance(result, Result):
        assert f"{frame.height:,} rows" in text
        assert all(exists(call, result) for call in result.shows.next), result.shows.next
        named = [head.split(" [")[0] for head in filter(None, result.shows.columns.split(", "))]
        assert set(named) - set(frame.columns) <= OF_SIBLINGS
        unknown = [key for key in result.shows.keys if key not in frame.columns]
        assert not result.shows.keys or len(unknown) < len(result.shows.keys)
        assert compare(result, result).is_empty()
    assert "&lt;class" not in page
    assert not re.search(r"0x[0-9a-f]{6,}", text)


OF_SIBLINGS = {
    *("status", "panda_queue", "check", "weight", "rank"),
    *("at", "outcome", "nucleus", "n_nuclei", "n_passed"),
}
"""Main columns that only some frames of a class have: verdicts on scouts or retries, decisions on queues or nuclei."""


def subclasses(kind: type) -> set[type]:
    below = set(kind.__subclasses__())
    return below.union(*(subclasses(one) for one in below))


def test_dataclasses_leave_the_text_to_the_mechanism() -> None:
    own = [one for one in subclasses(Result) if "__repr__" in vars(one)]
    assert own == []


# ---- compare


def test_what_differs_is_one_row_per_value() -> None:
    toy = Toy().task(2).job(1).job(2, task=2)
    other = Toy().task(3).job(1, maxpss=4_000_000).job(3, task=3)
    found = compare(toy.result(), other.result())
    assert found.filter(column="row").drop("column").rows() == [
        (2, "present", None),
        (3, None, "present"),
    ]
    changed = found.filter(jeditaskid=1, column="ramcount")
    assert changed["a"].to_list() != changed["b"].to_list()
    assert compare(toy.result(), toy.result()).is_empty()


def test_rows_of_one_key_are_compared_in_their_order_and_keys_may_be_called_column() -> None:
    @dataclass(frozen=True, repr=False)
    class Faults(Result):
        shows = Shows(about="faults", keys=("column",))
        rows: tuple[tuple[str, int], ...]

        def frame(self) -> pl.DataFrame:
            return pl.DataFrame(self.rows, schema=["column", "n"], orient="row")

    found = compare(Faults((("x", 1), ("x", 2))), Faults((("x", 1), ("x", 3), ("y", 4))))
    assert found.columns == ["column_key", "column", "a", "b"]
    assert found.rows() == [("x", "n", "2", "3"), ("y", "row", None, "present")]


def test_a_column_that_one_has_alone_is_told() -> None:
    @dataclass(frozen=True, repr=False)
    class Cells(Result):
        shows = Shows(about="cells", keys=("key",))
        cells: pl.DataFrame

        def frame(self) -> pl.DataFrame:
            return self.cells

    a, b = (Cells(pl.DataFrame({"key": [1, 2], name: [3, 4]})) for name in ("x", "y"))
    assert compare(a, b).rows() == [(None, "x", "present", None), (None, "y", None, "present")]


def test_results_of_other_kinds_are_refused() -> None:
    with pytest.raises(ConfigError, match="two results of one kind"):
        compare(Toy().result(), Config.empty())
