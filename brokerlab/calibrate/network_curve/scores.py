"""How well a weight ranks links by what they later delivered, and the difference between two weights.

Spearman's rank correlation over all links, the same within each destination (a brokerage compares
the sources of one nucleus), and NDCG of the top tenth. Intervals come from resampling groups of mirrored
links (inside destinations: destinations), the same replicates for every weight, so differences are paired.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.intervals import CONFIDENCE, bootstrap_weights, percentile_interval
from brokerlab.numerics import FloatArray, IntArray

FEWEST = 20
"""Groups of links below which no score is given."""
TOP_SHARE = 0.1
"""NDCG looks at this share of the links, the top ones [1]."""
SMALLEST_QUERY = 5
"""Links that a destination needs to count within destinations."""
BLOCK = 100
MEASURES = ("spearman", "spearman_within", "ndcg_top")
WEIGHTS = {
    "document": "document's curve",
    "production": "production's curve",
    "isotonic": "finest rising curve",
    "log_throughput": "log throughput",
    "log_throughput_long": "log throughput, longest window",
    "closeness": "closeness alone",
    "sites": "names of the sites alone",
    "line": "document's line",
    "lowest": "lowest weight for all",
    "nothing_hidden": "nothing hidden",
    "current": "current exchange",
    "queue_only": "waiting files alone",
    "throughput_only": "throughput weight alone",
    "log_ratio": "log throughput − log files",
}
"""What each weight is called on a page."""
Outcome = Literal["better", "not_proven", "worse", "worse_at_top", "demand"]


@dataclass(frozen=True)
class Scores:
    """Scores of several weights on the same links.

    Attributes:
        table: One row per measure and name: ``value, value_lo, value_hi``; ``diff, diff_lo, diff_hi``: name minus the
            reference; null ends where fewer than two units are drawn.
        reference: What the differences are taken from.
        n_rows: Links times instants.
        n_links: Groups of mirrored links, or what else was resampled.
        n_dst: Destinations.
    """

    table: pl.DataFrame
    reference: str
    n_rows: int
    n_links: int
    n_dst: int

    def of(self, name: str, measure: str = "spearman") -> dict[str, float]:
        """Return the row of one weight and measure."""
        return self.table.filter(name=name, measure=measure).row(0, named=True)

    def by_weight(self) -> pl.DataFrame:
        """Return one row per weight.

        Returns:
            ``name``, every measure with its interval, ``diff, diff_lo, diff_hi`` of the first; ``weight`` (the name in
            words), ``mark`` (current: the reference; better: the interval of ``diff`` is above 0; else null).
        """
        measures = self.table["measure"].unique(maintain_order=True).to_list()
        ends = ("", "_lo", "_hi")
        parts = [
            self.table.filter(measure=measure).select(
                "name", **{f"{measure}{end}": pl.col(f"value{end}") for end in ends}
            )
            for measure in measures
        ]
        found = self.table.filter(measure=measures[0]).select(
            "name", *(f"diff{end}" for end in ends)
        )
        for part in parts:
            found = found.join(part, on="name", maintain_order="left")
        current = pl.when(name=self.reference).then(pl.lit("current"))
        better = pl.when(pl.col("diff_lo") > 0).then(pl.lit("better"))
        return found.with_columns(
            weight=pl.col("name").replace(WEIGHTS), mark=current.otherwise(better)
        )


def compare(
    rows: pl.DataFrame,
    weights: Mapping[str, FloatArray],
    *,
    reference: str,
    gain: FloatArray | None = None,
    unit: str = "group",
    measures: tuple[str, ...] = MEASURES,
    n_boot: int = 500,
    seed: int = 1,
) -> Scores:
    """Score weights by how they rank links by ``outcome``, and against a reference.

    Args:
        rows: ``outcome`` (not null), ``query``, ``group``, ``dst``.
        weights: Name -> weight per row.
        reference: Name of the weight that the others are compared with.
        gain: Relevance of each row for NDCG, not negative; null = ln(1 + outcome).
        unit: Column that is resampled; within destinations it is always ``dst``.
        measures: Of ``MEASURES``.
        n_boot: Bootstrap replicates.
        seed: Of the bootstrap.

    Raises:
        InsufficientDataError: Too few groups, or the outcome is the same everywhere.
    """
    n_units = rows[unit].n_unique()
    if n_units < FEWEST:
        raise InsufficientDataError(
            f"{n_units} links to score on, {FEWEST} are needed; counted by {unit}"
        )
    if rows["outcome"].n_unique() == 1:
        raise InsufficientDataError("all links delivered the same; there is no ranking to score")
    outcome = rows["outcome"].cast(pl.Float64).to_numpy()
    relevance = np.log1p(np.maximum(outcome, 0.0)) if gain is None else gain
    query = _codes(rows["query"])
    found = []
    for measure in measures:
        units = rows["dst" if measure == "spearman_within" else unit]
        counts, n_drawn = _counts(units, n_boot, seed), units.n_unique()
        drawn = {
            name: _replicates(measure, outcome, relevance, weight, query, counts)
            for name, weight in weights.items()
        }
        found += [
            {"measure": measure, "name": name, **_summary(values, drawn[reference], n_drawn)}
            for name, values in drawn.items()
        ]
    return Scores(pl.DataFrame(found), reference, rows.height, n_units, rows["dst"].n_unique())


def _codes(values: pl.Series) -> IntArray:
    return (values.rank("dense") - 1).cast(pl.Int64).to_numpy()


def _counts(units: pl.Series, n_boot: int, seed: int) -> FloatArray:
    """Return how often each row is drawn: once in the first line, then replicate by replicate."""
    n = units.n_unique()
    drawn = [np.ones((1, n)), *bootstrap_weights(n, n_boot=n_boot, seed=seed)]
    return np.concatenate(drawn)[:, _codes(units)]


def _summary(drawn: FloatArray, base: FloatArray, n_drawn: int) -> dict[str, float | None]:
    """Return value and difference, each with its interval; replicate 0 is the sample itself."""
    both = np.column_stack([drawn, drawn - base])
    found: dict[str, float | None] = {"value": float(both[0, 0]), "diff": float(both[0, 1])}
    names = [f"{name}_{end}" for end in ("lo", "hi") for name in ("value", "diff")]
    if n_drawn < 2:
        return found | dict.fromkeys(names)
    ends = percentile_interval(both[1:], CONFIDENCE, n_tasks=n_drawn)
    return found | dict(zip(names, map(float, np.concatenate(ends)), strict=True))


def _replicates(
    measure: str,
    outcome: FloatArray,
    relevance: FloatArray,
    weight: FloatArray,
    query: IntArray,
    counts: FloatArray,
) -> FloatArray:
    """Return the measure of the sample and of every replicate."""
    if measure == "ndcg_top":
        return weighted_ndcg(relevance, weight, counts)
    within = query if measure == "spearman_within" else np.zeros(len(outcome), dtype=np.int64)
    parts = [
        weighted_spearman(outcome, weight, within, counts[i : i + BLOCK])
        for i in range(0, len(counts), BLOCK)
    ]
    return np.concatenate(parts)


def weighted_ndcg(relevance: FloatArray, weight: FloatArray, counts: FloatArray) -> FloatArray:
    """Return NDCG of the top tenth for many resamples at once; ties share their places.

    Equal to scikit-learn's ``ndcg_score`` of the rows repeated as often as drawn (that function takes one
    resample at a time).

    Args:
        relevance: (n,) not negative.
        weight: (n,).
        counts: (n_boot, n) how often each row is drawn.

    Returns:
        (n_boot,); 0 where nothing drawn is worth anything.

    Source: McSherry and Najork, ECIR 2008, section 3 (ties).

    Example:
        >>> weighted_ndcg(np.array([3.0, 1.0] + [0.0] * 18), np.arange(20.0), np.ones((1, 20))).tolist()
        [0.0]
    """
    drawn = counts.sum(axis=1)
    top = np.maximum(1, np.round(TOP_SHARE * drawn))
    gained = _dcg(relevance, weight, counts, top)
    best = _dcg(relevance, relevance, counts, top)
    return np.asarray(np.where(best > 0, gained / np.maximum(best, 1e-300), 0.0))


def _dcg(
    relevance: FloatArray, weight: FloatArray, counts: FloatArray, top: FloatArray
) -> FloatArray:
    """Return the discounted gain of the first ``top`` places; equal weights share the mean of their gains."""
    order = np.argsort(-weight, kind="stable")
    w = weight[order]
    runs = np.flatnonzero(np.r_[True, w[1:] != w[:-1]])
    n = np.add.reduceat(counts[:, order], runs, axis=1)
    worth = np.add.reduceat(counts[:, order] * relevance[order], runs, axis=1)
    last = np.minimum(np.cumsum(n, axis=1), top[:, None]).astype(np.int64)
    discounts = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, top.max() + 2)))])
    places = np.diff(discounts[last], axis=1, prepend=0.0)
    return np.asarray((worth / np.maximum(n, 1.0) * places).sum(axis=1))


def weighted_spearman(
    outcome: FloatArray, weight: FloatArray, query: IntArray, counts: FloatArray
) -> FloatArray:
    """Return Spearman's correlation inside queries, averaged by their rows, for many resamples at once.

    Equal to the correlation of the average ranks of the rows repeated as often as drawn; a query whose
    weights or outcomes are all equal ranks nothing and counts 0.

    Args:
        outcome: (n,).
        weight: (n,).
        query: (n,) number of each row's query.
        counts: (n_boot, n) how often each row is drawn.

    Returns:
        (n_boot,).

    Example:
        >>> one = np.zeros(4, dtype=int)
        >>> weighted_spearman(np.arange(4.0), np.array([1.0, 1, 2, 3]), one, np.ones((1, 4))).round(4)
        array([0.9487])
    """
    order = np.argsort(query, kind="stable")
    outcome, weight, query, counts = outcome[order], weight[order], query[order], counts[:, order]
    starts = np.flatnonzero(np.r_[True, query[1:] != query[:-1]])
    sizes = np.diff(np.append(starts, len(query)))

    def total(values: FloatArray) -> FloatArray:
        return np.asarray(np.add.reduceat(values, starts, axis=1))

    n = total(counts)
    safe = np.maximum(n, 1.0)
    centred = []
    for values in (outcome, weight):
        rank = _ranks(values, query, counts)
        mean = total(counts * rank) / safe
        centred.append(rank - np.repeat(mean, sizes, axis=1))
    a, b = centred
    spread = total(counts * a**2) * total(counts * b**2)
    with np.errstate(all="ignore"):
        rho = np.where(spread > 0, total(counts * a * b) / np.sqrt(spread), 0.0)
    large = n >= (SMALLEST_QUERY if len(starts) > 1 else 1)
    share = np.where(large, n, 0.0)
    return np.asarray((rho * share).sum(axis=1) / np.maximum(share.sum(axis=1), 1.0))


def _ranks(values: FloatArray, query: IntArray, counts: FloatArray) -> FloatArray:
    """Return average ranks inside queries of rows repeated ``counts`` times; queries stand together."""
    order = np.lexsort((values, query))
    v, q = values[order], query[order]
    runs = np.flatnonzero(np.r_[True, (v[1:] != v[:-1]) | (q[1:] != q[:-1])])
    lengths = np.diff(np.append(runs, len(v)))
    drawn = np.add.reduceat(counts[:, order], runs, axis=1)
    middle = np.cumsum(drawn, axis=1) - drawn / 2 + 0.5
    ranks = np.empty_like(counts)
    ranks[:, order] = np.repeat(middle, lengths, axis=1)
    return ranks


@dataclass(frozen=True)
class Judgement:
    """What the later period says about a fitted weight.

    Attributes:
        outcome: ``better``: ranks links better and the top tenth no worse. ``not_proven``: the 95 % interval of the
            difference includes 0. ``worse``: ranks them worse. ``worse_at_top``: better over
            all, worse among the top tenth. ``demand``: better, but the names of the sites alone rank links
            they have not seen no worse: what is ranked is how much was asked for.
        diff: Difference of the rank correlation.
        diff_lo: Lower end of its interval.
        diff_hi: Upper end.
        value: Rank correlation of the fitted weight.
        reference: That of the reference.
    """

    outcome: Outcome
    diff: float
    diff_lo: float
    diff_hi: float
    value: float
    reference: float


def judge(
    scores: Scores, *, proposed: str = "fitted", sites_behind: float | None = None
) -> Judgement:
    """Judge a fitted weight by its scores on links and times it has not seen.

    Args:
        scores: With ``spearman`` and ``ndcg_top``, differences from the reference.
        proposed: Name of the fitted weight.
        sites_behind: Lower end of the interval of what the fitted weight is ahead of the names of the sites
            alone; null = not asked.
    """
    row, top = scores.of(proposed), scores.of(proposed, "ndcg_top")
    outcome: Outcome
    if row["diff_hi"] < 0:
        outcome = "worse"
    elif row["diff_lo"] <= 0:
        outcome = "not_proven"
    elif top["diff_hi"] < 0:
        outcome = "worse_at_top"
    elif sites_behind is not None and sites_behind <= 0:
        outcome = "demand"
    else:
        outcome = "better"
    return Judgement(
        outcome,
        diff=row["diff"],
        diff_lo=row["diff_lo"],
        diff_hi=row["diff_hi"],
        value=row["value"],
        reference=scores.of(scores.reference)["value"],
    )
