"""Text rules: fair share policies, architectures, releases, connectivity and catchall of tasks and queues.

Pure functions decide one text against another; their batch forms (``decide_pairs``, ``software_pairs``,
``read_catchalls``) decide the distinct pairs that occur and return a small frame to join.
"""

from brokerlab.matching.architecture import Request, parse_architecture
from brokerlab.matching.catchall import (
    Catchall,
    Connectivity,
    parse_connectivity,
    read_catchall,
    read_catchalls,
)
from brokerlab.matching.hardware import GpuNode, compare_version, match_cpu, match_gpu
from brokerlab.matching.notes import Note
from brokerlab.matching.patterns import Pattern, PatternError, compile_pattern
from brokerlab.matching.rules import MatchingRules
from brokerlab.matching.software import (
    Match,
    SoftwareQueue,
    SoftwareTask,
    match_software,
    resolve_platform,
)
from brokerlab.matching.software_pairs import software_pairs
from brokerlab.matching.zero_share import decide_pairs, zero_share
from brokerlab.matching.zero_share import parse as parse_policy

__all__ = [
    "Catchall",
    "Connectivity",
    "GpuNode",
    "Match",
    "MatchingRules",
    "Note",
    "Pattern",
    "PatternError",
    "Request",
    "SoftwareQueue",
    "SoftwareTask",
    "compare_version",
    "compile_pattern",
    "decide_pairs",
    "match_cpu",
    "match_gpu",
    "match_software",
    "parse_architecture",
    "parse_connectivity",
    "parse_policy",
    "read_catchall",
    "read_catchalls",
    "resolve_platform",
    "software_pairs",
    "zero_share",
]
