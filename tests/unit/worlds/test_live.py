"""A lived archive: nothing happens before what it waits for, slots are never exceeded, the simulator gives it back."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import brokerlab.archive
from brokerlab import scouts, worlds
from brokerlab.archive.manifest import Manifest
from brokerlab.calibrate import simulation
from brokerlab.calibrate.simulation.capacity import in_use
from brokerlab.errors import ConfigError, DataError
from brokerlab.gdpconfig import Config
from brokerlab.worlds.life import Life
from brokerlab.worlds.small_jobs import LIGHT
from brokerlab.worlds.stage import slot_changes
from brokerlab.worlds.world import draw_world
from tests.unit.worlds.conftest import ASKED, SMALL, Made

pytestmark = pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")


@pytest.fixture(scope="module")
def looks() -> list[tuple[bool, bool]]:
    """Of each look of `again`: is no job there twice, is the turn of each job its place in the order?"""
    return []


@pytest.fixture(scope="module", autouse=True)
def again(tmp_path_factory: pytest.TempPathFactory, looks: list[tuple[bool, bool]]) -> Manifest:
    """Make the small world again, and look at it while it lives."""
    look = Life._look

    def looked(self: Life, now: int) -> pl.DataFrame:
        found = look(self, now)
        made = self.order[: self.n_made]
        once = found.select("world", "job").is_unique().all()
        looks.append((once, bool((self.order[self.turn[made]] == made).all())))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Life, "_look", looked)
        return worlds.synthesise(tmp_path_factory.mktemp("worlds") / "again", **SMALL)


def test_the_same_settings_give_the_same_bytes(small: Path, again: Manifest) -> None:
    one = worlds.is_made(small, **SMALL)
    assert one is not None
    assert worlds.is_made(small, **{**SMALL, "seed": 4}) is None
    assert again.digest == one.digest == brokerlab.archive.open(small).digest


def test_unknown_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="queues"):
        worlds.synthesise(tmp_path / "none", jobs=500, days=2, seed=1, lived=True, queuess=30)


def test_a_world_without_work_for_the_brokerage_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="none of the 1 jobs drawn"):
        worlds.synthesise(tmp_path / "none", jobs=1, days=1, seed=1, queues=20, lived=True)


def test_no_queue_has_slots_in_any_of_its_spells() -> None:
    """Of few queues one has several roles, and its spells overlap."""
    world = draw_world(worlds.make_settings(jobs=600, days=3, seed=1, queues=20, lived=True))
    assert len({spell.queue for spell in world.spells}) < len(world.spells)
    capacity = slot_changes(world, np.full(world.n, 8))
    for spell in world.spells:
        at = [world.settings.at(second) for second in (spell.begin_s, spell.end_s - 1)]
        rows = capacity.filter(pl.col("ts").is_between(*at), panda_queue=world.names[spell.queue])
        assert rows.height > 0
        assert (rows["slots"] == 0).all()


def test_what_is_asked_of_a_made_archive_is_complete(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="jobs, seed not given"):
        worlds.is_made(tmp_path, days=2, lived=True)


def test_about_as_many_jobs_as_asked(made: Made) -> None:
    # tasks that no queue may take under the page's rules never run: a sixth of the jobs here
    assert made.manifest.counts["jobs"] == pytest.approx(0.85 * ASKED["jobs"], rel=0.1)
    assert made.manifest.synthetic
    assert worlds.is_simulated(made.archive)


def test_slots_are_never_exceeded(made: Made) -> None:
    """Where jobs are laid out one by one they start whether slots are free or not, and hold up those that live."""
    scripted = made.archive.truth("planted").filter(pl.col("story") != LIGHT)
    lived = made.jobs.filter(pl.col("starttime").is_not_null()).join(
        scripted, on="computingsite", how="anti"
    )
    end = made.jobs["starttime"].max()
    rows = lived.with_columns(endtime=pl.col("endtime").fill_null(end))
    running = (
        in_use(rows)
        .sort("time")
        .join_asof(
            made.capacity.sort("ts"), left_on="time", right_on="ts", by="panda_queue",
            check_sortedness=False,
        )
    )  # fmt: skip
    shrunk = pl.col("slots") == 0  # what runs goes on where a queue starts nothing
    assert running.filter((pl.col("cores") > pl.col("slots")) & ~shrunk).is_empty()
    full = running.filter(pl.col("cores") == pl.col("slots"), pl.col("slots") > 0)
    assert full["panda_queue"].n_unique() > 3


def test_nothing_comes_before_what_it_waits_for(made: Made) -> None:
    jobs = made.drawn
    times = ["creationtime", "activatedtime", "starttime", "endtime", "modificationtime"]
    for before, after in pairwise(times):
        both = jobs.drop_nulls([before, after])
        assert (both[before] <= both[after]).all(), (before, after)
    parent = jobs.select(parentid="pandaid", over="endtime", queue="computingsite")
    again = jobs.join(parent, on="parentid")
    assert again.height > 20
    assert (again["creationtime"] >= again["over"]).all()
    decided = made.archive.truth("tasks").select("jeditaskid", "decided_at")
    rest = jobs.join(decided, on="jeditaskid").filter(
        pl.col("specialhandling").is_null(), pl.col("parentid").is_null(),
        pl.col("prodsourcelabel") != "panda", pl.col("processingtype") != "pmerge",
    )  # fmt: skip
    assert rest.height > 1000
    assert (rest["creationtime"] > rest["decided_at"]).all()


def test_requests_are_those_of_the_scouts_that_had_ended(made: Made) -> None:
    truth = made.archive.truth("tasks")
    found = scouts.estimate(
        made.archive,
        rules=scouts.ScoutRules(rules="production"),
        config=Config.from_frame(made.table("gdpconfig")),
        at=truth.select("jeditaskid", at="decided_at"),
    )
    bulk = pl.col("specialhandling").is_null(), pl.col("processingtype") != "pmerge"
    after = made.drawn.filter(bulk)[
        "jeditaskid"
    ].unique()  # no queue may take others: still scouting
    tasks = made.table("tasks").filter(pl.col("jeditaskid").is_in(after.implode()))
    both = tasks.join(found.parameters, on="jeditaskid", suffix="_again")
    assert both.height >= 20
    for name in ("ramcount", "cputime", "iointensity", "diskio", "outdiskcount"):
        differ = both.filter(pl.col(name).ne_missing(pl.col(f"{name}_again")))
        assert differ.is_empty(), name


def test_merges_come_when_their_group_is_over(made: Made) -> None:
    merges = made.drawn.filter(pl.col("processingtype") == "pmerge", pl.col("attemptnr") == 1)
    made_of = made.table("files").filter(type="trn_output").select("pandaid", "jeditaskid")
    known = merges.join(made_of, on=["pandaid", "jeditaskid"], how="semi")
    assert known.height > 50
    first = made.drawn.filter(pl.col("processingtype") != "pmerge", jobstatus="finished")
    begun = first.group_by("jeditaskid").agg(first_end=pl.col("endtime").min())
    both = known.join(begun, on="jeditaskid")
    assert (both["creationtime"] > both["first_end"]).all()


def test_slots_of_every_queue_in_use_are_known(made: Made) -> None:
    queues, slots = made.table("queues"), made.table("slots")["pandaqueuename"].to_list()
    online = queues.filter(status="online")
    truth = made.capacity.group_by("panda_queue").agg(pl.col("slots").max())
    assert (online.join(truth, on="panda_queue")["slots"] > 0).all()
    unwritten = online.filter(~pl.col("panda_queue").is_in(slots))
    assert unwritten.height < online.height / 3
    assert (unwritten["pledgedcpu"] > 0).all()


def test_tasks_of_production_go_where_the_rules_send_them(made: Made) -> None:
    truth = made.archive.truth("queues")
    weights = truth.group_by("jeditaskid").agg(pl.col("weight").sum())
    assert weights["weight"].to_list() == pytest.approx([1.0] * weights.height)
    bulk = made.drawn.filter(
        pl.col("prodsourcelabel") == "managed", pl.col("specialhandling").is_null(),
        pl.col("processingtype") != "pmerge", jobstatus="finished",
    )  # fmt: skip
    seen = bulk.group_by("jeditaskid", panda_queue="computingsite").agg(
        share=pl.len() / pl.lit(1.0)
    )
    share = seen.with_columns(pl.col("share") / pl.col("share").sum().over("jeditaskid"))
    both = share.join(truth, on=["jeditaskid", "panda_queue"])
    assert both.height == seen.height
    assert both["weight"].to_list() == pytest.approx(both["share"].to_list())


def test_jobs_that_the_brokerage_places_are_made_when_it_has_a_place(made: Made) -> None:
    bulk = made.drawn.filter(
        pl.col("prodsourcelabel") == "managed", pl.col("specialhandling").is_null(),
        pl.col("processingtype") != "pmerge",
    )  # fmt: skip
    hour = bulk["creationtime"].dt.truncate("1h")
    first = bulk["parentid"].is_null()
    assert (bulk["creationtime"] == hour).filter(first).all()
    assert simulation.cycle_seen(made.archive) == "60m"


def test_the_simulator_gives_it_back(made: Made) -> None:
    """But for queues that start nothing for days, and for jobs that are laid out to wait."""
    world = simulation.of_archive(made.archive, brokerage="seen", drain="0h")
    found = simulation.validate(world, repeats=20)
    truth = made.archive.truth
    odd = [*truth("planted")["computingsite"], *truth("spells")["panda_queue"]]
    judged = found.queues.filter(pl.col("judged"), ~pl.col("panda_queue").is_in(odd))
    within = judged.filter(pl.col("fails") == "")
    assert within["n_jobs"].sum() >= 0.8 * judged["n_jobs"].sum() > 0
    assert judged["fails"].str.contains("utilisation|kills").sum() == 0
    written = made.table("slots")["pandaqueuename"].to_list()
    stated = world.sources.filter(pl.col("panda_queue").is_in(written))
    assert (stated["source"] == "slots").all()


def test_jobs_that_are_not_over_have_no_end(made: Made) -> None:
    open_ = made.drawn.filter(pl.col("jobstatus").is_in(["running", "activated"]))
    assert open_["endtime"].null_count() == open_.height
    waiting = open_.filter(jobstatus="activated")
    assert waiting["starttime"].null_count() == waiting.height
    over = made.drawn.filter(pl.col("jobstatus").is_in(["finished", "failed"]))
    assert over["endtime"].null_count() == 0
    assert waiting["actualcorecount"].null_count() == waiting.height


def test_files_of_jobs_that_are_not_over_have_not_failed(made: Made) -> None:
    """Contract of files: status "ready, picked, running, finished, failed"; of datasets: input files given up."""
    files = made.table("files").filter(pl.col("type").is_in(["input", "pseudo_input"]))
    both = files.join(made.jobs.select("pandaid", "jobstatus"), on="pandaid")
    for status, expected in (("activated", "picked"), ("running", "running")):
        mine = both.filter(jobstatus=status)
        assert mine.height > 10
        assert (mine["status"] == expected).all()
        assert (mine["failedattempt"] < mine["attemptnr"]).all()
    failed = both.group_by("jeditaskid").agg(n=(pl.col("jobstatus") == "failed").sum())
    inputs = made.table("datasets").filter(pl.col("type").is_in(["input", "pseudo_input"]))
    sums = inputs.join(failed, on="jeditaskid").join(made.archive.truth("tasks"), on="jeditaskid")
    assert (sums["nfilesfailed"] == sums["n"]).all()


def test_tasks_that_were_never_decided_say_so(tmp_path: Path) -> None:
    worlds.synthesise(tmp_path, jobs=600, days=0.3, seed=1, queues=20, lived=True, planted="none")
    archive = brokerlab.archive.open(tmp_path)
    both = archive.scan("tasks").collect().join(archive.truth("tasks"), on="jeditaskid")
    scouting = both["status"] == "scouting"
    assert 0 < scouting.sum() < both.height
    assert both["decided_at"].is_null().equals(scouting, check_names=False)


def test_a_job_is_at_one_place_at_every_look(looks: list[tuple[bool, bool]]) -> None:
    assert len(looks) > 20
    assert set(looks) == {(True, True)}
