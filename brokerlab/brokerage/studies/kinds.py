"""The job brokerages that can be replayed over a period, and where they differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from brokerlab.brokerage.analysis_jobs import brokerage as analysis_jobs
from brokerlab.brokerage.analysis_jobs.decisions import AnalysisDecisions
from brokerlab.brokerage.analysis_jobs.keys import TABLE_KEYS
from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.engine.brokerage import Brokerage
from brokerlab.brokerage.production_jobs import brokerage as production_jobs
from brokerlab.brokerage.production_jobs.decisions import Decisions
from brokerlab.brokerage.production_jobs.settings import MIN_WEIGHT_KEY
from brokerlab.brokerage.replaying.build import LABELS
from brokerlab.brokerage.rules import JobRules

JobDecisions: TypeAlias = Decisions | AnalysisDecisions
"""What a job brokerage decided."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One of the job brokerages.

    Attributes:
        name: production or analysis.
        brokerage: The brokerage.
        label: ``prodsourcelabel`` of its jobs.
        switches: Switches that it can see.
        components: Components of gdpconfig whose keys it reads, those of its own first.
        borrowed: Keys of other components that it reads too, as the catalogue writes them.
        table_keys: Keys on which its tables depend, so that a replay makes them again.
        stuck: Outcomes of brokerages that leave their task without a queue.
        usual_keys: Keys of which a report tries other values where none is named.
    """

    name: str
    brokerage: Brokerage[Any, Decisions] | Brokerage[Any, AnalysisDecisions]
    label: str
    switches: tuple[str, ...]
    components: tuple[str, ...]
    stuck: tuple[str, ...]
    usual_keys: tuple[str, ...]
    borrowed: frozenset[str] = frozenset()
    table_keys: frozenset[str] = frozenset()


PRODUCTION = Kind(
    name="production",
    brokerage=production_jobs.BROKERAGE,
    label=LABELS["jobs"],
    switches=tuple(JobRules.SWITCHES),
    components=("jobbroker", "taskbrokerage", "core"),
    stuck=("no_candidates", "input_incomplete", "unknown_nucleus"),
    usual_keys=(
        *("NQUEUED_SAT_CAP", "NQUEUED_NUC_CAP_FOR_JOBS"),
        *("IO_INTENSITY_CUTOFF", "SIZE_CUTOFF_TO_MOVE_INPUT", "STORAGE_MIN_FREE_SIZE"),
        *("MAX_DISKIO_DEFAULT", "NW_QUEUE_IMPORTANCE", "MIN_WEIGHT_managed"),
        *("DISK_THRESHOLD", "INPUT_SIZE_FRACTION"),
    ),
)
ANALYSIS = Kind(
    name="analysis",
    brokerage=analysis_jobs.BROKERAGE,
    label=LABELS["analysis"],
    switches=tuple(AnalysisRules.SWITCHES),
    components=("anal_jobbroker", "prio_mgr", "analy_eval"),
    borrowed=frozenset({"STORAGE_MIN_FREE_SIZE", "MAX_DISKIO_DEFAULT", MIN_WEIGHT_KEY}),
    table_keys=frozenset(TABLE_KEYS),
    stuck=("throttled_waiting", "temporary_error", "fatal"),
    usual_keys=(
        *("CAP_RUNNING_USER_JOBS", "CAP_RUNNING_USER_CORES"),
        *("BASE_QUEUE_LENGTH_PER_PQ", "BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER"),
        *("STATIC_MAX_QUEUE_RUNNING_RATIO", "MAX_EXPECTED_WAIT_HOUR"),
        *("BASE_EXPECTED_WAIT_HOUR_ON_PQ", "MIN_BAD_JOBS_TO_SKIP_PQ"),
        *("IO_INTENSITY_CUTOFF_USER", "OVERLOAD_RATIO_OFFSET"),
    ),
)


def kind_of(decisions: JobDecisions) -> Kind:
    """Return the brokerage that decided.

    Example:
        >>> kind_of(ANALYSIS.brokerage.decide({})).name
        'analysis'
    """
    return ANALYSIS if isinstance(decisions, AnalysisDecisions) else PRODUCTION
