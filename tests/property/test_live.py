"""A brokerage that stands answers what ``decide`` says of tables with the same counts, exactly.

Worlds are random (:mod:`tests.twins.worlds`); counts are lost and changed from world to world.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from brokerlab.brokerage import live, plugins
from brokerlab.brokerage.analysis_jobs import AnalysisRules
from brokerlab.brokerage.analysis_jobs import decide as decide_analysis
from brokerlab.brokerage.production_jobs.brokerage import decide as decide_jobs
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.gdpconfig import Config
from tests.property.test_production_jobs import eased
from tests.twins import analysis_compare, analysis_worlds, compare
from tests.twins.instants import with_instants
from tests.twins.worlds import random_world

pytestmark = pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")

TASK = ["jeditaskid", "snapshot"]
QUEUE = [*TASK, "panda_queue"]
NUMBERS = (
    "njobs", "n_workers", "ncores", "getjob", "updatejob", "diskio_per_core", "nqueue", "nrunning", "nrunjobs",
    "nqueuedjobs", "jobs_per_hour", "rem_slots_a", "usage_perc",
)  # fmt: skip
JOB_KEYS: dict[str, Any] = {
    "jedi/jobbroker/NQUEUED_SAT_CAP": 20,
    "jedi/jobbroker/NQUEUED_NUC_CAP_FOR_JOBS": 300,
    "jedi/jobbroker/IO_INTENSITY_CUTOFF": 1,
    "jedi/jobbroker/SIZE_CUTOFF_TO_MOVE_INPUT": 1,
    "jedi/jobbroker/MAX_DISKIO_DEFAULT": 5,
    "jedi/jobbroker/STORAGE_MIN_FREE_SIZE": 5000,
    "jedi/jobbroker/MAX_PRIO_TO_BOOTSTRAP": 10,
    "jedi/core/WORK_SHORTAGE": True,
    "jedi/jobbroker/NW_QUEUE_IMPORTANCE": 0.1,
    "jedi/jobbroker/MAX_MISSING_INPUT_FILES": 3,
}

Frames = dict[str, pl.DataFrame]


def changed(frame: pl.DataFrame, rng: Random) -> pl.DataFrame:
    """Return a table of counts as another world has it: some rows are lost, numbers are others."""
    rows = frame.select(pl.exclude("snapshot", "world"))
    kept = rows.filter(
        pl.Series([rng.random() < 0.8 for _ in range(rows.height)], dtype=pl.Boolean)
    )
    numbers = [name for name in NUMBERS if name in kept.columns]
    return kept.with_columns(
        pl.col(name)
        * pl.Series([rng.choice((0, 1, 1, 2)) for _ in range(kept.height)], dtype=pl.Int64)
        for name in numbers
    ).unique(maintain_order=True)


def states(frames: Frames, names: list[str], worlds: list[int], rng: Random) -> dict[int, Frames]:
    """Return the tables of counts of each world."""
    return {
        world: {name: changed(frames[name], rng) for name in names if name in frames}
        for world in worlds
    }


def together(by_world: Mapping[int, Frames]) -> Frames:
    """Return one table of all worlds for each."""
    names = next(iter(by_world.values()))
    return {
        name: pl.concat(
            tables[name].with_columns(world=pl.lit(world, pl.Int64))
            for world, tables in by_world.items()
        )
        for name in names
    }


def held_to(ranked: live.Ranked, world: int, decided: Any) -> None:
    """Hold what is answered for a world to what ``decide`` says."""
    theirs = decided.weighed.filter(pl.col("rank").is_not_null()).sort(QUEUE)
    ours = ranked.queues.filter(pl.col("world") == world)
    columns = [*QUEUE, "weight", "share", "rank"]
    plain = pl.col("panda_queue").cast(pl.String)
    assert_frame_equal(
        ours.select(columns).with_columns(plain),
        theirs.select(columns).with_columns(plain).sort(QUEUE),
        check_exact=True,
    )
    sums = ours.group_by(TASK).agg(pl.col("share").sum())["share"]
    assert ((sums - 1).abs() < 1e-12).all()
    told = ranked.outcomes.filter(pl.col("world") == world).drop("world", "check")
    assert_frame_equal(told, decided.tasks.select(told.columns).sort(TASK))
    why = ranked.outcomes.filter(pl.col("world") == world).drop_nulls("check")
    counts = decided.queues.drop_nulls("check").group_by(*TASK, "check").len()
    most = counts.with_columns(pl.col("check").to_physical().alias("place")).sort(
        *TASK, "len", "place", descending=[False, False, True, False]
    )
    first = most.unique(TASK, keep="first", maintain_order=True)
    names = pl.col("check").cast(pl.String)
    assert_frame_equal(why.select(*TASK, names), first.select(*TASK, names).sort(TASK))


def held_under_settings(
    standing: live.Standing,
    configs: tuple[Config, Config],
    wanted: pl.DataFrame,
    by_world: Mapping[int, Frames],
    decided: Callable[[int, Config], Any],
) -> None:
    """Hold what is answered under the settings prepared, under others, and under both at once, to what ``decide`` says."""
    config, other = configs
    whole = {
        (world, settings.digest): decided(world, settings)
        for world in by_world
        for settings in configs
    }
    alike = dict.fromkeys(by_world, 0)
    apart = dict(zip(by_world, (0, 1, 1), strict=True))
    for now, settings, of in (
        (standing, (config,), alike),
        (standing.with_config(other), (other,), alike),
        (standing.with_config(config, other), (config, other), apart),
    ):
        asked = wanted.with_columns(setting=pl.col("world").replace_strict(of))
        ranked = now.decide(asked, together(by_world))
        for world in by_world:
            held_to(ranked, world, whole[world, settings[of[world]].digest])
        hopeful = now.decide(asked, together(by_world), hopeless=False)
        assert_frame_equal(hopeful.queues, ranked.queues, check_exact=True)
        left = ranked.outcomes.join(hopeful.outcomes, on=[*TASK, "world"], how="anti")
        assert left["n_candidates"].sum() == 0


@pytest.mark.parametrize(
    ("seed", "rules", "some", "easy"),
    [(1, "production", False, False), (2, "document", True, True), (3, "production", True, True)],
)
def test_jobs_are_decided_alike(seed: int, rules: str, *, some: bool, easy: bool) -> None:
    rng = Random(seed)  # noqa: S311 - test data
    tables = random_world(seed, 16, 30)
    tables = with_instants(eased(tables) if easy else tables, seed, queues_change=seed != 3)
    frames, config = compare.frames(tables), compare.config(tables)
    rule_set = ProductionRules(rules)
    names = list(live.tables_that_change(plugins.of_stage("jobs")))
    names = rng.sample(names, 5) if some else names
    by_world = states(frames, names, [4, 0, 7], rng)
    tasks = frames["tasks"]
    chosen = {
        w: tasks.filter(pl.Series([rng.random() < 0.7 for _ in range(tasks.height)]))
        for w in by_world
    }
    wanted = pl.concat(rows.select(*TASK, world=pl.lit(w)) for w, rows in chosen.items())
    key = rng.choice(sorted(JOB_KEYS))
    standing = live.prepare(frames, rules=rule_set, config=config)
    other = config.with_values({key: JOB_KEYS[key]})

    def decided(world: int, settings: Config) -> Any:
        given = frames | by_world[world] | {"tasks": chosen[world]}
        return decide_jobs(given, rules=rule_set, config=settings)

    held_under_settings(standing, (config, other), wanted, by_world, decided)


ANALYSIS_KEYS: dict[str, Any] = {
    "jedi/anal_jobbroker/MIN_BAD_JOBS_TO_SKIP_PQ": 1,
    "jedi/anal_jobbroker/IO_INTENSITY_CUTOFF_USER": 300,
    "jedi/anal_jobbroker/BASE_QUEUE_LENGTH_PER_PQ": 2,
    "jedi/anal_jobbroker/OVERLOAD_MIN_QUEUE": 1,
    "jedi/anal_jobbroker/STORAGE_MIN_FREE_SIZE_OUTPUT": 5000,
    "jedi/jobbroker/MAX_DISKIO_DEFAULT": 5,
    "pandaserver/prio_mgr/CAP_RUNNING_USER_JOBS": 3,
    "pandaserver/analy_eval/USER_USAGE_THRESHOLD_A": 50,
    "jedi/jobbroker/MAX_MISSING_INPUT_FILES": 3,
}


@pytest.mark.parametrize(
    ("seed", "rules", "some", "easy"),
    [(3, "production", False, True), (9, "document", True, True), (13, "production", True, False)],
)
def test_user_jobs_are_decided_alike(seed: int, rules: str, *, some: bool, easy: bool) -> None:
    rng = Random(seed)  # noqa: S311 - test data
    tables = analysis_worlds.random_world(seed, 20, 20, instants=True, easy=easy)
    frames, config = analysis_compare.frames(tables), analysis_compare.config(tables)
    rule_set = AnalysisRules(rules)
    names = list(live.tables_that_change(plugins.of_stage("analysis")))
    names = rng.sample(names, 6) if some else names
    by_world = states(frames, names, [4, 0, 7], rng)
    tasks = frames["tasks"].with_columns(pl.col("snapshot").fill_null(0))
    chosen = {
        w: tasks.filter(pl.Series([rng.random() < 0.7 for _ in range(tasks.height)]))
        for w in by_world
    }
    wanted = pl.concat(rows.select(*TASK, world=pl.lit(w)) for w, rows in chosen.items())
    key = rng.choice(sorted(ANALYSIS_KEYS))
    standing = live.prepare(
        frames, brokerage=plugins.of_stage("analysis"), rules=rule_set, config=config
    )
    other = config.with_values({key: ANALYSIS_KEYS[key]})

    def decided(world: int, settings: Config) -> Any:
        given = frames | by_world[world] | {"tasks": chosen[world]}
        return decide_analysis(given, rules=rule_set, config=settings)

    held_under_settings(standing, (config, other), wanted, by_world, decided)
