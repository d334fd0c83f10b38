"""The smallest job of a task: rules one by one, and against a walk that counts everything anew at each step."""

import math
import random

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from brokerlab.brokerage.inputs.atoms import atoms
from brokerlab.units import MB

MASTER = {"datasetname": "M", "is_master": True}


def file(number, fsize=10, *, of="M", start=None, end=None, nevents=None, lfn=None):
    return {
        "datasetname": of,
        "lfn": lfn or f"{of}{number:05d}",
        "fsize": fsize,
        "nevents": nevents,
        "startevent": start,
        "endevent": end,
    }


def frame(rows):
    return pl.DataFrame(rows, infer_schema_length=None) if rows else None


def cut(files, *secondaries, **task):
    rows = atoms(frame([{"jeditaskid": 1, **task}]), frame([MASTER, *secondaries]), frame(files))
    return rows.drop("jeditaskid").row(0, named=True)


def size(files, *secondaries, **task):
    return cut(files, *secondaries, **task)["atom_size"]


TEN = [file(i, 10 * (i + 1)) for i in range(10)]


def test_one_file_if_nothing_is_said():
    assert size(TEN) == 100


@pytest.mark.parametrize(("n", "expected"), [(1, 100), (3, 240), (4, 260), (10, 550), (99, 550)])
def test_fixed_number_of_files(n, expected):
    assert size(TEN, nfilesperjob=n, neventsperjob=1, nmaxfilesperjob=1) == expected
    assert size(TEN, nfilespermergejob=n, nfilesperjob=2, is_merging=True) == expected


def test_each_name_counts_once_but_every_range_has_its_events():
    ranges = [file(0, 4 * MB, start=s, end=s + 24, nevents=100) for s in (0, 25, 50, 75)]
    found = cut(ranges, nfilesperjob=2)
    assert (found["atom_size"], found["atom_size_effective"], found["atom_nevents"]) == (
        4 * MB,
        2.0,
        50,
    )


def test_events_are_counted_in_ranges():
    ranges = [file(0, start=s, end=s + 24, nevents=100) for s in (0, 25, 50, 75)]
    assert cut(ranges, neventsperjob=75)["atom_nevents"] == 75
    assert cut(ranges, neventsperjob=74)["atom_nevents"] == 50
    assert cut(ranges, neventsperjob=10)["atom_nevents"] == 25


def test_a_gap_ends_the_job_and_the_next_file_goes_on_at_zero():
    ranges = [file(0, start=0, end=49, nevents=100), file(0, start=50, end=99, nevents=100)]
    ranges += [file(1, start=0, end=29, nevents=100), file(1, start=40, end=99, nevents=100)]
    found = cut(ranges, neventsperjob=1000)
    assert (found["atom_nevents"], found["max_consecutive_events"]) == (130, 130)
    # continuing at the right number in another file is a gap too
    other = [file(0, start=0, end=49), file(1, start=50, end=99)]
    assert cut(other, neventsperjob=1000)["max_consecutive_events"] == 50


def test_where_no_events_are_known_only_files_are_counted():
    whole = [file(i, nevents=1000) for i in range(250)]
    assert size(whole, neventsperjob=10) == 2000
    assert size(whole, neventsperjob=10, nmaxfilesperjob=7) == 70
    assert size(whole, neventspermergejob=10, is_merging=True) == 500
    assert size(whole, neventspermergejob=10, nmaxfilespermergejob=7, is_merging=True) == 70


def test_events_of_the_first_split_secondary_count_for_a_master_without():
    master = [file(i) for i in range(6)]
    library = {"datasetname": "A", "nosplit": True, "position": 1}
    split = {"datasetname": "B", "position": 2}
    more = [file(0, 1, of="A", nevents=10**6)]
    more += [file(i, 100, of="B", nevents=40) for i in range(6)]
    found = cut([*master, *more], {**MASTER, "position": 0}, library, split, neventsperjob=100)
    assert found["atom_size"] == 2 * 110 + 1


@pytest.mark.parametrize(
    ("ratio", "n", "expected"),
    [(2, 1, 10 + 200), (0.5, 3, 30 + 200), (0.5, 1, 110), (None, 2, 220)],
)
def test_ratio_is_rounded_up(ratio, n, expected):
    files = [file(i) for i in range(6)] + [file(i, 100, of="S") for i in range(12)]
    assert size(files, {"datasetname": "S", "ratio": ratio}, nfilesperjob=n) == expected


def test_a_secondary_is_used_up():
    files = [file(i, 10 + i) for i in range(5)] + [file(0, 100, of="S")]
    assert size(files, {"datasetname": "S"}) == 110


def test_1000_files_of_all_datasets():
    files = [file(i) for i in range(300)] + [file(i, 1, of="S") for i in range(900)]
    secondary = {"datasetname": "S", "nosplit": True}
    found = size(files, secondary, neventsperjob=1, nmaxfilesperjob=300)
    assert found == 100 * 10 + 900


@pytest.mark.parametrize("rule", [{"nfilesperjob": 0}, {"neventsperjob": 0}])
def test_zero_is_no_number_and_size_is_limited_instead(rule):
    gb = 1024**3
    assert size([file(i, gb) for i in range(30)], **rule) == 18 * gb
    assert size([file(i) for i in range(300)], **rule) == 2000


