"""Whole analysis brokerages against recorded vectors, under the rule set ``production``."""

from __future__ import annotations

import pytest

from brokerlab.brokerage.analysis_jobs.chunks import n_jobs
from brokerlab.brokerage.inputs.atoms import atoms
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


def sub_chunks_agree(case: Case) -> bool:
    """Tell whether the largest sub-chunk and the number of them come out as recorded."""
    given, want = recorded(case["inputs"]), case["inputs"]["derived"][0]
    input_ = (given["tasks"], given.get("datasets"), given.get("files"))
    largest = atoms(*input_).row(0, named=True)
    number = n_jobs(*input_)["n_jobs_to_submit"].item()
    return (
        largest["atom_size"] == want["max_atom_size"]
        and close(largest["atom_size_effective"], want["effective_atom_size"])
        and largest["atom_nevents"] == want["max_atom_events"]
        and want["n_jobs_to_submit"] in (None, number)
    )


def test_every_sub_chunk_agrees() -> None:
    cases = vectors.load("anal_brokerage")
    wrong = [case["id"] for case in cases if not sub_chunks_agree(case)]
    vectors.report("anal_brokerage, sub-chunks", len(cases), len(cases) - len(wrong))
    assert not wrong
