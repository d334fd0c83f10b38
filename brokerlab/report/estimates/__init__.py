"""What the reports on estimators share: where real data lie, tables of a comparison, trust, saved models."""

from collections.abc import Mapping

from brokerlab.estimators.sources.source import At
from brokerlab.report.estimates.places import archive_at, data_folder

CLOCKS: Mapping[At, str] = {"submit": "at submission", "start": "at the start"}
"""When a job is decided, in words."""

__all__ = ["CLOCKS", "archive_at", "data_folder"]