def test_no_files_and_files_of_no_dataset():
    empty = {
        "atom_size": 0,
        "atom_size_effective": 0.0,
        "atom_nevents": 0,
        "max_consecutive_events": 0,
    }
    assert cut([]) == empty
    assert cut([file(0, of="ELSEWHERE")]) == empty
    assert atoms(
        pl.DataFrame({"jeditaskid": []}, schema={"jeditaskid": pl.Int64}), None, None
    ).is_empty()


def test_null_size_is_nothing_to_read_but_one_mb_effective():
    found = cut([file(0, None)])
    assert (found["atom_size"], found["atom_size_effective"]) == (0, 1.0)


def test_order_columns_go_before_names():
    files = frame([file(i, 10**i) for i in range(4)])
    assert atoms(frame([{"jeditaskid": 1, "nfilesperjob": 2}]), frame([MASTER]), files)[
        "atom_size"
    ].to_list() == [1100]
    mixed = files.with_columns(fileid=pl.Series([0, 2, 1, 3]))
    assert atoms(frame([{"jeditaskid": 1, "nfilesperjob": 2}]), frame([MASTER]), mixed)[
        "atom_size"
    ].to_list() == [1010]


def random_task(draw, number):
    ranged, chunk = draw.random() < 0.5, draw.choice([25, 50])
    files = []
    for i in range(draw.randint(0, 9)):
        nevents = draw.choice([None, 50, 100])
        if ranged:
            first = range(0, 100, chunk)
            kept = [s for s in first if draw.random() < 0.8]
            files += [file(i, 1 + i, start=s, end=s + chunk - 1, nevents=100) for s in kept]
        else:
            files.append(file(i, 10**i % 9973, nevents=nevents))
    files += [
        file(i, 1000 + i, of="S", nevents=draw.choice([None, 10, 30]))
        for i in range(draw.randint(0, 20))
    ]
    secondary = {
        "datasetname": "S",
        "ratio": draw.choice([None, 1, 2, 0.5, 1.5]),
        "nosplit": draw.random() < 0.3,
    }
    rules = {
        "nfilesperjob": draw.choice([None, None, 2, 3]),
        "neventsperjob": draw.choice([None, 20, 60, 100, 1000]),
        "nmaxfilesperjob": draw.choice([None, 2, 5]),
    }
    mark = {"jeditaskid": number}
    return (
        {**mark, **rules},
        [{**mark, **MASTER}, {**mark, **secondary}],
        [{**mark, **one} for one in files],
    )


def follows(files, n):
    """Tell whether file n goes on where file n - 1 stopped."""
    before, after = files[n - 1], files[n]
    if before["endevent"] is None or after["startevent"] is None:
        return True
    if before["endevent"] + 1 == before["nevents"]:
        return after["startevent"] == 0
    return after["startevent"] == before["endevent"] + 1 and before["lfn"] == after["lfn"]


def walk_slowly(task, datasets, files):
    """Return size and events of the largest job, each job measured from nothing for every number of files."""
    master = sorted(
        (f for f in files if f["datasetname"] == "M"),
        key=lambda f: (f["lfn"], f["startevent"] or 0),
    )
    others = [f for f in files if f["datasetname"] == "S"]
    ratio, whole = datasets[1]["ratio"] or 1, datasets[1]["nosplit"]
    fixed, by_events = task["nfilesperjob"], task["neventsperjob"]
    if fixed is None and by_events is None:
        fixed = 1
    most = fixed or task["nmaxfilesperjob"] or 200
    best = (0, 0)
    while master:
        for n in range(1, len(master) + 1):
            secondary = others if whole else others[: math.ceil(n * ratio)]
            ranges = [
                f["endevent"] - f["startevent"] + 1 for f in master[:n] if f["endevent"] is not None
            ]
            counted = (
                sum(ranges) if ranges else 0 if whole else sum(f["nevents"] or 0 for f in secondary)
            )
            over = n > most or (not fixed and (counted > by_events or not follows(master, n - 1)))
            if over and n > 1:
                break
            names = {f["lfn"]: f["fsize"] for f in [*master[:n], *secondary]}
            events = sum(ranges) if ranges else sum(f["nevents"] or 1 for f in master[:n])
            took, used = n, len(secondary)
            measured = (sum(names.values()), events)
        best = tuple(map(max, best, measured))
        master, others = master[took:], others if whole else others[used:]
    return best


def test_a_thousand_tasks_at_once_are_as_each_walked_slowly():
    draw = random.Random(11)  # noqa: S311
    cases = [random_task(draw, number) for number in range(1000)]
    tables = [
        frame([case[0] for case in cases]),
        *(frame([row for case in cases for row in case[part]]) for part in (1, 2)),
    ]
    found = atoms(*tables)
    expected = [walk_slowly(*case) for case in cases]
    assert found.select("atom_size", "atom_nevents").rows() == expected
    shuffled = [table.sample(fraction=1, shuffle=True, seed=2) for table in tables]
    assert_frame_equal(found, atoms(*shuffled))
    some = tables[0].filter(pl.col("jeditaskid") % 100 == 7)
    assert_frame_equal(atoms(some, *tables[1:]), found.filter(pl.col("jeditaskid") % 100 == 7))
