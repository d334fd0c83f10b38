"""The compiled batch queue against its plain twin, and what each policy promises."""

from __future__ import annotations

import math

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerlab.workflows import batch
from tests.examples import examples
from tests.twins import batch_queue as twin

HOSTS = 8
POLICIES = list(batch.POLICIES)
WORTH = {  # [µs] of waiting, by hosts; the library's priority is the same with 40 s for 4 hosts or more
    "large_first": lambda hosts: round(min(hosts, 4) / 4 * 40e6),
    "small_first": lambda hosts: round((1 - min(hosts, 4) / 4) * 40e6),
}
few = settings(max_examples=examples(30))

job = st.fixed_dictionaries(
    {
        "gap": st.integers(0, 6),
        "hosts": st.integers(1, HOSTS),
        "requested_s": st.integers(0, 30),
        "part": st.sampled_from([0, 0.3, 0.5, 1, 1, 1.2]),
    }
)
loads = st.lists(job, max_size=40)
lasting = st.lists(
    job.filter(lambda row: row["requested_s"] > 0), max_size=15
)  # no length: nothing held
deed = st.tuples(
    st.integers(0, 9),
    st.sampled_from(["submit", "submit", "cancel", "release", "ask"]),
    st.integers(0, 20),
    st.integers(1, HOSTS),
    st.integers(0, 30),
)


def frame(load, exact=False):
    submit, rows = 0, []
    for number, row in enumerate(load):
        submit += row["gap"]
        run = float(round(row["requested_s"] * (1 if exact else row["part"]), 1))
        rows.append((f"j{number}", float(submit), run, float(row["requested_s"]), row["hosts"]))
    names = ["job_id", "submit_s", "run_s", "requested_s", "hosts"]
    kinds = [pl.String, pl.Float64, pl.Float64, pl.Float64, pl.Int64]
    return pl.DataFrame(rows, schema=dict(zip(names, kinds, strict=True)), orient="row")


def micros(value):
    return round(value * 1e6)


def plain(jobs):
    """Return the jobs as the twin wants them, in whole microseconds: equal instants are equal."""
    return [
        twin.Job(micros(s), n, micros(r), micros(t))
        for s, n, r, t in jobs.select("submit_s", "hosts", "requested_s", "run_s").rows()
    ]


def ours(jobs, policy):
    order = batch.Priority(policy.split("_")[0], 40, 4) if policy in WORTH else None
    return batch.start(jobs, hosts=HOSTS, policy=policy, priority=order)


def theirs(jobs, policy):
    return twin.Queue(HOSTS, policy, plain(jobs), worth=WORTH.get(policy))


def seen(done):
    return [
        (None if s is None else micros(s), None if e is None else micros(e))
        for s, e in done.select("start_s", "end_s").rows()
    ]


def of_twin(jobs):
    nothing = ("future", "waiting")
    return [
        (
            None if j.status in (*nothing, "cancelled") else j.start,
            None if j.status in (*nothing, "running") else j.end,
        )
        for j in jobs
    ]


@pytest.mark.parametrize("policy", POLICIES)
@few
@given(loads)
def test_starts_and_ends_are_those_of_the_twin(policy, load):
    jobs = frame(load)
    sim, other = ours(jobs, policy), theirs(jobs, policy)
    batch.advance(sim)
    other.advance(math.inf)
    done = batch.results(sim)
    assert seen(done) == of_twin(other.background)
    assert done["killed"].to_list() == [r > q for r, q in jobs["run_s", "requested_s"].rows()]


class Both:
    """The two queues side by side."""

    def __init__(self, jobs, policy):
        self.ours, self.twin = ours(jobs, policy), theirs(jobs, policy)
        self.by_hand = {}

    def do(self, what, which, hosts, length):
        if what == "submit":
            self.twin.arrive()
            number = batch.submit(self.ours, hosts, length, length / 2 if which % 2 else None)
            run = micros(length / 2 if which % 2 else length)
            self.by_hand[number] = twin.Job(self.twin.now, hosts, micros(length), run)
            self.twin.submit(self.by_hand[number])
        elif what == "ask":
            batch.arrive(self.ours)
            self.twin.arrive()
            asked = batch.estimate_start(self.ours, hosts, length)
            assert micros(asked) == self.twin.estimate_start(hosts, micros(length))
        else:
            self.end(what, which)

    def end(self, what, which):
        """Cancel or release a job, of the background too."""
        background = dict(enumerate(self.twin.background))
        wanted = {"cancel": "waiting", "release": "running"}[what]
        fit = [n for n, j in (background | self.by_hand).items() if j.status == wanted]
        if fit:
            number = fit[which % len(fit)]
            getattr(batch, what)(self.ours, number)
            getattr(self.twin, what)((background | self.by_hand)[number])

    def same(self):
        assert seen(batch.results(self.ours)) == of_twin(self.twin.background)
        pairs = [(batch.started(self.ours, n), batch.ended(self.ours, n)) for n in self.by_hand]
        times = pl.DataFrame(
            pairs, schema={"start_s": pl.Float64, "end_s": pl.Float64}, orient="row"
        )
        assert seen(times) == of_twin(self.by_hand.values())


@pytest.mark.parametrize("policy", POLICIES)
@few
@given(loads, st.lists(deed, max_size=12))
def test_submissions_cancellations_and_releases_do_what_they_do_to_the_twin(policy, load, deeds):
    both, now = Both(frame(load), policy), 0
    for gap, *what in deeds:
        now += gap
        batch.advance(both.ours, now)
        both.twin.advance(micros(now))
        both.do(*what)
        both.same()
    batch.advance(both.ours)
    both.twin.advance(math.inf)
    both.same()
    assert batch.next_event(both.ours) == math.inf
    assert both.ours.free_hosts == HOSTS


