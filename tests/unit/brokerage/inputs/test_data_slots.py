"""Data availability and slots of many tasks at once."""

import polars as pl
from polars.testing import assert_frame_equal

from brokerlab.brokerage.inputs.data import input_at_queues, input_files, input_totals
from brokerlab.brokerage.inputs.queues import slot_counts

TASKS = pl.DataFrame({"jeditaskid": [2, 1, 3]})
DATASETS = pl.DataFrame(
    {
        "jeditaskid": [1, 1, 2, 2],
        "datasetname": ["A", "B", "A", "P"],
        "pseudo": [False, False, False, True],
        "distributed": [False, True, False, False],
    }
)
FILES = pl.DataFrame(
    [
        (1, "A", "a1", 10),
        (1, "A", "a1", 10),  # another event range of the same file
        (1, "A", "a2", None),
        (1, "B", "a1", 10),
        (1, "B", "b1", 100),
        (2, "A", "a1", 10),
        (2, "P", "p1", 1000),
    ],
    schema=["jeditaskid", "datasetname", "lfn", "fsize"],
    orient="row",
)
PLACES = pl.DataFrame(
    [
        ("A", "Q", "a1", "localdisk"),
        ("A", "Q", "a1", "localtape"),
        ("B", "Q", "b1", "localtape"),
        ("A", "Q", "a2", "cache"),
        ("B", "P", "b1", "cache"),
        ("A", "R", "a1", "remote"),
        ("P", "Q", "p1", "localdisk"),
    ],
    schema=["datasetname", "panda_queue", "lfn", "kind"],
    orient="row",
)


def totals(tasks: pl.DataFrame, *tables: pl.DataFrame | None) -> pl.DataFrame:
    return input_totals(tasks, input_files(tasks, *tables))


def at_queues(
    tasks: pl.DataFrame,
    datasets: pl.DataFrame | None,
    files: pl.DataFrame | None,
    places: pl.DataFrame | None,
) -> pl.DataFrame:
    return input_at_queues(input_files(tasks, datasets, files), places)


def test_a_name_counts_once_and_pseudo_files_never():
    assert totals(TASKS, DATASETS, FILES).rows() == [(1, 110, 3), (2, 10, 1), (3, 0, 0)]


def test_what_queues_have():
    assert at_queues(TASKS, DATASETS, FILES, PLACES).rows() == [
        (1, "P", 100, 1, 100, 1),
        (1, "Q", 10, 2, 110, 3),
        (2, "Q", 10, 1, 10, 1),
    ]


def test_order_and_company_do_not_matter():
    args = (DATASETS, FILES, PLACES)
    for function, tables in ((totals, args[:2]), (at_queues, args)):
        together = function(TASKS, *tables)
        turned = function(TASKS.reverse(), *(table.reverse() for table in tables))
        assert_frame_equal(together, turned)
        single = pl.concat(function(TASKS[i], *tables) for i in range(3))
        assert_frame_equal(together, single.sort(together.columns[:2]))


def test_tables_without_task_serve_every_task():
    one = pl.DataFrame({"datasetname": ["A"], "lfn": ["x"], "fsize": [7]})
    names = pl.DataFrame({"datasetname": ["A"]})
    assert totals(TASKS, names, one)["total"].to_list() == [7, 7, 7]


def test_a_file_without_name_is_no_input():
    nameless = pl.concat([FILES, FILES.with_columns(lfn=pl.lit(None, pl.String))])
    assert_frame_equal(totals(TASKS, DATASETS, nameless), totals(TASKS, DATASETS, FILES))


def test_no_input():
    assert totals(TASKS, None, None)["total"].to_list() == [0, 0, 0]
    assert at_queues(TASKS, None, None, None).is_empty()


SLOTS = pl.DataFrame(
    [
        ("Q", None, None, 7, None),
        ("Q", "A", "SCORE", 5, None),
        ("Q", "A", "MCORE", 3, None),
        ("Q", "B", None, -1, None),
        ("P", "A", None, 2, 1),
        ("P", "A", None, 1, 1),
    ],
    schema=["panda_queue", "gshare", "resourcetype", "numslots", "snapshot"],
    orient="row",
)


def test_slots():
    wanted = pl.DataFrame(
        [
            (1, "Q", "A", "SCORE"),
            (1, "Q", "A", "OTHER"),
            (1, "Q", "A", None),
            (2, "Q", "B", "SCORE"),
            (1, "P", "A", "SCORE"),
            (2, "P", "A", "SCORE"),
            (2, "P", "A", "SCORE"),
        ],
        schema=["snapshot", "panda_queue", "tag", "resource_type"],
        orient="row",
    )
    found = slot_counts(SLOTS, wanted)
    assert found.height == 6
    numbers = wanted.join(
        found,
        on=wanted.columns,
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )["numslots"]
    # a share with its own rows does not fall back on those of any share; rows below 0 are none
    assert numbers.to_list() == [5, None, 8, 7, 2, None, None]
    turned = slot_counts(SLOTS.reverse(), wanted.reverse())
    assert_frame_equal(found, turned)
