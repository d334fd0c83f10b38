"""Releases of user tasks (analysis-jobs.md 4)."""

from __future__ import annotations

import pytest

from brokerlab.matching.software import Release
from brokerlab.matching.software_pairs import release_mode

ATLAS = "atlas"


@pytest.mark.parametrize(
    ("transhome", "transuses", "mode", "release"),
    [
        (None, None, "standalone", None),
        ("AnalysisTransforms", None, "nightly", Release("nightlies", None, None)),
        ("AnalysisTransforms", "Atlas-21.0.38", "release", Release(ATLAS, "AtlasOffline", "21.0.38")),
        ("AnalysisTransforms-AtlasProduction_17.7.4.8", "Atlas-17.7.4", "cache", Release(ATLAS, "AtlasProduction", "17.7.4.8")),
        ("AnalysisTransforms-Athena_24.0.40", None, "release", Release(ATLAS, "Athena", "24.0.40")),
        ("AnalysisTransforms-Athena_24.0.40", "Atlas-20.7", "nightly", Release("nightlies", None, None)),
        ("AnalysisTransforms-Athena_main_2024-01-01T2101", None, "nightly", Release("nightlies", None, None)),
        ("AnalysisTransforms-A_B_1.2.3", None, "release", None),
        ("AnalysisTransforms-Athena", None, "cache", None),
    ],
)  # fmt: skip
def test_modes(
    transhome: str | None, transuses: str | None, mode: str, release: Release | None
) -> None:
    assert release_mode(transhome, transuses) == (mode, release)
