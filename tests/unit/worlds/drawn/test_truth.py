import numpy as np
import polars as pl
import pytest
from scipy import stats

from brokerlab.numerics import noise_cdf
from brokerlab.worlds.truth import QUANTILES, QUANTITIES, evaluate
from tests.unit.worlds.drawn.conftest import Made

LEVELS = [500, 750, 900, 950, 990]


def measured(made: Made) -> pl.DataFrame:
    """Finished jobs after scouting with the three quantities as the scout rule measures them."""
    files = made.tables["files"].filter(pl.col("type").is_in(["input", "pseudo_input"]))
    span = (pl.col("endevent") - pl.col("startevent") + 1).fill_null(1)
    power = made.tables["queues"].select(computingsite="panda_queue", power="corepower")
    busy = (pl.col("wall_s") - pl.col("base_wall_s")).clip(lower_bound=0)
    return (
        made.bulk.drop("ref_cores", "job_type")
        .join(files.group_by("pandaid").agg(n_events=span.sum()), on="pandaid")
        .join(power, on="computingsite")
        .join(made.truth, on="jeditaskid")
        .with_columns(
            maxpss_kb=pl.when(pl.col("corecount") == pl.col("ref_cores")).then("maxpss"),
            hs06s_per_event=busy * pl.col("power") * pl.col("corecount") * 0.9 / pl.col("n_events"),
            output_bytes_per_event=pl.col("outputfilebytes") / pl.col("n_events"),
        )
    )


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("level", LEVELS)
def test_quantiles_agree_with_the_jobs(made: Made, quantity: str, level: int) -> None:
    """Counts above the true quantile are binomial: p-values are as even as chance makes them."""
    truth = pl.col(f"{quantity}_q{level}")
    counts = (
        measured(made)
        .drop_nulls(quantity)
        .filter(truth > 0)
        .group_by("jeditaskid")
        .agg(n=pl.len(), above=(pl.col(quantity) > truth).sum().cast(pl.Int64))
        .filter(pl.col("n") >= 100)
    )
    assert len(counts) > 40
    p = 1 - level / 1000
    n, above = counts["n"].to_numpy(), counts["above"].to_numpy()
    small = stats.binom.cdf(above, n, p) < 0.0005
    large = stats.binom.sf(above - 1, n, p) < 0.0005
    assert (small | large).sum() <= 2
    z = (above.sum() - p * n.sum()) / np.sqrt(p * (1 - p) * n.sum())
    assert abs(z) < 4


def test_the_check_above_would_notice_five_per_cent(made: Made) -> None:
    counts = measured(made).drop_nulls("maxpss_kb")
    z = []
    for factor in (0.97, 1.0, 1.03):
        above = (counts["maxpss_kb"] > counts["maxpss_kb_q950"] * factor).sum()
        z.append((above - 0.05 * len(counts)) / np.sqrt(0.05 * 0.95 * len(counts)))
    assert z[0] > 8
    assert abs(z[1]) < 4
    assert z[2] < -8


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_stored_quantiles_are_exact(made: Made, quantity: str) -> None:
    for q in QUANTILES:
        value = made.truth[f"{quantity}_q{round(1000 * q)}"].to_numpy()
        p = evaluate(made.truth, made.truth_queues, quantity, lambda m, i, v=value: m.cdf(v[i]))
        assert p[value > 0] == pytest.approx(q, abs=1e-6 * (1 - q) + 1e-9)
        assert (p[value == 0] >= q).all()


def test_quantiles_rise_with_the_level(made: Made) -> None:
    for quantity in QUANTITIES:
        names = [f"{quantity}_q{round(1000 * q)}" for q in QUANTILES]
        steps = np.diff(made.truth.select(names).to_numpy(), axis=1)
        assert (steps >= 0).all()


def test_noise_against_a_simulation() -> None:
    rng = np.random.default_rng(3)
    n = 400_000
    tail = np.where(rng.random(n) < 0.2, 0.3 * rng.standard_exponential(n), 0.0)
    for sign in (1, -1):
        x = np.sort(0.1 * rng.standard_normal(n) + sign * tail)
        at = np.array([-0.5, -0.1, 0.0, 0.1, 0.5])
        empirical = np.searchsorted(x, at) / n
        one = np.ones(1)
        exact = noise_cdf(at[None, :], 0.1 * one, 0.2 * one, 0.3 * one, sign)[0]
        assert exact == pytest.approx(empirical, abs=0.004)


def test_mix_of_queues_sums_to_one(made: Made) -> None:
    total = made.truth_queues.group_by("jeditaskid").agg(pl.col("weight").sum())
    assert total["weight"].to_numpy() == pytest.approx(1.0)
    assert set(total["jeditaskid"]) == set(made.truth["jeditaskid"])


def test_truth_has_every_task(made: Made) -> None:
    assert made.truth["jeditaskid"].to_list() == made.tasks["jeditaskid"].to_list()
    planted = set(made.planted["jeditaskid"])
    assert planted | set(made.truth["jeditaskid"]) == set(made.tables["tasks"]["jeditaskid"])
    assert planted.isdisjoint(made.truth["jeditaskid"])
