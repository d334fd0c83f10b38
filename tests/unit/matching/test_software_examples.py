"""The worked examples of matching.md 9, row by row, under both rule sets."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from brokerlab.errors import BrokerlabWarning
from brokerlab.matching import MatchingRules, software_pairs

ALL_ROUTES = {"containers": ["any", "/cvmfs"], "cvmfs": ["atlas", "nightlies"], "tags": []}
PLATFORMS = ["x86_64-centos7-gcc62-opt", "x86_64-el9-gcc13-opt"]
X86 = {"type": "cpu", "arch": ["x86_64"]}
T1 = {
    "cmtconfig": "x86_64-slc6-gcc62-opt",
    "project": "AthDerivation",
    "release": "21.2.2.0",
    "container_name": "",
    "sources": [],
}
T2 = {
    "cmtconfig": "",
    "project": "",
    "release": "",
    "container_name": "atlas-ml",
    "sources": ["/cvmfs/unpacked.cern.ch/atlas-ml:1.0"],
}

DESCRIPTIONS: dict[str, dict[str, Any]] = {
    "QA": {
        "architectures": [X86],
        "cmtconfigs": PLATFORMS,
        "containers": [],
        "cvmfs": ["atlas"],
        "tags": [],
    },
    "QB": {
        "architectures": [{"type": "cpu", "arch": ["aarch64"]}],
        "cmtconfigs": ["aarch64-el9-gcc13-opt"],
        **ALL_ROUTES,
    },
    "QC": {
        "architectures": [X86 | {"vendor": ["intel", "excl"], "instr": ["avx2"]}],
        "cmtconfigs": PLATFORMS,
        **ALL_ROUTES,
    },
    "QD": {"architectures": [{"type": "cpu", "arch": ["x86_64", "excl"]}], **ALL_ROUTES},
    "QE": {"architectures": [], **ALL_ROUTES},
    "QG": {
        "architectures": [X86, {"type": "gpu", "vendor": ["nvidia", "excl"], "model": ["kt100"]}],
        **ALL_ROUTES,
    },
    "QH": {"architectures": [X86, {"type": "gpu", "vendor": ["nvidia"]}], **ALL_ROUTES},
    "QM": {"architectures": [X86, {"type": "gpu", "vendor": ["nvidia"]}], **ALL_ROUTES},
    "QN": {"architectures": [X86], "cmtconfigs": PLATFORMS, **ALL_ROUTES},
    "QP": {
        "architectures": [{"type": "cpu", "arch": ["any"]}],
        "containers": ["/cvmfs/unpacked.cern.ch"],
        "cvmfs": ["atlas"],
        "tags": [],
    },
    "QT": {
        "architectures": [{"type": "cpu", "arch": ["any"]}],
        "cmtconfigs": [],
        "containers": [],
        "cvmfs": [],
        "tags": [T1, T2],
    },
    "QZ": {"architectures": [{"type": "cpu", "arch": [""]}], **ALL_ROUTES},
    "ALL": {"tags": [T1, T2]},
}
GPUS = [
    ("QG", "NVIDIA", "NVIDIA A100-SXM4-80GB", 81920, "Ampere", "12.4", "550.54.15"),
    ("QM", "NVIDIA", "Tesla V100-PCIE-16GB", 16384, "Volta", "12.2", "535.104.05"),
    ("QM", "NVIDIA", "NVIDIA A100-PCIE-40GB", 40960, "Ampere", "12.9", "575.57.08"),
    ("QN", "NVIDIA", "NVIDIA A100-PCIE-40GB", 40960, "Ampere", "12.9", "575.57.08"),
]
GPU_SCHEMA = {
    "panda_queue": pl.String,
    "vendor": pl.String,
    "model": pl.String,
    "vram": pl.Int64,
    "architecture": pl.String,
    "framework_version": pl.String,
    "driver_version": pl.String,
}

EL9 = "x86_64-el9-gcc13-opt"
BOTH = "(x86_64|aarch64)-el9-gcc13-opt"
JSON_EL9 = '{"sw_platform":"x86_64-el9-gcc13-opt"}'
SLC6 = "x86_64-slc6-gcc62-opt"
ATHENA = "Athena-24.0.40"
DERIVATION = "AthDerivation-21.2.2.0"
NIGHTLY = "Athena-main-2024-01-01T2101"

# number, architecture, queue, document, production (None: accepted; else the reason of section 3)
ROWS: list[tuple[int, str | None, str, str | None, str | None]] = [
    (1, EL9, "QA", None, None),
    (2, "x86_64-el9-gcc14-opt", "QA", "release_unavailable", "release_unavailable"),
    (3, f"{EL9}@el9", "QA", None, "release_unavailable"),
    (4, f"{EL9}@el9", "QN", None, None),
    (5, f"{EL9}#x86_64-intel-avx2", "QC", None, None),
    (6, f"{EL9}#x86_64-amd", "QC", "cpu_mismatch", "cpu_mismatch"),
    (7, f"{EL9}#x86_64", "QC", "cpu_mismatch", "cpu_mismatch"),
    (8, f"{EL9}#x86_64-intel-avx2", "QA", "cpu_mismatch", "cpu_mismatch"),
    (9, JSON_EL9, "QD", "cpu_exclusive", "cpu_exclusive"),
    (10, EL9, "QD", None, None),
    (11, EL9, "QE", None, "hardware_undescribed"),
    (12, JSON_EL9, "QE", None, None),
    (13, EL9, "QY", None, "release_any"),
    (14, JSON_EL9, "QY", None, None),
    (15, EL9, "QX", "release_not_auto", "release_not_auto"),
    (16, EL9, "QZ", None, "cpu_mismatch"),
    (17, BOTH, "QA", None, "release_unavailable"),
    (18, BOTH, "QB", None, None),
    (19, "(x86_64|aarch64)-el9-gcc99-opt", "QB", None, None),
    (20, "(x86_64|aarch64)-(el9|el8)-gcc99-opt", "QB", *["platform_unresolved"] * 2),
    (21, "x86_64-.*-gcc13-opt#x86_64", "QA", None, "release_unavailable"),
    (22, "x86_64+v3-el9-gcc13-opt#x86_64", "QN", *["platform_unresolved"] * 2),
    (23, "#(x86_64|aarch64)", "QB", None, None),
    (24, "#(x86_64-intel|aarch64)", "QC", None, None),
    (25, "#&nvidia", "QN", "gpu_not_capable", "gpu_not_capable"),
    (26, "#&nvidia", "QH", "gpu_vendor", "gpu_vendor"),
    (27, "#&*", "QH", None, None),
    (28, "#&nvidia", "QG", None, None),
    (29, "#&nv", "QG", None, None),
    (30, "#&amd", "QG", "gpu_vendor", "gpu_vendor"),
    (31, "#x86_64", "QG", "gpu_exclusive", "gpu_exclusive"),
    (32, "#&nvidia-kt100", "QG", "gpu_model", "gpu_model"),
    (33, "#&nvidia:model=.*A100.*:vram>=40960", "QG", None, None),
    (34, "#&nvidia:model=A100", "QG", "gpu_model", "gpu_model"),
    (35, "#&nvidia:model!=.*P100.*", "QG", None, None),
    (36, "#&nvidia:model!=.*(P100|V100).*", "QM", "gpu_model", "gpu_model"),
    (37, "#&nvidia:model!=.*P100.*", "QH", "gpu_vendor", "gpu_vendor"),
    (38, "#&nvidia:vram>=40960", "QM", "gpu_vram", "gpu_vram"),
    (39, "#&nvidia:vram>=16384", "QM", None, None),
    (40, "#&nvidia:uarch=Ampere:cuda>=12.0", "QM", None, None),
    (41, "#&nvidia:cuda>=12.8", "QM", "gpu_version", "gpu_version"),
    (42, "#&nvidia:cuda!=11.8", "QM", None, None),
    (43, "#&nvidia:driver>=575.0", "QG", "gpu_driver", "gpu_driver"),
    (44, "#&nvidia:uarch=ampere", "QG", *["gpu_microarchitecture"] * 2),
    (45, '{"gpu_spec":{"vendor":"nvidia","vram":">=40960","version":">=12.0"}}', "QG", None, None),
    (46, '{"gpu_spec":{"vendor":"nvidia","pattern":".*A100.*","excl":true}}', "QG", None, None),
    (47, '{"gpu_spec":{"microarchitecture":["Hopper","Ampere"]}}', "QM", None, None),
    (48, '\'{"gpu_spec":{"vendor":"nvidia"}}\'', "QG", "gpu_exclusive", "gpu_exclusive"),
    (
        49,
        f'{{"cpu_specs":[{{"vendor":"intel"}}],"sw_platform":"{EL9}"}}',
        "QC",
        None,
        "sw_description_invalid",
    ),
    (50, SLC6, "QT", None, None),
    (51, f"{SLC6}@centos7", "QT", "release_unavailable", "release_unavailable"),
    (52, SLC6, "QT", "release_unavailable", "release_unavailable"),
    (53, "{}", "QT", "container_unavailable", None),
    (54, "{}", "QT", None, None),
    (55, "{}", "QP", None, None),
    (56, "{}", "QP", "container_unavailable", "container_unavailable"),
    (57, "{}", "QN", None, None),
    (58, EL9, "QA", "release_unavailable", "release_unavailable"),
    (59, EL9, "QN", None, None),
    (60, None, "QN", None, None),
    (61, "#[x86", "QN", "sw_description_invalid", "sw_description_invalid"),
]
TRANSHOMES = {50: DERIVATION, 51: DERIVATION, 52: "AthDerivation-21.2.3.0"} | dict.fromkeys(
    (58, 59), NIGHTLY
)
CONTAINERS = dict.fromkeys((53, 54, 55, 56), "atlas-ml") | {57: "docker://x/y"}
ONLY_TAGS = (54, 56)


def decide(
    number: int, architecture: str | None, queue: str, rules: MatchingRules
) -> dict[str, Any]:
    names = [*DESCRIPTIONS, "QX", "QY"]
    frame = software_pairs(
        pl.DataFrame(
            [
                {
                    "architecture": architecture,
                    "transhome": TRANSHOMES.get(number, ATHENA),
                    "container_name": CONTAINERS.get(number),
                    "onlytagsforfc": number in ONLY_TAGS,
                }
            ],
            schema_overrides={"architecture": pl.String, "container_name": pl.String},
        ),
        pl.DataFrame(
            {
                "panda_queue": names,
                "releases": [["ANY"] if name == "QY" else ["AUTO"] for name in names],
            }
        ).filter(pl.col("panda_queue") == queue),
        pl.DataFrame(
            {
                "panda_queue": list(DESCRIPTIONS),
                "data": [json.dumps(data) for data in DESCRIPTIONS.values()],
            }
        ),
        pl.DataFrame(GPUS, schema=GPU_SCHEMA, orient="row"),
        rules=rules,
    )
    assert frame.height == 1
    return frame.row(0, named=True)


@pytest.mark.filterwarnings(f"ignore::{BrokerlabWarning.__module__}.BrokerlabWarning")
@pytest.mark.parametrize("rules", ["document", "production"])
@pytest.mark.parametrize(("number", "architecture", "queue", "document", "production"), ROWS)
def test_worked_example(
    number: int,
    architecture: str | None,
    queue: str,
    document: str | None,
    production: str | None,
    rules: str,
) -> None:
    expected = document if rules == "document" else production
    decision = decide(number, architecture, queue, MatchingRules(rules))
    assert (decision["accept"], decision["reason"]) == (expected is None, expected)


@pytest.mark.parametrize(
    ("number", "architecture", "queue", "platform"),
    [
        (17, BOTH, "QA", "x86_64-el9-gcc13-opt"),
        (18, BOTH, "QB", "aarch64-el9-gcc13-opt"),
        (19, "(x86_64|aarch64)-el9-gcc99-opt", "QB", "aarch64-el9-gcc99-opt"),
        (21, "x86_64-.*-gcc13-opt#x86_64", "QA", "x86_64-el9-gcc13-opt"),
        (4, f"{BOTH}@el9", "QN", "x86_64-el9-gcc13-opt@el9"),
        (1, EL9, "QA", None),
    ],
)
def test_resolved_platform(
    number: int, architecture: str, queue: str, platform: str | None
) -> None:
    assert decide(number, architecture, queue, MatchingRules())["platform"] == platform


def test_every_row_of_the_chapter_is_here() -> None:
    assert [row[0] for row in ROWS] == list(range(1, 62))
