"""The tables of the network curve report."""

from __future__ import annotations

from typing import Any

from brokerlab.brokerage.network_weight import NetworkSettings
from brokerlab.calibrate.network_curve import Scores, exchange_keys
from brokerlab.calibrate.network_curve.scores import MEASURES
from brokerlab.report.content import Column, Num, Row, Table
from brokerlab.report.network_curve import sentences as say
from brokerlab.report.network_curve.study import DOCUMENT, LABELS, SIDES, Curve, Exchange, Fallback
from brokerlab.words import number

DECIMALS = 3
INTERVALS = (
    "In brackets: 95 % intervals from resampling links (mirrored ones together; within destinations: "
    "destinations)."
)
SHORT = {
    "spearman": "Rank correlation",
    "spearman_within": "Within destinations",
    "ndcg_top": "NDCG, top tenth",
}


def _num(row: dict[str, Any], names: tuple[str, str, str], decimals: int = DECIMALS) -> Num:
    value, lo, hi = (row[name] for name in names)
    return Num(value=value, lo=lo, hi=hi, decimals=decimals)


def scores(found: Scores, name: str, caption: str, gain: str = "ln(1 + MB/s)") -> Table:
    """Lay out how well every weight ranks links, and its difference from the reference."""
    rows = []
    for weight in found.table["name"].unique(maintain_order=True):
        cells: dict[str, Num | str | None] = {"name": LABELS.get(weight, weight)}
        for measure in MEASURES:
            row = found.of(weight, measure)
            cells[measure] = _num(row, ("value", "value_lo", "value_hi"))
        first = found.of(weight)
        cells["diff"] = None if weight == found.reference else _num(first, ("diff", "diff_lo", "diff_hi"))  # fmt: skip
        rows.append(Row(cells=cells))
    return Table(
        name=name,
        caption=caption,
        columns=(
            Column(key="name", label="Weight"),
            Column(key="spearman", label=SHORT["spearman"]),
            Column(key="diff", label=f"Difference from {found.reference}"),
            *(Column(key=m, label=SHORT[m]) for m in MEASURES[1:]),
        ),
        rows=tuple(rows),
        footnote=f"{INTERVALS} Ties share their ranks; NDCG with {gain} as gain.",
    )


def fitted_steps(found: Curve) -> Table:
    """Lay out the fitted curve, step by step, with the intervals of edges and heights."""
    rows = [
        Row(
            cells={
                "edge": "lowest" if row["mbps_above"] is None else f"{row['mbps_above']:g}",
                "interval": "" if row["mbps_above"] is None else _between(row["mbps_above_lo"], row["mbps_above_hi"]),
                "weight": Num(value=row["weight"], lo=row["weight_lo"], hi=row["weight_hi"], decimals=2),
                "expected": say.mbps(row["expected_mbps"]),
                "links": Num(value=row["n_links"], decimals=0),
            }
        )
        for row in found.fit.steps.iter_rows(named=True)
    ]  # fmt: skip
    return Table(
        name=f"{found.name}_steps",
        caption=f"The fitted curve: {number(found.fit.n_links)} links, {found.evidence.stages['choice']}",
        columns=(
            Column(key="edge", label="Above", unit="MB/s"),
            Column(key="interval", label="95 % interval of the edge", unit="MB/s"),
            Column(key="weight", label="Weight"),
            Column(key="expected", label="Expected later", unit="MB/s"),
            Column(key="links", label="Links"),
        ),
        rows=tuple(rows),
        footnote=(
            f"{found.fit.n_boot} bootstrap replicates over links. The lowest step weighs 1 and the highest 2, as in "
            "the document; between them the weight follows the expected ln(MB/s)."
        ),
    )


def _between(low: float, high: float) -> str:
    return f"{say.mbps(low)} to {say.mbps(high)}"


def _spread(row: dict[str, Any]) -> str:
    middle, low, high = (say.mbps(row[q]) for q in ("q50", "q10", "q90"))
    return f"{middle} ({low} to {high})"


