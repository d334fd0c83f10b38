"""The grammar of ``architecture``: positions and reasons of what was dropped, JSON that is almost JSON."""

from __future__ import annotations

import pytest

from brokerlab.matching import parse_architecture
from brokerlab.matching.hardware import CpuSpec, GpuSpec, ModelPattern


@pytest.mark.parametrize(
    ("text", "sw_platform", "base_platform", "cpu_specs"),
    [
        (None, None, None, ()),
        ("", "", None, ()),
        ("x86_64-el9-gcc13-opt", "x86_64-el9-gcc13-opt", None, (CpuSpec("x86_64"),)),
        ("x86_64-el9@el9+docker://a/b:1", "x86_64-el9", "el9+docker://a/b:1", (CpuSpec("x86_64"),)),
        ("x86_64-el9@", "x86_64-el9", None, (CpuSpec("x86_64"),)),
        ("@el9", "", "el9", ()),
        ("^x", "^x", None, ()),
        ("a#", "a", None, ()),
        ("a#x^y", "a", None, (CpuSpec("x"),)),
        ("a&nvidia#x86_64@el9", "a", "el9", (CpuSpec("x86_64"),)),
        ("#(x86_64-intel|aarch64)", "", None, (CpuSpec("x86_64", "intel"), CpuSpec("aarch64"))),
        ("#x86_64-*-avx2", "", None, (CpuSpec("x86_64", "*", "avx2"),)),
        ("(x86_64|aarch64)-el9", "(x86_64|aarch64)-el9", None, (CpuSpec("(x86_64|aarch64)"),)),
    ],
)
def test_old_format(
    text: str | None,
    sw_platform: str | None,
    base_platform: str | None,
    cpu_specs: tuple[CpuSpec, ...],
) -> None:
    request = parse_architecture(text)
    found = (request.sw_platform, request.base_platform, request.cpu_specs)
    assert found == (sw_platform, base_platform, cpu_specs)
    assert not request.is_json
    assert request.notes == ()


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("#&", None),
        ("#&nvidia", GpuSpec("nvidia")),
        ("#&*", GpuSpec("*")),
        ("#&nvidia-kt100", GpuSpec("nvidia", "kt100")),
        ("#&nvidia-kt100:model=.*A100.*", GpuSpec("nvidia", ".*A100.*")),
        ("#&nvidia:model!=.*P100.*", GpuSpec("nvidia", ModelPattern(".*P100.*", excl=True))),
        ("#&nvidia:model>=A", GpuSpec("nvidia", "A")),
        ("#&nvidia:vram=1:cuda>=12.0", GpuSpec("nvidia", vram="==1", version=">=12.0")),
        ("#&nvidia:uarch=Ampere", GpuSpec("nvidia", microarchitecture="Ampere")),
        ("#&nvidia:driver<575", GpuSpec("nvidia", driver_version="<575")),
    ],
)
def test_gpu_shorthand(text: str, spec: GpuSpec | None) -> None:
    request = parse_architecture(text)
    assert request.gpu_spec == spec
    assert request.notes == ()


@pytest.mark.parametrize(
    ("text", "position", "dropped", "message"),
    [
        ("#x86_64-intel-avx2-more", 19, "more", "more than arch-vendor-instr"),
        ("#(a|x86_64-intel-avx2-more)", 22, "more", "more than arch-vendor-instr"),
        ("a&nvidia-x-y", 10, "-y", "ends at the next -"),
        ("a&nvidia:vram", 9, "vram", "not key, operator, value"),
        ("a&nvidia:vram>=1:cada>=1", 17, "cada", "did you mean 'cuda'?"),
        ("a&nvidia:uarch>=Ampere", 14, ">=", "is read as =="),
        ('{"sw_platfrom": "a"}', 1, "sw_platfrom", "did you mean 'sw_platform'?"),
        ('{"gpu_spec": {"pattern": "a"}}', 14, "pattern", "no such field"),
        ('{"cpu_pref": [1]}', 1, "cpu_pref", "allowed is an object"),
        (
            '{"cpu_pref": {"preferred_architecture_level": 3}}',
            14,
            "preferred_architecture_level",
            "a text",
        ),
    ],
)
def test_notes_say_what_was_dropped_and_where(
    text: str, position: int, dropped: str, message: str
) -> None:
    request = parse_architecture(text)
    assert [(note.position, note.text) for note in request.notes] == [(position, dropped)]
    assert message in request.notes[0].message
    assert request.invalid is None


@pytest.mark.parametrize(
    "text",
    [
        "'{\"gpu_spec\": {}}'",
        '{"sw_platform": "a"',
        "{'sw_platform': 'a'}",
        '[{"sw_platform": "a"}]',
        "5",
        '{"a": ' * 3000,
        '{"a": ' + "1" * 5000 + "}",
    ],
)
def test_what_is_almost_json_is_the_old_format(text: str) -> None:
    assert not parse_architecture(text).is_json


def test_json_format() -> None:
    request = parse_architecture(
        '{"sw_platform": "p", "base_platform": "b", "cpu_specs": [{"arch": "x", "type": "cpu"}, {"vendor": "v"}],'
        ' "gpu_spec": {"model": {"pattern": "m", "excl": true}, "microarchitecture": ["a", "b"]},'
        ' "cpu_pref": {"preferred_architecture_level": "x86-64-v3"}}'
    )
    assert (request.sw_platform, request.base_platform) == ("p", "b")
    assert request.cpu_specs == (CpuSpec("x", ignored=(("type", '"cpu"'),)), CpuSpec(None, "v"))
    model = ModelPattern("m", excl=True)
    assert request.gpu_spec == GpuSpec(model=model, microarchitecture=("a", "b"))
    assert request.preferred_level == "x86-64-v3"
    assert request.notes == ()


@pytest.mark.parametrize(
    "text", ["{}", '{"cpu_specs": null, "gpu_spec": null}', '{"cpu_specs": []}']
)
def test_json_asks_for_nothing_that_it_does_not_name(text: str) -> None:
    request = parse_architecture(text)
    assert request.is_json
    assert not request.asks_for_hardware
    assert parse_architecture('{"gpu_spec": {}}').gpu_spec == GpuSpec()


@pytest.mark.parametrize(
    ("text", "invalid"),
    [
        ('{"sw_platform": 5}', "sw_platform is 5"),
        ('{"cpu_specs": "x86_64"}', "cpu_specs is"),
        ('{"cpu_specs": [5]}', "cpu_specs is"),
        ('{"cpu_specs": [{"arch": ["x"]}]}', "arch is"),
        ('{"gpu_spec": "nvidia"}', "gpu_spec is"),
        ('{"gpu_spec": {"vram": 40960}}', "vram is 40960, allowed is a text"),
        ('{"gpu_spec": {"microarchitecture": [1]}}', "microarchitecture is"),
        ('{"gpu_spec": {"model": {"pattern": 1}}}', "pattern is 1"),
    ],
)
def test_values_of_another_kind_make_a_request_that_nothing_satisfies(
    text: str, invalid: str
) -> None:
    request = parse_architecture(text)
    assert request.invalid is not None
    assert request.invalid.startswith(invalid)
    assert request.notes
