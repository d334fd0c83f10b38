"""What the reports on estimators share: where real data lie, tables of a comparison, charts, trust, saved models."""

from brokerlab.report.estimates.places import archive_at, data_folder

__all__ = ["archive_at", "data_folder"]