def told(found: Curve) -> Table:
    """Lay out what each step of the document's curve tells about later deliveries."""
    rows = [
        Row(
            cells={
                "edge": "lowest" if row["mbps_above"] is None else f"{row['mbps_above']:g}",
                "share": Num(value=100 * row["share"], decimals=1),
                "later": "" if row["q50"] is None else _spread(row),
                "beats": None if row["beats_below"] is None else Num(value=100 * row["beats_below"], decimals=0),
                "document": Num(value=row["weight"], decimals=2),
                "fitted": None if row["fitted"] is None
                else Num(value=row["fitted"], lo=row["fitted_lo"], hi=row["fitted_hi"], decimals=2),
            }
        )
        for row in found.steps.filter(curve=DOCUMENT).iter_rows(named=True)
    ]  # fmt: skip
    return Table(
        name=f"{found.name}_told",
        caption="What the document's steps tell apart, and what their links would weigh",
        columns=(
            Column(key="edge", label="Above", unit="MB/s"),
            Column(key="share", label="Links", unit="%"),
            Column(key="later", label="Later, median (10 to 90 %)", unit="MB/s"),
            Column(key="beats", label="Delivers more than the step below", unit="% of pairs"),
            Column(key="document", label="Weight, document"),
            Column(key="fitted", label="Mean weight, fitted (least to most)"),
        ),
        rows=tuple(rows),
        footnote="50 % of pairs: the edge tells nothing. Links of the proof, not seen by the fit.",
    )


def checks(found: Curve) -> Table:
    """Lay out the same difference on other sides of the data."""
    rows = [
        Row(
            cells={
                "side": SIDES[row["side"]],
                "rows": Num(value=row["n_rows"], decimals=0),
                "units": Num(value=row["n_units"], decimals=0),
                "document": Num(value=row["document"], decimals=DECIMALS),
                "fitted": Num(value=row["fitted"], decimals=DECIMALS),
                "diff": _num(row, ("diff", "diff_lo", "diff_hi")),
            }
        )
        for row in found.checks.iter_rows(named=True)
    ]
    return Table(
        name=f"{found.name}_checks",
        caption="Rank correlation on other sides of the data",
        columns=(
            Column(key="side", label="Side"),
            Column(key="rows", label="Rows"),
            Column(key="units", label="Resampled"),
            Column(key="document", label="Document"),
            Column(key="fitted", label="Fitted"),
            Column(key="diff", label="Difference"),
        ),
        rows=tuple(rows),
        footnote="Resampled: how many links, sources or destinations the interval comes from.",
    )


def fallback(found: Fallback) -> Table:
    """Lay out the weight by closeness."""
    rows = [
        Row(
            cells={
                "closeness": "missing" if row["closeness"] is None else f"{row['closeness']:g}",
                "line": Num(value=row["line"], decimals=2),
                "fitted": Num(value=row["weight"], lo=row["weight_lo"], hi=row["weight_hi"], decimals=2),
                "later": say.mbps(row["q50"]),
                "links": Num(value=row["n_links"], decimals=0),
                "known": Num(value=100 * row["share_known"], decimals=0),
            }
        )
        for row in found.fit.table.iter_rows(named=True)
    ]  # fmt: skip
    return Table(
        name="fallback_levels",
        caption="The weight of links without throughput, by closeness",
        columns=(
            Column(key="closeness", label="Closeness"),
            Column(key="line", label="Document"),
            Column(key="fitted", label="What such links earn"),
            Column(key="later", label="Later, median", unit="MB/s"),
            Column(key="links", label="Links"),
            Column(key="known", label="Of all such links with throughput", unit="%"),
        ),
        rows=tuple(rows),
        footnote=(
            "What such links earn: the mean weight that their later throughput would get from the document's curve, "
            f"falling with closeness (neighbours that would rise share one mean). {INTERVALS}"
        ),
    )


def exchange(found: Exchange, settings: NetworkSettings) -> Table:
    """Lay out what the exchange means in the two keys."""
    now = settings.queue_importance
    rows = [
        Row(
            cells={
                "what": row["exchange"],
                **{key: _num(row, (key, f"{key}_lo", f"{key}_hi"), places)
                   for key, places in (("files", 0), ("importance", 2), ("cap", 0))},
            }
        )
        for row in exchange_keys(found.fit, settings).iter_rows(named=True)
    ]  # fmt: skip
    return Table(
        name="exchange_keys",
        caption="One exchange, two ways to set it",
        columns=(
            Column(key="what", label="Exchange"),
            Column(key="files", label="Files that weigh 1 of throughput weight", unit="files"),
            Column(
                key="importance", label=f"NW_QUEUE_IMPORTANCE at a cap of {settings.link_cap:g}"
            ),
            Column(key="cap", label=f"NQUEUED_SAT_CAP at an importance of {now:g}", unit="files"),
        ),
        rows=tuple(rows),
        footnote=(
            "Both give the same order of links. NQUEUED_SAT_CAP is the limit of the backlog check too; so only the "
            "importance is ever proposed here."
        ),
    )
