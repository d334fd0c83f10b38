"""What the engine says of every job against the formulas written down one by one."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from brokerlab import scouts
from brokerlab.units import MB
from tests.scout_toys import Toy, by_name
from tests.twins import scout_formulas as formulas

some = settings(derandomize=True, deadline=None, max_examples=15)


def known_or_not(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), strategy)


files = st.fixed_dictionaries(
    {
        "fsize": known_or_not(st.one_of(st.just(0), st.integers(1, 10**12))),
        "startevent": known_or_not(st.integers(0, 10**6)),
        "endevent": known_or_not(st.integers(0, 10**6)),
        "nevents": known_or_not(st.one_of(st.just(0), st.integers(1, 10**6))),
    }
)
jobs = st.fixed_dictionaries(
    {
        "seconds": known_or_not(st.integers(-10, 10**6).map(lambda n: n / 8)),
        "actualcorecount": known_or_not(st.integers(0, 64)),
        "corecount": known_or_not(st.integers(0, 64)),
        "jobmetrics": known_or_not(
            st.sampled_from(
                ["coreCount=12", "x=1 coreCount=3 coreCount=4", "corecount=9", "coreCount=a"]
            )
        ),
        "specialhandling": known_or_not(st.text("sc:,j", max_size=8)),
        "computingsite": st.sampled_from(["Q", "LAN", "COPY", "ANY", "ELSEWHERE"]),
        "files": st.lists(files, min_size=1, max_size=4),
    }
)


@some
@given(
    st.lists(jobs, min_size=1, max_size=25),
    st.sampled_from([0, 37, 90, 100]),
    known_or_not(st.integers(0, 2000)),
)
def test_every_job(rows: list[dict[str, Any]], efficiency: int, base: int | None) -> None:
    toy = Toy(cpuefficiency=efficiency, basewalltime=base).queue("LAN", 12.7)
    for pandaid, row in enumerate(rows, start=1):
        own = {key: value for key, value in row.items() if key != "files"}
        toy.job(pandaid, **own)
        toy.files.pop()
        for file in row["files"]:
            toy.file(pandaid, **file)
    found = scouts.job_quantities(by_name(toy.tables())).rows(named=True)
    assert [row["pandaid"] for row in found] == list(range(1, len(rows) + 1))
    for got, row, job in zip(found, rows, toy.jobs, strict=True):
        size = sum(formulas.effective_file_size_mb(**file) for file in row["files"])
        events = sum(
            formulas.effective_num_events(*(file[k] for k in ("startevent", "endevent", "nevents")))
            for file in row["files"]
        )
        cores = formulas.core_count(job["actualcorecount"], job["corecount"], job["jobmetrics"])
        power = 12.7 if job["computingsite"] == "LAN" else 10.0
        duration = formulas.duration_s(job["starttime"], job["endtime"])
        work = formulas.hs06sec(job["starttime"], job["endtime"], power, cores, base, efficiency)
        if duration is None:
            work = None  # section 12: nothing is said without times, whatever the efficiency
        elif events > 0:
            work /= events
        assert got["input_mb"] == size
        assert (got["n_events"], got["cores"], got["corepower"]) == (events, cores, power)
        assert (got["duration_s"], got["cputime_hs06s"]) == (duration, work)


@some
@given(st.lists(st.text("sc:,j", max_size=8), min_size=1, max_size=20))
def test_job_cloning(texts: list[str]) -> None:
    """Event-service jobs without the token have no output per event."""
    toy = Toy()
    for pandaid, text in enumerate(texts, start=1):
        toy.job(pandaid, specialhandling=text, eventservice=1, jobsetid=pandaid)
        toy.jobs[-1] |= {"outputfilebytes": MB, "nevents": 100}
    found = scouts.job_quantities(by_name(toy.tables()))
    expected = [formulas.is_job_cloning(text) for text in texts]
    assert found["outdisk_bytes"].is_not_null().to_list() == expected


@some
@given(
    st.sampled_from([None, "US=2", "LI=1", "LI=0", "IL=1", "IL=2", "IL=3", "LI=2,IL=1"]),
    known_or_not(st.sampled_from([-1, 0, 1000])),
    known_or_not(st.booleans()),
)
def test_direct_access(rule: str | None, size: int | None, lan: bool | None) -> None:
    toy = Toy(splitrule=rule).queue("ANY", 10.0, maxinputsize=size, direct_access_lan=lan)
    found = toy.job(1, 0, computingsite="ANY").parameters()
    asked = rule is not None and rule.startswith("LI=") and not rule.startswith("LI=0")
    forced = not asked and not formulas.direct_io(rule, size, lan)
    assert (found["n_short"], found["n_short_copy"]) == (1, int(forced))
