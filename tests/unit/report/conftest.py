"""A toy report: its notebook is written here, so that the runner can be tested alone."""

from pathlib import Path

import nbformat
import pytest

PARAMETERS = """\
archive: str = "data/none"  # the archive [path]
rank: int = 75  # percentile rank [%]
share: float = 0.02  # limit [1]
ranks: list[int] = [50, 99]  # first and last rank [%]
strict: bool = False  # whether to be strict
seed: int = 1  # seed of the bootstrap
out_dir: str = "out"  # where everything goes [path]
"""

BODY = """\
import json, sys
from pathlib import Path
from brokerlab.report.content import *

if strict:
    raise ValueError(f"rank {rank} is too strict\\nsecond line")
out = Path(out_dir)
(out / "charts").mkdir()
(out / "charts" / "curve.svg").write_text(
    '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10">'
    '<clipPath id="clip0"><rect/></clipPath><g clip-path="url(#clip0)"/></svg>'
)
kind = "change" if rank > 75 else "keep"
verdict = Verdict(kind=kind, sentence=f"{kind.title()} SCOUT_RAMCOUNT_RANK = {rank}.", subject="ramCount")
table = Table(
    name="before_after",
    caption="Before and after",
    columns=(Column(key="what", label="Quantity"), Column(key="diff", label="Difference", unit="%")),
    rows=(Row(cells={"what": "memory <reserved>", "diff": Num(value=-4.12, lo=-5.04, hi=-3.21)}, note="worst"),),
)
part = Part(
    name="ramcount", title="ramCount", verdict=verdict,
    picture=(Picture(chart="curve", alt='waste falls & "exceeds" rise', caption="n = 12"),),
    before_after=(table,), certainty=("Sure enough.",),
)
page = Page(
    report="toy", question="Which rank?", verdict=verdict, parts=(part,), synthetic=True,
    archive=archive, window="1 to 2 March 2026", cannot_tell=("Killed jobs: the archive has none.",),
)
results = {
    "report": "toy", "page": page.to_json(),
    "numbers": {"rank": rank, "share": share, "ranks": ranks, "python": sys.executable},
    "digests": {"archive": "abc"},
}
(out / "results.json").write_text(json.dumps(results))
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
