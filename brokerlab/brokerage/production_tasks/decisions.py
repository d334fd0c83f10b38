"""What the task brokerage decided: tables of tasks, nuclei, datasets and findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.rules import ProductionRules


@dataclass(frozen=True)
class TaskDecisions:
    """Decisions of the production task brokerage; every table is sorted by its key.

    Attributes:
        tasks: One row per (``jeditaskid``, ``snapshot``). ``outcome`` is ``nucleus``, ``no_candidates``,
            ``no_queue_at_all``, ``input_not_readable``, ``parent_missing`` or, as deployed, ``abort``.
            ``nucleus`` chosen; ``already_assigned`` (it had one, nothing was checked); ``stage``, the check, latest
            in the order, that removed a nucleus when nothing was left; ``locality`` (``waived``, ``off_period``,
            null); ``pending_until`` (UTC); ``would_help``, the checks each of which alone, if it did not exist,
            would leave a nucleus; the numbers of the waiver next to their limits (``iointensity`` and
            ``min_io_intensity`` [kB/s], ``tot_size_gb`` and ``min_input_size_gb`` [GB], ``priority`` and
            ``max_task_prio``); ``period_days_left`` [days] until a stuck task is no longer kept near its input;
            ``n_nuclei`` looked at and ``n_passed``; ``draw`` [0, 1).
        nuclei: One row per (``jeditaskid``, ``snapshot``, ``nucleus``) for every task that came to the checks.
            ``passed``; ``skip_reason`` (first failed check; null where it passed or was not reached), ``detail``
            (F1 to F3); one boolean per check under its name: it fails, whatever came before (``no_queue`` is null
            where a nucleus was removed before its queues were asked for); the columns that the checks compare (of outputs: those of the output
            that decides); ``weight``, its
            factors ``work``, ``data``, ``tape``, ``space_fraction``, ``space_amount`` (1 = term left out) and
            ``probability`` of the draw, all null where it did not pass.
        datasets: One row per output gathered of a task with a nucleus: ``ddm_endpoint_name`` and ``token``.
        findings: What was odd in the input and how it was taken: ``jeditaskid, snapshot, subject, finding``.
        checks: The checks of nuclei, in order.
        rules: The rule set it was decided under.
        config_digest: Digest of the gdpconfig it was decided under.
        seed: Of the draws that were not given.
    """

    tasks: pl.DataFrame
    nuclei: pl.DataFrame
    datasets: pl.DataFrame
    findings: pl.DataFrame
    checks: tuple[Rule, ...]
    rules: ProductionRules
    config_digest: str
    seed: int

    def to_frame(self) -> pl.DataFrame:
        """Return the table of tasks."""
        return self.tasks

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values."""
        frames = {
            name: getattr(self, name).to_dicts()
            for name in ("tasks", "nuclei", "datasets", "findings")
        }
        return frames | {
            "rules": self.rules.to_dict(),
            "config_digest": self.config_digest,
            "seed": self.seed,
        }

    def _repr_html_(self) -> str:
        return str(self.tasks._repr_html_())
