"""Workflows from files: WfFormat JSON, DAX, tables."""

from brokerlab.workflows.readers.files import read_workflow

__all__ = ["read_workflow"]
