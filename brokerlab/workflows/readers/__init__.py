"""Workflows from files: WfFormat JSON, DAX, tables."""

from brokerlab.workflows.readers.collection import describe_workflows, read_workflows
from brokerlab.workflows.readers.files import read_workflow

__all__ = ["describe_workflows", "read_workflow", "read_workflows"]
