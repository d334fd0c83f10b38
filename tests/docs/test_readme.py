"""What the README and the examples say can be typed, can be typed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from brokerlab.worlds import synthesise

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where what is typed finds an archive."""
    made = tmp_path_factory.mktemp("typed")
    synthesise(made / "data" / "demo", jobs=800, days=3, seed=1)
    return made


@pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")  # wrong policies are told
def test_examples_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    blocks = re.findall(r"```python\n(.*?)```", EXAMPLES, flags=re.DOTALL)
    assert len(blocks) == 10
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "examples.md", "exec"), names)  # noqa: S102 - our own README
    first, other = names["result"].parameters, names["other"].parameters  # type: ignore[attr-defined]
    assert first.height == other.height > 0
    assert first["ramcount"].drop_nulls().len() > 0
    assert (first["ramcount"] != other["ramcount"]).any()
    removed, caps = names["removed"], names["caps"]
    queues = names["decided"].queues  # type: ignore[attr-defined]
    skipped = queues.height - queues["check"].null_count()
    assert removed["n_pairs"].sum() == skipped > 0  # type: ignore[index]
    assert caps.filter("is_current")["n_pairs"].to_list() == [0]  # type: ignore[attr-defined]
    assert all(hour > 0 for hour in names["hours"])  # type: ignore[attr-defined]
    bounds = names["bounds"]
    assert (bounds["bound_0.95"] >= bounds["bound_0.75"]).all()  # type: ignore[index]
    assert bounds["seen"].max() > 0  # type: ignore[index]
    done = names["runs"].done  # type: ignore[attr-defined]
    assert (done["turnaround"] >= 600 + 1800 + 300).all()


@pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")
def test_the_first_minute_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) == 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)  # noqa: S102 - our own README
    assert names["result"].frame().height > 0  # type: ignore[attr-defined]
    assert names["removed"]["n_pairs"].sum() > 0  # type: ignore[index]
    assert names["verdict"].sentence  # type: ignore[attr-defined]
    refused = re.search(r"sentences\[0\]\)  # (.*)\.\.\.", README)
    assert refused is not None
    assert names["why"].sentences[0].startswith(refused[1])  # type: ignore[attr-defined]


def test_make_targets_exist() -> None:
    targets = re.findall(
        r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert set(re.findall(r"(?:`|^    )make ([a-z-]+)", README, re.MULTILINE)) <= set(targets)
