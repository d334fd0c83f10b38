"""Whole analysis brokerages against recorded vectors, under the rule set ``production``."""

from __future__ import annotations

import polars as pl
import pytest

from brokerlab.brokerage.inputs.atoms import atoms, n_jobs
from tests.oracle import vectors
from tests.oracle.anal_brokerage import differences
from tests.oracle.anal_cases import Case, recorded
from tests.oracle.test_anal_stabilizer import close


@pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")
def test_every_brokerage_vector_agrees() -> None:
    cases = vectors.load("anal_brokerage")
    wrong = {case["id"]: found for case in cases if (found := differences(case))}
    vectors.report("anal_brokerage", len(cases), len(cases) - len(wrong))
    assert not wrong


SUB_CHUNK_TABLES = ("tasks", "datasets", "files")


def input_of(cases: list[Case]) -> dict[str, pl.DataFrame]:
    """Return what chunks are cut from, of all cases: case n is task n, and so are its datasets and files."""
    tables: dict[str, list[pl.DataFrame]] = {name: [] for name in SUB_CHUNK_TABLES}
    for number, case in enumerate(cases):
        given = recorded(case["inputs"])
        for name, frames in tables.items():
            frames.append(given[name].with_columns(jeditaskid=pl.lit(number, pl.Int64)))
    return {name: pl.concat(some, how="diagonal_relaxed") for name, some in tables.items()}


def sub_chunk_agrees(case: Case, largest: Case, number: int) -> bool:
    """Tell whether the largest sub-chunk and the number of them come out as recorded."""
    want = case["inputs"]["derived"][0]
    return (
        largest["atom_size"] == want["max_atom_size"]
        and close(largest["atom_size_effective"], want["effective_atom_size"])
        and largest["atom_nevents"] == want["max_atom_events"]
        and want["n_jobs_to_submit"] in (None, number)
    )


def test_every_sub_chunk_agrees() -> None:
    cases = vectors.load("anal_brokerage")
    input_ = input_of(cases).values()
    cut = atoms(*input_).to_dicts(), n_jobs(*input_)["n_jobs_to_submit"]
    wrong = [
        case["id"]
        for case, largest, number in zip(cases, *cut, strict=True)
        if not sub_chunk_agrees(case, largest, number)
    ]
    vectors.report("anal_brokerage, sub-chunks", len(cases), len(cases) - len(wrong))
    assert not wrong
