"""A toy report: its notebook is written here, so that the runner can be tested alone."""

from pathlib import Path

import nbformat
import pytest

from brokerlab.report.kernel import Failure, Kernel
from tests.notebook_cells import run_cells

PARAMETERS = """\
archive: str = "data/none"  # the archive [path]
rank: int = 75  # percentile rank [%]
share: float = 0.02  # limit [1]
ranks: list[int] = [50, 99]  # first and last rank [%]
strict: bool = False  # whether to be strict
seed: int = 1  # seed of the bootstrap
reports: str = ""  # where proposals lie [path of reports]
out_dir: str = "out"  # where everything goes [path]
"""

BODY = """\
import altair as alt, polars as pl, sys
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.report import kit, publishing
from brokerlab.report.kit import *

class Asked(Bare):
    report: ClassVar[str] = "toy"
    question: ClassVar[str] = "Which rank?"
    archive: str
    rank: int
    share: float
    ranks: list[int]
    seed: int
    out_dir: str

p = Asked(archive=archive, rank=rank, share=share, ranks=ranks, seed=seed, out_dir=out_dir)
if share > 1:
    raise ConfigError(f"share={share}: must be at most 1")
if strict:
    raise ValueError(f"rank {rank} is too strict\\nsecond line")
if rank < 2:
    raise InsufficientDataError("9 tasks, about 60 are needed; ingest more days")
kind = "change" if rank > 75 else "keep"
frame = pl.DataFrame({"what": ["memory <reserved>"], "diff": [-0.0412], "diff_lo": [-0.0504], "diff_hi": [-0.0321], "mark": ["worst"]})
def curve_chart(frame):
    return alt.Chart(frame).mark_line(clip=True).encode(x="diff:Q", y="diff_lo:Q")
page = Page(
    verdict=Verdict(kind=kind, sentence=f"{kind.title()} SCOUT_RAMCOUNT_RANK = {rank}.", subject="ramCount"),
    numbers=[Number.of(frame.row(0, named=True), "diff", label="reserved", unit="%")],
    chart=Chart(draw=curve_chart, frame=frame, finding='waste falls & "exceeds" rise', sample="n = 12"),
    sections={BEFORE_AFTER: [Table(name="before_after", frame=frame, caption="Before and after",
                             columns={"what": "Quantity", "diff": "Difference [%]"}, mark="mark")],
              CERTAINTY: ["Sure enough."]},
    caveats=[Caveat(n=1, text="Killed jobs: the archive has none."), Caveat(n=0, text="Never said.")],
    window="1 to 2 March 2026", synthetic=True, digests={"archive": "abc"},
    values={"rank": rank, "share": share, "ranks": ranks, "python": sys.executable},
)
publishing.publish(page, p)
"""


@pytest.fixture
def notebooks(tmp_path: Path) -> Path:
    """A folder with two reports: `toy`, and `bare` without a parameters cell."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    cell = nbformat.v4.new_code_cell
    toy = nbformat.v4.new_notebook(
        cells=[cell(PARAMETERS, metadata={"tags": ["parameters"]}), cell(BODY)],
        metadata={"kernelspec": {"name": "elsewhere", "display_name": "x", "language": "python"}},
    )
    nbformat.write(toy, folder / "toy.ipynb")
    bare = nbformat.v4.new_notebook(
        cells=[cell("x = 1")],
        metadata={"kernelspec": {"name": "python3", "display_name": "x", "language": "python"}},
    )
    nbformat.write(bare, folder / "bare.ipynb")
    return folder


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run notebooks in this process, which takes no time; returns what was run, grows with every run."""
    made: list[str] = []

    def execute(_: Kernel, source: Path, folder: Path, given: dict[str, object]) -> Failure | None:
        made.append(folder.name)
        return run_cells(source, folder, given)

    monkeypatch.setattr(Kernel, "execute", execute)
    return made
