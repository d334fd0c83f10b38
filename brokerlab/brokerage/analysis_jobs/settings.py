"""The gdpconfig keys that the analysis job brokerage reads (analysis-job-brokerage.md 1.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from brokerlab.brokerage.production_jobs.settings import UNLIMITED_DISKIO, read
from brokerlab.gdpconfig import Config

COMPONENT = "anal_jobbroker"
MIN_FREE_GB = 200
"""Free space asked for where the keys are 0 or absent [GB]."""


@dataclass(frozen=True, kw_only=True)
class ThrottleSettings:
    """Limits of the throttle; null: no cap.

    Attributes:
        user_jobs: CAP_RUNNING_USER_JOBS [jobs].
        user_cores: CAP_RUNNING_USER_CORES [cores].
        group_jobs: CAP_RUNNING_GROUP_JOBS [jobs].
        group_cores: CAP_RUNNING_GROUP_CORES [cores].
        threshold_a: USER_USAGE_THRESHOLD_A [running slots].
    """

    user_jobs: float | None
    user_cores: float | None
    group_jobs: float | None
    group_cores: float | None
    threshold_a: float

    @classmethod
    def of(cls, config: Config) -> ThrottleSettings:
        """Read the settings; a cap of 0 is none."""

        def cap(key: str) -> Any:
            return config.get(key, app="pandaserver", component="prio_mgr") or None

        return cls(
            user_jobs=cap("CAP_RUNNING_USER_JOBS"),
            user_cores=cap("CAP_RUNNING_USER_CORES"),
            group_jobs=cap("CAP_RUNNING_GROUP_JOBS"),
            group_cores=cap("CAP_RUNNING_GROUP_CORES"),
            threshold_a=config.get(
                "USER_USAGE_THRESHOLD_A", app="pandaserver", component="analy_eval", vo="atlas"
            ),
        )


@dataclass(frozen=True, kw_only=True)
class AnalysisSettings:
    """Values in force; names are those of the keys, units in the field's name where they have one.

    Attributes:
        min_bad_jobs: MIN_BAD_JOBS_TO_SKIP_PQ [jobs].
        io_intensity_cutoff: IO_INTENSITY_CUTOFF_USER [kB/s]; 0: no relaxation.
        data_check_timeout_h: DATA_CHECK_TIMEOUT_USER; 0: no relaxation.
        base_queue_length: BASE_QUEUE_LENGTH_PER_PQ [jobs].
        base_expected_wait_h: BASE_EXPECTED_WAIT_HOUR_ON_PQ.
        base_queue_length_user: BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER [jobs].
        base_queue_ratio: BASE_QUEUE_RATIO_ON_PQ.
        max_queue_running_ratio: STATIC_MAX_QUEUE_RUNNING_RATIO.
        max_expected_wait_h: MAX_EXPECTED_WAIT_HOUR.
        overload_min_queue: OVERLOAD_MIN_QUEUE [jobs].
        overload_ratio: OVERLOAD_RATIO_OFFSET, a factor.
        output_min_free_gb: STORAGE_MIN_FREE_SIZE_OUTPUT.
        input_min_free_gb: STORAGE_MIN_FREE_SIZE.
        max_diskio: MAX_DISKIO_DEFAULT [kB/s per core].
    """

    min_bad_jobs: float
    io_intensity_cutoff: float
    data_check_timeout_h: float
    base_queue_length: float
    base_expected_wait_h: float
    base_queue_length_user: float
    base_queue_ratio: float
    max_queue_running_ratio: float
    max_expected_wait_h: float
    overload_min_queue: float
    overload_ratio: float
    output_min_free_gb: float
    input_min_free_gb: float
    max_diskio: float

    @classmethod
    def of(cls, config: Config) -> AnalysisSettings:
        """Read the settings."""

        def own(key: str) -> Any:
            return read(config, key, component=COMPONENT)

        return cls(
            min_bad_jobs=own("MIN_BAD_JOBS_TO_SKIP_PQ"),
            io_intensity_cutoff=own("IO_INTENSITY_CUTOFF_USER") or 0,
            data_check_timeout_h=own("DATA_CHECK_TIMEOUT_USER") or 0,
            base_queue_length=own("BASE_QUEUE_LENGTH_PER_PQ"),
            base_expected_wait_h=own("BASE_EXPECTED_WAIT_HOUR_ON_PQ"),
            base_queue_length_user=own("BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER"),
            base_queue_ratio=own("BASE_QUEUE_RATIO_ON_PQ"),
            max_queue_running_ratio=own("STATIC_MAX_QUEUE_RUNNING_RATIO"),
            max_expected_wait_h=own("MAX_EXPECTED_WAIT_HOUR"),
            overload_min_queue=own("OVERLOAD_MIN_QUEUE"),
            overload_ratio=own("OVERLOAD_RATIO_OFFSET"),
            output_min_free_gb=own("STORAGE_MIN_FREE_SIZE_OUTPUT") or MIN_FREE_GB,
            input_min_free_gb=read(config, "STORAGE_MIN_FREE_SIZE") or MIN_FREE_GB,
            max_diskio=read(config, "MAX_DISKIO_DEFAULT") or UNLIMITED_DISKIO,
        )
