"""What an archive holds, in one small object that shows itself in a notebook."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import duckdb
import jinja2

from brokerlab.archive.manifest import Manifest


@dataclass(frozen=True)
class Summary:
    """Counts of an archive.

    Attributes:
        name: Name of the archive folder.
        synthetic: Whether the jobs were generated.
        digest: Digest of the content.
        rows: Rows by table, the quarantine included.
        first: Earliest ``modificationtime`` of a job [UTC, ISO text]; None without jobs.
        last: Latest one.
        n_tasks: Distinct tasks of the jobs.
        n_queues: Distinct queues of the jobs.
        status_share: Share of each job status, 0 to 1, largest first.
        n_sources: Ingested files.
    """

    name: str
    synthetic: bool
    digest: str
    rows: dict[str, int]
    first: str | None
    last: str | None
    n_tasks: int
    n_queues: int
    status_share: dict[str, float]
    n_sources: int

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain Python values."""
        return asdict(self)

    def _repr_html_(self) -> str:
        return _TEMPLATE.render(s=self)


def summarise(
    name: str,
    manifest: Manifest,
    sql: Callable[[str], duckdb.DuckDBPyRelation],
) -> Summary:
    """Count an archive; row counts and window come from the manifest, the rest from one scan.

    Args:
        name: Name to show.
        manifest: The archive's manifest.
        sql: Runs a query over its tables.

    Returns:
        The summary.
    """
    shares: dict[str, float] = {}
    tasks = queues = 0
    if manifest.counts.get("jobs"):
        statuses = sql("select jobstatus, count(*) from jobs group by 1 order by 2 desc, 1")
        counted = statuses.fetchall()
        total = sum(count for _, count in counted)
        shares = {status: count / total for status, count in counted}
        distinct = sql("select count(distinct jeditaskid), count(distinct computingsite) from jobs")
        tasks, queues = distinct.fetchall()[0]
    window = manifest.window
    return Summary(
        name=name,
        synthetic=manifest.synthetic,
        digest=manifest.digest,
        rows=dict(manifest.counts),
        first=window[0] if window else None,
        last=window[1] if window else None,
        n_tasks=tasks,
        n_queues=queues,
        status_share=shares,
        n_sources=len(manifest.sources),
    )


_TEMPLATE = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(
    """\
<div style="font-family: system-ui, sans-serif; max-width: 42em">
<p><strong>Archive {{ s.name }}</strong>{% if s.synthetic %} · synthetic{% endif %}
{% if s.first %}· {{ s.first }} to {{ s.last }} UTC {% endif %}
· {{ "{:,}".format(s.n_tasks) }} tasks · {{ "{:,}".format(s.n_queues) }} queues
· {{ s.n_sources }} sources · digest <code>{{ s.digest[:12] }}</code></p>
<table>
<thead><tr><th style="text-align: left">table</th><th style="text-align: right">rows</th></tr></thead>
<tbody>
{% for table, count in s.rows.items() %}
<tr><td style="text-align: left">{{ table }}</td>
<td style="text-align: right">{{ "{:,}".format(count) }}</td></tr>
{% endfor %}
</tbody>
</table>
{% if s.status_share %}
<p>Job status:
{% for status, share in s.status_share.items() %}
{{ status }} {{ "%.2f"|format(100 * share) }} %{{ "" if loop.last else "," }}
{% endfor %}
</p>
{% endif %}
</div>
"""
)