@pytest.mark.parametrize("policy", POLICIES)
@few
@given(loads, st.integers(0, 40))
def test_asking_for_every_job_of_a_load_is_asking_before_each_is_submitted(policy, load, since):
    jobs, sim = frame(load), ours(frame([]), policy)
    expected = []
    for submit, hosts, limit, run in jobs.select(
        "submit_s", "hosts", "requested_s", "run_s"
    ).rows():
        batch.advance(sim, submit)
        batch.arrive(sim)
        asked = batch.estimate_start(sim, hosts, limit)
        expected.append(asked if submit >= since else math.inf)
        batch.submit(sim, hosts, limit, run)
    at_once = ours(jobs, policy)
    assert batch.run_asking(at_once, since).tolist() == expected
    batch.advance(sim)
    starts = [batch.started(sim, n) for n in range(len(jobs))]
    assert batch.results(at_once)["start_s"].to_list() == starts


def overlapping(done, now):
    """Return hosts held at an instant."""
    held = done.filter((pl.col("start_s") <= now) & (pl.col("end_s") > now))
    return held["hosts"].sum()


@few
@given(loads, st.sampled_from(POLICIES))
def test_no_host_is_held_twice_and_everybody_runs(load, policy):
    done = batch.run(frame(load), hosts=HOSTS, policy=policy)
    assert all(overlapping(done, now) <= HOSTS for now in done["start_s"])
    assert (done["wait_s"] >= 0).all()
    lasted = (done["end_s"] - done["start_s"]).round(6)
    assert (lasted == pl.Series([min(r, q) for r, q in done["run_s", "requested_s"].rows()])).all()


@few
@given(loads)
def test_fcfs_starts_in_the_order_of_submission(load):
    done = batch.run(frame(load), hosts=HOSTS, policy="fcfs")
    assert done["start_s"].is_sorted()


@pytest.mark.parametrize("policy", ["fcfs", "conservative"])
@few
@given(lasting)
def test_a_promised_start_is_kept(policy, load):
    """Later arrivals delay nobody, exact requests or not: the estimate at submission is an upper bound."""
    jobs = frame(load)
    sim, promised = batch.start(jobs, hosts=HOSTS, policy=policy), []
    for row in jobs.rows(named=True):
        before = batch.start(jobs.head(len(promised)), hosts=HOSTS, policy=policy)
        batch.advance(before, row["submit_s"])
        promised.append(batch.estimate_start(before, row["hosts"], row["requested_s"]))
    batch.advance(sim)
    assert (batch.results(sim)["start_s"] <= pl.Series(promised, dtype=pl.Float64)).all()


@few
@given(lasting)
def test_with_exact_requests_conservative_starts_everybody_as_promised_and_delays_no_earlier_job(
    load,
):
    jobs = frame(load, exact=True)
    starts = batch.run(jobs, hosts=HOSTS, policy="conservative")["start_s"]
    for n in range(len(jobs)):
        alone = batch.run(jobs.head(n), hosts=HOSTS, policy="conservative")["start_s"]
        assert (starts.head(n) == alone).all()


@few
@given(loads)
def test_easy_never_delays_the_head_beyond_its_shadow(load):
    """Whenever the line is looked at, its head starts no later than it was told, whoever is backfilled."""
    jobs = frame(load)
    sim = batch.start(jobs, hosts=HOSTS, policy="easy")
    told = {}
    while (now := batch.next_event(sim)) < math.inf:
        batch.advance(sim, now)
        batch.settle(sim)
        done = batch.results(sim)
        line = done.filter((pl.col("submit_s") <= now) & pl.col("start_s").is_null())
        if len(line):
            head = line.row(0, named=True)
            alone = batch.start(None, hosts=HOSTS, policy="easy")
            batch.advance(alone, now)
            held = done.filter(pl.col("start_s").is_not_null() & pl.col("end_s").is_null())
            for s, q, n in held.select("start_s", "requested_s", "hosts").rows():
                batch.submit(alone, n, s + q - now)
            batch.settle(alone)
            shadow = batch.estimate_start(alone, head["hosts"], head["requested_s"])
            assert shadow <= told.get(head["job_id"], math.inf)
            told[head["job_id"]] = shadow
    starts = dict(batch.results(sim).select("job_id", "start_s").rows())
    assert all(starts[job_id] <= shadow for job_id, shadow in told.items())


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=examples(25))
@given(loads, st.lists(st.tuples(st.integers(1, HOSTS), st.integers(0, 30)), max_size=5))
def test_watching_and_copying_change_nothing(policy, load, asked):
    sim = batch.start(frame(load), hosts=HOSTS, policy=policy)
    batch.advance(sim, 20)
    numbers = [batch.submit(sim, *ask) for ask in asked]
    before, watched = batch.results(sim), sim.copy()
    seen_changes = []
    while batch.next_event(watched) < math.inf:
        now = batch.advance(watched, watch=True)
        seen_changes += [(now, *change) for change in batch.changes(watched)]
    assert batch.results(sim).equals(before)
    again = sim.copy(watched)
    assert again.state.jobs.tolist() == sim.state.jobs.tolist()
    for queue in (sim, again):
        batch.advance(queue)
        assert batch.results(queue).equals(batch.results(sim))
    assert all(batch.ended(again, n) == batch.ended(sim, n) for n in numbers)
    expected = [(batch.started(sim, n), n, "started") for n in numbers]
    expected += [(batch.ended(sim, n), n, "ended") for n in numbers]
    assert sorted(seen_changes) == sorted(expected)
