"""Every outcome of the network curve report has its sentence, with the numbers of the study."""

from dataclasses import replace

import pytest

from brokerlab.brokerage.network_weight import NetworkSettings
from brokerlab.calibrate.network_curve import Judgement
from brokerlab.report.network_curve import load, study
from brokerlab.report.network_curve import sentences as say
from brokerlab.report.network_curve.proposal import document
from brokerlab.report.network_curve.study import Unanswered
from tests.unit.calibrate import network_toys as toys


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    source = tmp_path_factory.mktemp("links") / "network_matrix.parquet"
    toys.snapshots(links=240).write_parquet(source)
    return study(load(str(source)), n_boot=20)


def judged(outcome: str) -> Judgement:
    return Judgement(outcome, diff=0.1, diff_lo=0.04, diff_hi=0.16, value=0.7, reference=0.6)


@pytest.mark.parametrize(
    ("outcome", "kind", "words"),
    [
        ("better", "change", "ranks links better by what they later deliver"),
        ("not_proven", "keep", "not better beyond doubt"),
        ("worse", "keep", "ranks links worse"),
        ("worse_at_top", "keep", "worse among the fastest tenth"),
        ("demand", "no_answer", "how much was asked of a link, not what it can carry"),
    ],
)
def test_the_curve(small, outcome, kind, words):
    found = say.curve(replace(small.curves["metrics"], judgement=judged(outcome)), "metrics")
    assert found.kind == kind
    assert words in found.sentence
    assert "0.700 against 0.600, difference 0.100 (0.040 to 0.160)" in found.sentence


def test_the_fallback(small):
    change = say.fallback(replace(small.fallback, judgement=judged("better")))
    assert change.kind == "change"
    assert "instead of" in change.sentence
    keep = say.fallback(replace(small.fallback, judgement=judged("not_proven")))
    assert keep.kind == "keep"
    assert "not better beyond doubt" in keep.sentence


def test_the_exchange_proposes_only_what_was_proven_later(small):
    fit = replace(small.exchange.fit, files=50.0, files_lo=40.0, files_hi=60.0, at_edge=False)
    better = replace(small.exchange, fit=fit, judgement=judged("better"), proposed=0.75)
    settings = NetworkSettings()
    verdict = say.exchange(better, settings)
    assert verdict.kind == "change"
    assert "Raise NW_QUEUE_IMPORTANCE from 0.5 to 0.75 (50 (40 to 60) waiting files" in verdict.sentence  # fmt: skip
    proposal = document(replace(small, exchange=better), created_at=toys.NOON)
    assert (proposal.kind, proposal.changes[0].new) == ("change", 0.75)
    other = replace(better, proposed=None)
    assert say.exchange(other, settings).kind == "keep"
    assert document(replace(small, exchange=other), created_at=toys.NOON).kind == "keep"
    assert document(replace(small, exchange=Unanswered("few")), created_at=toys.NOON) is None


def test_what_it_cannot_tell(small):
    told = say.cannot_tell(
        small.inputs.evidence,
        small.curves,
        (small.fallback, small.exchange),
        synthetic=False,
        active=False,
    )
    assert any("have no throughput when the weight is taken" in sentence for sentence in told)
    assert any(sentence.startswith("Slope, cap and importance one by one") for sentence in told)
    assert any("NW_ACTIVE is false" in sentence for sentence in told)
    assert not any("synthetic" in sentence for sentence in told)


def test_the_curve_in_words(small):
    found = small.curves["metrics"]
    assert "of all pairs of links" in say.told_apart(found)
    assert say.plain(found)
